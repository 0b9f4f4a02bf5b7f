// Every operator's kernels against its reference, on every ISA that the machine runs; operands end
// at pages that nobody may touch (OpTester::RunGuarded).
#include "tests/fuzz/fitting_cases.h"
#include "tests/fuzz/random_operation.h"
#include "tests/fuzz/target.h"
#include "tests/kernels/op_tester.h"
#include "tests/kernels/quantized_cases.h"

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
  const TensorInfo& info = tensor.info();
  const auto rows = static_cast<size_t>(info.row_pitch ? tensor.rows() : 1);
  if (rows == 0 || values.empty()) return;
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
    if (!tensor.absent()) Fill(tensor, drawn.DrawValuesOf(i, random));
    drawn.constant[i] ? tester.Constant(tensor) : tester.Input(tensor);
  }
  for (const TensorInfo& output : drawn.outputs) {
    tester.Output(random.Chance(0.5) ? DataType::kNone : output.type, output.quantization);
  }
  return tester;
}

// Where the operator can have that.
void PitchOutputs(OpTester& tester, Random& random) {
  const std::vector<TensorInfo> dense = tester.op.outputs;
  for (TensorInfo& output : tester.op.outputs) output.row_pitch = DrawPitch(output, random);
  const std::vector<TensorInfo> pitched = tester.op.outputs;
  tester.op.outputs = tester.Infer().ok() ? pitched : dense;
}

FittingCase AnyOperation(Random& random) {
  if (random.Chance(0.2)) return DrawFittingCase(random);
  const auto operators = DrawableOperators();
  const auto& op = *operators[random.Int(0, static_cast<int64_t>(operators.size()) - 1)];
  return {TesterOf(DrawOperation(op, random), random)};
}

// Sums in another order and other roundings of functions, at the size of the values at hand.
void ExpectClose(const TestTensor& expected, const TestTensor& actual, float tolerance,
                 const std::string& what) {
  float largest = 1;
  for (float value : expected.values<float>()) {
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  }
  ExpectNear(
      expected, actual, [&](int64_t) { return tolerance * largest; }, what);
}

void CompareTensor(const TestTensor& expected, const TestTensor& actual, float tolerance,
                   const std::string& what) {
  if (expected.info().type == DataType::kFloat32) {
    return ExpectClose(expected, actual, tolerance, what);
  }
  if (expected.info().type == DataType::kFloat16 || expected.info().type == DataType::kBFloat16) {
    return;  // a rounding may turn out the other way
  }
  switch (BitWidth(expected.info().type)) {
    case 2:
    case 4: {
      const size_t whole = expected.info().elements() * BitWidth(expected.info().type) / 8;
      EXPECT_EQ(std::memcmp(expected.bytes(), actual.bytes(), whole), 0) << what;
      return;
    }
    case 8: return ExpectSame<uint8_t>(expected, actual, what);
    case 16: return ExpectSame<uint16_t>(expected, actual, what);
    case 32: return ExpectSame<uint32_t>(expected, actual, what);
    case 64:
      if (expected.info().type == DataType::kComplex64) return;
      return ExpectSame<uint64_t>(expected, actual, what);
    default: return;
  }
}

// The outputs, and then the states that the run leaves: `plain` keeps its own.
Result<std::vector<TestTensor>> RunOnCopy(const OpTester& plain, const Candidate& candidate,
                                          Isa isa) {
  OpTester tester = plain;
  for (int i : plain.op.op->state_inputs) {
    if (!tester.inputs[i].absent()) tester.inputs[i] = plain.inputs[i].Clone();
  }
  FUSELITE_ASSIGN_OR_RETURN(std::vector<TestTensor> results,
                            tester.RunCandidate(candidate, isa, 2, 1));
  for (int i : plain.op.op->state_inputs) {
    if (!tester.inputs[i].absent()) results.push_back(tester.inputs[i]);
  }
  return results;
}

// What a host's struct has of the parameters comes back from it.
void CheckStruct(const kernels::OperatorDef& op, const kernels::Params& params) {
  if (op.struct_bytes == 0) return;
  std::vector<uint64_t> host(op.struct_bytes / sizeof(uint64_t) + 1);
  ExportParams(op.fields, params.data(), host.data());
  kernels::Params again;
  const Status imported = ImportParams(op.fields, host.data(), op.max_version, again.data());
  ASSERT_TRUE(imported.ok()) << imported.message();
  std::vector<uint64_t> twice(host.size());
  ExportParams(op.fields, again.data(), twice.data());
  EXPECT_EQ(std::memcmp(host.data(), twice.data(), op.struct_bytes), 0);
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
  auto [tester, tolerance] = AnyOperation(random);
  const kernels::OperatorDef& op = *tester.op.op;
  SCOPED_TRACE(std::string(op.name) + " " + tester.op.tail.ToString());
  CheckStruct(op, tester.op.params);
  if (!tester.Infer().ok()) return;
  for (const TensorInfo& output : tester.op.outputs) {
    if (output.elements() > 1 << 16 || BitWidth(output.type) == 0) return;
  }
  PitchOutputs(tester, random);
  if (op.cost != nullptr && op.cost(tester.op) > 1e7) return;
  const Candidate& last = op.candidates.back();
  const auto expected = RunOnCopy(tester, last, Isa::kScalar);
  if (!expected.ok()) return;  // an index out of range
  const bool odd = HasOddFloats(tester);
  for (const Candidate& candidate : op.candidates) {
    if (&candidate == &last) continue;
    for (Isa isa : RunnableIsas()) {
      const auto actual = RunOnCopy(tester, candidate, isa);
      // What a sum of infinities in another order is, no tolerance says.
      if (!actual.ok() || odd) continue;
      const std::string what = std::string(candidate.name) + " " + std::string(IsaName(isa));
      for (size_t i = 0; i < expected->size(); ++i) {
        CompareTensor((*expected)[i], (*actual)[i], tolerance, what);
      }
    }
  }
}

}  // namespace fuselite::fuzz
