// Tables in registers, by every method and vector width that the machine runs.
#include "jit/tail/lookup_emitter.h"

#include <array>
#include <cstring>
#include <vector>

#include "jit/tail/integer_tail_emitter.h"
#include "tests/jit/jit_cases.h"

namespace fuselite::jit::testing {
namespace {

struct Args {
  const uint8_t* in;
  uint8_t* out;
  const std::byte* table;
};

// So many bytes at a time, in how many registers side by side, with how many to spare.
struct Step {
  int width = 16, registers = 1, spare = 0;
};

// A function that looks up 256 bytes.
class LookupFunction : public Assembler {
 public:
  LookupFunction(Isa isa, LookupMethod method, const Step& step) : Assembler(isa) {
    const Xbyak::Reg64 args = rdi, in = r8, out = r9, table = r10;
    const int last = VectorIsa(isa).registers() - 1, width = step.width;
    std::vector<LookupBytes> all;
    std::vector<int> spare;
    for (int i = 0; i < step.registers; ++i) all.push_back({last - i, width});
    for (int i = 0; i < step.spare; ++i) spare.push_back(4 + i);
    BeginFunction();
    mov(in, ptr[args + offsetof(Args, in)]);
    mov(out, ptr[args + offsetof(Args, out)]);
    mov(table, ptr[args + offsetof(Args, table)]);
    LookupEmitter lookup(*this, method, table, {0, 3, 2});
    for (int at = 0; at < 256; at += width * step.registers) {
      for (int i = 0; i < step.registers; ++i) {
        vmovups(VectorOf(all[i].reg, width), ptr[in + at + i * width]);
      }
      lookup.Emit(all, spare);
      for (int i = 0; i < step.registers; ++i) {
        vmovups(ptr[out + at + i * width], VectorOf(all[i].reg, width));
      }
    }
    EndFunction();
  }
};

void ExpectLooksUp(Isa isa, LookupMethod method, const Step& step) {
  SCOPED_TRACE(::testing::Message() << IsaName(isa) << ", " << step.registers << " times "
                                    << step.width << " bytes, " << step.spare << " to spare");
  CodeCache cache;
  const auto code = cache.GetOrEmit("lookup", "lookup", [&]() -> Result<CodeBytes> {
    LookupFunction function(isa, method, step);
    return function.Finish({0});
  });
  ASSERT_TRUE(code.ok()) << code.status().ToString();
  Random random(step.width);
  std::array<uint8_t, 256> table, in, out, expected;
  for (int i = 0; i < 256; ++i) {
    table[i] = static_cast<uint8_t>(random.Int(0, 255));
    in[i] = static_cast<uint8_t>(i * 77 + 5);  // each byte once
    expected[i] = 0;
  }
  for (int i = 0; i < 256; ++i) expected[i] = table[in[i]];
  const AlignedBuffer encoded = EncodeLookup(table, method);
  Args args{in.data(), out.data(), encoded.data()};
  (*code)->entry<void(Args*)>(0)(&args);
  EXPECT_EQ(out, expected);
}

TEST(LookupEmitterTest, EveryByteByEveryMethod) {
  for (const Isa isa : EmittedIsas()) {
    const VectorIsa vectors(isa);
    for (const int width : {16, 32, 64}) {
      if (width > vectors.bytes) continue;
      for (const Step& step : {Step{width}, Step{width, 1, 1}, Step{width, 4, 0}, Step{width, 4, 3},
                               Step{width, 2, 8}}) {
        ExpectLooksUp(isa, LookupMethod::kShuffles, step);
        if (vectors.vbmi) ExpectLooksUp(isa, LookupMethod::kPermutes, step);
      }
    }
  }
}

TEST(LookupEmitterTest, PermutesNeedTheirFeature) {
  const auto permutes = [](Isa isa) {
    return BestLookup(VectorIsa(isa)) == LookupMethod::kPermutes;
  };
  EXPECT_TRUE(permutes(Isa::kAvx512Vnni));
  EXPECT_FALSE(permutes(Isa::kAvx512Vnni.without(Feature::kAvx512Vbmi)));
  EXPECT_FALSE(permutes(Isa::kAvx512));
  EXPECT_FALSE(permutes(Isa::kAvx2));
}

}  // namespace
}  // namespace fuselite::jit::testing
