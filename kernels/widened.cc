#include "kernels/widened.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "kernels/make_kernel.h"
#include "kernels/numbers/short_floats.h"
#include "runtime/memory/aligned_buffer.h"

namespace fuselite::kernels {
namespace {

bool IsBFloat16(const TensorInfo& info) { return info.type == DataType::kBFloat16; }

// The rows of one value, in its own memory and in a copy of float32 with the same pitch.
struct CopiedRows {
  int64_t width = 0, rows = 0, pitch = 0;
  size_t at = 0;  // of the copy, in KernelArgs::shared

  CopiedRows(const TensorInfo& info, size_t copy_at)
      : width(info.shape.rank() ? info.shape.dim(-1) : 1),
        rows(width == 0 ? 0 : info.elements() / width),
        pitch(info.pitch()),
        at(copy_at) {}
  size_t bytes() const { return AlignUp(static_cast<size_t>(rows * pitch) * sizeof(float)); }

  void Widen(const void* values, std::byte* shared, int64_t row) const {
    const auto* const from = static_cast<const uint16_t*>(values) + row * pitch;
    std::transform(from, from + width, reinterpret_cast<float*>(shared + at) + row * pitch,
                   BFloat16ToFloat);
  }
  void Round(const std::byte* shared, void* values, int64_t row) const {
    const auto* const from = reinterpret_cast<const float*>(shared + at) + row * pitch;
    std::transform(from, from + width, static_cast<uint16_t*>(values) + row * pitch,
                   FloatToBFloat16);
  }
};

// A value that is bfloat16, and which of the operands it is.
struct Copied {
  size_t operand;
  CopiedRows rows;
};

constexpr size_t kMostOperands = 32;

class WidenedKernel final : public Kernel {
 public:
  WidenedKernel(std::shared_ptr<const Kernel> kernel, const OpDescription& op)
      : name_(std::string(kernel->name()) + ", bfloat16 as float32"),
        kernel_(std::move(kernel)),
        inputs_(op.inputs.size()),
        shared_bytes_(AlignUp(kernel_->shared_bytes())) {
    widened_ = Copies(op.inputs);
    rounded_ = Copies(op.outputs);
  }

  std::string_view name() const override { return name_; }
  int phases() const override { return kernel_->phases() + 2; }
  int64_t units(int phase) const override {
    if (phase == 0) return RowsOf(widened_);
    return phase <= kernel_->phases() ? kernel_->units(phase - 1) : RowsOf(rounded_);
  }
  int64_t grain(int phase) const override {
    return phase == 0 || phase > kernel_->phases() ? 1 : kernel_->grain(phase - 1);
  }
  size_t scratch_bytes() const override { return kernel_->scratch_bytes(); }
  size_t shared_bytes() const override { return shared_bytes_; }

  Status Run(const KernelArgs& args, int phase, int64_t begin, int64_t end) const override {
    if (phase == 0) {
      ForEachRow(widened_, begin, end, [&](const Copied& copied, int64_t row) {
        copied.rows.Widen(args.inputs[copied.operand], args.shared, row);
      });
      return Status();
    }
    if (phase <= kernel_->phases()) return RunOnFloats(args, phase - 1, begin, end);
    ForEachRow(rounded_, begin, end, [&](const Copied& copied, int64_t row) {
      copied.rows.Round(args.shared, args.outputs[copied.operand], row);
    });
    return Status();
  }

 private:
  // The bfloat16 ones among the operands, with copies behind what shared memory has until now.
  std::vector<Copied> Copies(const std::vector<TensorInfo>& operands) {
    std::vector<Copied> copies;
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!IsBFloat16(operands[i])) continue;
      copies.push_back({i, CopiedRows(operands[i], shared_bytes_)});
      shared_bytes_ += copies.back().rows.bytes();
    }
    return copies;
  }
  static int64_t RowsOf(const std::vector<Copied>& copies) {
    int64_t rows = 0;
    for (const Copied& copied : copies) rows += copied.rows.rows;
    return rows;
  }
  template <class Function>
  static void ForEachRow(const std::vector<Copied>& copies, int64_t begin, int64_t end,
                         const Function& function) {
    int64_t first = 0;
    for (const Copied& copied : copies) {
      const int64_t rows = copied.rows.rows;
      for (int64_t row = std::max<int64_t>(begin - first, 0); row < std::min(end - first, rows);
           ++row) {
        function(copied, row);
      }
      first += rows;
    }
  }

  Status RunOnFloats(const KernelArgs& args, int phase, int64_t begin, int64_t end) const {
    std::array<const void*, kMostOperands> inputs{};
    std::copy_n(args.inputs, inputs_, inputs.begin());
    for (const Copied& copied : widened_) inputs[copied.operand] = args.shared + copied.rows.at;
    void* outputs[] = {rounded_.empty() ? args.outputs[0] : args.shared + rounded_.front().rows.at};
    KernelArgs own = args;
    own.inputs = inputs.data();
    own.outputs = outputs;
    return kernel_->Run(own, phase, begin, end);
  }

  std::string name_;
  std::shared_ptr<const Kernel> kernel_;
  size_t inputs_;
  size_t shared_bytes_;
  std::vector<Copied> widened_, rounded_;
};

// Whether one row of the operator's types has bfloat16 throughout, as the operands are.
bool IsOfTFLite(const OpDescription& op) {
  return op.tail.empty() && std::ranges::all_of(op.inputs, IsBFloat16) &&
         std::ranges::all_of(op.outputs, IsBFloat16) &&
         std::ranges::any_of(op.op->types, [](const TypeRow& row) {
           return row.inputs[0] == DataType::kBFloat16 && row.output == DataType::kBFloat16;
         });
}

}  // namespace

bool AnyBFloat16(const OpDescription& op) {
  return std::ranges::any_of(op.inputs, IsBFloat16) || std::ranges::any_of(op.outputs, IsBFloat16);
}

bool HasBFloat16Values(const OpDescription& op) {
  return op.op->bfloat16_values && AnyBFloat16(op) && !IsOfTFLite(op);
}

std::string FloatsInMemory(DataType input, DataType output) {
  const auto name = [](DataType type) { return type == DataType::kBFloat16 ? "bf16" : "f32"; };
  if (input == DataType::kFloat32 && output == DataType::kFloat32) return "f32";
  return internal::Join(name(input), '/', name(output));
}

OpDescription WithFloat32(OpDescription op) {
  for (std::vector<TensorInfo>* operands : {&op.inputs, &op.outputs}) {
    for (TensorInfo& info : *operands) {
      if (IsBFloat16(info)) info.type = DataType::kFloat32;
    }
  }
  return op;
}

Result<KernelPlan> PlanWidened(const Candidate& candidate, const OpDescription& op,
                               const PlanContext& context) {
  if (op.inputs.size() > kMostOperands) {
    return Unsupported("does not take more than ", kMostOperands, " operands, some of bfloat16");
  }
  FUSELITE_ASSIGN_OR_RETURN(KernelPlan plan, candidate.Plan(WithFloat32(op), context));
  auto draft = std::make_unique<WidenedKernel>(plan.draft(), op);
  return KernelPlan::MadeLater(
      std::move(draft),
      [plan = std::move(plan)](const OpDescription& described,
                               const BuildContext& build) -> Result<std::unique_ptr<Kernel>> {
        FUSELITE_ASSIGN_OR_RETURN(KernelPlan::KernelPtr kernel,
                                  plan.Build(WithFloat32(described), build));
        return std::unique_ptr<Kernel>(new WidenedKernel(std::move(kernel), described));
      });
}

}  // namespace fuselite::kernels
