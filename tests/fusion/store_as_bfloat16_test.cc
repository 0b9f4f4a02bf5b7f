// precision=fast: which values between layers lie in memory as bfloat16.
#include "runtime/cpu/isa.h"
#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;

// The instructions of AVX512-BF16, without a core that multiplies float32 faster; nothing is run.
CompileOptions Fast() {
  CompileOptions options = Fused();
  options.isa = Isa::kAvx512Bf16;
  options.precision = kernels::Precision::kFast;
  return options;
}

// What is stored so, by the host's nodes.
std::vector<std::string> Stored(Graph graph, const CompileOptions& options = Fast()) {
  std::vector<std::string> stored;
  for (const RewriteRecord& record : RecordsOf(graph, options)) {
    if (record.what == "store as bfloat16") stored.push_back(record.ToString().substr(19));
  }
  return stored;
}

class StoreAsBFloat16Test : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!DetectIsa().has(Feature::kAvx512)) GTEST_SKIP() << "weights are packed by AVX-512";
  }
};

TEST_F(StoreAsBFloat16Test, BetweenLayersThatTakeIt) {
  GraphBuilder b;
  const ValueId one = b.Conv(b.Input({1, 14, 14, 16}), 32, 1);
  const ValueId two = b.Depthwise(one, 3);
  const ValueId three = b.Conv(two, 64, 3);
  b.Output(b.Conv(three, 16, 1));
  EXPECT_THAT(Stored(b.graph()), ElementsAre("nodes 0, 1", "nodes 1, 2", "nodes 2, 3"));
  CompileOptions exact = Fast();
  exact.precision = kernels::Precision::kDefault;
  EXPECT_THAT(Stored(b.graph(), exact), ElementsAre());
  CompileOptions older = Fast();
  older.isa = Isa::kAvx512Vnni;
  EXPECT_THAT(Stored(b.graph(), older), ElementsAre());
}

// The sum of a residual is bfloat16 as well.
TEST_F(StoreAsBFloat16Test, WhatATailReads) {
  GraphBuilder b;
  const ValueId one = b.Conv(b.Input({1, 14, 14, 16}), 32, 1);
  const ValueId two = b.Conv(one, 32, 3);
  const ValueId sum = b.Op("ADD", {b.Conv(two, 32, 3), one});
  b.Output(b.Conv(sum, 16, 1));
  EXPECT_THAT(Stored(b.graph()), ElementsAre("nodes 0, 1, 2, 3", "nodes 1, 2, 3", "nodes 2, 3, 4"));
}

// Values that are only moved are of one type, with all who make or read one of them.
TEST_F(StoreAsBFloat16Test, AcrossWhatOnlyMoves) {
  GraphBuilder b;
  const ValueId x = b.Input({1, 8, 8, 16});
  const ValueId joined = b.Op("CONCATENATION", {b.Conv(x, 32, 1), b.Conv(x, 32, 3)}, {{"axis", 3}});
  const ValueId pooled = b.Op("MAX_POOL_2D", {joined},
                              {{"padding", kValid},
                               {"stride_w", 2},
                               {"stride_h", 2},
                               {"filter_width", 2},
                               {"filter_height", 2}});
  b.Output(b.Conv(pooled, 16, 1));
  EXPECT_THAT(Stored(b.graph()), ElementsAre("nodes 0, 1, 2, 3, 4"));
}

// A gate by elementwise operators that no tail takes: what they read a mean reads, too.
TEST_F(StoreAsBFloat16Test, AroundElementwiseOperators) {
  GraphBuilder b;
  const ValueId x = b.Depthwise(b.Conv(b.Input({1, 8, 8, 16}), 32, 1), 3);
  const ValueId mean = b.Op("MEAN", {x, b.Ints({1, 2})}, {{"keep_dims", 1}});
  const ValueId gate = b.Op("LOGISTIC", {b.Conv(mean, 32, 1)});
  b.Output(b.Conv(b.Op("MUL", {x, gate}), 16, 3));
  EXPECT_THAT(Stored(b.graph()), Contains("nodes 1, 2, 5")) << "the depthwise layer's";
  EXPECT_THAT(Stored(b.graph()), Contains("nodes 5, 6")) << "the product's";
}

