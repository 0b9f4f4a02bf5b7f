#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "kernels/detection/best_label.h"
#include "kernels/detection/detection.h"
#include "kernels/detection/kept_boxes.h"
#include "kernels/simd.h"
#include "runtime/memory/aligned_buffer.h"
#include "runtime/support/ceil_div.h"

namespace fuselite::kernels {
namespace {

// Values of an operand as floats.
class Reals {
 public:
  Reals(const TensorInfo& info, const void* data)
      : quantized_(info.type == DataType::kUInt8),
        scale_(info.quantization.scale()),
        zero_(info.quantization.zero_point()),
        data_(data) {}
  float operator[](int64_t i) const {
    if (!quantized_) return static_cast<const float*>(data_)[i];
    return static_cast<float>(int32_t{static_cast<const uint8_t*>(data_)[i]} - zero_) * scale_;
  }

 private:
  bool quantized_;
  float scale_;
  int32_t zero_;
  const void* data_;
};

// What has vectors.
struct Functions {
  const BestLabelFunctions* best_label;
  CoversFunction* covers;
};

struct Found {
  int32_t box, label;
  float score;
};

// Ranks the boxes, which threads share, and keeps the best ones, which one of them does.
class Detection final : public Kernel {
 public:
  Detection(const OpDescription& op, std::string name, const Functions& functions)
      : name_(std::move(name)),
        functions_(functions),
        params_(op.params.as<DetectionParams>()),
        boxes_(op.inputs[0]),
        scores_(op.inputs[1]),
        anchors_(op.inputs[2]),
        count_(boxes_.shape[1]),
        classes_(scores_.shape[2]),
        background_(classes_ - params_.num_classes),
        labels_(std::min(params_.max_classes_per_detection, params_.num_classes)),
        scores_in_order_(scores_.type == DataType::kFloat32 ||
                         scores_.quantization.scale() >= std::numeric_limits<float>::min()) {}

  std::string_view name() const override { return name_; }
  int phases() const override { return 2; }
  int64_t units(int phase) const override { return phase == 0 ? CeilDiv(count_, kTogether) : 1; }
  size_t shared_bytes() const override {
    const auto n = static_cast<size_t>(count_);
    if (params_.regular) return AlignUp(n * sizeof(Box));
    return AlignUp(n * sizeof(float)) + AlignUp(n * static_cast<size_t>(labels_) * sizeof(int32_t));
  }
  size_t scratch_bytes() const override {
    const auto n = static_cast<size_t>(count_);
    return AlignUp(n * sizeof(float)) + AlignUp(n * sizeof(int32_t)) +
           AlignUp(n * sizeof(uint64_t)) +
           AlignUp(sizeof(float) * KeptBoxes::values(params_.max_detections)) +
           AlignUp(static_cast<size_t>(params_.num_classes) * sizeof(int32_t)) +
           AlignUp(2 * static_cast<size_t>(params_.max_detections) * sizeof(Found));
  }

  Status Run(const KernelArgs& args, int phase, int64_t begin, int64_t end) const override {
    if (phase == 0) {
      return Rank(args, static_cast<int32_t>(begin * kTogether),
                  static_cast<int32_t>(std::min<int64_t>(count_, end * kTogether)));
    }
    ClearOutputs(args);
    params_.regular ? KeepOfEachClass(args) : KeepByBestLabel(args);
    return Status();
  }

 private:
  // Some microseconds' boxes.
  static constexpr int64_t kTogether = 128;

  class Memory {
   public:
    explicit Memory(std::byte* next) : next_(next) {}
    template <class T>
    T* Take(int64_t count) {
      auto* taken = reinterpret_cast<T*>(next_);
      next_ += AlignUp(static_cast<size_t>(count) * sizeof(T));
      return taken;
    }

   private:
    std::byte* next_;
  };

  // All boxes, which regular suppression looks at for each class.
  static Box* BoxesOf(const KernelArgs& args) { return reinterpret_cast<Box*>(args.shared); }
  // What fast suppression looks at.
  struct Ranked {
    float* best;      // score of each box
    int32_t* labels;  // labels_ of each box, the best first
  };
  Ranked RankedOf(const KernelArgs& args) const {
    Memory memory(args.shared);
    auto* const best = memory.Take<float>(count_);
    return {best, memory.Take<int32_t>(int64_t{count_} * labels_)};
  }

  // Boxes [begin, end).
  Status Rank(const KernelArgs& args, int32_t begin, int32_t end) const {
    const Reals anchors(anchors_, args.inputs[2]);
    auto* const all = Memory(args.scratch).Take<int32_t>(params_.num_classes);
    for (int32_t i = begin; i < end; ++i) {
      // With sides of at least 0 the box cannot end before it begins. Few are looked at then.
      const bool certain = anchors[int64_t{4} * i + 2] >= 0 && anchors[int64_t{4} * i + 3] >= 0;
      if (params_.regular || !certain) {
        const Box box = Decode(args, i);
        if (box.top > box.bottom || box.left > box.right) {
          return InvalidArgument("box ", i, " ends before it begins");
        }
        if (params_.regular) BoxesOf(args)[i] = box;
      }
      if (!params_.regular) RankLabels(args, i, all);
    }
    return Status();
  }

