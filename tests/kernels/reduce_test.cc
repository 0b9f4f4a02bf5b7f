#include "kernels/reduce/reduce.h"

#include <limits>

#include "tests/kernels/bfloat16_cases.h"
#include "tests/kernels/op_tester.h"

namespace fuselite::kernels::testing {
namespace {

using ::testing::ElementsAre;

constexpr DataType kF32 = DataType::kFloat32;

TestTensor Axes(std::vector<int32_t> axes) {
  return TestTensor::Of<int32_t>(DataType::kInt32, {static_cast<int32_t>(axes.size())}, axes);
}

template <class T>
std::vector<T> Reduce(std::string_view name, TestTensor in, std::vector<int32_t> axes,
                      Quantization output = {}) {
  OpTester tester(name);
  const DataType type = in.info().type;
  tester.Input(std::move(in)).Constant(Axes(std::move(axes))).Output(type, std::move(output));
  const Status inferred = tester.Infer();
  EXPECT_TRUE(inferred.ok()) << inferred.ToString();
  if (!inferred.ok()) return {};
  const auto outputs = tester.Run("reference", Isa::kScalar);
  EXPECT_TRUE(outputs.ok());
  return (*outputs)[0].values<T>();
}

TEST(ReduceTest, EveryKind) {
  const TestTensor x = TestTensor::Of<float>(kF32, {2, 3}, {1, 2, 3, 4, 5, 9});
  EXPECT_THAT(Reduce<float>("MEAN", x, {1}), ElementsAre(2, 6));
  EXPECT_THAT(Reduce<float>("SUM", x, {0}), ElementsAre(5, 7, 12));
  EXPECT_THAT(Reduce<float>("REDUCE_PROD", x, {-1}), ElementsAre(6, 180));
  EXPECT_THAT(Reduce<float>("REDUCE_MAX", x, {0, 1, 1, -2}), ElementsAre(9));
  EXPECT_THAT(Reduce<float>("REDUCE_MIN", x, {1}), ElementsAre(1, 4));
  EXPECT_THAT(Reduce<float>("SUM", x, {}), ElementsAre(1, 2, 3, 4, 5, 9));
  const TestTensor flags = TestTensor::Of<uint8_t>(DataType::kBool, {2, 2}, {0, 1, 1, 1});
  EXPECT_THAT(Reduce<bool>("REDUCE_ANY", flags, {0}), ElementsAre(true, true));
  EXPECT_THAT(Reduce<bool>("REDUCE_ALL", flags, {0}), ElementsAre(false, true));
}

TEST(ReduceTest, MeansOfBFloat16) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const TestTensor x(
        {.type = kF32,
         .shape = {static_cast<int32_t>(random.Int(1, 3)), static_cast<int32_t>(random.Int(1, 9)),
                   7, static_cast<int32_t>(random.Int(20, 200))}});
    x.Fill(random, -1, 1);
    OpTester tester("MEAN");
    tester.Input(x).Constant(Axes({1, 2})).Output(kF32);
    ASSERT_TRUE(tester.Infer().ok());
    InBothTypes both{tester, tester};
    RoundInput(both, 0, random);
    const auto expected = both.floats.Run("reference", Isa::kScalar);
    const auto reference = both.shorts.Run("reference", Isa::kScalar);
    ASSERT_TRUE(expected.ok() && reference.ok()) << reference.status().ToString();
    ExpectStored((*expected)[0], (*reference)[0], false, "reference");
    for (const Isa isa : RunnableIsas()) {
      if (isa == Isa::kScalar) continue;
      const auto actual = both.shorts.Run("highway", isa, seed, random.Int(0, 3));
      ASSERT_TRUE(actual.ok()) << actual.status().ToString();
      ExpectStored((*expected)[0], (*actual)[0], false, std::string(IsaName(isa)));
    }
    both.shorts.op.outputs[0].type = DataType::kBFloat16;
    EXPECT_EQ(both.shorts.Run("highway", RunnableIsas().back()).status().code(),
              StatusCode::kUnsupported);
    if (HasFailure()) return;
  }
}

TEST(ReduceTest, Integers) {
  const TestTensor x = TestTensor::Of<int32_t>(DataType::kInt32, {2}, {INT32_MAX, 10});
  EXPECT_THAT(Reduce<int32_t>("SUM", x, {0}), ElementsAre(INT32_MIN + 9));
  const TestTensor y = TestTensor::Of<int64_t>(DataType::kInt64, {3}, {-7, 1, 1});
  EXPECT_THAT(Reduce<int64_t>("MEAN", y, {0}), ElementsAre(-1)) << "cut off towards zero";
}