TEST_F(StoreAsBFloat16Test, NotWhatElementwiseOperatorsAloneRead) {
  GraphBuilder b;
  const ValueId x = b.Conv(b.Input({1, 8, 8, 16}), 32, 1);
  b.Output(b.Op("MUL", {b.Op("EXP", {x}), b.Op("COS", {x})}));
  EXPECT_THAT(Stored(b.graph()), ElementsAre());
}

TEST_F(StoreAsBFloat16Test, NotBetweenElementwiseOperators) {
  GraphBuilder b;
  const ValueId x = b.Input({1, 8, 8, 16}), shift = b.Op("EXP", {x});
  b.Output(b.Conv(shift, 32, 1));
  b.Output(b.Op("SUB", {b.Op("COS", {x}), shift}));
  EXPECT_THAT(Stored(b.graph()), ElementsAre());
}

TEST_F(StoreAsBFloat16Test, NotWhatAnybodyReadsAsFloat32) {
  {
    GraphBuilder b;
    const ValueId one = b.Conv(b.Input({1, 8, 8, 16}), 32, 1);
    b.Output(b.Conv(one, 16, 1));
    b.Output(one);
    EXPECT_THAT(Stored(b.graph()), ElementsAre()) << "the host";
  }
  {
    GraphBuilder b;
    const ValueId one = b.Conv(b.Input({1, 8, 8, 16}), 32, 1);
    b.Output(b.Conv(one, 16, 1));
    b.Output(b.Softmax(one));
    EXPECT_THAT(Stored(b.graph()), ElementsAre()) << "an operator of float32";
  }
  {
    GraphBuilder b;
    const ValueId x = b.Input({1, 8, 8, 16});
    const ValueId joined = b.Op("CONCATENATION", {b.Conv(x, 16, 1), x}, {{"axis", 3}});
    b.Output(b.Conv(joined, 16, 1));
    EXPECT_THAT(Stored(b.graph()), ElementsAre()) << "joined with an input";
  }
  {
    GraphBuilder b;
    b.Output(b.Conv(b.Conv(b.Input({1, 8, 8, 16}), 33, 1), 16, 1));
    EXPECT_THAT(Stored(b.graph()), ElementsAre()) << "an odd number of channels";
  }
}

bool MultipliesBFloat16(const CompileReport& report) {
  return std::ranges::all_of(report.steps, [](const StepReport& step) {
    return step.kernel.find(" bf16 ") != std::string::npos;
  });
}

// Where only products of bfloat16 read a value, who makes it rounds it as they would: the bits are
// the same.
TEST(StoreAsBFloat16, ChangesNoBitsBetweenProducts) {
  if (!DetectIsa().has(Feature::kAvx512Bf16)) GTEST_SKIP() << "no AVX512-BF16 on this machine";
  int compared = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    GraphBuilder b(seed);
    const auto channels = [&] { return static_cast<int>(2 * b.random().Int(1, 40)); };
    const int height = static_cast<int>(b.random().Int(2, 15));
    ValueId x = b.Input({1, height, 9, channels()});
    for (int layer = 0; layer < 3; ++layer) {
      x = b.Conv(x, channels(), static_cast<int>(b.random().Int(0, 1) * 2 + 1),
                 {{"fused_activation_function", kRelu}});
    }
    b.Output(x);
    CompileOptions options = Fused();
    options.precision = kernels::Precision::kFast;
    const Outcome stored = RunGraph(b.graph(), options);
    options.fusion = false;
    const Outcome floats = RunGraph(b.graph(), options);
    ASSERT_TRUE(stored.status.ok() && floats.status.ok());
    if (!MultipliesBFloat16(floats.report)) continue;
    SCOPED_TRACE("seed " + std::to_string(seed));
    EXPECT_FALSE(stored.report.rewrites.empty());
    ExpectClose(floats.outputs, stored.outputs, 0);
    ++compared;
  }
  EXPECT_GT(compared, 5);
}

}  // namespace
}  // namespace fuselite::fusion::testing
