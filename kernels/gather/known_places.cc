// GATHER_ND by constant indices, as torch.gather by relative positions becomes: the places that
// they name are found once. Mostly many follow each other, upwards or downwards.
#include <algorithm>
#include <bit>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "kernels/gather/coordinates.h"
#include "kernels/gather/gather.h"
#include "kernels/make_kernel.h"
#include "kernels/movement/copy_loops.h"

namespace fuselite::kernels {
namespace {

// Tuples from `first` up to the next run's name places `step` apart; one that is negative names
// none, as all of its run.
struct PlaceRun {
  int64_t first;
  int32_t place, step;
};

// As many on the average are copied faster than one by one.
constexpr int64_t kLongRuns = 8;

// The runs of `places`, and one behind them that begins at their end; none where they are short.
std::vector<PlaceRun> RunsOf(std::span<const int32_t> places) {
  const int64_t count = std::ssize(places);
  std::vector<PlaceRun> runs;
  for (int64_t i = 0; i < count;) {
    if (std::ssize(runs) > count / kLongRuns) return {};
    const int64_t first = i++;
    const auto step = [&] { return places[i] - places[i - 1]; };
    const auto follows = [&](int32_t by) {
      return i < count && step() == by && (places[i] < 0) == (places[first] < 0);
    };
    PlaceRun run{first, places[first], i < count ? step() : 0};
    if (!follows(run.step)) run.step = 0;
    while (follows(run.step)) ++i;
    runs.push_back(run);
  }
  runs.push_back({count, 0, 0});
  return runs;
}

// One unit is a slice.
class KnownPlaces final : public Kernel {
 public:
  KnownPlaces(const OpDescription& op, Isa isa)
      : loops_(CopyLoopsFor(isa)),
        into_(op.inputs[0].shape),
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
    if (into_.elements() > INT32_MAX) return Unsupported("does not take places beyond 32 bits");
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
    const auto* const places = reinterpret_cast<const int32_t*>(places_->data());
    runs_ = RunsOf({places, static_cast<size_t>(tuples_)});
    if (!runs_.empty()) places_.reset();
    return Status();
  }

  std::string_view name() const override { return name_; }
  int64_t units(int) const override { return tuples_; }
  int64_t grain(int) const override { return GrainFor(bytes_ / 4 + 1); }

  Status Run(const KernelArgs& args, int, int64_t begin, int64_t end) const override {
    const int64_t bad = !runs_.empty() ? CopyRuns(args, begin, end)
                        : bytes_ == 1  ? Copy<1>(args, begin, end)
                        : bytes_ == 4  ? Copy<4>(args, begin, end)
                                       : Copy<0>(args, begin, end);
    if (bad < 0) return Status();
    return InvalidArgument("coordinates ", bad, " are out of ", into_);
  }

 private:
  // What copies slices [begin, end) gives the first one that is out of range, or -1.
  int64_t CopyRuns(const KernelArgs& args, int64_t begin, int64_t end) const {
    const auto* const from = static_cast<const std::byte*>(args.inputs[0]);
    auto* const to = static_cast<std::byte*>(args.outputs[0]);
    auto run = std::ranges::upper_bound(runs_, begin, {}, &PlaceRun::first) - 1;
    for (int64_t i = begin; i < end; ++run) {
      if (run->place < 0) return i;
      const int64_t next = std::min(run[1].first, end);
      const int64_t place = run->place + (i - run->first) * run->step;
      CopyRun(from + place * bytes_, run->step, next - i, to + i * bytes_);
      i = next;
    }
    return -1;
  }

  // `count` slices, `step` apart.
  void CopyRun(const std::byte* from, int64_t step, int64_t count, std::byte* to) const {
    const bool is_element = bytes_ <= 8 && std::has_single_bit(static_cast<uint64_t>(bytes_));
    const auto bytes = static_cast<int>(bytes_);
    if (step == 1) {
      std::memcpy(to, from, count * bytes_);
    } else if (is_element && step == -1) {
      loops_.reverse(from, to, {1, 0, 0}, count, bytes);
    } else if (is_element) {
      loops_.elements(from, to, {count, step * bytes_, bytes_}, bytes);
    } else {
      for (int64_t i = 0; i < count; ++i) {
        CopySlice(from + i * step * bytes_, bytes_, to + i * bytes_);
      }
    }
  }

  // Slices of kBytes, or of any size where that is 0.
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

  CopyLoops loops_;
  Shape into_;
  std::string name_;
  int32_t depth_ = 0;
  int64_t tuples_ = 0, bytes_ = 0;
  // The one or the other.
  std::vector<PlaceRun> runs_;
  PackedWeights places_;
};

}  // namespace

Result<KernelPlan> PlanGatherNdKnownPlaces(const OpDescription& op, const PlanContext& context) {
  return PlanThenPack(KnownPlaces(op, context.isa), op, context);
}

}  // namespace fuselite::kernels
