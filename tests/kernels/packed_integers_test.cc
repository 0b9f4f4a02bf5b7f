// int4, uint4 and int2: packing, conversions, movement.
#include "kernels/packed_integers.h"

#include <cmath>
#include <numeric>

#include "kernels/concatenation/concatenation.h"
#include "kernels/gather/gather.h"
#include "kernels/movement/placement.h"
#include "kernels/numbers/short_floats.h"
#include "tests/kernels/op_tester.h"

namespace fuselite::kernels::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::ElementsAreArray;

constexpr DataType kF32 = DataType::kFloat32, kI32 = DataType::kInt32, kI4 = DataType::kInt4,
                   kU4 = DataType::kUInt4, kI2 = DataType::kInt2;
constexpr DataType kPacked[] = {kI4, kU4, kI2};

TestTensor Packed(DataType type, Shape shape, const std::vector<int8_t>& values,
                  Quantization quantization = {}) {
  TestTensor tensor({.type = type, .shape = shape, .quantization = std::move(quantization)});
  EXPECT_EQ(static_cast<size_t>(shape.elements()), values.size());
  PackIntegers(type, values.data(), shape.elements(), tensor.bytes());
  return tensor;
}

std::vector<int> Unpacked(const TestTensor& tensor) {
  const PackedIntegers values(tensor.info().type, tensor.bytes());
  std::vector<int> result;
  for (int64_t i = 0; i < tensor.info().elements(); ++i) result.push_back(values[i]);
  return result;
}

// Integers of a type's range, by counting up and around.
std::vector<int8_t> Counting(DataType type, int64_t count) {
  const int low = type == kU4 ? 0 : type == kI4 ? -8 : -2, values = type == kI2 ? 4 : 16;
  std::vector<int8_t> result;
  for (int64_t i = 0; i < count; ++i) result.push_back(static_cast<int8_t>(low + i * 7 % values));
  return result;
}

TestTensor RunReference(OpTester& tester) {
  const Status inferred = tester.Infer();
  EXPECT_TRUE(inferred.ok()) << inferred.ToString();
  if (!inferred.ok()) return {};
  const auto outputs = tester.Run("reference", Isa::kScalar);
  EXPECT_TRUE(outputs.ok()) << outputs.status().ToString();
  return outputs.ok() ? (*outputs)[0] : TestTensor();
}

TEST(PackedTest, TheLowestBitsComeFirst) {
  EXPECT_EQ(Packed(kI4, {3}, {-8, 7, -1}).data<uint8_t>()[0], 0x78);
  EXPECT_EQ(Packed(kI4, {3}, {-8, 7, -1}).data<uint8_t>()[1], 0x0F);
  EXPECT_EQ(Packed(kU4, {2}, {15, 1}).data<uint8_t>()[0], 0x1F);
  EXPECT_EQ(Packed(kI2, {4}, {1, -2, 0, -1}).data<uint8_t>()[0], 0b11001001);
  for (const DataType type : kPacked) {
    const std::vector<int8_t> values = Counting(type, 37);
    EXPECT_THAT(Unpacked(Packed(type, {37}, values)), ElementsAreArray(values));
  }
}

TEST(PackedTest, CastsTruncateAndSaturate) {
  const std::vector<float> in = {0.9F, -1.9F, 100, -100, 6.5F, NAN, -0.5F};
  const auto cast = [&](DataType to) {
    OpTester tester("CAST");
    tester.Input(TestTensor::Of<float>(kF32, {7}, in)).Output(to);
    return Unpacked(RunReference(tester));
  };
  EXPECT_THAT(cast(kI4), ElementsAre(0, -1, 7, -8, 6, 7, 0));
  EXPECT_THAT(cast(kU4), ElementsAre(0, 0, 15, 0, 6, 15, 0));
  EXPECT_THAT(cast(kI2), ElementsAre(0, -1, 1, -2, 1, 1, 0));
}

// More elements than one unit takes.
TEST(PackedTest, CastsBack) {
  constexpr int kCount = 40001;
  for (const DataType type : kPacked) {
    const std::vector<int8_t> values = Counting(type, kCount);
    OpTester tester("CAST");
    tester.Input(Packed(type, {kCount}, values)).Output(kF32);
    EXPECT_THAT(RunReference(tester).values<float>(), ElementsAreArray(values));
    OpTester back("CAST");
    back.Input(TestTensor::Of<float>(kF32, {kCount}, {values.begin(), values.end()})).Output(type);
    EXPECT_THAT(Unpacked(RunReference(back)), ElementsAreArray(values));
  }
  OpTester refused("CAST");
  refused.Input(Packed(kI4, {2}, {1, 2})).Output(kI32);
  EXPECT_EQ(refused.Infer().code(), StatusCode::kUnsupported);
}

TEST(PackedTest, Quantizes) {
  const std::vector<float> in = {0, 0.25F, -0.25F, 1, 1000, -1000, -3.3F};
  OpTester tester("QUANTIZE");
  tester.Input(TestTensor::Of<float>(kF32, {7}, in)).Output(kI4, {{0.5F}, {-1}});
  EXPECT_THAT(Unpacked(RunReference(tester)), ElementsAre(-1, 0, -2, 1, 7, -8, -8));
  OpTester zero("QUANTIZE");
  zero.Input(TestTensor::Of<float>(kF32, {7}, in)).Output(kU4, {{0.5F}, {8}});
  EXPECT_THAT(Unpacked(RunReference(zero)), ElementsAre(8, 9, 7, 10, 15, 0, 1));
  OpTester channels("QUANTIZE");
  channels.Input(TestTensor::Of<float>(kF32, {2}, {1, 2}))
      .Output(kI4, {.scales = {1, 2}, .zero_points = {0, 0}, .axis = 0});
  EXPECT_EQ(channels.Infer().code(), StatusCode::kUnsupported);
}

