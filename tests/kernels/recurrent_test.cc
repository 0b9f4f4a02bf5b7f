// RNN and SVDF with vectors: as near to the reference as sums in another order are, at every level.
#include "kernels/recurrent/rnn.h"
#include "kernels/recurrent/svdf.h"
#include "tests/kernels/op_tester.h"

namespace fuselite::kernels::testing {
namespace {

constexpr DataType kF32 = DataType::kFloat32, kI8 = DataType::kInt8;

// Constants of floats, or of bytes with one scale.
class Drawn {
 public:
  explicit Drawn(Random& random) : random_(random), hybrid_(random.Chance(0.5)) {}

  bool hybrid() const { return hybrid_; }
  TestTensor Floats(const Shape& shape, float limit = 1) const {
    TestTensor tensor({.type = kF32, .shape = shape});
    tensor.Fill(random_, -limit, limit);
    return tensor;
  }
  TestTensor Weights(const Shape& shape) const {
    if (!hybrid_) return Floats(shape, 0.4F);
    TestTensor tensor({.type = kI8, .shape = shape, .quantization = {{1 / 300.0F}, {0}}});
    tensor.Fill(random_, -127, 127);
    return tensor;
  }

 private:
  Random& random_;
  bool hybrid_;
};

// Runs write the state: each has its own.
std::vector<float> Values(const OpTester& tester, std::string_view candidate, Isa isa, int state) {
  OpTester own = tester;
  own.inputs[state] = tester.inputs[state].Clone();
  const auto outputs = own.Run(candidate, isa);
  EXPECT_TRUE(outputs.ok()) << outputs.status().ToString();
  if (!outputs.ok()) return {};
  std::vector<float> values = (*outputs)[0].values<float>();
  const std::vector<float> left = own.inputs[state].values<float>();
  values.insert(values.end(), left.begin(), left.end());
  return values;
}

void ExpectNearReference(OpTester& tester, int state, float tolerance) {
  ASSERT_TRUE(tester.Infer().ok());
  const std::vector<float> expected = Values(tester, "reference", Isa::kScalar, state);
  float largest = 1;
  for (const float value : expected) largest = std::max(largest, std::abs(value));
  for (const Isa isa : RunnableIsas()) {
    if (isa == Isa::kScalar) continue;
    SCOPED_TRACE(IsaName(isa));
    const std::vector<float> actual = Values(tester, "highway", isa, state);
    ASSERT_EQ(actual.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(actual[i], expected[i], tolerance * largest) << i;
    }
  }
}

TEST(RnnTest, VectorsMatchTheReference) {
  constexpr Activation kActivations[] = {Activation::kTanh, Activation::kRelu, Activation::kRelu6,
                                         Activation::kReluN1To1, Activation::kNone};
  for (int seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const Drawn drawn(random);
    const auto batch = static_cast<int32_t>(random.Int(1, 3));
    const auto steps = static_cast<int32_t>(random.Int(1, 4));
    const auto width = static_cast<int32_t>(random.Int(1, 70));
    const auto units = static_cast<int32_t>(random.Int(1, 40));
    OpTester tester("UNIDIRECTIONAL_SEQUENCE_RNN");
    tester.params<RnnParams>() = {
        .activation = kActivations[seed % 5],
        .time_major = random.Chance(0.5),
        .merge_outputs = false,
        .asymmetric_quantize_inputs = random.Chance(0.5),
    };
    const bool time_major = tester.params<RnnParams>().time_major;
    tester.Input(
        drawn.Floats(time_major ? Shape{steps, batch, width} : Shape{batch, steps, width}));
    tester.Constant(drawn.Weights({units, width})).Constant(drawn.Weights({units, units}));
    tester.Constant(drawn.Floats({units})).Input(drawn.Floats({batch, units}));
    // A last bit may move a quantized state by a step.
    ExpectNearReference(tester, 4, drawn.hybrid() ? 0.02F : 1e-5F);
    if (HasFailure()) return;
  }
}

TEST(SvdfTest, VectorsMatchTheReference) {
  for (int seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const Drawn drawn(random);
    const auto batch = static_cast<int32_t>(random.Int(1, 3));
    const auto width = static_cast<int32_t>(random.Int(1, 70));
    const auto rank = static_cast<int32_t>(random.Int(1, 3));
    const auto filters = rank * static_cast<int32_t>(random.Int(1, 20));
    const auto memory = static_cast<int32_t>(random.Int(1, 40));
    OpTester tester("SVDF");
    tester.params<SvdfParams>() = {
        .rank = rank,
        .activation = random.Pick({Activation::kNone, Activation::kRelu, Activation::kTanh}),
        .asymmetric_quantize_inputs = random.Chance(0.5),
    };
    tester.Input(drawn.Floats({batch, width}, 3)).Constant(drawn.Weights({filters, width}));
    tester.Constant(drawn.Weights({filters, memory}));
    random.Chance(0.5) ? tester.Constant(drawn.Floats({filters / rank})) : tester.Absent();
    tester.Input(drawn.Floats({batch, filters * memory}));
    // The input is quantized alike, and sums of integers are exact.
    ExpectNearReference(tester, 4, 1e-5F);
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace fuselite::kernels::testing