TEST(ReduceTest, QuantizedMeanRescales) {
  const Quantization in{.scales = {0.5f}, .zero_points = {-10}};
  const Quantization out{.scales = {0.25f}, .zero_points = {5}};
  const TestTensor x = TestTensor::Of<int8_t>(DataType::kInt8, {1, 4}, {0, 10, 20, 34}, in);
  // Real values 5, 10, 15, 22: mean 13, that is 52 steps of 0.25.
  EXPECT_THAT(Reduce<int8_t>("MEAN", x, {1}, out), ElementsAre(57));
}

// Expected values are those of LiteRT 2.3.0 with BUILTIN_REF.
TEST(ReduceTest, QuantizedProductsAreScaledFactorByFactor) {
  const TestTensor x = TestTensor::Of<int8_t>(DataType::kInt8, {2, 3}, {30, -20, 60, -100, 7, 90},
                                              {.scales = {0.05f}, .zero_points = {3}});
  EXPECT_THAT(Reduce<int8_t>("REDUCE_PROD", x, {1}, {.scales = {0.08f}, .zero_points = {3}}),
              ElementsAre(-52, -53));
  const TestTensor y =
      TestTensor::Of<int16_t>(DataType::kInt16, {2, 3}, {1500, -1000, 3000, -5000, 350, 4500},
                              {.scales = {0.0007f}, .zero_points = {0}});
  EXPECT_THAT(Reduce<int16_t>("REDUCE_PROD", y, {1}, {.scales = {0.0009f}, .zero_points = {0}}),
              ElementsAre(-1715, -3001));
  const TestTensor each = TestTensor::Of<int8_t>(DataType::kInt8, {1, 3}, {-128, 7, 127},
                                                 {.scales = {0.05f}, .zero_points = {3}});
  EXPECT_THAT(Reduce<int8_t>("REDUCE_PROD", each, {0}, {.scales = {0.1f}, .zero_points = {-5}}),
              ElementsAre(-70, -3, 57));
  const TestTensor plain = TestTensor::Of<int8_t>(DataType::kInt8, {3}, {-100, 7, 90});
  EXPECT_THAT(Reduce<int8_t>("REDUCE_PROD", plain, {0}), ElementsAre(-24)) << "wraps around";
}

// Rows without an element may be any number, which costs nothing.
TEST(ReduceTest, GoesOverNoRowsOfNothing) {
  const auto rows_of = [](DataType type) {
    OpTester tester("SUM");
    tester.Input(TestTensor({.type = type, .shape = {1 << 30, 2, 0}})).Constant(Axes({0, 2}));
    return tester;
  };
  for (const DataType type : {kF32, DataType::kInt32, DataType::kInt64}) {
    OpTester tester = rows_of(type);
    ASSERT_TRUE(tester.Infer().ok());
    EXPECT_EQ(PlanReduce(tester.op).runs, 0);
    for (const Candidate& candidate : tester.op.op->candidates) {
      for (const Isa isa : RunnableIsas()) {
        const auto outputs = tester.RunCandidate(candidate, isa);
        if (!outputs.ok()) continue;
        const auto* bytes = (*outputs)[0].bytes();
        EXPECT_TRUE(std::all_of(bytes, bytes + (*outputs)[0].info().bytes(),
                                [](std::byte byte) { return byte == std::byte{}; }));
      }
    }
  }
}

TEST(ReduceTest, KeepsDimensions) {
  OpTester tester("MEAN");
  tester.params<ReduceParams>().keep_dims = true;
  tester.Input(TestTensor({.type = kF32, .shape = {2, 3, 4, 5}})).Constant(Axes({1, 2}));
  ASSERT_TRUE(tester.Infer().ok());
  EXPECT_EQ(tester.op.outputs[0].shape, (Shape{2, 1, 1, 5}));
  tester.op.inputs[1].data = nullptr;
  EXPECT_EQ(tester.Infer().code(), StatusCode::kDynamicShape);
}

TEST(ReduceTest, RefusesAxesOutOfRange) {
  OpTester tester("SUM");
  tester.Input(TestTensor({.type = kF32, .shape = {2, 3}})).Constant(Axes({2}));
  EXPECT_FALSE(tester.Infer().ok());
}

