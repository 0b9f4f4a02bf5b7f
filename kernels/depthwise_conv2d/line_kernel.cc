#include "kernels/depthwise_conv2d/line_kernel.h"

#include <algorithm>
#include <utility>

#include "kernels/filter_operands.h"
#include "kernels/product/constant.h"
#include "kernels/product/phase.h"
#include "kernels/rows/line_units.h"
#include "runtime/support/ceil_div.h"

namespace fuselite::kernels {
namespace {

// How the operation's filters reach the lines.
struct FilterInputs {
  bool constant = true;  // packed once
  int bias = -1;         // the input that is packed beside the filters; -1: none
};
constexpr int kFilters = 1, kBias = 2;

FilterInputs FilterInputsOf(const OpDescription& op, const LineConvolution& lines) {
  const int bias = lines.packs_bias() && op.has_input(kBias) ? kBias : -1;
  return {HasConstants(op, kFilters, bias), bias};
}

// The phases of the source, and beside them the packing of filters that come with a run, then the
// lines.
class LineKernel final : public PhasedKernel {
 public:
  // `weights` are null in a draft, too.
  LineKernel(const LineOutputs& outputs, std::shared_ptr<const Source> source,
             std::shared_ptr<const LineConvolution> lines, const FilterInputs& filters,
             PackedWeights weights, std::string name, int threads)
      : outputs_(outputs),
        source_(std::move(source)),
        lines_(std::move(lines)),
        weights_(std::move(weights)),
        places_(source_->places()),
        image_bytes_(source_->memory().image),
        rows_(lines_->rows()),
        image_lines_(CeilDiv(outputs_.height, rows_)),
        parts_(lines_->parts()),
        units_(outputs_.images * image_lines_ * parts_, lines_->blocks(), threads),
        rest_(lines_->rest()),
        together_(parts_ == 1 && rest_.apply == nullptr),
        value_bytes_(BitWidth(rest_.output) / 8) {
    name_ = std::move(name);
    shared_bytes_ = source_->shared_bytes();
    if (rest_.waits()) {
      const int64_t values = rows_ * outputs_.width * lines_->waiting_pitch();
      scratch_bytes_ = static_cast<size_t>(values * (BitWidth(rest_.in_scratch) / 8));
    }
    phases_ = source_->phases();
    if (!filters.constant) PackAtEachRun(filters);
    const LineConvolution::Work work = lines_->work();
    phases_.push_back({.units = units_.count(),
                       .grain = units_.Grain(work.block, work.in_time),
                       .run = [this](const KernelArgs& args, int64_t begin, int64_t end) {
                         while (begin < end) begin += RunLines(args, begin, end);
                       }});
  }

 private:
  // Filters are small: one unit packs them all.
  void PackAtEachRun(const FilterInputs& filters) {
    packed_at_ = AlignUp(shared_bytes_);
    shared_bytes_ = packed_at_ + lines_->packed_bytes();
    Phase packing{
        .units = 1, .grain = 1, .run = [this, filters](const KernelArgs& args, int64_t, int64_t) {
          lines_->Pack(args.inputs[kFilters],
                       filters.bias < 0 ? nullptr : args.inputs[filters.bias],
                       args.shared + packed_at_);
        }};
    if (phases_.empty()) {
      phases_.push_back(std::move(packing));
    } else {
      phases_.front() = Merge(std::move(packing), std::move(phases_.front()));
    }
  }

