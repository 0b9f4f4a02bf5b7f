// Functions of one value or two, windows, reductions and conversions, with the quantization that
// each of them asks for.
#include "kernels/transpose_conv/transpose_conv.h"
#include "tests/fuzz/fitting_cases.h"
#include "tests/fuzz/fitting_tensors.h"
#include "tests/kernels/quantized_product_cases.h"
#include "tests/kernels/transpose_conv_cases.h"

namespace fuselite::fuzz {
namespace {

using namespace kernels;
using namespace kernels::testing;

constexpr DataType kF32 = DataType::kFloat32, kI8 = DataType::kInt8, kU8 = DataType::kUInt8,
                   kI16 = DataType::kInt16, kI32 = DataType::kInt32;

bool IsCode(DataType type) { return type == kI8 || type == kU8 || type == kI16; }

Quantization SomeScale(Random& random, DataType type) {
  if (!IsCode(type)) return {};
  const int32_t low = type == kU8 ? 0 : -128;
  const int32_t zero = type == kI16 ? 0 : Dim(random, low, low + 255);
  return {{random.Pick({0.02f, 0.1f, 0.5f, 0.004f}) / (type == kI16 ? 64 : 1)}, {zero}};
}

TestTensor Operand(Random& random, DataType type, const Shape& shape, const Quantization& q) {
  if (IsCode(type)) return AnyIntegers(random, type, shape, q);
  if (type == kF32) return Floats(random, shape, random.Pick({1.0f, 9.0f}));
  return Any(random, type, shape);
}

// What the output of a function with a fixed range has: SOFTMAX, LOGISTIC, TANH and their like.
Quantization FixedScale(std::string_view name, DataType type) {
  const int32_t low = type == kU8 ? 0 : -128;
  if (!IsCode(type)) return {};
  if (name == "LOG_SOFTMAX") return {{16.0f / 256}, {low + 255}};
  if (type == kI16) return {{1.0f / 32768}, {0}};
  const bool both = name == "TANH" || name == "L2_NORMALIZATION";
  return both ? Quantization{{1.0f / 128}, {low + 128}} : Quantization{{1.0f / 256}, {low}};
}

FittingCase OfFixedRange(Random& random) {
  const char* name =
      random.Pick({"SOFTMAX", "LOG_SOFTMAX", "L2_NORMALIZATION", "LOGISTIC", "TANH"});
  const DataType type = random.Pick({kF32, kI8, kU8, kI16});
  OpTester tester(name);
  if (tester.op.op->name == "SOFTMAX") SetParameter(tester, "beta", random.Pick({1.0f, 0.5f}));
  const Shape shape = SmallShape(random, Dim(random, 1, 4));
  tester.Input(Operand(random, type, shape, SomeScale(random, type)));
  tester.Output(type, FixedScale(name, type));
  return {std::move(tester)};
}

// Those of one value or two that stand alone.
std::span<const OperatorDef* const> Elementwise() {
  static const std::vector<const OperatorDef*> kOperators = [] {
    std::vector<const OperatorDef*> operators;
    for (const OperatorDef* op : AllOperators()) {
      const bool few = op->min_inputs >= 1 && op->min_inputs <= 2 && op->max_outputs == 1;
      const bool ours = op->builtin_code >= 0 && !op->candidates.empty() && !op->types.empty();
      if (op->elementwise && few && ours && op->state_inputs.empty()) operators.push_back(op);
    }
    return operators;
  }();
  return kOperators;
}

FittingCase OfElements(Random& random) {
  const auto operators = Elementwise();
  const OperatorDef& op = *operators[random.Int(0, std::ssize(operators) - 1)];
  const TypeRow& row = op.types[random.Int(0, std::ssize(op.types) - 1)];
  OpTester tester(op.name);
  tester.op.params = DrawParams(op, random);
  const DataType type = row.inputs[0] == DataType::kNone ? kF32 : row.inputs[0];
  const Quantization q = SomeScale(random, type);
  const Shape shape = SmallShape(random, Dim(random, 1, 5));
  tester.Input(Operand(random, type, shape, q));
  const bool same = random.Chance(0.4);
  if (op.min_inputs == 2) {
    Shape other = shape;
    for (int d = 0; d < other.rank(); ++d) {
      if (random.Chance(0.3)) other.set(d, 1);
    }
    const DataType second = row.inputs[1] == DataType::kNone ? type : row.inputs[1];
    const TestTensor y =
        Operand(random, second, other, same && second == type ? q : SomeScale(random, second));
    random.Chance(0.4) ? tester.Constant(y) : tester.Input(y);
  }
  const DataType out = row.output == DataType::kNone ? type : row.output;
  tester.Output(out, same && out == type ? q : SomeScale(random, out));
  return {std::move(tester)};
}

FittingCase OfWindows(Random& random) {
  OpTester tester(random.Pick({"AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D"}));
  for (const char* name : {"filter_width", "filter_height", "stride_w", "stride_h"}) {
    SetParameter(tester, name, Dim(random, 1, 4));
  }
  SetParameter(tester, "padding", random.Pick({Padding::kSame, Padding::kValid}));
  SetParameter(tester, "fused_activation_function",
               random.Pick({Activation::kNone, Activation::kRelu, Activation::kRelu6}));
  const DataType type = random.Pick({kF32, kI8, kU8, kI16});
  const Quantization q = SomeScale(random, type);
  const Shape shape = {Dim(random, 1, 2), Dim(random, 1, 9), Dim(random, 1, 9), Dim(random, 1, 40)};
  tester.Input(Operand(random, type, shape, q)).Output(type, q);
  return {std::move(tester)};
}

FittingCase OfSets(Random& random) {
  OpTester tester(random.Pick({"MEAN", "SUM", "REDUCE_PROD", "REDUCE_MAX", "REDUCE_MIN"}));
  SetParameter(tester, "keep_dims", random.Chance(0.5));
  const DataType type = random.Pick({kF32, kI8, kU8, kI16, kI32, DataType::kInt64});
  const int rank = Dim(random, 1, 4);
  const Quantization q = SomeScale(random, type);
  tester.Input(Operand(random, type, SmallShape(random, rank), q));
  std::vector<int32_t> axes;
  for (int d = 0; d < rank; ++d) {
    if (random.Chance(0.5)) axes.push_back(random.Chance(0.8) ? d : d - rank);
  }
  tester.Constant(TestTensor::Of<int32_t>(kI32, {static_cast<int32_t>(axes.size())}, axes));
  tester.Output(type, random.Chance(0.5) ? q : SomeScale(random, type));
  return {std::move(tester)};
}

FittingCase OfConversions(Random& random) {
  const Shape shape = SmallShape(random, Dim(random, 1, 4));
  const auto any = [&] {
    return random.Pick({kF32, kI8, kU8, kI16, kI32, DataType::kInt64, DataType::kBool,
                        DataType::kFloat16, DataType::kUInt32, DataType::kUInt16,
                        DataType::kFloat64, DataType::kInt4, DataType::kBFloat16,
                        DataType::kComplex64, DataType::kInt2});
  };
  if (random.Chance(0.3)) {
    OpTester tester("CAST");
    const DataType from = any(), to = any();
    SetParameter(tester, "in_data_type", from);
    SetParameter(tester, "out_data_type", to);
    tester.Input(Any(random, from, shape)).Output(to);
    return {std::move(tester)};
  }
  const bool back = random.Chance(0.5);
  OpTester tester(back ? "DEQUANTIZE" : "QUANTIZE");
  const DataType type =
      random.Pick({kI8, kU8, kI16, kI32, DataType::kInt4, DataType::kFloat16, DataType::kInt2});
  Quantization codes = SomeScale(random, type);
  if (type == kI32 || type == DataType::kInt4 || type == DataType::kInt2) codes = {{0.03f}, {0}};
  if (random.Chance(0.3)) {
    codes.axis = Dim(random, 0, shape.rank() - 1);
    codes.scales = std::vector<float>(shape[codes.axis], 0.05f);
    codes.zero_points = std::vector<int32_t>(shape[codes.axis], 0);
  }
  TestTensor coded({.type = type, .shape = shape, .quantization = codes});
  const std::vector<std::byte> values = DrawValues(coded.info(), random);
  std::memcpy(coded.bytes(), values.data(), values.size());
  if (back) {
    tester.Input(coded).Output(kF32);
  } else if (random.Chance(0.5)) {
    const DataType from = random.Pick({kI8, kU8, kI16, kI32});
    const Quantization q = IsCode(from) ? SomeScale(random, from) : Quantization{{0.01f}, {0}};
    TestTensor x({.type = from, .shape = shape, .quantization = q});
    x.Fill(random, from == kU8 ? 0 : -100, 100);
    tester.Input(x).Output(type, codes);
  } else {
    tester.Input(Floats(random, shape, 4)).Output(type, codes);
  }
  return {std::move(tester)};
}

// Integers of 4 and 2 bits, several of them in a byte.
FittingCase OfPacked(Random& random) {
  const DataType type = random.Pick({DataType::kInt4, DataType::kInt2, DataType::kUInt4});
  const Shape shape = SmallShape(random, Dim(random, 1, 3));
  const int rank = shape.rank();
  std::vector<int32_t> begins, sizes, steps, whole(shape.dims().begin(), shape.dims().end());
  for (int d = 0; d < rank; ++d) {
    begins.push_back(Dim(random, 0, shape[d] - 1));
    sizes.push_back(Dim(random, 1, shape[d] - begins.back()));
    steps.push_back(Dim(random, 1, 2));
  }
  const auto list = [&](const std::vector<int32_t>& values) {
    return TestTensor::Of<int32_t>(kI32, {rank}, values);
  };
  OpTester tester(random.Pick(
      {"SLICE", "STRIDED_SLICE", "CONCATENATION", "DYNAMIC_UPDATE_SLICE", "RESHAPE", "SPLIT"}));
  const std::string_view name = tester.op.op->name;
  if (name == "SPLIT") {
    SetParameter(tester, "num_splits", 1);
    tester.Constant(TestTensor::Of<int32_t>(kI32, {}, {Dim(random, 0, rank - 1)}));
  }
  tester.Input(Any(random, type, shape));
  if (name == "SLICE") tester.Constant(list(begins)).Constant(list(sizes));
  if (name == "STRIDED_SLICE") {
    tester.Constant(list(begins)).Constant(list(whole)).Constant(list(steps));
  }
  if (name == "CONCATENATION") {
    SetParameter(tester, "axis", Dim(random, 0, rank - 1));
    tester.Input(Any(random, type, shape));
  }
  if (name == "DYNAMIC_UPDATE_SLICE") {
    Shape update;
    for (const int32_t size : sizes) update.push_back(size);
    tester.Input(Any(random, type, update)).Input(list(begins));
  }
  if (name == "RESHAPE") {
    tester.Constant(TestTensor::Of<int32_t>(kI32, {1}, {static_cast<int32_t>(shape.elements())}));
  }
  tester.Output(type);
  return {std::move(tester)};
}

// A CONCATENATION of uint8, whose inputs may have scales of their own.
FittingCase OfSideBySide(Random& random) {
  OpTester tester("CONCATENATION");
  const int rank = Dim(random, 1, 4), axis = Dim(random, 0, rank - 1);
  SetParameter(tester, "axis", random.Chance(0.5) ? axis : axis - rank);
  Shape shape = SmallShape(random, rank);
  const Quantization out = SomeScale(random, kU8);
  for (int i = Dim(random, 1, 4); i > 0; --i) {
    shape.set(axis, Dim(random, 1, 9));
    const Quantization q = random.Chance(0.3) ? out : SomeScale(random, kU8);
    tester.Input(Operand(random, kU8, shape, q));
  }
  tester.Output(kU8, out);
  return {std::move(tester)};
}

FittingCase HybridTransposeConv(Random& random) {
  const TransposeConvSizes sizes(random, 20, 20, 40);
  const int32_t out = sizes.output.dim(-1);
  const TestTensor filter =
      RandomTensor(random, {.type = kI8,
                            .shape = sizes.filter,
                            .quantization = RandomQuantization(random, out, true, 0, 0)});
  OpTester tester = sizes.Tester(filter, Floats(random, sizes.input, 2));
  tester.params<TransposeConvParams>().activation =
      random.Pick({Activation::kNone, Activation::kRelu});
  if (random.Chance(0.6)) tester.Input(Floats(random, {out}, 1));
  return {std::move(tester), 1e-3f};
}

}  // namespace

FittingCase DrawFunctionCase(Random& random) {
  switch (random.Int(0, 8)) {
    case 0: return OfFixedRange(random);
    case 1:
    case 2: return OfElements(random);
    case 3: return OfWindows(random);
    case 4: return OfSets(random);
    case 5: return OfConversions(random);
    case 6: return OfPacked(random);
    case 7: return OfSideBySide(random);
    default: return HybridTransposeConv(random);
  }
}

}  // namespace fuselite::fuzz
