// The driver of elementwise chains (kernels/elementwise/chain_kernel.h) over rows in plain loops,
// whose vectors have random lengths: every view of the rows that a later emitter may ask for. To
// the bit of the reference, since each stage is the reference's function.
#include "kernels/elementwise/chain_kernel.h"

#include <cstring>

#include "tests/jit/jit_cases.h"

namespace fuselite::jit::testing {
namespace {

class PlainRows final : public kernels::ChainRows {
 public:
  explicit PlainRows(int lanes) : lanes_(lanes) {}

  std::string target() const override { return "plain"; }
  int lanes() const override { return lanes_; }
  Status Check(const kernels::ChainRowsSpec&) const override { return Status(); }
  Result<std::shared_ptr<const ChainRows>> Emit(const kernels::ChainRowsSpec& spec,
                                                std::span<const int64_t> lengths,
                                                const std::string&) const override {
    auto rows = std::make_shared<PlainRows>(lanes_);
    rows->spec_ = spec;
    rows->lengths_.assign(lengths.begin(), lengths.end());
    return std::shared_ptr<const ChainRows>(std::move(rows));
  }
  void Run(size_t i, kernels::ChainRowsArgs* args) const override {
    for (int64_t row = 0; row < args->rows; ++row) {
      for (int64_t c = 0; c < lengths_.at(i); ++c) {
        float value = 0;
        std::memcpy(&value, args->in + row * spec_.in_step + c * 4, sizeof(value));
        value = Apply(value, row, c, *args);
        std::memcpy(args->out + row * spec_.out_step + c * 4, &value, sizeof(value));
      }
    }
  }

 private:
  float Apply(float value, int64_t row, int64_t c, const kernels::ChainRowsArgs& args) const {
    size_t slot = 0;
    for (const TailStage& stage : spec_.tail.stages) {
      if (stage.kind == TailStage::Kind::kUnary) {
        value = kernels::ApplyUnary(stage.unary, value, stage.a, stage.b);
        continue;
      }
      const TailOperand& y = stage.operand;
      float operand = 0;
      std::memcpy(&operand,
                  args.operands.at(slot++) + (row * y.row_stride + c * y.channel_stride) * 4,
                  sizeof(operand));
      value = kernels::ApplyBinary(stage.binary, value, operand);
    }
    return value;
  }

  int lanes_;
  kernels::ChainRowsSpec spec_;
  std::vector<int64_t> lengths_;
};

// What the candidate, which is a plain function, is to use.
int current_lanes = 1;
size_t current_emitted = 0;

// The first stages by plain rows, the others by the driver.
Result<kernels::KernelPlan> PlanPlainChain(const kernels::OpDescription& op,
                                           const kernels::PlanContext&) {
  kernels::Tail tail = op.tail;
  kernels::TailRest rest{.output = DataType::kFloat32, .tail = tail};
  const auto cut = static_cast<int64_t>(std::min(current_emitted, tail.stages.size()));
  tail.stages.resize(static_cast<size_t>(cut));
  rest.tail.stages.erase(rest.tail.stages.begin(), rest.tail.stages.begin() + cut);
  if (!rest.tail.empty()) {
    rest.apply = kernels::ApplyTailReference;
    rest.why = "plain";
  }
  return PlanChainKernel(op, 0, std::move(tail), std::move(rest),
                         std::make_shared<const PlainRows>(current_lanes));
}

TEST(ChainDriverTest, RandomChains) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    OpTester tester("FUSELITE_ELEMENTWISE");
    // Few channels, of which many rows are one, many, and rows of several units.
    const auto channels = static_cast<int32_t>(
        random.Pick({random.Int(1, 9), random.Int(10, 70), random.Int(71, 700), int64_t{5000}}));
    const auto rows = static_cast<int32_t>(random.Int(1, 1 + 12000 / channels));
    TensorInfo info{.type = DataType::kFloat32,
                    .shape = {static_cast<int32_t>(random.Int(1, 2)), rows, channels}};
    if (random.Chance(0.2)) info.row_pitch = channels + random.Int(0, 5);
    const TestTensor x(info, 4 * random.Int(0, 3));
    x.Fill(random, -1, 1);
    tester.Input(x);
    ASSERT_TRUE(tester.Infer().ok());
    AddTail(tester, random);
    if (random.Chance(0.2)) tester.op.outputs[0].row_pitch = channels + random.Int(0, 5);
    current_lanes = static_cast<int>(random.Pick({1, 2, 3, 8, 16, 32, 64}));
    current_emitted = static_cast<size_t>(random.Int(0, 3));
    const kernels::Candidate plain("plain", PlanPlainChain);
    const auto expected = tester.Run("reference", Isa::kScalar);
    ASSERT_TRUE(expected.ok()) << expected.status().ToString();
    const auto actual = tester.RunCandidate(plain, Isa::kScalar, seed, random.Int(0, 3));
    ASSERT_TRUE(actual.ok()) << actual.status().ToString();
    kernels::testing::ExpectSame<float>((*expected)[0], (*actual)[0], "plain");
  }
}

}  // namespace
}  // namespace fuselite::jit::testing