// Computes the definition in double precision.
std::vector<double> Expected(ReduceKind kind, const TestTensor& in, uint32_t axes, const Shape& out,
                             std::vector<double>* magnitude) {
  const Shape& shape = in.info().shape;
  std::vector<double> totals(out.elements(), kind == ReduceKind::kProd ? 1 : 0);
  std::vector<int64_t> counts(out.elements());
  magnitude->assign(out.elements(), 0);
  for (int64_t i = 0; i < in.info().elements(); ++i) {
    int64_t rest = i, o = 0, stride = 1;
    for (int d = shape.rank() - 1; d >= 0; --d) {
      if (!(axes >> d & 1)) {
        o += rest % shape[d] * stride;
        stride *= shape[d];
      }
      rest /= shape[d];
    }
    const double x = in.at<float>(i);
    double& total = totals[o];
    const bool first = counts[o]++ == 0;
    (*magnitude)[o] += std::abs(x);
    switch (kind) {
      case ReduceKind::kProd: total *= x; break;
      case ReduceKind::kMax: total = first ? x : std::max(total, x); break;
      case ReduceKind::kMin: total = first ? x : std::min(total, x); break;
      default: total += x; break;
    }
  }
  for (size_t o = 0; o < totals.size(); ++o) {
    if (kind != ReduceKind::kMean) continue;
    totals[o] /= static_cast<double>(counts[o]);
    (*magnitude)[o] /= static_cast<double>(counts[o]);
  }
  return totals;
}

class ReduceIsaTest : public ::testing::TestWithParam<Isa> {};

TEST_P(ReduceIsaTest, AnyAxes) {
  const struct {
    const char* name;
    ReduceKind kind;
  } kOperators[] = {{"MEAN", ReduceKind::kMean},
                    {"SUM", ReduceKind::kSum},
                    {"REDUCE_PROD", ReduceKind::kProd},
                    {"REDUCE_MAX", ReduceKind::kMax},
                    {"REDUCE_MIN", ReduceKind::kMin}};
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const auto& [name, kind] = kOperators[seed % std::size(kOperators)];
    Shape shape;
    const int rank = static_cast<int>(random.Int(1, 5));
    for (int d = 0; d < rank; ++d) {
      shape.push_back(static_cast<int32_t>(random.Int(1, d == rank - 1        ? 150
                                                         : d == 0 && rank < 4 ? 90
                                                                              : 6)));
    }
    TensorInfo info{.type = kF32, .shape = shape};
    info.row_pitch = RandomPitch(random, shape.dim(-1));
    TestTensor x(info, 4 * random.Int(0, 3));
    const bool product = kind == ReduceKind::kProd;
    x.Fill(random, product ? 0.9 : -2, product ? 1.1 : 3);
    const auto axes = static_cast<uint32_t>(random.Int(1, (1 << rank) - 1));
    std::vector<int32_t> list;
    for (int d = 0; d < rank; ++d) {
      if (axes >> d & 1) list.push_back(random.Chance(0.5) ? d : d - rank);
    }
    OpTester tester(name);
    tester.params<ReduceParams>().keep_dims = random.Chance(0.5);
    tester.Input(x).Constant(Axes(list));
    ASSERT_TRUE(tester.Infer().ok());
    std::vector<double> magnitude;
    const Shape& out = tester.op.outputs[0].shape;
    const std::vector<double> expected = Expected(kind, x, axes, out, &magnitude);
    const double terms = static_cast<double>(x.info().elements()) / out.elements();
    for (const char* candidate : {"reference", "highway"}) {
      const auto actual = tester.Run(candidate, GetParam(), seed);
      if (!actual.ok()) {
        EXPECT_EQ(actual.status().code(), StatusCode::kUnsupported);
        EXPECT_FALSE(GetParam().has_vectors());
        continue;
      }
      for (int64_t o = 0; o < out.elements(); ++o) {
        const double bound = product ? 1e-6 * terms * std::abs(expected[o])
                                     : 1e-5 + 4 * 0x1p-23 * std::sqrt(terms) * magnitude[o];
        ASSERT_NEAR((*actual)[0].at<float>(o), expected[o], bound)
            << candidate << ' ' << name << ' ' << shape << " axes " << axes << " at " << o;
      }
    }
  }
}

// Sizes around the vector widths and the blocks, more terms than 16 bits hold sums of.
Shape RandomBytesShape(Random& random) {
  Shape shape;
  const int rank = static_cast<int>(random.Int(1, 4));
  for (int d = 0; d < rank; ++d) {
    const bool last = d == rank - 1;
    shape.push_back(static_cast<int32_t>(
        last ? random.Pick<int64_t>({1, 3, 7, 15, 16, 17, 33, 40, 63, 64, 65, 96, 200, 257, 300})
             : random.Pick<int64_t>({1, 2, 5, 7, rank == 2 ? 700 : 40})));
  }
  return shape;
}

