// Recurrent cells: each operand's shape follows from those of the others. Steps feed one another,
// so that what a rounding moves in one is there in the next.
#include "kernels/recurrent/svdf.h"
#include "tests/fuzz/fitting_cases.h"
#include "tests/fuzz/fitting_tensors.h"
#include "tests/kernels/lstm_cases.h"

namespace fuselite::fuzz {
namespace {

using namespace kernels;
using namespace kernels::testing;

constexpr DataType kF32 = DataType::kFloat32, kI8 = DataType::kInt8;

TestTensor LstmInput(Random& random, bool hybrid, int input, const Shape& shape) {
  if (hybrid && IsWeights(input)) return Bytes(random, kI8, shape);
  return Floats(random, shape, input == kLstmX ? 1.0f : 0.2f);
}

FittingCase Lstm(Random& random) {
  const bool hybrid = random.Chance(0.4);
  OpTester tester = MakeLstm(RandomLstmCase(random), [&](int input, const Shape& shape) {
    return LstmInput(random, hybrid, input, shape);
  });
  tester.params<LstmParams>().asymmetric_quantize_inputs = hybrid && random.Chance(0.5);
  return {std::move(tester), hybrid ? 3e-2f : 1e-3f};
}

// The form whose sums are rounded to int8: one step, layer normalization, a projection with a bias.
FittingCase ByteLstm(Random& random) {
  LstmCase c = RandomLstmCase(random);
  c.sequence = c.time_major = false;
  c.steps = 1;
  c.projection = c.projection_bias = c.layer_norm = true;
  OpTester tester = MakeLstm(c, [&](int input, const Shape& shape) {
    TestTensor tensor = RandomIntegerLstmInput(random, input, shape);
    if (input != kLstmCellState) return tensor;
    TensorInfo info = tensor.info();
    info.quantization.scales = {0x1p-15f};
    TestTensor cell(info);
    cell.Fill(random, -32768, 32767);
    return cell;
  });
  for (int i = 0; i < 12; ++i) {
    tester.op.intermediates.push_back({{random.Float(0.002f, 0.02f)}, {Dim(random, -128, 127)}});
  }
  tester.Output(kI8, {{0.01f}, {0}});
  return {std::move(tester)};
}

FittingCase BasicLstm(Random& random) {
  OpTester tester(random.Chance(0.5) ? "FUSELITE_BASIC_LSTM" : "FUSELITE_BASIC_LSTM_STEP");
  tester.params<LstmParams>().kernel_type = 1;
  const int32_t batch = Dim(random, 1, 3), width = Dim(random, 1, 20), cells = Dim(random, 1, 20);
  const Shape x{batch, width}, h{batch, cells}, weights{4 * cells, width + cells}, bias{4 * cells};
  if (random.Chance(0.5)) {
    tester.Input(Floats(random, x, 1)).Input(Floats(random, h, 0.5f));
    tester.Constant(Floats(random, weights, 0.2f)).Constant(Floats(random, bias, 0.5f));
    tester.Input(Floats(random, h, 0.5f));
    for (int i = 0; i < 4; ++i) tester.Output();
    return {std::move(tester)};
  }
  const auto bytes = [&](const Shape& shape, float scale) {
    TestTensor tensor({.type = DataType::kUInt8, .shape = shape, .quantization = {{scale}, {128}}});
    tensor.Fill(random, 0, 255);
    return tensor;
  };
  TestTensor biases(
      {.type = DataType::kInt32, .shape = bias, .quantization = {{0.01f / 128}, {0}}});
  biases.Fill(random, -5000, 5000);
  TestTensor state({.type = DataType::kInt16, .shape = h, .quantization = {{1.0f / 2048}, {0}}});
  state.Fill(random, -32768, 32767);
  tester.Input(bytes(x, 1.0f / 128)).Input(bytes(h, 1.0f / 128)).Constant(bytes(weights, 0.01f));
  tester.Constant(biases).Input(state);
  tester.Output(DataType::kUInt8, {{1.0f / 128}, {128}});
  tester.Output(DataType::kInt16, {{1.0f / 2048}, {0}});
  tester.Output(DataType::kUInt8, {{1.0f / 128}, {128}});
  tester.Output(DataType::kInt16, {{1.0f / 4096}, {0}});
  return {std::move(tester)};
}

// What the backward cell of a pair reads.
enum class Auxiliary : uint8_t {
  kNone,     // the input
  kInstead,  // an auxiliary input in its place
  kBeside,   // one beside it, with weights of its own, as the forward cell
};

void Take(OpTester& to, const OpTester& from, int input) {
  to.op.inputs.push_back(from.op.inputs[input]);
  to.inputs.push_back(from.inputs[input]);
}

FittingCase BidirectionalLstm(Random& random) {
  const auto auxiliary = random.Pick({Auxiliary::kNone, Auxiliary::kInstead, Auxiliary::kBeside});
  const bool hybrid = auxiliary != Auxiliary::kBeside && random.Chance(0.4);
  LstmCase first = RandomLstmCase(random);
  first.sequence = true;
  first.layer_norm = false;
  LstmCase second = first;
  second.cells = Dim(random, 1, 20);
  second.outputs = second.projection ? Dim(random, 1, 20) : second.cells;
  if (auxiliary == Auxiliary::kInstead) second.inputs = Dim(random, 1, 9);
  const auto cell = [&](const LstmCase& c) {
    return MakeLstm(
        c, [&](int input, const Shape& shape) { return LstmInput(random, hybrid, input, shape); });
  };
  const OpTester forward = cell(first), backward = cell(second);
  OpTester tester("BIDIRECTIONAL_SEQUENCE_LSTM");
  SetParameter(tester, "fused_activation_function", first.activation);
  SetParameter(tester, "cell_clip", first.cell_clip);
  SetParameter(tester, "proj_clip", first.proj_clip);
  SetParameter(tester, "time_major", first.time_major);
  SetParameter(tester, "asymmetric_quantize_inputs", hybrid && random.Chance(0.5));
  const bool merged = random.Chance(0.5);
  SetParameter(tester, "merge_outputs", merged);
  Take(tester, forward, kLstmX);
  for (const OpTester* each : {&forward, &backward}) {
    for (int i = kLstmInputWeights; i < kLstmOutputState; ++i) Take(tester, *each, i);
  }
  for (const OpTester* each : {&forward, &backward}) {
    Take(tester, *each, kLstmOutputState);
    Take(tester, *each, kLstmCellState);
  }
  Shape wide = backward.op.inputs[kLstmX].shape;
  const int32_t width = Dim(random, 1, 9);
  if (auxiliary == Auxiliary::kBeside) wide.set(2, width);
  auxiliary == Auxiliary::kNone ? tester.Absent() : tester.Input(Floats(random, wide, 1));
  for (const LstmCase* each : {&first, &second}) {
    for (int gate = 0; gate < kLstmGates; ++gate) {
      const bool there = auxiliary == Auxiliary::kBeside && !(each->coupled && gate == kInputGate);
      there ? tester.Constant(Floats(random, {each->cells, width}, 0.2f)) : tester.Absent();
    }
  }
  for (int i = merged ? 1 : 0; i < 2; ++i) tester.Output();
  return {std::move(tester), hybrid ? 3e-2f : 1e-3f};
}

struct SvdfSizes {
  explicit SvdfSizes(Random& random)
      : batch(Dim(random, 1, 3)),
        inputs(Dim(random, 1, 40)),
        rank(Dim(random, 1, 3)),
        units(Dim(random, 1, 20)),
        memory(Dim(random, 1, 10)) {}
  int32_t filters() const { return units * rank; }
  Shape state() const { return {batch, memory * filters()}; }
  int32_t batch, inputs, rank, units, memory;
};

FittingCase Svdf(Random& random) {
  const SvdfSizes sizes(random);
  const DataType weights = random.Pick({kF32, kF32, kI8, DataType::kUInt8});
  OpTester tester("SVDF");
  tester.params<SvdfParams>() = {.rank = sizes.rank,
                                 .activation = random.Pick({Activation::kNone, Activation::kRelu}),
                                 .asymmetric_quantize_inputs = random.Chance(0.5)};
  const auto matrix = [&](const Shape& shape) {
    return weights == kF32 ? Floats(random, shape, 0.3f) : Bytes(random, weights, shape);
  };
  tester.Input(Floats(random, {sizes.batch, sizes.inputs}, 1));
  tester.Constant(matrix({sizes.filters(), sizes.inputs}));
  tester.Constant(matrix({sizes.filters(), sizes.memory}));
  random.Chance(0.5) ? tester.Constant(Floats(random, {sizes.units}, 1)) : tester.Absent();
  tester.Input(Floats(random, sizes.state(), 0.3f));
  return {std::move(tester), weights == kF32 ? 1e-4f : 1e-2f};
}

// An SVDF of int8, whose times and state have 16 bits or 8.
FittingCase IntegerSvdf(Random& random) {
  const SvdfSizes sizes(random);
  const DataType memory = random.Pick({DataType::kInt16, kI8});
  OpTester tester("SVDF");
  tester.params<SvdfParams>() = {.rank = sizes.rank, .activation = Activation::kRelu};
  const auto integers = [&](DataType type, const Shape& shape, float scale, int32_t zero) {
    TestTensor tensor({.type = type, .shape = shape, .quantization = {{scale}, {zero}}});
    const int32_t most = type == kI8 ? 127 : 32767;
    tensor.Fill(random, -most - 1, most);
    return tensor;
  };
  tester.Input(integers(kI8, {sizes.batch, sizes.inputs}, 0.02f, Dim(random, -128, 127)));
  tester.Constant(integers(kI8, {sizes.filters(), sizes.inputs}, 0.01f, 0));
  tester.Constant(integers(memory, {sizes.filters(), sizes.memory}, 0x1p-15f, 0));
  if (random.Chance(0.5)) {
    tester.Constant(Numbers(random, {sizes.units}, -100000, 100000));
  } else {
    tester.Absent();
  }
  const float scale = random.Pick({0x1p-11f, 0.01f});
  tester.Input(integers(memory, sizes.state(), scale, memory == kI8 ? Dim(random, -9, 9) : 0));
  tester.Output(kI8, {{random.Pick({0.05f, 0.001f})}, {Dim(random, -128, 127)}});
  return {std::move(tester)};
}

// RNN and its forms over a sequence, one way or both.
FittingCase Rnn(Random& random) {
  const bool both = random.Chance(0.4), sequence = both || random.Chance(0.6);
  const int32_t batch = Dim(random, 1, 3), inputs = Dim(random, 1, 40), steps = Dim(random, 1, 5);
  const DataType weights = random.Pick({kF32, kI8, DataType::kUInt8});
  OpTester tester(both       ? "BIDIRECTIONAL_SEQUENCE_RNN"
                  : sequence ? "UNIDIRECTIONAL_SEQUENCE_RNN"
                             : "RNN");
  const bool time_major = sequence && random.Chance(0.4);
  if (sequence) SetParameter(tester, "time_major", time_major);
  SetParameter(tester, "asymmetric_quantize_inputs", random.Chance(0.5));
  SetParameter(tester, "fused_activation_function",
               random.Pick({Activation::kTanh, Activation::kRelu, Activation::kNone}));
  const auto auxiliary =
      both ? random.Pick({Auxiliary::kNone, Auxiliary::kInstead, Auxiliary::kBeside})
           : Auxiliary::kNone;
  const auto matrix = [&](const Shape& shape) {
    return weights == kF32 ? Floats(random, shape, 0.1f) : Bytes(random, weights, shape);
  };
  const auto rows = [&](int32_t width) {
    const Shape shape = time_major ? Shape{steps, batch, width} : Shape{batch, steps, width};
    return Floats(random, sequence ? shape : Shape{batch, width}, 1);
  };
  const int32_t widths[] = {inputs, auxiliary == Auxiliary::kBeside ? Dim(random, 1, 9) : inputs};
  int32_t units[] = {Dim(random, 1, 40), Dim(random, 1, 20)};
  tester.Input(rows(inputs));
  for (int i = 0; i < (both ? 2 : 1); ++i) {
    tester.Constant(matrix({units[i], inputs})).Constant(matrix({units[i], units[i]}));
    tester.Constant(Floats(random, {units[i]}, 1));
    tester.Input(Floats(random, {batch, units[i]}, 0.3f));
  }
  if (auxiliary != Auxiliary::kNone) tester.Input(rows(widths[1]));
  for (int i = 0; auxiliary == Auxiliary::kBeside && i < 2; ++i) {
    tester.Constant(matrix({units[i], widths[1]}));
  }
  const bool merged = both && random.Chance(0.5);
  if (both) SetParameter(tester, "merge_outputs", merged);
  for (int i = both && !merged ? 0 : 1; i < 2; ++i) tester.Output();
  return {std::move(tester), weights == kF32 ? 1e-4f : 3e-2f};
}

}  // namespace

FittingCase DrawRecurrentCase(Random& random) {
  switch (random.Int(0, 8)) {
    case 0: return Lstm(random);
    case 1: return {RandomIntegerLstm(random)};
    case 2: return ByteLstm(random);
    case 3: return BasicLstm(random);
    case 4: return BidirectionalLstm(random);
    case 5: return Svdf(random);
    case 6: return IntegerSvdf(random);
    default: return Rnn(random);
  }
}

}  // namespace fuselite::fuzz
