#include "kernels/packed_integers.h"

#include <algorithm>
#include <string>
#include <utility>

#include "kernels/shape_rules.h"
#include "runtime/execution/run_whole.h"
#include "runtime/memory/aligned_buffer.h"

namespace fuselite::kernels {
namespace {

// Scratch memory: each packed operand as bytes, then what the inner kernel asks for.
class OnBytes final : public Kernel {
 public:
  OnBytes(const OpDescription& op, std::unique_ptr<Kernel> inner)
      : inputs_(op.inputs),
        outputs_(op.outputs),
        inner_(std::move(inner)),
        name_(std::string(inner_->name()) + " of " +
              std::string(DataTypeName(op.outputs[0].type))) {
    for (const auto* operands : {&inputs_, &outputs_}) {
      for (const TensorInfo& info : *operands) {
        if (IsPacked(info.type)) unpacked_bytes_ += AlignUp(info.elements());
      }
    }
  }
  std::string_view name() const override { return name_; }
  int64_t units(int /*phase*/) const override { return inner_->units(0) > 0 ? 1 : 0; }
  size_t scratch_bytes() const override { return unpacked_bytes_ + inner_->scratch_bytes(); }

  Status Run(const KernelArgs& args, int /*phase*/, int64_t begin, int64_t end) const override {
    if (begin >= end) return Status();
    std::byte* scratch = args.scratch;
    std::vector<const void*> in(args.inputs, args.inputs + inputs_.size());
    std::vector<void*> out(args.outputs, args.outputs + outputs_.size());
    for (size_t i = 0; i < inputs_.size(); ++i) {
      if (!IsPacked(inputs_[i].type)) continue;
      const PackedIntegers values(inputs_[i].type, in[i]);
      auto* const bytes = reinterpret_cast<int8_t*>(scratch);
      const int64_t count = inputs_[i].elements();
      for (int64_t k = 0; k < count; ++k) bytes[k] = static_cast<int8_t>(values[k]);
      in[i] = scratch;
      scratch += AlignUp(count);
    }
    for (size_t i = 0; i < outputs_.size(); ++i) {
      if (!IsPacked(outputs_[i].type)) continue;
      out[i] = scratch;
      scratch += AlignUp(outputs_[i].elements());
    }
    FUSELITE_RETURN_IF_ERROR(RunWhole(*inner_, {in.data(), out.data(), scratch, nullptr}));
    for (size_t i = 0; i < outputs_.size(); ++i) {
      const TensorInfo& info = outputs_[i];
      if (!IsPacked(info.type)) continue;
      PackIntegers(info.type, static_cast<const int8_t*>(out[i]), info.elements(), args.outputs[i]);
    }
    return Status();
  }

 private:
  std::vector<TensorInfo> inputs_, outputs_;
  std::unique_ptr<Kernel> inner_;
  std::string name_;
  size_t unpacked_bytes_ = 0;
};

}  // namespace

bool IsPacked(DataType type) {
  return type == DataType::kInt4 || type == DataType::kUInt4 || type == DataType::kInt2;
}

void PackIntegers(DataType type, const int8_t* values, int64_t count, void* out) {
  const int bits = BitWidth(type), per_byte = 8 / bits, mask = (1 << bits) - 1;
  auto* bytes = static_cast<uint8_t*>(out);
  for (int64_t i = 0; i < count; i += per_byte) {
    const int64_t left = std::min<int64_t>(per_byte, count - i);
    int packed = 0;
    for (int64_t k = 0; k < left; ++k) packed |= (values[i + k] & mask) << (k * bits);
    *bytes++ = static_cast<uint8_t>(packed);
  }
}

Result<std::unique_ptr<Kernel>> BuildOnBytes(const OpDescription& op, const BuildContext& context,
                                             BuildKernel build) {
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  OpDescription bytes = op;
  for (auto* operands : {&bytes.inputs, &bytes.outputs}) {
    for (TensorInfo& info : *operands) {
      if (!IsPacked(info.type)) continue;
      info.type = DataType::kInt8;
      info.data = nullptr;
    }
  }
  FUSELITE_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> inner, build(bytes, context));
  if (inner->shared_bytes() > 0)
    return Unsupported("does not take shared memory beside packed integers");
  return std::unique_ptr<Kernel>(std::make_unique<OnBytes>(op, std::move(inner)));
}

}  // namespace fuselite::kernels