// A reduction over any axes, by elements of T's width.
template <class T>
void CompareIntegers(Isa isa, std::initializer_list<const char*> names, DataType type,
                     uint64_t seed) {
  Random random(seed);
  OpTester tester(random.Pick(names));
  SCOPED_TRACE(std::string(tester.op.op->name) + " of " + std::string(DataTypeName(type)) + ", " +
               random.Trace());
  const bool byte = type == DataType::kInt8 || type == DataType::kUInt8;
  const bool rescaled = tester.op.op->name == "SUM" || tester.op.op->name == "MEAN";
  const int64_t low = type == DataType::kUInt8 ? 0 : byte ? -128 : -32768;
  const auto quantization = [&] {
    if (!byte && type != DataType::kInt16) return Quantization{};
    return Quantization{{random.Float(0.01f, 2)},
                        {static_cast<int32_t>(byte ? random.Int(low, low + 255) : 0)}};
  };
  TensorInfo info{.type = type, .shape = RandomBytesShape(random), .quantization = quantization()};
  info.row_pitch = random.Chance(0.3) ? RandomPitch(random, info.shape.dim(-1)) : 0;
  TestTensor x(info, random.Int(0, 3) * sizeof(T));
  x.Fill(random, static_cast<double>(low), static_cast<double>(byte ? low + 255 : 32767));
  std::vector<int32_t> axes;
  for (int d = 0; d < info.shape.rank(); ++d) {
    if (random.Chance(0.5)) axes.push_back(d);
  }
  tester.params<ReduceParams>().keep_dims = random.Chance(0.5);
  tester.Input(x).Constant(Axes(axes));
  tester.Output(type, rescaled ? quantization() : info.quantization);
  ASSERT_TRUE(tester.Infer().ok());
  const auto expected = tester.Run("reference", Isa::kScalar);
  const auto actual = tester.Run("highway", isa, seed, random.Int(0, 3) * sizeof(T));
  ASSERT_TRUE(expected.ok());
  const bool vectors = isa.has_vectors();
  ASSERT_EQ(actual.ok(), vectors) << actual.status().ToString();
  if (vectors) ExpectSame<T>((*expected)[0], (*actual)[0], tester.op.op->name);
}

// The reference starts from the least float, or the largest, which a NaN leaves as it is and an
// infinity beyond it, too.
TEST_P(ReduceIsaTest, ExtremesOfOneTermStartAsTheReferenceDoes) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> values(300);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = i % 3 == 0 ? nan : i % 3 == 1 ? -infinity : infinity;
  }
  for (const char* name : {"REDUCE_MAX", "REDUCE_MIN"}) {
    OpTester tester(name);
    tester.Input(TestTensor::Of<float>(kF32, {1, 100, 3}, values)).Constant(Axes({0}));
    ASSERT_TRUE(tester.Infer().ok());
    const auto expected = tester.Run("reference", Isa::kScalar);
    const auto actual = tester.Run("highway", GetParam());
    ASSERT_TRUE(expected.ok());
    if (!GetParam().has_vectors()) continue;
    ASSERT_TRUE(actual.ok()) << actual.status().ToString();
    ExpectSame<float>((*expected)[0], (*actual)[0], name);
  }
}

// Which are their factor where they have its scale and zero point.
TEST_P(ReduceIsaTest, QuantizedProductsOfOneFactor) {
  const Quantization in{.scales = {0.05f}, .zero_points = {3}};
  TestTensor x({.type = DataType::kInt8, .shape = {1, 7, 43}, .quantization = in});
  Random random(1);
  x.Fill(random, -128, 127);
  for (const Quantization& out : {in, Quantization{.scales = {0.05f}, .zero_points = {-5}},
                                  Quantization{.scales = {0.02f}, .zero_points = {3}}}) {
    OpTester tester("REDUCE_PROD");
    tester.Input(x).Constant(Axes({0}));
    tester.Output(DataType::kInt8, out);
    ASSERT_TRUE(tester.Infer().ok());
    const auto expected = tester.Run("reference", Isa::kScalar);
    const auto actual = tester.Run("highway", GetParam());
    ASSERT_TRUE(expected.ok());
    const bool vectors = GetParam().has_vectors();
    ASSERT_EQ(actual.ok(), vectors && out == in) << actual.status().ToString();
    if (actual.ok()) ExpectSame<int8_t>((*expected)[0], (*actual)[0], "product");
  }
}

