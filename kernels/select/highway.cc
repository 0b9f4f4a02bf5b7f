#include "kernels/select/select.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/select/highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/make_kernel.h"
#include "kernels/movement/copy_loops.h"
#include "kernels/simd.h"
#include "runtime/memory/aligned_buffer.h"

#ifndef FUSELITE_KERNELS_SELECT_HIGHWAY_ONCE_
#define FUSELITE_KERNELS_SELECT_HIGHWAY_ONCE_
namespace fuselite::kernels {

// Element i is at data[i * stride], stride 0 or 1.
struct SelectOperand {
  const void* data;
  int stride;
};
using SelectRow = void (*)(SelectOperand condition, SelectOperand x, SelectOperand y, void* out,
                           int64_t n);

}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// As many bytes as D has lanes, each widened to one.
template <class D>
HWY_INLINE hn::Vec<D> LoadWidened(D d, const uint8_t* in) {
  using T = hn::TFromD<D>;
  const hn::Rebind<uint8_t, D> bytes;
  if constexpr (sizeof(T) == 1) {
    return hn::LoadU(d, in);
  } else if constexpr (sizeof(T) == 8) {
    const hn::Rebind<uint32_t, D> words;
    return hn::PromoteTo(d, hn::PromoteTo(words, hn::LoadU(bytes, in)));
  } else {
    return hn::PromoteTo(d, hn::LoadU(bytes, in));
  }
}

template <class D, class T>
HWY_INLINE hn::Vec<D> LoadChoice(D d, const T* data, int stride, int64_t i) {
  return stride ? hn::LoadU(d, data + i) : hn::Set(d, *data);
}

// Rows shorter than a vector take half of one, down to 16 bytes, and are chosen one by one below;
// the last vector of others may overlap the one before.
template <class D>
HWY_INLINE void SelectBy(D d, SelectOperand condition, SelectOperand x, SelectOperand y, void* out,
                         int64_t n) {
  using T = hn::TFromD<D>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto* c = static_cast<const uint8_t*>(condition.data);
  const auto* a = static_cast<const T*>(x.data);
  const auto* b = static_cast<const T*>(y.data);
  auto* to = static_cast<T*>(out);
  if (condition.stride == 0 && (*c ? x : y).stride == 1) {
    std::memcpy(to, *c ? a : b, n * sizeof(T));
    return;
  }
  if (n < lanes) {
    if constexpr (hn::MaxLanes(D()) * sizeof(T) > 16) {
      return SelectBy(hn::Half<D>(), condition, x, y, out, n);
    }
    for (int64_t i = 0; i < n; ++i) {
      to[i] = c[i * condition.stride] ? a[i * x.stride] : b[i * y.stride];
    }
    return;
  }
  for (int64_t i = 0;; i = std::min(i + lanes, n - lanes)) {
    const auto which = condition.stride ? LoadWidened(d, c + i) : hn::Set(d, T{*c});
    hn::StoreU(hn::IfThenElse(hn::Eq(which, hn::Zero(d)), LoadChoice(d, b, y.stride, i),
                              LoadChoice(d, a, x.stride, i)),
               d, to + i);
    if (i + lanes == n) return;
  }
}

template <class T>
void SelectTyped(SelectOperand condition, SelectOperand x, SelectOperand y, void* out, int64_t n) {
  SelectBy(hn::ScalableTag<T>(), condition, x, y, out, n);
}

