// Convolutions of volumes as matrix products against the reference, within the bound of
// docs/design.md.
#include "kernels/product/description.h"
#include "tests/kernels/conv3d_cases.h"

namespace fuselite::kernels::testing {
namespace {

void Compare(bool transposed) {
  CompareRandomly(
      80, [=](Random& random) { return RandomConv3D(random, transposed); },
      [](OpTester& tester, Random& random) {
        AddRandomTail(tester, random);
        return CompareCandidates(tester, ProductBounds<Conv3DParams>(tester, Conv3DDepth(tester)),
                                 random);
      });
}

TEST(Conv3DTest, AgreesWithTheReference) { Compare(false); }
TEST(Conv3DTest, TransposedAgreesWithTheReference) { Compare(true); }

// Planes of padding are left out; where there is but one plane, so are the weights for all others.
TEST(Conv3DTest, LeavesOutPlanesOfPadding) {
  for (const int32_t planes : {1, 2, 4}) {
    SCOPED_TRACE(planes);
    OpTester tester("CONV_3D");
    tester.params<Conv3DParams>() = {Padding::kSame, 1, 1, 1, Activation::kNone, 1, 1, 1};
    Random random(planes);
    TestTensor volume({.type = DataType::kFloat32, .shape = {2, planes, 5, 6, 3}});
    TestTensor filter({.type = DataType::kFloat32, .shape = {3, 3, 3, 3, 7}});
    volume.Fill(random, -1, 1);
    filter.Fill(random, -1, 1);
    tester.Input(volume).Constant(filter);
    ASSERT_TRUE(tester.Infer().ok());
    const auto product = DescribeConv3DProduct(tester.op);
    ASSERT_TRUE(product.ok());
    std::vector<std::pair<int32_t, int32_t>> outputs_by_taps;
    for (const ProductPart& part : product->parts) {
      outputs_by_taps.emplace_back(part.z.output, part.z.filter);
    }
    using Parts = std::vector<std::pair<int32_t, int32_t>>;
    const Parts expected = planes == 1   ? Parts{{1, 1}}
                           : planes == 2 ? Parts{{1, 2}, {1, 2}}
                                         : Parts{{1, 2}, {2, 3}, {1, 2}};
    EXPECT_EQ(outputs_by_taps, expected);
    CompareCandidates(tester, ProductBounds<Conv3DParams>(tester, Conv3DDepth(tester)), random);
  }
}

// Their products do not fit 64 bits, and the padding no memory; the reference needs none of it.
TEST(Conv3DTest, HugeStridesAndDilationsAreLeftToTheReference) {
  constexpr int32_t kHuge = 1 << 28;
  const TensorInfo floats{.type = DataType::kFloat32};
  const auto of = [&](const Shape& shape) {
    TensorInfo info = floats;
    info.shape = shape;
    return TestTensor(info);
  };
  const std::vector<int32_t> one(5, 1);
  OpTester transposed("CONV_3D_TRANSPOSE");
  transposed.params<Conv3DParams>() = {Padding::kSame,    kHuge, kHuge, kHuge,
                                       Activation::kNone, 1,     1,     1};
  transposed.Constant(TestTensor::Of<int32_t>(DataType::kInt32, {5}, one));
  transposed.Constant(of({1, 1, 1, 1, 1})).Input(of({1, 1, 1, 1, 1}));
  OpTester forward("CONV_3D");
  forward.params<Conv3DParams>() = {Padding::kSame,    1,     1,     1,
                                    Activation::kNone, kHuge, kHuge, kHuge};
  forward.Input(of({1, 2, 2, 2, 1})).Constant(of({2, 2, 2, 1, 1}));
  for (OpTester* const tester : {&transposed, &forward}) {
    const Status inferred = tester->Infer();
    ASSERT_TRUE(inferred.ok()) << inferred.ToString();
    EXPECT_EQ(DescribeConv3DProduct(tester->op).status().code(), StatusCode::kUnsupported);
    EXPECT_TRUE(tester->Run("reference", Isa::kScalar).ok());
  }
}

}  // namespace
}  // namespace fuselite::kernels::testing