TEST_P(ReduceIsaTest, IntegersHaveTheBitsOfTheReference) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const auto quantized = {"MEAN", "MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"};
    CompareIntegers<uint8_t>(GetParam(), {"MEAN", "REDUCE_MAX", "REDUCE_MIN"}, DataType::kInt8,
                             seed);
    CompareIntegers<uint8_t>(GetParam(), quantized, DataType::kUInt8, seed);
    CompareIntegers<uint16_t>(GetParam(), {"MEAN", "REDUCE_MAX", "REDUCE_MIN"}, DataType::kInt16,
                              seed);
    const auto all = {"MEAN", "SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN"};
    CompareIntegers<uint32_t>(GetParam(), all, DataType::kInt32, seed);
    CompareIntegers<uint64_t>(GetParam(), all, DataType::kInt64, seed);
    CompareIntegers<uint8_t>(
        GetParam(), {"REDUCE_ANY", "REDUCE_ALL", "SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN"},
        DataType::kBool, seed);
  }
}

// Terms enough for units of their own, of which the last one has fewer rows.
TEST_P(ReduceIsaTest, FewOutputsOfManyTerms) {
  const struct {
    Shape shape;
    std::vector<int32_t> axes;
  } kCases[] = {{{1, 37, 41, 24}, {1, 2}}, {{3, 61, 23, 33}, {1, 2}}, {{1, 211, 300}, {0, 1, 2}},
                {{2, 5, 70001}, {0, 2}},   {{7, 3, 9000}, {0, 2}},    {{70003}, {0}}};
  uint64_t seed = 0;
  for (const auto& [shape, axes] : kCases) {
    for (const bool pitched : {false, true}) {
      Random random(++seed);
      SCOPED_TRACE(random.Trace());
      uint32_t mask = 0;
      for (const int32_t axis : axes) mask |= 1u << axis;
      TensorInfo info{.type = kF32, .shape = shape};
      info.row_pitch = pitched && shape.rank() > 1 ? shape.dim(-1) + 5 : 0;
      TestTensor x(info, 4 * random.Int(0, 3));
      x.Fill(random, -1, 2);
      for (const auto& [name, kind] : {std::pair("MEAN", ReduceKind::kMean),
                                       {"SUM", ReduceKind::kSum},
                                       {"REDUCE_MAX", ReduceKind::kMax},
                                       {"REDUCE_MIN", ReduceKind::kMin}}) {
        OpTester tester(name);
        tester.Input(x).Constant(Axes(axes));
        ASSERT_TRUE(tester.Infer().ok());
        std::vector<double> magnitude;
        const Shape& out = tester.op.outputs[0].shape;
        const std::vector<double> expected = Expected(kind, x, mask, out, &magnitude);
        const auto actual = tester.Run("highway", GetParam(), seed, random.Int(0, 3) * 4);
        ASSERT_EQ(actual.ok(), GetParam().has_vectors()) << actual.status().ToString();
        if (!actual.ok()) continue;
        for (int64_t o = 0; o < out.elements(); ++o) {
          ASSERT_NEAR((*actual)[0].at<float>(o), expected[o], 1e-5 * (1 + magnitude[o]))
              << name << ' ' << shape << " at " << o;
        }
      }
      for (const DataType type : {DataType::kInt8, DataType::kUInt8}) {
        TensorInfo bytes = info;
        bytes.type = type;
        const int32_t zero = type == DataType::kInt8 ? -5 : 120;
        bytes.quantization = {{0.03f}, {zero}};
        TestTensor q(bytes, random.Int(0, 3));
        q.Fill(random, type == DataType::kInt8 ? -128 : 0, type == DataType::kInt8 ? 127 : 255);
        OpTester tester("MEAN");
        tester.Input(q).Constant(Axes(axes)).Output(type, {{0.011f}, {zero + 3}});
        ASSERT_TRUE(tester.Infer().ok());
        const auto expected = tester.Run("reference", Isa::kScalar);
        const auto actual = tester.Run("highway", GetParam(), seed, random.Int(0, 3));
        ASSERT_TRUE(expected.ok());
        if (actual.ok()) ExpectSame<uint8_t>((*expected)[0], (*actual)[0], "MEAN");
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, ReduceIsaTest, ::testing::ValuesIn(RunnableIsas()),
                         [](const auto& info) { return std::string(IsaName(info.param)); });

}  // namespace
}  // namespace fuselite::kernels::testing
