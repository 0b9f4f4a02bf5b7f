// Emitted products of activations that are quantized at run time, against the reference to the bit.
#include <algorithm>
#include <cmath>
#include <limits>

#include "jit/depthwise/depthwise_quantized.h"
#include "jit/product/product_hybrid.h"
#include "jit/product/product_s8.h"
#include "tests/jit/jit_cases.h"
#include "tests/kernels/hybrid_cases.h"
#include "tests/kernels/transpose_conv_cases.h"

namespace fuselite::jit::testing {
namespace {

using kernels::FullyConnectedParams;

void CompareHybrid(const OpTester& tester, kernels::PlanKernel plan, Random& random) {
  auto expected = tester.Run("reference", Isa::kScalar, random.Int(1, 99));
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();
  for (Isa isa : EmittedIsas()) {
    for (const int threads : {1, 7}) {
      OpTester again = tester;
      again.threads = threads;
      auto actual = again.RunCandidate({"jit", plan}, isa, random.Int(1, 99), random.Int(0, 3));
      ASSERT_TRUE(actual.ok()) << IsaName(isa) << ": " << actual.status().ToString();
      kernels::testing::ExpectSame<float>((*expected)[0], (*actual)[0], IsaName(isa));
    }
  }
}

// Remembers what was packed.
class RecordingStore final : public PackedStore {
 public:
  Result<PackedWeights> GetOrPack(const PackRequest& request,
                                  const std::function<void(std::byte*)>& pack) override {
    layouts.push_back(request.layout);
    largest = std::max(largest, request.bytes);
    return store_->GetOrPack(request, pack);
  }
  std::vector<std::string> layouts;
  size_t largest = 0;

 private:
  std::unique_ptr<PackedStore> store_ = NewPackedStore();
};

// A decoder's prompt and each next token read the same weights.
TEST(JitHybridTest, ARowReadsThePanelsOfMany) {
  Random random(1);
  const TestTensor weights =
      kernels::testing::RandomWeights(random, DataType::kInt8, {1500, 512}, 1500, false);
  if (!CanBuildFor(Isa::kAvx2)) GTEST_SKIP() << "this machine cannot pack the weights";
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512, Isa::kAvxVnni, Isa::kAvx512Vnni, Isa::kAmx}) {
    if (!CanBuildFor(isa)) continue;
    RecordingStore store;
    for (const int32_t rows : {64, 1, 128, 3}) {
      OpTester tester("FULLY_CONNECTED");
      tester.Input(TestTensor({.type = DataType::kFloat32, .shape = {rows, 512}}));
      tester.Constant(weights);
      ASSERT_TRUE(tester.Infer().ok());
      const kernels::BuildContext context({.isa = isa}, &store);
      const kernels::Candidate candidate("jit", PlanFullyConnectedHybrid);
      const auto kernel = candidate.Build(tester.op, context);
      ASSERT_TRUE(kernel.ok()) << kernel.status().ToString();
    }
    EXPECT_THAT(store.layouts, ::testing::Each(store.layouts.front())) << IsaName(isa);
    // As many bytes as the file has, and what fills the last panel.
    EXPECT_LT(store.largest, 1500 * 512 * 11 / 10) << IsaName(isa);
  }
}

template <class Make>
void CompareCases(kernels::PlanKernel plan, Make make) {
  kernels::testing::CompareRandomly(100, make, [plan](OpTester& tester, Random& random) {
    AddExactTail(tester, random);
    CompareHybrid(tester, plan, random);
    return 1;
  });
}

TEST(JitHybridTest, FullyConnectedEqualsTheReference) {
  CompareCases(PlanProductHybrid, [](Random& random) {
    return kernels::testing::RandomHybridFullyConnected(random, {DataType::kInt8, DataType::kInt4});
  });
}

// Weights as those of trained layers, nearly all of them small, by which byte pairs compute
// products where there are no dot products.
TEST(JitHybridTest, SmallWeightsEqualTheReference) {
  int of_pairs = 0;
  kernels::testing::CompareRandomly(
      150,
      [](Random& random) {
        OpTester tester =
            random.Chance(0.4)
                ? kernels::testing::RandomHybridFullyConnected(random, {DataType::kInt8})
                : kernels::testing::RandomHybridConv2D(random, {DataType::kInt8}, false);
        TestTensor& weights = tester.inputs[1];
        const int divisor = random.Pick({2, 4, 8});
        for (int64_t i = 0; i < weights.info().elements(); ++i) {
          if (!random.Chance(0.01)) weights.at<int8_t>(i) /= divisor;
        }
        return tester;
      },
      [&](OpTester& tester, Random& random) {
        const auto d = tester.op.op->product(tester.op);
        of_pairs += d.ok() && TermsOfBytePairs(tester.op, *d, Isa::kAvx2) ? 1 : 0;
        AddExactTail(tester, random);
        CompareHybrid(tester, PlanProductHybrid, random);
        return 1;
      });
  EXPECT_GT(of_pairs, 30);
}

