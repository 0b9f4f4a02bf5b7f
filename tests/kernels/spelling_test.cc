#include "kernels/elementwise/spelling.h"

#include "kernels/tail/apply.h"
#include "tests/kernels/broadcast_cases.h"

namespace fuselite::kernels::testing {
namespace {

constexpr DataType kF32 = DataType::kFloat32;

TensorInfo Floats(const Shape& shape, int64_t row_pitch = 0) {
  return {.type = kF32, .shape = shape, .row_pitch = row_pitch};
}

OpDescription Pair(std::string_view name, const TensorInfo& x, const TensorInfo& y) {
  OpDescription op;
  op.op = FindOperator(name);
  op.inputs = {x, y};
  op.outputs = {Floats({})};
  EXPECT_TRUE(Infer(op).ok());
  return op;
}

TEST(InFewestDimensionsTest, DropsLastDimensionsOfOne) {
  const auto written =
      InFewestDimensions(Pair("SUB", Floats({16, 4, 32, 1}), Floats({16, 4, 1, 1})));
  ASSERT_TRUE(written);
  EXPECT_EQ(written->inputs[0].shape, (Shape{64, 32}));
  EXPECT_EQ(written->inputs[1].shape, (Shape{64, 1}));
  EXPECT_EQ(written->outputs[0].shape, (Shape{64, 32}));
}

TEST(InFewestDimensionsTest, OneLineWhereNothingRepeats) {
  const auto written = InFewestDimensions(Pair("MUL", Floats({3, 5, 7}), Floats({1})));
  ASSERT_TRUE(written);
  EXPECT_EQ(written->inputs[0].shape, (Shape{105}));
  EXPECT_EQ(written->inputs[1].shape, (Shape{1}));
}

TEST(InFewestDimensionsTest, KeepsPitchedRows) {
  const auto written = InFewestDimensions(Pair("ADD", Floats({2, 5, 7}, 9), Floats({2, 5, 7})));
  ASSERT_TRUE(written);
  EXPECT_EQ(written->outputs[0].shape, (Shape{10, 7}));
  EXPECT_EQ(written->inputs[0].pitch(), 9);
  EXPECT_FALSE(InFewestDimensions(Pair("ADD", Floats({5, 1}, 3), Floats({5, 1}))));
}

// What the reference computes of operands that lie as `op` says, in dense order.
std::vector<float> Compute(const OpDescription& op, const std::vector<TestTensor>& inputs) {
  const auto kernel = BuildReference(op);
  EXPECT_TRUE(kernel.ok()) << kernel.status().ToString();
  const TensorInfo& info = op.outputs[0];
  const int64_t width = info.shape.dim(-1), rows = info.elements() / width;
  std::vector<float> out(rows * info.pitch()), scratch((*kernel)->scratch_bytes() / sizeof(float));
  std::vector<const void*> pointers;
  for (const TestTensor& input : inputs) pointers.push_back(input.bytes());
  void* outputs[] = {out.data()};
  const KernelArgs args{.inputs = pointers.data(),
                        .outputs = outputs,
                        .scratch = reinterpret_cast<std::byte*>(scratch.data()),
                        .shared = nullptr};
  EXPECT_TRUE((*kernel)->Run(args, 0, 0, (*kernel)->units(0)).ok());
  std::vector<float> dense;
  for (int64_t i = 0; i < info.elements(); ++i) {
    dense.push_back(out[i / width * info.pitch() + i % width]);
  }
  return dense;
}

TEST(InFewestDimensionsTest, RandomOperationsKeepTheirBits) {
  int changed = 0, tails = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    const ShapePair shapes = RandomShapes(random);
    const auto pitched = [&](const Shape& shape) {
      const bool pitch = shape.rank() > 0 && random.Chance(0.2);
      return Floats(shape, pitch ? shape.dim(-1) + random.Int(1, 3) : 0);
    };
    OpDescription op = Pair("SUB", pitched(shapes.x), pitched(shapes.y));
    if (op.outputs[0].shape.rank() > 0) op.outputs[0] = pitched(op.outputs[0].shape);
    const int64_t width = shapes.out.rank() ? shapes.out.dim(-1) : 1;
    const int64_t rows = shapes.out.elements() / width;
    const int stages = static_cast<int>(random.Int(0, 2));
    op.tail.rows_per_batch = random.Chance(0.5) ? INT64_MAX : random.Int(1, rows);
    for (int s = 0; s < stages; ++s) {
      TailOperand y{.input = 2 + s,
                    .batch_stride = random.Pick<int64_t>({0, 1, width}),
                    .row_stride = random.Pick<int64_t>({0, 1, width}),
                    .channel_stride = static_cast<int32_t>(random.Int(0, 1))};
      const int64_t per_batch = std::min(op.tail.rows_per_batch, rows);
      if (random.Chance(0.5)) y.batch_stride = y.row_stride * per_batch;
      const int64_t last = (rows - 1) / per_batch * y.batch_stride +
                           (per_batch - 1) * y.row_stride + (width - 1) * y.channel_stride;
      op.inputs.push_back(Floats({static_cast<int32_t>(last + 1)}));
      op.tail.stages.push_back(TailStage::Binary(BinaryKind::kMul, y));
      ++op.tail_inputs;
    }
    ASSERT_TRUE(Infer(op).ok());
    const auto written = InFewestDimensions(op);
    if (!written) continue;
    ++changed;
    tails += stages > 0;
    EXPECT_LT(written->outputs[0].shape.rank(), op.outputs[0].shape.rank());
    EXPECT_EQ(written->outputs[0].elements(), op.outputs[0].elements());
    std::vector<TestTensor> inputs;
    for (const TensorInfo& info : op.inputs) {
      inputs.emplace_back(info);
      inputs.back().Fill(random, -2, 2);
    }
    EXPECT_EQ(Compute(op, inputs), Compute(*written, inputs));
  }
  EXPECT_GT(changed, 1000);
  EXPECT_GT(tails, 300);
}

}  // namespace
}  // namespace fuselite::kernels::testing