  Box Decode(const KernelArgs& args, int32_t i) const {
    const Reals encodings(boxes_, args.inputs[0]), anchors(anchors_, args.inputs[2]);
    // In double precision, as the host computes it.
    const auto centre = [](double encoded, double scale, double size, double at) {
      return static_cast<float>(encoded / scale * size + at);
    };
    const auto half = [](double encoded, double scale, double size) {
      return static_cast<float>(0.5 * std::exp(encoded / scale) * size);
    };
    const int64_t e = i * int64_t{boxes_.shape[2]}, a = int64_t{4} * i;
    const float y = centre(encodings[e], params_.y_scale, anchors[a + 2], anchors[a]);
    const float x = centre(encodings[e + 1], params_.x_scale, anchors[a + 3], anchors[a + 1]);
    const float h = half(encodings[e + 2], params_.h_scale, anchors[a + 2]);
    const float w = half(encodings[e + 3], params_.w_scale, anchors[a + 3]);
    return {y - h, x - w, y + h, x + w};
  }

  float ScoreOf(const KernelArgs& args, int32_t box, int32_t label) const {
    return Reals(scores_, args.inputs[1])[int64_t{box} * classes_ + background_ + label];
  }

  // `all`: room for a number of each class.
  void RankLabels(const KernelArgs& args, int32_t i, int32_t* all) const {
    const Ranked ranked = RankedOf(args);
    int32_t* const of_box = ranked.labels + int64_t{i} * labels_;
    if (labels_ == 1 && scores_in_order_) {
      *of_box = BestLabel(args, i);
    } else {
      // Which of equal scores comes first is the library's choice, here as in the host; but the
      // best one alone is the first of them.
      std::iota(all, all + params_.num_classes, 0);
      std::partial_sort(all, all + labels_, all + params_.num_classes, [&](int32_t a, int32_t b) {
        return ScoreOf(args, i, a) > ScoreOf(args, i, b);
      });
      std::copy_n(all, labels_, of_box);
    }
    ranked.best[i] = ScoreOf(args, i, *of_box);
  }

  void ClearOutputs(const KernelArgs& args) const {
    const int64_t count = int64_t{params_.max_detections} * params_.max_classes_per_detection;
    std::fill_n(static_cast<float*>(args.outputs[0]), 4 * count, 0.0f);
    std::fill_n(static_cast<float*>(args.outputs[1]), count, 0.0f);
    std::fill_n(static_cast<float*>(args.outputs[2]), count, 0.0f);
  }

  void Store(const KernelArgs& args, int64_t at, const Found& found) const {
    static_cast<Box*>(args.outputs[0])[at] = Decode(args, found.box);
    static_cast<float*>(args.outputs[1])[at] = static_cast<float>(found.label);
    static_cast<float*>(args.outputs[2])[at] = found.score;
  }

  struct SuppressionMemory {
    uint64_t* ranks;  // of all boxes
    float* kept;      // KeptBoxes
  };
  SuppressionMemory TakeForSuppression(Memory& memory) const {
    auto* ranks = memory.Take<uint64_t>(count_);
    return {ranks, memory.Take<float>(KeptBoxes::values(params_.max_detections))};
  }

  // The boxes that are kept, best first, at most `limit`: `order` holds them at its front. Those
  // below the threshold, and those that overlap a better one, are left out. `box_of(i)` is box i.
  template <class BoxOf>
  int32_t Suppress(const BoxOf& box_of, const float* scores, int32_t limit,
                   const SuppressionMemory& memory, int32_t* order) const {
    uint64_t* const ranks = memory.ranks;
    uint64_t* end = ranks;
    for (int32_t i = 0; i < count_; ++i) {
      if (scores[i] >= params_.score_threshold) *end++ = RankOf(scores[i], i);
    }
    KeptBoxes kept(memory.kept, limit);
    uint64_t* sorted = ranks;
    for (uint64_t* next = ranks; next != end && kept.count() < limit; ++next) {
      if (next == sorted) sorted = SortSome(ranks, next, end, limit);
      const int32_t number = NumberOf(*next);
      const Box box = box_of(number);
      if (functions_.covers(kept, box, params_.overlap_threshold)) continue;
      order[kept.count()] = number;
      kept.Add(box);
    }
    return kept.count();
  }

