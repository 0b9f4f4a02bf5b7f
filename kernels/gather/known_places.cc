// GATHER_ND by constant indices, as torch.gather by relative positions becomes: the places that
// they name are found once.
#include <cstring>
#include <string>

#include "kernels/gather/coordinates.h"
#include "kernels/gather/gather.h"
#include "kernels/make_kernel.h"

namespace fuselite::kernels {
namespace {

// One unit is a slice.
class KnownPlaces final : public Kernel {
 public:
  explicit KnownPlaces(const OpDescription& op)
      : into_(op.inputs[0].shape),
        name_("gather_nd known places " + std::string(DataTypeName(op.inputs[0].type))) {
    const Shape& indices = op.inputs[1].shape;
    depth_ = indices.dim(-1);
    tuples_ = indices.elements(0, indices.rank() - 1);
    bytes_ = into_.elements(depth_, into_.rank()) * BitWidth(op.inputs[0].type) / 8;
  }

  Status Plan(const OpDescription& op, const PlanContext&) const {
    if (!op.tail.empty()) return Unsupported(op.op->name, " takes no fused tail");
    FUSELITE_RETURN_IF_ERROR(RequireDense(op));
    if (!op.inputs[1].constant()) return Unsupported("indices are known only at run time");
    if (depth_ == 0 || bytes_ == 0) return Unsupported("no coordinates, or slices of none");
    if (into_.elements() > INT32_MAX) return Unsupported("places beyond 32 bits");
    return Status();
  }

  Status Pack(const OpDescription& op, const BuildContext& context) {
    const TensorInfo& indices = op.inputs[1];
    PackRequest request;
    request.source = indices.data;
    request.source_bytes = indices.bytes();
    request.bytes = tuples_ * sizeof(int32_t);
    request.layout = internal::Join("places ", DataTypeName(indices.type), " in", into_.ToString(),
                                    " of ", depth_);
    FUSELITE_ASSIGN_OR_RETURN(places_, context.Pack(request, [&](std::byte* to) {
      const Coordinates coordinates(indices, into_);
      auto* const places = reinterpret_cast<int32_t*>(to);
      for (int64_t i = 0; i < tuples_; ++i) {
        places[i] = static_cast<int32_t>(coordinates.Locate(indices.data, i));
      }
    }));
    return Status();
  }

  std::string_view name() const override { return name_; }
  int64_t units(int) const override { return tuples_; }
  int64_t grain(int) const override { return GrainFor(bytes_ / 4 + 1); }

  Status Run(const KernelArgs& args, int, int64_t begin, int64_t end) const override {
    const int64_t bad = bytes_ == 4 ? Copy<4>(args, begin, end) : Copy<0>(args, begin, end);
    if (bad < 0) return Status();
    return InvalidArgument("coordinates ", bad, " are out of ", into_);
  }

 private:
  // Slices of kBytes, or of any size where that is 0. The first one that is out of range, or -1.
  template <int64_t kBytes>
  int64_t Copy(const KernelArgs& args, int64_t begin, int64_t end) const {
    const auto* const from = static_cast<const std::byte*>(args.inputs[0]);
    auto* const to = static_cast<std::byte*>(args.outputs[0]);
    const auto* const places = reinterpret_cast<const int32_t*>(places_->data());
    const int64_t bytes = kBytes == 0 ? bytes_ : kBytes;
    for (int64_t i = begin; i < end; ++i) {
      if (places[i] < 0) return i;
      CopySlice(from + places[i] * bytes, bytes, to + i * bytes);
    }
    return -1;
  }

  Shape into_;
  std::string name_;
  int32_t depth_ = 0;
  int64_t tuples_ = 0, bytes_ = 0;
  PackedWeights places_;
};

}  // namespace

Result<KernelPlan> PlanGatherNdKnownPlaces(const OpDescription& op, const PlanContext& context) {
  return PlanThenPack(KnownPlaces(op), op, context);
}

}  // namespace fuselite::kernels