  // Units from `unit` on, of [unit, end) as many as one call computes: how many.
  int64_t RunLines(const KernelArgs& args, int64_t unit, int64_t end) const {
    const int64_t whole = units_.WholeLines(unit, end);
    const auto [at, first_block, last_block] = whole > 0 ? units_.WholeAt(unit) : units_.At(unit);
    const int64_t line = at / parts_, part = at % parts_;
    const int64_t image = line / image_lines_, of_image = line % image_lines_;
    const int64_t lines = together_ && whole > 0 ? std::min(whole, image_lines_ - of_image) : 1;
    const int64_t units = whole > 0 ? lines * units_.shares() : 1;
    const int64_t y = of_image * rows_;
    const int64_t column = parts_ > 1 ? lines_->first_column(part) : 0;
    const int64_t end_column = parts_ > 1 ? lines_->first_column(part + 1) : outputs_.width;
    const int64_t pixel = (image * outputs_.height + y) * outputs_.width + column;
    const int64_t channel = first_block == 0 ? 0 : lines_->first_channel(first_block);
    std::byte* const out = static_cast<std::byte*>(args.outputs[0]) +
                           (pixel * outputs_.pitch + channel) * value_bytes_;
    std::byte* const stored = rest_.waits() ? args.scratch : out;
    const auto* const scales = reinterpret_cast<const RowScale*>(places_.RowValues(args));
    lines_->Run({.image = places_.Pixels(args) + image * image_bytes_,
                 .y = static_cast<int32_t>(y),
                 .pixel = pixel,
                 .lines = lines,
                 .part = part,
                 .first_block = first_block,
                 .last_block = last_block,
                 .channel = channel,
                 .packed = weights_ ? weights_->data() : args.shared + packed_at_,
                 .scale = scales == nullptr ? nullptr : scales + image,
                 .out = stored,
                 .inputs = args.inputs});
    if (rest_.apply == nullptr) return units;
    rest_.Apply(args, {.stored = stored,
                       .pitch = rest_.waits() ? lines_->waiting_pitch() : outputs_.pitch,
                       .out = out,
                       .out_pitch = outputs_.pitch,
                       .row = pixel,
                       .rows = std::min(rows_, outputs_.height - y) * (end_column - column),
                       .channel = channel,
                       .channels = lines_->first_channel(last_block) - channel});
    return units;
  }

  LineOutputs outputs_;
  std::shared_ptr<const Source> source_;
  std::shared_ptr<const LineConvolution> lines_;
  PackedWeights weights_;
  SourcePlaces places_;
  int64_t image_bytes_;         // from one image to the next
  int64_t rows_, image_lines_;  // rows of a line, and lines of an image
  int64_t parts_;               // of a line's columns
  LineUnits units_;
  const TailRest& rest_;  // of lines_
  bool together_;         // whether lines are computed in one call
  int64_t value_bytes_;   // of the output
  size_t packed_at_ = 0;  // in KernelArgs::shared, where filters come with a run
};

// Null where they come with each run.
Result<PackedWeights> PackFilters(const OpDescription& op, const FilterInputs& inputs,
                                  const BuildContext& context, const LineConvolution& lines) {
  if (!inputs.constant) return PackedWeights();
  const TensorInfo& filter = op.inputs[kFilters];
  const TensorInfo bias = inputs.bias < 0 ? TensorInfo() : op.inputs[inputs.bias];
  const PackRequest request{filter.data,
                            filter.bytes(),
                            bias.absent() ? nullptr : bias.data,
                            bias.absent() ? 0 : bias.bytes(),
                            lines.layout(),
                            lines.packed_bytes()};
  return context.Pack(request, [&](std::byte* to) {
    lines.Pack(ReadableConstant(filter).values(), ReadableConstant(bias).values(), to);
  });
}

}  // namespace

Result<KernelPlan> PlanLineKernel(const OpDescription& described, const LineOutputs& outputs,
                                  std::shared_ptr<const Source> source,
                                  std::shared_ptr<const LineConvolution> lines,
                                  const PlanContext& context) {
  const FilterInputs filters = FilterInputsOf(described, *lines);
  const DataType type = described.inputs[kFilters].type;
  if (!filters.constant && type != ReadableType(type)) {
    return Unsupported("does not take filters of ", DataTypeName(type), " known only at run time");
  }
  const std::string name = lines->name();
  auto draft =
      std::make_unique<LineKernel>(outputs, source, lines, filters, nullptr, name, context.threads);
  return KernelPlan::MadeLater(
      std::move(draft),
      [outputs, filters, name, source = std::move(source), lines = std::move(lines)](
          const OpDescription& op, const BuildContext& build) -> Result<std::unique_ptr<Kernel>> {
        FUSELITE_ASSIGN_OR_RETURN(std::shared_ptr<const LineConvolution> emitted,
                                  lines->Emit(name));
        FUSELITE_ASSIGN_OR_RETURN(PackedWeights packed, PackFilters(op, filters, build, *emitted));
        return std::unique_ptr<Kernel>(std::make_unique<LineKernel>(
            outputs, source, std::move(emitted), filters, std::move(packed), name, build.threads));
      });
}

}  // namespace fuselite::kernels