  // A box has a smaller rank than those with lower scores, and of equal ones than those behind it.
  static uint64_t RankOf(float score, int32_t box) {
    constexpr uint32_t kSign = uint32_t{1} << 31;
    const auto bits = std::bit_cast<uint32_t>(score + 0.0f);  // -0 is 0
    const uint32_t rising = (bits & kSign) != 0 ? ~bits : bits | kSign;
    return uint64_t{~rising} << 32 | static_cast<uint32_t>(box);
  }
  static int32_t NumberOf(uint64_t rank) { return static_cast<int32_t>(rank & UINT32_MAX); }

  // Brings some of the ranks from `next` on in order, as many again as are, and returns where they
  // end: few are looked at before there are enough boxes.
  static uint64_t* SortSome(uint64_t* first, uint64_t* next, uint64_t* end, int32_t limit) {
    constexpr ptrdiff_t kLeast = 32;
    const ptrdiff_t some = std::max({kLeast, ptrdiff_t{limit}, next - first});
    uint64_t* const sorted = next + std::min(some, end - next);
    if (sorted != end) std::nth_element(next, sorted, end);
    std::sort(next, sorted);
    return sorted;
  }

  // The best label of a box, the first of equal ones.
  int32_t BestLabel(const KernelArgs& args, int32_t box) const {
    const int64_t first = int64_t{box} * classes_ + background_;
    const auto best = [&]<class T>(const T* scores) {
      return std::get<BestLabelFunction<T>*>(*functions_.best_label)(scores + first,
                                                                     params_.num_classes);
    };
    if (scores_.type == DataType::kFloat32) return best(static_cast<const float*>(args.inputs[1]));
    return best(static_cast<const uint8_t*>(args.inputs[1]));
  }

  // A box once, by its best score.
  void KeepByBestLabel(const KernelArgs& args) const {
    const Ranked ranked = RankedOf(args);
    Memory memory(args.scratch);
    auto* order = memory.Take<int32_t>(count_);
    const auto box_of = [&](int32_t i) { return Decode(args, i); };
    const int32_t kept =
        Suppress(box_of, ranked.best, params_.max_detections, TakeForSuppression(memory), order);
    for (int32_t k = 0; k < kept; ++k) {
      for (int32_t c = 0; c < labels_; ++c) {
        const int32_t label = ranked.labels[int64_t{order[k]} * labels_ + c];
        Store(args, int64_t{k} * params_.max_classes_per_detection + c,
              {order[k], label, ScoreOf(args, order[k], label)});
      }
    }
    *static_cast<float*>(args.outputs[3]) = static_cast<float>(kept);
  }

  // The boxes of each class among themselves, and of all that are kept the best.
  void KeepOfEachClass(const KernelArgs& args) const {
    const auto box_of = [&](int32_t i) { return BoxesOf(args)[i]; };
    Memory memory(args.scratch);
    auto* of_class = memory.Take<float>(count_);
    auto* order = memory.Take<int32_t>(count_);
    const SuppressionMemory suppression = TakeForSuppression(memory);
    auto* found = memory.Take<Found>(2 * int64_t{params_.max_detections});
    const int32_t limit = std::min(params_.detections_per_class, params_.max_detections);
    int32_t total = 0;
    for (int32_t label = 0; label < params_.num_classes; ++label) {
      for (int32_t i = 0; i < count_; ++i) of_class[i] = ScoreOf(args, i, label);
      const int32_t kept = Suppress(box_of, of_class, limit, suppression, order);
      for (int32_t k = 0; k < kept; ++k) {
        found[total + k] = {order[k], label, of_class[order[k]]};
      }
      std::inplace_merge(found, found + total, found + total + kept,
                         [](const Found& a, const Found& b) { return a.score > b.score; });
      total = std::min(total + kept, params_.max_detections);
    }
    for (int32_t k = 0; k < total; ++k) Store(args, k, found[k]);
    *static_cast<float*>(args.outputs[3]) = static_cast<float>(total);
  }

  std::string name_;
  Functions functions_;
  DetectionParams params_;
  TensorInfo boxes_, scores_, anchors_;
  int32_t count_, classes_, background_, labels_;
  bool scores_in_order_;  // different bytes stand for different scores, the greater for the greater
};

Result<std::unique_ptr<Kernel>> BuildWith(const OpDescription& op, std::string_view target,
                                          const Functions& functions) {
  std::string name = internal::Join("detection ", target);
  return std::unique_ptr<Kernel>(new Detection(op, std::move(name), functions));
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildDetection(const OpDescription& op, const BuildContext&) {
  return BuildWith(op, "reference", {&PlainBestLabel(), PlainCovers});
}

Result<std::unique_ptr<Kernel>> BuildDetectionHighway(const OpDescription& op,
                                                      const BuildContext& context) {
  const BestLabelFunctions* const best_label = FindBestLabel(context.isa);
  if (best_label == nullptr) return NoVectorTarget(context.isa);
  return BuildWith(op, SimdName(context.isa), {best_label, FindCovers(context.isa)});
}

}  // namespace fuselite::kernels
