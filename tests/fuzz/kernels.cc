// Every operator's kernels against its reference, on every ISA that the machine runs; operands end
// at pages that nobody may touch (OpTester::RunGuarded).
#include "tests/fuzz/random_operation.h"
#include "tests/fuzz/target.h"
#include "tests/kernels/hybrid_cases.h"
#include "tests/kernels/op_tester.h"
#include "tests/kernels/product_cases.h"
#include "tests/kernels/quantized_product_cases.h"
#include "tests/kernels/transpose_conv_cases.h"

namespace fuselite::fuzz {
namespace {

using kernels::Candidate;
using namespace kernels::testing;

// Strides between rows, which only values of the run have.
int64_t DrawPitch(const TensorInfo& info, Random& random) {
  const bool rows = info.shape.rank() > 0 && BitWidth(info.type) >= 8;
  return rows && random.Chance(0.2) ? RandomPitch(random, info.shape.dim(-1)) : 0;
}

// `values` are dense.
void Fill(const TestTensor& tensor, const std::vector<std::byte>& values) {
  if (values.empty()) return;
  const TensorInfo& info = tensor.info();
  const auto rows = static_cast<size_t>(info.row_pitch ? tensor.rows() : 1);
  const size_t row = values.size() / rows;
  const size_t step = static_cast<size_t>(info.row_pitch) * BitWidth(info.type) / 8;
  for (size_t i = 0; i < rows; ++i) {
    std::memcpy(tensor.bytes() + i * step, values.data() + i * row, row);
  }
}

OpTester TesterOf(const RandomOperation& drawn, Random& random) {
  OpTester tester(drawn.op->name);
  tester.op.params = drawn.params;
  for (size_t i = 0; i < drawn.inputs.size(); ++i) {
    TensorInfo info = drawn.inputs[i];
    if (!info.absent() && !drawn.constant[i]) info.row_pitch = DrawPitch(info, random);
    const size_t element = std::max<size_t>(1, static_cast<size_t>(BitWidth(info.type)) / 8);
    const TestTensor tensor(info, element * static_cast<size_t>(random.Int(0, 3)));
    if (!tensor.absent()) Fill(tensor, DrawValues(info, random));
    drawn.constant[i] ? tester.Constant(tensor) : tester.Input(tensor);
  }
  for (const TensorInfo& output : drawn.outputs) {
    tester.Output(output.type, output.quantization);
  }
  return tester;
}

// Products and convolutions, whose operands seldom fit one another by chance.
OpTester RandomProduct(Random& random) {
  static const QuantizedProductCases kIntegers = {
      .types = {DataType::kInt8, DataType::kUInt8, DataType::kInt16}};
  switch (random.Int(0, 14)) {
    case 0: return RandomConv2D(random, {});
    case 1: return RandomDepthwiseConv2D(random, {});
    case 2: return RandomFullyConnected(random);
    case 3: return RandomBatchMatMul(random, random.Chance(0.5));
    case 4: return RandomSmallGroups(random, {});
    case 5: return RandomTransposeConv(random);
    case 6: return RandomHybridConv2D(random, {DataType::kInt8, DataType::kInt4}, true);
    case 7: return RandomHybridFullyConnected(random, {DataType::kInt8, DataType::kInt4});
    case 8: return RandomHybridDepthwise(random, static_cast<int32_t>(random.Int(1, 3)));
    case 9: return RandomHybridBatchMatMul(random, 0.3);
    case 10: return RandomQuantizedConv2D(random, kIntegers);
    case 11: return RandomQuantizedDepthwise(random, kIntegers);
    case 12: return RandomQuantizedFullyConnected(random, kIntegers);
    case 13: return RandomQuantizedBatchMatMul(random, kIntegers);
    default: return RandomQuantizedTransposeConv(random, kIntegers.types);
  }
}

// Where the operator can have that.
void PitchOutputs(OpTester& tester, Random& random) {
  const std::vector<TensorInfo> dense = tester.op.outputs;
  for (TensorInfo& output : tester.op.outputs) output.row_pitch = DrawPitch(output, random);
  const std::vector<TensorInfo> pitched = tester.op.outputs;
  tester.op.outputs = tester.Infer().ok() ? pitched : dense;
}

OpTester AnyOperation(Random& random) {
  if (random.Chance(0.2)) return RandomProduct(random);
  const auto operators = DrawableOperators();
  const auto& op = *operators[random.Int(0, static_cast<int64_t>(operators.size()) - 1)];
  return TesterOf(DrawOperation(op, random), random);
}

// Sums in another order and other roundings of functions, at the size of the values at hand.
void ExpectClose(const TestTensor& expected, const TestTensor& actual, const std::string& what) {
  float largest = 1;
  for (float value : expected.values<float>()) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  ExpectNear(
      expected, actual, [&](int64_t) { return 1e-4f * largest; }, what);
}

void CompareTensor(const TestTensor& expected, const TestTensor& actual, const std::string& what) {
  if (expected.info().type == DataType::kFloat32) return ExpectClose(expected, actual, what);
  if (expected.info().type == DataType::kFloat16 || expected.info().type == DataType::kBFloat16) {
    return;  // a rounding may turn out the other way
  }
  switch (BitWidth(expected.info().type)) {
    case 8: return ExpectSame<uint8_t>(expected, actual, what);
    case 16: return ExpectSame<uint16_t>(expected, actual, what);
    case 32: return ExpectSame<uint32_t>(expected, actual, what);
    case 64:
      if (expected.info().type == DataType::kComplex64) return;
      return ExpectSame<uint64_t>(expected, actual, what);
    default: return;
  }
}

bool HasOddFloats(const OpTester& tester) {
  for (const TestTensor& input : tester.inputs) {
    if (input.absent() || input.info().type != DataType::kFloat32) continue;
    for (float value : input.values<float>()) {
      if (!std::isfinite(value) || std::abs(value) > 1e6f) return true;
    }
  }
  return false;
}

}  // namespace

void FuzzOne(std::span<const uint8_t> bytes) {
  Random random(bytes);
  OpTester tester = AnyOperation(random);
  const kernels::OperatorDef& op = *tester.op.op;
  SCOPED_TRACE(op.name);
  if (!tester.Infer().ok()) return;
  for (const TensorInfo& output : tester.op.outputs) {
    if (output.elements() > 1 << 16 || BitWidth(output.type) == 0) return;
  }
  PitchOutputs(tester, random);
  if (op.cost != nullptr && op.cost(tester.op) > 1e7) return;
  const Candidate& last = op.candidates.back();
  const auto expected = tester.RunCandidate(last, Isa::kScalar);
  if (!expected.ok()) return;  // an index out of range
  const bool odd = HasOddFloats(tester);
  for (const Candidate& candidate : op.candidates) {
    if (&candidate == &last) continue;
    for (Isa isa : RunnableIsas()) {
      const auto actual = tester.RunCandidate(candidate, isa, 2, 1);
      // What a sum of infinities in another order is, no tolerance says.
      if (!actual.ok() || odd) continue;
      const std::string what = std::string(candidate.name) + " " + std::string(IsaName(isa));
      for (size_t i = 0; i < expected->size(); ++i) {
        CompareTensor((*expected)[i], (*actual)[i], what);
      }
    }
  }
}

}  // namespace fuselite::fuzz