TEST(PackedTest, Dequantizes) {
  for (const DataType type : kPacked) {
    const std::vector<int8_t> values = Counting(type, 15);
    OpTester tester("DEQUANTIZE");
    tester
        .Input(Packed(type, {5, 3}, values,
                      {.scales = {0.5F, 2, 3}, .zero_points = {0, 1, -1}, .axis = 1}))
        .Output(kF32);
    const TestTensor result = RunReference(tester);
    const float scales[] = {0.5F, 2, 3}, zeros[] = {0, 1, -1};
    for (int i = 0; i < 15; ++i) {
      EXPECT_EQ(result.at<float>(i),
                scales[i % 3] * (static_cast<float>(values[i]) - zeros[i % 3]));
    }
  }
}

TEST(PackedTest, IsMovedLikeBytes) {
  for (const DataType type : kPacked) {
    const std::vector<int8_t> x = Counting(type, 15);
    OpTester reshape("RESHAPE");
    reshape.Input(Packed(type, {5, 3}, x))
        .Constant(TestTensor::Of<int32_t>(kI32, {2}, std::vector<int32_t>{3, 5}));
    EXPECT_THAT(Unpacked(RunReference(reshape)), ElementsAreArray(x));

    if (type == DataType::kInt2) continue;
    OpTester transpose("TRANSPOSE");
    transpose.Input(Packed(type, {5, 3}, x))
        .Constant(TestTensor::Of<int32_t>(kI32, {2}, std::vector<int32_t>{1, 0}));
    EXPECT_THAT(Unpacked(RunReference(transpose)),
                ElementsAre(x[0], x[3], x[6], x[9], x[12], x[1], x[4], x[7], x[10], x[13], x[2],
                            x[5], x[8], x[11], x[14]));

    if (type != DataType::kInt4) continue;
    OpTester slice("SLICE");
    slice.Input(Packed(type, {5, 3}, x))
        .Constant(TestTensor::Of<int32_t>(kI32, {2}, std::vector<int32_t>{1, 1}))
        .Constant(TestTensor::Of<int32_t>(kI32, {2}, std::vector<int32_t>{3, 1}));
    EXPECT_THAT(Unpacked(RunReference(slice)), ElementsAre(x[4], x[7], x[10]));

    OpTester gather("GATHER");
    gather.params<GatherParams>().axis = 0;
    gather.Input(Packed(type, {3, 4}, {x.begin(), x.begin() + 12}))
        .Input(TestTensor::Of<int32_t>(kI32, {2}, std::vector<int32_t>{2, 1}));
    EXPECT_THAT(Unpacked(RunReference(gather)),
                ElementsAre(x[8], x[9], x[10], x[11], x[4], x[5], x[6], x[7]));
    gather.op.inputs[0].shape = {4, 3};
    EXPECT_EQ(gather.Infer().code(), StatusCode::kUnsupported);

    OpTester concatenation("CONCATENATION");
    concatenation.params<ConcatenationParams>().axis = 1;
    concatenation.Input(Packed(type, {2, 1}, {x[0], x[1]}))
        .Input(Packed(type, {2, 2}, {x[2], x[3], x[4], x[5]}));
    EXPECT_THAT(Unpacked(RunReference(concatenation)),
                ElementsAre(x[0], x[2], x[3], x[1], x[4], x[5]));
    EXPECT_FALSE(FindPlacement(concatenation.op).ok());
  }
}

TEST(PackedTest, RowsOfEmbeddings) {
  const std::vector<int8_t> rows = {-8, 7, 3, -1, 5, 0};
  const Quantization scales = {.scales = {0.5F, 2, 3}, .zero_points = {0, 0, 0}, .axis = 0};
  const TestTensor ids = TestTensor::Of<int32_t>(kI32, {2}, std::vector<int32_t>{2, 0});
  OpTester floats("EMBEDDING_LOOKUP");
  floats.Input(ids).Input(Packed(kI4, {3, 2}, rows, scales)).Output(kF32);
  EXPECT_THAT(RunReference(floats).values<float>(), ElementsAre(15, 0, -4, 3.5F));
  OpTester halves("EMBEDDING_LOOKUP");
  halves.Input(ids).Input(Packed(kI4, {3, 2}, rows, scales)).Output(DataType::kFloat16);
  const std::vector<Half> half = RunReference(halves).values<Half>();
  EXPECT_THAT(std::vector<float>(half.begin(), half.end()), ElementsAre(15, 0, -4, 3.5F));
  OpTester moved("EMBEDDING_LOOKUP");
  moved.Input(ids).Input(Packed(kI4, {3, 2}, rows, {{0.5F}, {0}})).Output(kI4);
  EXPECT_THAT(Unpacked(RunReference(moved)), ElementsAre(5, 0, -8, 7));
  OpTester shared("EMBEDDING_LOOKUP");
  shared.Input(ids).Input(Packed(kI4, {2, 3}, rows, {{0.5F}, {0}})).Output(kF32);
  EXPECT_EQ(shared.Infer().code(), StatusCode::kUnsupported);
}

}  // namespace
}  // namespace fuselite::kernels::testing
