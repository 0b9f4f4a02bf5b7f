// What tells two operations apart, and what does not.
#include "fusion/graph/description_hash.h"

#include <functional>
#include <string>
#include <vector>

#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {
namespace {

using kernels::OpDescription;
using kernels::TailStage;
using Change = std::function<void(OpDescription&)>;

constexpr float kFew[] = {1, 2, 3}, kOthers[] = {1, 2, 4};

TensorInfo Info(const Shape& shape, const void* data = nullptr) {
  return {.type = DataType::kFloat32, .shape = shape, .data = data};
}

// A layer of `channels` channels, with a stage of each kind of list behind it.
OpDescription Layer(int channels) {
  OpDescription op;
  op.op = kernels::FindOperator("SOFTMAX");
  op.inputs = {Info({2, 3}), Info({3}, kFew)};
  op.outputs = {Info({2, 3})};
  op.outputs[0].quantization.scales = std::vector<float>(channels, 0.5f);
  op.outputs[0].quantization.zero_points = std::vector<int32_t>(channels, 1);
  op.intermediates = {op.outputs[0].quantization};
  TailStage stage;
  stage.requantize.multipliers = std::vector<int32_t>(channels, 7);
  stage.requantize.shifts = std::vector<int32_t>(channels, 2);
  stage.table = std::vector<uint8_t>(256, 3);
  stage.scales = std::vector<float>(channels, 0.25f);
  stage.real_scales = std::vector<double>(channels, 0.125);
  op.tail.stages = {stage, stage};
  return op;
}

template <class T>
Change Last(ChannelValues<T> TailStage::*list) {
  return [list](OpDescription& op) {
    std::vector<T> values((op.tail.stages[1].*list).begin(), (op.tail.stages[1].*list).end());
    values.back() += 1;
    op.tail.stages[1].*list = std::move(values);
  };
}

// Each makes another operation of it.
std::vector<Change> Changes() {
  const auto tail = [](auto change) {
    return [change](OpDescription& op) { change(op.tail.stages[0]); };
  };
  return {
      [](OpDescription& op) { op.op = kernels::FindOperator("LOG_SOFTMAX"); },
      [](OpDescription& op) { *static_cast<float*>(op.params.data()) = 2; },
      [](OpDescription& op) { static_cast<std::byte*>(op.params.data())[16] = std::byte{1}; },
      [](OpDescription& op) { op.version = 2; },
      [](OpDescription& op) { op.tail_inputs = 1; },
      [](OpDescription& op) { op.inputs.push_back({}); },
      [](OpDescription& op) { op.inputs[0].type = DataType::kInt32; },
      [](OpDescription& op) {
        op.inputs[0].shape = {3, 2};
      },
      [](OpDescription& op) {
        op.inputs[0].shape = {2, 3, 1};
      },
      [](OpDescription& op) { op.inputs[0].row_pitch = 5; },
      [](OpDescription& op) { op.inputs[1].data = kOthers; },
      [](OpDescription& op) { op.inputs[1].data = nullptr; },
      [](OpDescription& op) { op.outputs[0].quantization.scales = std::vector<float>(2, 0.5f); },
      [](OpDescription& op) { op.outputs[0].quantization.zero_points = {}; },
      [](OpDescription& op) { op.outputs[0].quantization.axis = 1; },
      [](OpDescription& op) { op.intermediates.push_back({}); },
      [](OpDescription& op) { op.intermediates[0].axis = 1; },
      [](OpDescription& op) { op.tail.rows_per_batch = 3; },
      [](OpDescription& op) { op.tail.stages.pop_back(); },
      tail([](TailStage& s) { s.kind = TailStage::Kind::kBinary; }),
      tail([](TailStage& s) { s.unary = kernels::UnaryKind::kClamp; }),
      tail([](TailStage& s) { s.binary = kernels::BinaryKind::kMul; }),
      tail([](TailStage& s) { s.a = 1; }),
      tail([](TailStage& s) { s.b = 1; }),
      tail([](TailStage& s) { s.operand.input = 1; }),
      tail([](TailStage& s) { s.operand.batch_stride = 1; }),
      tail([](TailStage& s) { s.operand.row_stride = 1; }),
      tail([](TailStage& s) { s.operand.channel_stride = 1; }),
      tail([](TailStage& s) { s.requantize.zero_point = 1; }),
      tail([](TailStage& s) { s.requantize.min = 1; }),
      tail([](TailStage& s) { s.requantize.max = 1; }),
      tail([](TailStage& s) { s.requantize.multipliers = std::vector<int32_t>(1, 7); }),
      tail([](TailStage& s) { s.requantize.shifts = {}; }),
      tail([](TailStage& s) { s.add.y_shift = 1; }),
      tail([](TailStage& s) { s.add.negate_x = true; }),
      tail([](TailStage& s) { s.zero_point = 1; }),
      tail([](TailStage& s) { s.min = 1; }),
      tail([](TailStage& s) { s.max = 1; }),
      Last(&TailStage::table),
      Last(&TailStage::scales),
      Last(&TailStage::real_scales),
  };
}

// With lists that are gathered, and with such as are hashed where they lie.
TEST(DescriptionHash, TellsOperationsApart) {
  for (const int channels : {3, 60, 1000}) {
    SCOPED_TRACE(channels);
    std::vector<OpDescription> ops = {Layer(channels)};
    for (const Change& change : Changes()) change(ops.emplace_back(Layer(channels)));
    for (size_t i = 0; i < ops.size(); ++i) {
      EXPECT_TRUE(HashOf(ops[i]) == HashOf(OpDescription(ops[i]))) << i;
      for (size_t k = 0; k < i; ++k)
        EXPECT_FALSE(HashOf(ops[i]) == HashOf(ops[k])) << i << ", " << k;
    }
  }
}

TEST(DescriptionHash, KnowsFewBytesByWhatTheyHoldAndManyByWhereTheyAre) {
  for (const int32_t elements : {3, 128, 129}) {
    const std::vector<float> values(elements, 1.5f), copy(elements, 1.5f);
    OpDescription a = Layer(1), b = Layer(1);
    a.inputs[1] = Info({elements}, values.data());
    b.inputs[1] = Info({elements}, copy.data());
    EXPECT_EQ(HashOf(a) == HashOf(b), elements <= 128) << elements;
  }
}

}  // namespace
}  // namespace fuselite::fusion::testing
