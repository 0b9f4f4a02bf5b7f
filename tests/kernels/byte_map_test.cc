// Lines for tables of bytes: those of requantizations and LEAKY_RELU are found, and what a kernel
// computes is the table, with lines and without.
#include "kernels/elementwise/bytes/byte_map.h"

#include <algorithm>
#include <cmath>

#include "kernels/elementwise/bytes/byte_lines.h"
#include "tests/kernels/op_tester.h"

namespace fuselite::kernels::testing {
namespace {

// round(scale v) with another slope below the input's zero point.
std::vector<uint8_t> BentTable(Random& random, bool signed_in, bool signed_out, int zero) {
  const double scale = std::exp(random.Float(-2, 1.3f));
  const double below = scale * random.Pick({0.0, 0.01, 0.1, 0.3, 1.0, -0.1});
  const int low = signed_out ? -128 : 0, out_zero = low + static_cast<int>(random.Int(0, 255));
  std::vector<uint8_t> table(256);
  for (int x = 0; x < 256; ++x) {
    const int v = (signed_in ? static_cast<int8_t>(x) : x) - zero;
    const auto y = static_cast<int>(std::round(v * (v < 0 ? below : scale))) + out_zero;
    table[x] = static_cast<uint8_t>(std::clamp(y, low, low + 255));
  }
  return table;
}

void ExpectMap(const std::vector<uint8_t>& table, int zero, bool signed_in, bool signed_out,
               Random& random) {
  const DataType in = signed_in ? DataType::kInt8 : DataType::kUInt8;
  const auto rows = static_cast<int32_t>(random.Int(1, 40));
  TensorInfo info{.type = in, .shape = {rows, static_cast<int32_t>(random.Int(1, 300))}};
  info.row_pitch = RandomPitch(random, info.shape.dim(-1));
  TestTensor x(info, random.Int(0, 3));
  x.Fill(random, signed_in ? -128 : 0, signed_in ? 127 : 255);
  TensorInfo out{.type = signed_out ? DataType::kInt8 : DataType::kUInt8, .shape = info.shape};
  out.row_pitch = RandomPitch(random, info.shape.dim(-1));
  for (const Isa isa : RunnableIsas()) {
    OpDescription op;
    op.op = FindOperator("QUANTIZE");
    op.inputs = {info};
    op.outputs = {out};
    const auto kernel = MakeByteMap(op, "map", table, zero, isa);
    if (!kernel.ok()) {
      EXPECT_EQ(kernel.status().code(), StatusCode::kUnsupported);  // no vector target
      continue;
    }
    TestTensor y(out, random.Int(0, 3));
    const void* inputs[] = {x.bytes()};
    void* outputs[] = {y.bytes()};
    std::vector<std::byte> scratch((*kernel)->scratch_bytes());
    const KernelArgs args{inputs, outputs, scratch.data(), nullptr};
    ASSERT_TRUE((*kernel)->Run(args, 0, 0, (*kernel)->units(0)).ok());
    y.CheckGuards("map");
    for (int64_t i = 0; i < info.elements(); ++i) {
      ASSERT_EQ(y.at<uint8_t>(i), table[x.at<uint8_t>(i)]) << IsaName(isa) << " at " << i;
    }
  }
}

TEST(ByteMapTest, BentLinesAreFound) {
  int found = 0, exact = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const bool signed_in = random.Chance(0.5), signed_out = random.Chance(0.5);
    const int zero = static_cast<int>(random.Int(0, 255)) - (signed_in ? 128 : 0);
    const std::vector<uint8_t> table = BentTable(random, signed_in, signed_out, zero);
    const auto lines = FindByteLines(table, signed_in, signed_out, zero);
    found += lines ? 1 : 0;
    exact += lines && !lines->corrects ? 1 : 0;
    if (lines) {
      EXPECT_EQ(lines->corrects,
                std::ranges::any_of(lines->bits, [](uint8_t b) { return b != 0; }));
    }
    for (int x = 0; lines && x < 256; ++x) {
      ASSERT_EQ((*lines)(static_cast<uint8_t>(x)), table[x]) << x;
    }
    ExpectMap(table, zero, signed_in, signed_out, random);
  }
  EXPECT_GE(found, 285);
  EXPECT_GE(exact, 200);
}

TEST(ByteMapTest, LimitsAreFound) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const bool has_sign = random.Chance(0.5);
    const int low = has_sign ? -128 : 0;
    const auto [least, most] =
        std::minmax({static_cast<int>(random.Int(0, 255)), static_cast<int>(random.Int(0, 255))});
    std::vector<uint8_t> table(256);
    for (int x = 0; x < 256; ++x) {
      const int v = has_sign ? static_cast<int8_t>(x) : x;
      table[x] = static_cast<uint8_t>(std::clamp(v, least + low, most + low));
    }
    const auto limits = FindByteLimits(table, has_sign, has_sign);
    ASSERT_TRUE(limits.has_value());
    EXPECT_EQ(limits->lowest, least);
    EXPECT_EQ(limits->highest, most);
    ExpectMap(table, 0, has_sign, has_sign, random);
    if (least == most) continue;
    table[static_cast<uint8_t>(least + low)] ^= 1;
    EXPECT_FALSE(FindByteLimits(table, has_sign, has_sign).has_value());
  }
}

TEST(ByteMapTest, OtherFunctionsGoThroughTheTable) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    std::vector<uint8_t> table(256);
    for (uint8_t& entry : table) entry = static_cast<uint8_t>(random.Int(0, 255));
    EXPECT_FALSE(FindByteLines(table, true, true, 0));
    ExpectMap(table, 0, true, true, random);
  }
}

}  // namespace
}  // namespace fuselite::kernels::testing