// Weights that rows of any number share (kWorthSharing), of depths that fill no group.
TEST(JitHybridTest, RowsByLargeWeightsEqualTheReference) {
  kernels::testing::CompareRandomly(
      12,
      [](Random& random) {
        OpTester tester("FULLY_CONNECTED");
        auto& params = tester.params<FullyConnectedParams>();
        params.asymmetric_quantize_inputs = random.Chance(0.5);
        const int32_t depth = random.Pick({511, 640, 1031}), units = random.Pick({520, 601});
        tester.Input(
            kernels::testing::RandomFloats(random, {random.Pick({1, 2, 7, 19}), depth}, true));
        tester.Constant(
            kernels::testing::RandomWeights(random, random.Pick({DataType::kInt8, DataType::kInt4}),
                                            {units, depth}, units, random.Chance(0.5)));
        kernels::testing::AddFloatBias(random, tester, units);
        return tester;
      },
      [](OpTester& tester, Random& random) {
        CompareHybrid(tester, PlanProductHybrid, random);
        return 1;
      });
}

TEST(JitHybridTest, ConvolutionsEqualTheReference) {
  CompareCases(PlanProductHybrid, [](Random& random) {
    return kernels::testing::RandomHybridConv2D(random, {DataType::kInt8, DataType::kInt4}, true);
  });
}

TEST(JitHybridTest, SmallGroupsEqualTheReference) {
  CompareCases(PlanConv2DHybrid, [](Random& random) {
    return kernels::testing::RandomHybridGroups(random, {DataType::kInt8, DataType::kInt4});
  });
}

TEST(JitHybridTest, DepthwiseConvolutionsEqualTheReference) {
  CompareCases(PlanDepthwiseConv2DHybrid, [](Random& random) {
    return kernels::testing::RandomHybridDepthwise(random, random.Pick({1, 1, 2, 3, 4, 9}));
  });
}

TEST(JitHybridTest, BatchMatMulEqualsTheReference) {
  CompareCases(PlanProductHybrid, [](Random& random) {
    return kernels::testing::RandomHybridBatchMatMul(random, 0, true);
  });
}

// The bias has a slot of its own, in front of those of the stages.
// The reference sums scaled terms in floats, what is emitted scales their exact sum.
TEST(JitHybridTest, TransposedConvolutionsAreNearTheReference) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester = kernels::testing::RandomHybridTransposeConv(random, 3);
    ASSERT_TRUE(tester.Infer().ok());
    const auto expected = tester.Run("reference", Isa::kScalar);
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    float largest = 1;
    for (const float value : (*expected)[0].values<float>()) {
      largest = std::max(largest, std::abs(value));
    }
    for (const Isa isa : EmittedIsas()) {
      const auto actual = tester.RunCandidate({"jit", PlanProductHybrid}, isa, seed);
      ASSERT_TRUE(actual.ok()) << IsaName(isa) << ": " << actual.status().ToString();
      kernels::testing::ExpectNear((*expected)[0], (*actual)[0],
                                   [&](int64_t) { return 1e-5F * largest; }, IsaName(isa));
      OpTester again = tester;
      again.threads = 7;
      const auto same = again.RunCandidate({"jit", PlanProductHybrid}, isa, seed + 1);
      ASSERT_TRUE(same.ok()) << same.status().ToString();
      kernels::testing::ExpectSame<float>((*actual)[0], (*same)[0], IsaName(isa));
    }
    if (HasFailure()) return;
  }
}

TEST(JitHybridTest, BiasAndAllTailOperandsFit) {
  const auto compare = [](kernels::PlanKernel plan, auto make) {
    for (uint64_t seed = 1; seed <= 9; ++seed) {
      Random random(seed);
      SCOPED_TRACE(random.Trace());
      OpTester tester = make(random);
      if (!tester.op.has_input(2)) continue;
      ASSERT_TRUE(tester.Infer().ok());
      const int32_t channels = tester.op.outputs[0].shape.dim(-1);
      for (int i = 0; i < kernels::kMaxTailOperands; ++i) {
        tester.op.tail.stages.push_back(
            TailStage::Binary(BinaryKind::kMul, {AddOperand(tester, {channels}, random), 0, 0, 1}));
      }
      CompareHybrid(tester, plan, random);
    }
  };
  compare(PlanDepthwiseConv2DHybrid,
          [](Random& random) { return kernels::testing::RandomHybridDepthwise(random, 1); });
  compare(PlanProductHybrid, [](Random& random) {
    return kernels::testing::RandomHybridConv2D(random, {DataType::kInt8}, false);
  });
  compare(PlanProductHybrid, [](Random& random) {
    return kernels::testing::RandomHybridFullyConnected(random, {DataType::kInt8});
  });
}

