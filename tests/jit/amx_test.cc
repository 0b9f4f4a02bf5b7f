// Products in AMX's tiles against the reference to the bit, on machines without tiles by emulation.
#include "tests/jit/amx_emulator.h"
#include "tests/jit/int8_cases.h"
#include "tests/kernels/hybrid_cases.h"

namespace fuselite::jit::testing {
namespace {

class AmxTest : public ::testing::Test {
 protected:
  void SetUp() override {
    isa_ = IsaWithTiles(Feature::kAvx512Vnni);
    if (!isa_) GTEST_SKIP() << "no vectors of 64 bytes with dot products beside emulated tiles";
  }

  // The first candidate that accepts, with two splits; nothing where none does. Adds to tiled_
  // where it multiplies tiles.
  void Compare(const OpTester& tester, Random& random) {
    const auto expected = tester.Run("reference", Isa::kScalar, random.Int(1, 99));
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    for (const kernels::Candidate& candidate : CandidatesFor(*tester.op.op)) {
      const auto plan = candidate.Plan(tester.op, {.isa = *isa_});
      if (!plan.ok()) continue;
      if (plan->kernel().name().find("amx") != std::string_view::npos) ++tiled_;
      for (const int threads : {1, 7}) {
        OpTester again = tester;
        again.threads = threads;
        const auto actual =
            again.RunCandidate(candidate, *isa_, random.Int(1, 99), random.Int(0, 3));
        ASSERT_TRUE(actual.ok()) << actual.status().ToString();
        if ((*expected)[0].info().type == DataType::kFloat32) {
          kernels::testing::ExpectSame<float>((*expected)[0], (*actual)[0], "amx");
        } else {
          kernels::testing::ExpectSame<uint8_t>((*expected)[0], (*actual)[0], "amx");
        }
      }
      return;
    }
  }

  // Random operators of `make(random)`, behind which `add_tail(tester, random)` puts stages. At
  // least a tenth of them multiply tiles.
  template <class Make, class AddTail>
  void CompareCases(Make make, AddTail add_tail) {
    constexpr int kCases = 60;
    kernels::testing::CompareRandomly(kCases, make, [&](OpTester& tester, Random& random) {
      add_tail(tester, random);
      Compare(tester, random);
      return 1;
    });
    EXPECT_GE(tiled_, kCases / 10);
  }

  std::optional<Isa> isa_;
  int tiled_ = 0;
};

TEST_F(AmxTest, ConvolutionsEqualTheReference) {
  CompareCases(
      [](Random& random) { return kernels::testing::RandomQuantizedConv2D(random, kBytes); },
      AddInt8Tail);
}

TEST_F(AmxTest, FullyConnectedEqualsTheReference) {
  CompareCases(
      [](Random& random) {
        return kernels::testing::RandomQuantizedFullyConnected(random, kBytes);
      },
      AddInt8Tail);
}

TEST_F(AmxTest, BatchMatMulEqualsTheReference) {
  CompareCases(
      [](Random& random) {
        QuantizedProductCases cases = kBytes;
        cases.types = {DataType::kInt8};
        cases.min_lines = 4;
        return kernels::testing::RandomQuantizedBatchMatMul(random, cases);
      },
      AddInt8Tail);
}

TEST_F(AmxTest, HeadsMatMulEqualsTheReference) {
  CompareCases(kernels::testing::RandomQuantizedHeadsMatMul, AddInt8Tail);
}

TEST_F(AmxTest, TransposedConvolutionsEqualTheReference) {
  CompareCases([](Random& random) { return RandomTransposeConvOfBytes(random, kBytes); },
               AddInt8Tail);
}

TEST_F(AmxTest, DynamicRangeFullyConnectedEqualsTheReference) {
  CompareCases(
      [](Random& random) {
        return kernels::testing::RandomHybridFullyConnected(random,
                                                            {DataType::kInt8, DataType::kInt4});
      },
      AddExactTail);
}

TEST_F(AmxTest, DynamicRangeConvolutionsEqualTheReference) {
  CompareCases(
      [](Random& random) {
        return kernels::testing::RandomHybridConv2D(random, {DataType::kInt8, DataType::kInt4},
                                                    true);
      },
      AddExactTail);
}

}  // namespace
}  // namespace fuselite::jit::testing
