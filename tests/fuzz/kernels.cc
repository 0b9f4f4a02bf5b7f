// Every operator's kernels against its reference, on every ISA that the machine runs; operands end
// at pages that nobody may touch (OpTester::RunGuarded).
#include "tests/fuzz/random_operation.h"
#include "tests/fuzz/target.h"
#include "tests/kernels/op_tester.h"

namespace fuselite::fuzz {
namespace {

using kernels::Candidate;
using kernels::testing::OpTester;
using kernels::testing::TestTensor;

OpTester TesterOf(const RandomOperation& drawn, Random& random) {
  OpTester tester(drawn.op->name);
  tester.op.params = drawn.params;
  for (size_t i = 0; i < drawn.inputs.size(); ++i) {
    const TensorInfo& info = drawn.inputs[i];
    const size_t element = std::max<size_t>(1, static_cast<size_t>(BitWidth(info.type)) / 8);
    const TestTensor tensor(info, element * static_cast<size_t>(random.Int(0, 3)));
    if (!tensor.absent()) {
      const std::vector<std::byte> values = DrawValues(info, random);
      if (!values.empty()) std::memcpy(tensor.bytes(), values.data(), values.size());
    }
    drawn.constant[i] ? tester.Constant(tensor) : tester.Input(tensor);
  }
  for (const TensorInfo& output : drawn.outputs) {
    tester.Output(output.type, output.quantization);
  }
  return tester;
}

// Sums in another order and other roundings of functions, at the size of the values at hand.
void ExpectClose(const TestTensor& expected, const TestTensor& actual, const std::string& what) {
  float largest = 1;
  for (float value : expected.values<float>()) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  kernels::testing::ExpectNear(
      expected, actual, [&](int64_t) { return 1e-4f * largest; }, what);
}

void CompareTensor(const TestTensor& expected, const TestTensor& actual, const std::string& what) {
  if (expected.info().type == DataType::kFloat32) return ExpectClose(expected, actual, what);
  if (expected.info().type == DataType::kFloat16 || expected.info().type == DataType::kBFloat16) {
    return;  // a rounding may turn out the other way
  }
  switch (BitWidth(expected.info().type)) {
    case 8: return kernels::testing::ExpectSame<uint8_t>(expected, actual, what);
    case 16: return kernels::testing::ExpectSame<uint16_t>(expected, actual, what);
    case 32: return kernels::testing::ExpectSame<uint32_t>(expected, actual, what);
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
  const auto operators = DrawableOperators();
  const auto& op = *operators[random.Int(0, static_cast<int64_t>(operators.size()) - 1)];
  SCOPED_TRACE(op.name);
  OpTester tester = TesterOf(DrawOperation(op, random), random);
  if (!tester.Infer().ok()) return;
  for (const TensorInfo& output : tester.op.outputs) {
    if (output.elements() > 1 << 16 || BitWidth(output.type) == 0) return;
  }
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