SelectRow FindRow(int element_bytes) {
  switch (element_bytes) {
    case 1: return &SelectTyped<uint8_t>;
    case 2: return &SelectTyped<uint16_t>;
    case 4: return &SelectTyped<uint32_t>;
    case 8: return &SelectTyped<uint64_t>;
    default: return nullptr;
  }
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

// Rows of the output that follow each other, joined to longer ones where each operand's do too or
// can be drawn out in scratch: what a vector leaves over at a row's end takes as long as the
// vector.
class JoinedSelection {
 public:
  JoinedSelection(const OpDescription& op, const BroadcastPlan& plan, SelectRow row, Isa isa)
      : plan_(plan), row_(row), loops_(CopyLoopsFor(isa)) {
    const int64_t n = plan.row_elements();
    const int64_t bytes = BitWidth(op.inputs[1].type) / 8;
    sizes_ = {1, bytes, bytes, bytes};
    // Rows that fill some vectors gain less than drawing operands out takes.
    constexpr int64_t kJoinedBytes = 4096, kLongBytes = 128;
    if (n * bytes < kLongBytes && n > 0 && plan.row_stride(kOut) == n) {
      together_ = std::max<int64_t>(1, kJoinedBytes / (n * bytes));
    }
    for (int k = 0; k < kOut; ++k) {
      drawn_out_[k] = !(plan.stride(k) == 1 && plan.row_stride(k) == n) && !IsOneValue(k);
    }
  }

  size_t scratch_bytes() const { return together_ > 1 ? kOut * OperandBytes() : 0; }

  // A unit of the plan.
  void Run(const KernelArgs& args, const BroadcastPlan::Block& block) const {
    std::array<Rows, 4> at;
    for (int k = 0; k <= kOut; ++k) {
      const void* base = k < kOut ? args.inputs[k] : args.outputs[0];
      // What is read is not written: the output alone is.
      auto* first = static_cast<std::byte*>(const_cast<void*>(base));
      at[k] = {.data = first + block.offsets[k] * sizes_[k],
               .pitch = plan_.row_stride(k) * sizes_[k],
               .stride = plan_.stride(k)};
    }
    if (together_ > 1 && block.rows > 1) return RunJoined(args, block, at);
    for (int64_t r = 0; r < block.rows; ++r) {
      RunRow(at, block.count);
      for (Rows& rows : at) rows.data += rows.pitch;
    }
  }

 private:
  static constexpr int kOut = 3;
  struct Rows {
    std::byte* data;
    int64_t pitch;  // in bytes
    int stride;     // 0 or 1, in elements
  };

  bool IsOneValue(int k) const { return plan_.stride(k) == 0 && plan_.row_stride(k) == 0; }
  size_t OperandBytes() const { return AlignUp(together_ * plan_.row_elements() * sizes_[kOut]); }

  void RunRow(const std::array<Rows, 4>& at, int64_t n) const {
    const auto operand = [&](int k) { return SelectOperand{at[k].data, at[k].stride}; };
    row_(operand(0), operand(1), operand(2), at[kOut].data, n);
  }

  void RunJoined(const KernelArgs& args, const BroadcastPlan::Block& block,
                 std::array<Rows, 4> at) const {
    const int64_t n = block.count;
    for (int64_t r = 0; r < block.rows; r += together_) {
      const int64_t rows = std::min(together_, block.rows - r);
      std::array<Rows, 4> joined = at;
      for (int k = 0; k < kOut; ++k) {
        if (!drawn_out_[k]) continue;
        joined[k] = {.data = args.scratch + k * OperandBytes(), .pitch = 0, .stride = 1};
        // What all rows share stays there from the first time on.
        if (r > 0 && at[k].pitch == 0) continue;
        loops_.DrawOut(at[k].data, joined[k].data, rows, at[k].pitch, n, at[k].stride == 0,
                       static_cast<int>(sizes_[k]));
      }
      RunRow(joined, rows * n);
      for (Rows& operand : at) operand.data += rows * operand.pitch;
    }
  }

  BroadcastPlan plan_;
  SelectRow row_;
  CopyLoops loops_;
  std::array<int64_t, 4> sizes_{};  // of elements, in bytes
  std::array<bool, kOut> drawn_out_{};
  int64_t together_ = 1;  // rows
};

}  // namespace

Result<std::unique_ptr<Kernel>> BuildSelectHighway(const OpDescription& op,
                                                   const BuildContext& context) {
  constexpr auto kFindRow = FUSELITE_SIMD_TABLE(FindRow);
  FUSELITE_ASSIGN_OR_RETURN(auto* const find, kFindRow.Require(context.isa));
  const int64_t bytes = BitWidth(op.inputs[1].type) / 8;
  const SelectRow row = find(static_cast<int>(bytes));
  if (row == nullptr) return Unsupported("does not take elements of ", bytes, " bytes");
  const BroadcastPlan plan = PlanSelect(op);
  const JoinedSelection selection(op, plan, row, context.isa);
  return MakeKernel(
      "select " + std::string(DataTypeName(op.inputs[1].type)) + " " + SimdName(context.isa),
      {.units = plan.units(),
       .grain = GrainFor(plan.unit_elements()),
       .scratch_bytes = selection.scratch_bytes()},
      [plan, selection](const KernelArgs& args, int64_t begin, int64_t end) {
        plan.ForEachBlock(begin, end,
                          [&](const BroadcastPlan::Block& block) { selection.Run(args, block); });
      });
}

}  // namespace fuselite::kernels
#endif