TEST(JitHybridTest, RowsKeepTheirZerosAndNaNs) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  for (const bool asymmetric : {false, true}) {
    OpTester tester("FULLY_CONNECTED");
    tester.params<FullyConnectedParams>().asymmetric_quantize_inputs = asymmetric;
    tester.Input(TestTensor::Of<float>(DataType::kFloat32, {5, 2},
                                       {0, 0, nan, 1, 127, 0, 1, infinity, 1e-44f, 0}));
    tester.Constant(TestTensor::Of<int8_t>(DataType::kInt8, {2, 2}, {1, 2, -3, 4},
                                           {.scales = {1}, .zero_points = {0}}));
    tester.Input(TestTensor::Of<float>(DataType::kFloat32, {2}, {-3, 5}));
    ASSERT_TRUE(tester.Infer().ok());
    for (Isa isa : EmittedIsas()) {
      auto outputs = tester.RunCandidate({"jit", PlanProductHybrid}, isa);
      ASSERT_TRUE(outputs.ok()) << outputs.status().ToString();
      const std::vector<float> y = (*outputs)[0].values<float>();
      EXPECT_EQ(y[0], -3);
      EXPECT_EQ(y[1], 5);
      EXPECT_TRUE(std::isnan(y[2]) && std::isnan(y[3]));
      EXPECT_NEAR(y[4], 124, 1e-3);
      EXPECT_TRUE(std::isnan(y[6]) && std::isnan(y[7]));
      EXPECT_NEAR(y[8], -3, 1e-6);
    }
  }
}

TEST(JitHybridTest, NamesSayWhichTailsAreNotEmitted) {
  const auto name = [](OpTester tester, kernels::PlanKernel plan_kernel, UnaryKind unary) {
    EXPECT_TRUE(tester.Infer().ok());
    tester.op.tail.stages.push_back(TailStage::Unary(unary));
    auto plan = plan_kernel(tester.op, {.isa = EmittedIsas().back()});
    EXPECT_TRUE(plan.ok()) << plan.status().ToString();
    return plan.ok() ? std::string(plan->kernel().name()) : "";
  };
  if (EmittedIsas().empty()) GTEST_SKIP() << "nothing is emitted for this machine";
  Random random(1);
  const OpTester dense = kernels::testing::RandomHybridFullyConnected(random, {DataType::kInt8});
  const OpTester depthwise = kernels::testing::RandomHybridDepthwise(random, 1);
  const std::string reason = ", tail apart (tail stage log has no emitter)";
  EXPECT_TRUE(name(dense, PlanProductHybrid, UnaryKind::kLog).ends_with(reason));
  EXPECT_TRUE(name(dense, PlanProductHybrid, UnaryKind::kAbs).ends_with(" jit"));
  EXPECT_TRUE(name(depthwise, PlanDepthwiseConv2DHybrid, UnaryKind::kLog).ends_with(reason));
  EXPECT_TRUE(name(depthwise, PlanDepthwiseConv2DHybrid, UnaryKind::kAbs).ends_with(" jit"));
}

TEST(JitHybridTest, WeightsOfRunTimeEqualTheReference) {
  CompareCases(PlanProductHybrid, [](Random& random) {
    OpTester tester = kernels::testing::RandomHybridFullyConnected(random, {DataType::kInt8});
    return tester.AtRunTime(1);
  });
  CompareCases(PlanDepthwiseConv2DHybrid, [](Random& random) {
    OpTester tester = kernels::testing::RandomHybridDepthwise(random, random.Pick({1, 1, 2}));
    return tester.AtRunTime(1);
  });
}

TEST(JitHybridTest, RefusesWeightsOfFourBitsAtRunTime) {
  const kernels::PlanContext context{.isa = Isa::kAvx2};
  Random random(1);
  OpTester run_time = kernels::testing::RandomHybridFullyConnected(random, {DataType::kInt4});
  run_time.op.inputs[1].data = nullptr;
  ASSERT_TRUE(run_time.Infer().ok());
  EXPECT_EQ(PlanProductHybrid(run_time.op, context).status().code(), StatusCode::kUnsupported);
}

}  // namespace
}  // namespace fuselite::jit::testing
