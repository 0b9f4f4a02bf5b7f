// FULLY_CONNECTED and BATCH_MATMUL.
#include "tests/kernels/op_tester.h"
#include "tests/kernels/product_cases.h"

namespace fuselite::kernels::testing {
namespace {

constexpr DataType kF32 = DataType::kFloat32;

std::vector<float> RunReference(OpTester& tester) {
  const Status inferred = tester.Infer();
  EXPECT_TRUE(inferred.ok()) << inferred.ToString();
  if (!inferred.ok()) return {};
  Result<std::vector<TestTensor>> outputs = tester.Run("reference", Isa::kScalar);
  EXPECT_TRUE(outputs.ok()) << outputs.status().ToString();
  return outputs.ok() ? (*outputs)[0].values<float>() : std::vector<float>{};
}

OpTester SmallFullyConnected(Shape input) {
  OpTester tester("FULLY_CONNECTED");
  tester.Input(TestTensor::Of<float>(kF32, input, {1, 2, 3, 4, 5, 6, 7, 8}));
  tester.Constant(TestTensor::Of<float>(kF32, {3, 2}, {1, 10, -1, -10, 0.5f, 0.25f}));
  tester.Constant(TestTensor::Of<float>(kF32, {3}, {0, 1, 2}));
  tester.params<FullyConnectedParams>().activation = Activation::kRelu;
  return tester;
}

TEST(FullyConnectedReferenceTest, FlattensItsInput) {
  OpTester tester = SmallFullyConnected({1, 2, 4});
  EXPECT_THAT(RunReference(tester),
              ::testing::ElementsAre(21, 0, 3, 43, 0, 4.5f, 65, 0, 6, 87, 0, 7.5f));
  EXPECT_EQ(tester.op.outputs[0].shape, (Shape{4, 3}));
}

TEST(FullyConnectedInferTest, KeepsDimensions) {
  OpTester tester = SmallFullyConnected({2, 2, 2});
  tester.params<FullyConnectedParams>().keep_num_dims = true;
  ASSERT_TRUE(tester.Infer().ok());
  EXPECT_EQ(tester.op.outputs[0].shape, (Shape{2, 2, 3}));
  OpTester refused = SmallFullyConnected({1, 2, 4});
  refused.params<FullyConnectedParams>().keep_num_dims = true;
  EXPECT_FALSE(refused.Infer().ok());
}

TEST(FullyConnectedInferTest, Refuses) {
  const auto infer = [](Shape in, Shape weights, int bias, int format) {
    OpTester tester("FULLY_CONNECTED");
    tester.params<FullyConnectedParams>().weights_format = format;
    tester.Input(TestTensor({.type = kF32, .shape = in}));
    tester.Input(TestTensor({.type = kF32, .shape = weights}));
    tester.Input(TestTensor({.type = kF32, .shape = {bias}}));
    return tester.Infer();
  };
  EXPECT_TRUE(infer({3, 4}, {5, 4}, 5, 0).ok());
  EXPECT_FALSE(infer({3, 4}, {5, 5}, 5, 0).ok()) << "12 elements, rows of 5";
  EXPECT_FALSE(infer({3, 4}, {5, 4}, 4, 0).ok()) << "bias";
  EXPECT_FALSE(infer({3, 4}, {5, 0}, 5, 0).ok()) << "no columns";
  EXPECT_FALSE(infer({3, 4}, {5, 4, 1}, 5, 0).ok()) << "rank";
  EXPECT_FALSE(infer({3, 4}, {5, 4}, 5, 1).ok()) << "shuffled weights";
}

TEST(BatchMatMulReferenceTest, BroadcastsAndTransposes) {
  OpTester tester("BATCH_MATMUL");
  tester.params<BatchMatMulParams>().adj_y = true;
  tester.Input(TestTensor::Of<float>(kF32, {2, 1, 1, 2}, {1, 2, 3, 4}));
  tester.Input(TestTensor::Of<float>(kF32, {3, 1, 2}, {1, 10, 100, 1000, 0, 1}));
  EXPECT_THAT(RunReference(tester), ::testing::ElementsAre(21, 2100, 2, 43, 4300, 4));
  EXPECT_EQ(tester.op.outputs[0].shape, (Shape{2, 3, 1, 1}));
}

TEST(BatchMatMulReferenceTest, TransposesTheLeftSide) {
  OpTester tester("BATCH_MATMUL");
  tester.params<BatchMatMulParams>().adj_x = true;
  tester.Input(TestTensor::Of<float>(kF32, {2, 2}, {1, 2, 3, 4}));
  tester.Input(TestTensor::Of<float>(kF32, {2, 1}, {1, 10}));
  EXPECT_THAT(RunReference(tester), ::testing::ElementsAre(31, 42));
}

TEST(BatchMatMulInferTest, Refuses) {
  const auto infer = [](Shape x, Shape y) {
    OpTester tester("BATCH_MATMUL");
    tester.Input(TestTensor({.type = kF32, .shape = x}));
    tester.Input(TestTensor({.type = kF32, .shape = y}));
    return tester.Infer();
  };
  EXPECT_TRUE(infer({2, 1, 3, 4}, {5, 4, 6}).ok());
  EXPECT_FALSE(infer({2, 3, 4}, {3, 4, 6}).ok()) << "batches 2 and 3";
  EXPECT_FALSE(infer({3, 4}, {3, 4}).ok()) << "depths 4 and 3";
  EXPECT_FALSE(infer({4}, {4, 2}).ok()) << "a vector";
  EXPECT_FALSE(infer({1, 1, 1, 1, 3, 4}, {4, 2}).ok()) << "rank 6";
}

// CompareCandidates() of FULLY_CONNECTED with a random tail.
int CompareFullyConnected(OpTester& tester, Random& random) {
  AddRandomTail(tester, random);
  const int64_t depth = tester.op.inputs[1].shape.dim(-1);
  return CompareCandidates(tester, ProductBounds<FullyConnectedParams>(tester, depth), random);
}

// What vectors of `isa` give; nothing where it has none.
std::vector<float> RunHighway(OpTester& tester, Isa isa) {
  EXPECT_TRUE(tester.Infer().ok());
  const auto outputs = tester.Run("highway", isa);
  return outputs.ok() ? (*outputs)[0].values<float>() : std::vector<float>();
}

TEST(FullyConnectedHighwayTest, AgreesWithTheReference) {
  CompareRandomly(
      60, [](Random& random) { return RandomFullyConnected(random); },
      [](OpTester& tester, Random& random) {
        // The file may leave a constant at any byte; the packed form must not care.
        const TestTensor anywhere(tester.inputs[1].info(), random.Int(0, 3));
        std::memcpy(anywhere.bytes(), tester.inputs[1].bytes(), anywhere.info().bytes());
        if (tester.op.inputs[1].data != nullptr) tester.op.inputs[1].data = anywhere.bytes();
        return CompareFullyConnected(tester, random);
      });
}

// Units of which the sums with several rows are computed at once.
TEST(FullyConnectedHighwayTest, FewUnitsAgreeWithTheReference) {
  CompareRandomly(
      150,
      [](Random& random) {
        OpTester tester("FULLY_CONNECTED");
        tester.params<FullyConnectedParams>().activation =
            random.Pick({Activation::kNone, Activation::kRelu6});
        const int32_t depth = random.Pick({16, 17, 31, 64, 65, 100, 257});
        const auto units = static_cast<int32_t>(random.Int(1, 5));
        const int32_t rows = random.Pick({1, 3, 15, 16, 17, 63, 64, 65, 150});
        tester.Input(RandomFloats(random, {rows, depth}, RandomPitch(random, depth)));
        AddWeights(tester, random, {units, depth}, units, {.run_time_weights = random.Chance(0.3)});
        return tester;
      },
      CompareFullyConnected);
}

// Weights that are read where they lie: rows of 512 values, and of multiples, share sets of L1 and
// are read fewer at once than others.
TEST(FullyConnectedHighwayTest, DeepUnpackedRowsAgreeWithTheReference) {
  CompareRandomly(
      60,
      [](Random& random) {
        OpTester tester("FULLY_CONNECTED");
        const int32_t depth = random.Pick({511, 512, 513, 1024, 1536});
        const int32_t units = random.Pick({1, 7, 8, 15, 16, 17, 33, 40});
        tester.Input(RandomFloats(random, {static_cast<int32_t>(random.Int(1, 3)), depth},
                                  RandomPitch(random, depth)));
        AddWeights(tester, random, {units, depth}, units, {.run_time_weights = true});
        return tester;
      },
      CompareFullyConnected);
}

// However many units' weights are read at once, each sum adds its terms in the same order.
TEST(FullyConnectedHighwayTest, AUnitHasTheSameBitsAmongAnyNumber) {
  for (const int32_t depth : {96, 512, 520, 1024}) {
    Random random(static_cast<uint64_t>(depth));
    const TestTensor row = RandomFloats(random, {1, depth}, 0);
    const TestTensor weights = RandomFloats(random, {40, depth}, 0);
    for (Isa isa : RunnableIsas()) {
      std::vector<float> expected;
      for (const int32_t units : {40, 24, 16, 9, 1}) {
        SCOPED_TRACE(internal::Join(IsaName(isa), ' ', units, " units of ", depth));
        OpTester tester("FULLY_CONNECTED");
        tester.Input(row);
        TestTensor some({.type = kF32, .shape = {units, depth}});
        std::memcpy(some.bytes(), weights.bytes(), some.info().bytes());
        tester.Input(some);
        const std::vector<float> y = RunHighway(tester, isa);
        if (expected.empty()) expected = y;
        EXPECT_TRUE(std::equal(y.begin(), y.end(), expected.begin()));
      }
    }
  }
}

TEST(FullyConnectedHighwayTest, ARowHasTheSameBitsAmongAnyNumber) {
  for (const int32_t depth : {16, 64, 100}) {
    Random random(static_cast<uint64_t>(depth));
    const TestTensor weights = RandomFloats(random, {3, depth}, 0);
    const TestTensor row = RandomFloats(random, {1, depth}, 0);
    for (Isa isa : RunnableIsas()) {
      std::vector<float> expected;
      for (const int32_t rows : {1, 5, 16, 37, 64}) {
        SCOPED_TRACE(internal::Join(IsaName(isa), ' ', rows, " rows of ", depth));
        OpTester tester("FULLY_CONNECTED");
        TestTensor x({.type = kF32, .shape = {rows, depth}});
        for (int32_t r = 0; r < rows; ++r) {
          std::memcpy(x.bytes() + r * depth * sizeof(float), row.bytes(), row.info().bytes());
        }
        tester.Input(x);
        tester.Constant(weights);
        const std::vector<float> y = RunHighway(tester, isa);
        if (y.empty()) continue;
        if (expected.empty()) expected.assign(y.begin(), y.begin() + 3);
        for (int32_t r = 0; r < rows; ++r) {
          EXPECT_TRUE(std::equal(expected.begin(), expected.end(), y.begin() + r * 3))
              << "row " << r;
        }
      }
    }
  }
}

TEST(BatchMatMulHighwayTest, AgreesWithTheReference) {
  CompareRandomly(
      60, [](Random& random) { return RandomBatchMatMul(random, true); },
      [](OpTester& tester, Random& random) {
        AddRandomTail(tester, random);
        const auto bounds = Bounds(tester, BatchMatMulDepth(tester), [](OpTester&) {});
        return CompareCandidates(tester, bounds, random);
      });
}

// Few rows or few columns by many: as many as are summed at once, and what is left of them.
TEST(BatchMatMulHighwayTest, UnpackedMatricesAgreeWithTheReference) {
  CompareRandomly(
      150,
      [](Random& random) {
        const bool down = random.Chance(0.5);
        const auto few = static_cast<int32_t>(random.Int(1, 3));
        const int32_t many = random.Pick({1, 3, 4, 7, 8, 15, 16, 17, 31, 64, 65, 150});
        const int32_t depth = random.Pick({1, 3, 4, 7, 8, 15, 16, 17, 33, 70});
        const int32_t rows = down ? many : few, columns = down ? few : many;
        OpTester tester("BATCH_MATMUL");
        auto& params = tester.params<BatchMatMulParams>();
        params.adj_x = random.Chance(0.25);
        params.adj_y = random.Chance(0.5);
        const Shape x = params.adj_x ? Shape{3, depth, rows} : Shape{3, rows, depth};
        tester.Input(RandomFloats(random, x, 0));
        const Shape y = params.adj_y ? Shape{3, columns, depth} : Shape{3, depth, columns};
        tester.Input(RandomFloats(random, y, 0));
        return tester;
      },
      [](OpTester& tester, Random& random) {
        const auto bounds = Bounds(tester, BatchMatMulDepth(tester), [](OpTester&) {});
        return CompareCandidates(tester, bounds, random);
      });
}

}  // namespace
}  // namespace fuselite::kernels::testing
