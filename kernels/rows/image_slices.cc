#include "kernels/rows/image_slices.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/execution/run_whole.h"
#include "runtime/memory/aligned_buffer.h"
#include "runtime/tflite/builtin_codes.h"

namespace fuselite::kernels {
namespace {

// Below this a second-level cache holds the whole batch's form, or nearly.
constexpr size_t kManyBytes = 1 << 20;
// What a slice's form should have at most: a quarter of the second-level caches of today's cores.
constexpr size_t kSliceBytes = 256 << 10;

// The operation for `images` images, and how far each operand is from one slice to the next.
struct ImageSlice {
  OpDescription op;
  int64_t images = 0;
  std::vector<int64_t> input_steps;  // bytes
  int64_t output_step = 0;
};

int64_t ImageBytes(const TensorInfo& info) {
  return info.shape.elements(1, info.shape.rank() - 1) * info.pitch() * (BitWidth(info.type) / 8);
}

// Elements from an image's operand to the next one's; nullopt where that differs.
std::optional<int64_t> StepOf(const TailOperand& y, int64_t rows_per_batch, int64_t image_rows) {
  if (rows_per_batch == INT64_MAX) return image_rows * y.row_stride;
  if (image_rows % rows_per_batch != 0) return std::nullopt;
  return image_rows / rows_per_batch * y.batch_stride;
}

bool IsConvolution(const OpDescription& op) {
  const int code = op.op->builtin_code;
  return (code == tflite::kTfLiteBuiltinConv2d || code == tflite::kTfLiteBuiltinDepthwiseConv2d) &&
         op.inputs[0].shape.rank() == 4 && op.outputs[0].shape.rank() == 4 &&
         !op.inputs[0].constant() && op.inputs[1].constant();
}

// Precondition: IsConvolution(op).
std::optional<ImageSlice> SliceOf(const OpDescription& op, int64_t images) {
  ImageSlice slice{.op = op, .images = images, .input_steps = {}, .output_step = 0};
  slice.input_steps.resize(op.inputs.size());
  slice.input_steps[0] = images * ImageBytes(op.inputs[0]);
  slice.output_step = images * ImageBytes(op.outputs[0]);
  slice.op.inputs[0].shape.set(0, static_cast<int32_t>(images));
  slice.op.outputs[0].shape.set(0, static_cast<int32_t>(images));
  const int64_t image_rows = op.outputs[0].shape.elements(1, 3);
  std::vector<bool> seen(op.inputs.size());
  for (const TailStage& stage : op.tail.stages) {
    const int input = stage.operand.input;
    if (input < 0) continue;
    const std::optional<int64_t> step = StepOf(stage.operand, op.tail.rows_per_batch, image_rows);
    const TensorInfo& info = op.inputs[input];
    const int64_t bytes = step.value_or(0) * images * (BitWidth(info.type) / 8);
    if (!step || (seen[input] && slice.input_steps[input] != bytes)) return std::nullopt;
    slice.input_steps[input] = bytes;
    seen[input] = true;
    if (info.shape.rank() == 4 && info.shape[0] == op.outputs[0].shape[0] && bytes != 0) {
      slice.op.inputs[input].shape.set(0, static_cast<int32_t>(images));
    }
  }
  return slice;
}

// How many images a slice has: a divisor of the batch, so that one kernel serves all slices; 0
// where slices would leave threads without work.
int64_t ImagesOfSlice(int64_t batch, size_t bytes_of_batch, int threads) {
  const auto fitting = static_cast<int64_t>(kSliceBytes / (bytes_of_batch / batch + 1));
  int64_t images = std::clamp<int64_t>(fitting, 1, batch);
  const auto shared_evenly = [&](int64_t slices) {
    return slices % threads == 0 || slices >= 8 * threads;
  };
  while (images > 0 && (batch % images != 0 || !shared_evenly(batch / images))) --images;
  return images;
}

// A unit is a slice: its thread runs all phases of the slice's kernel, with memory of its own.
class SlicedKernel final : public Kernel {
 public:
  SlicedKernel(std::shared_ptr<const Kernel> kernel, ImageSlice slice, int64_t slices)
      : name_(std::string(kernel->name()) + ", " + std::to_string(slice.images) +
              (slice.images == 1 ? " image" : " images") + " at a time"),
        kernel_(std::move(kernel)),
        input_steps_(std::move(slice.input_steps)),
        output_step_(slice.output_step),
        slices_(slices),
        shared_at_(AlignUp(kernel_->scratch_bytes())) {}

  std::string_view name() const override { return name_; }
  int64_t units(int) const override { return slices_; }
  int in_place_input() const override { return kernel_->in_place_input(); }
  size_t scratch_bytes() const override { return shared_at_ + kernel_->shared_bytes(); }

  Status Run(const KernelArgs& args, int, int64_t begin, int64_t end) const override {
    std::array<const void*, kMostInputs> inputs{};
    for (int64_t slice = begin; slice < end; ++slice) {
      for (size_t i = 0; i < input_steps_.size(); ++i) {
        const auto* const first = static_cast<const std::byte*>(args.inputs[i]);
        inputs[i] = first == nullptr ? nullptr : first + slice * input_steps_[i];
      }
      void* outputs[] = {static_cast<std::byte*>(args.outputs[0]) + slice * output_step_};
      const KernelArgs own{inputs.data(), outputs, args.scratch, args.scratch + shared_at_};
      FUSELITE_RETURN_IF_ERROR(RunWhole(*kernel_, own));
    }
    return Status();
  }

  static constexpr size_t kMostInputs = 32;

 private:
  std::string name_;
  std::shared_ptr<const Kernel> kernel_;
  std::vector<int64_t> input_steps_;
  int64_t output_step_, slices_;
  size_t shared_at_;  // in the scratch of a thread
};

}  // namespace

KernelPlan InSlices(const Candidate& candidate, const OpDescription& op, KernelPlan whole,
                    const PlanContext& context) {
  const Kernel& kernel = whole.kernel();
  if (kernel.phases() == 1 || kernel.shared_bytes() < kManyBytes || !IsConvolution(op) ||
      op.inputs.size() > SlicedKernel::kMostInputs) {
    return whole;
  }
  const int64_t batch = op.inputs[0].shape[0];
  const int64_t images = ImagesOfSlice(batch, kernel.shared_bytes(), context.threads);
  if (images == 0 || images == batch) return whole;
  std::optional<ImageSlice> slice = SliceOf(op, images);
  if (!slice) return whole;
  PlanContext alone = context;
  alone.threads = 1;
  const Result<KernelPlan> part = candidate.Plan(slice->op, alone);
  if (!part.ok()) return whole;
  const int64_t slices = batch / images;
  return KernelPlan(
      std::make_shared<SlicedKernel>(part->draft(), *std::move(slice), slices),
      [plan = *part, images, slices](const OpDescription& described,
                                     const BuildContext& build) -> Result<KernelPlan::KernelPtr> {
        std::optional<ImageSlice> own = SliceOf(described, images);
        if (!own) return Internal("a batch that was planned in slices has none");
        BuildContext of_thread = build;
        of_thread.threads = 1;
        FUSELITE_ASSIGN_OR_RETURN(KernelPlan::KernelPtr built, plan.Build(own->op, of_thread));
        return KernelPlan::KernelPtr(
            std::make_shared<SlicedKernel>(std::move(built), *std::move(own), slices));
      });
}

}  // namespace fuselite::kernels
