#include "kernels/select/select.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/select/highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "kernels/make_kernel.h"
#include "kernels/simd.h"

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
HWY_INLINE hn::Vec<D> LoadOperand(D d, const T* data, int stride, int64_t i) {
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
    hn::StoreU(hn::IfThenElse(hn::Eq(which, hn::Zero(d)), LoadOperand(d, b, y.stride, i),
                              LoadOperand(d, a, x.stride, i)),
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

Result<std::unique_ptr<Kernel>> BuildSelectHighway(const OpDescription& op,
                                                   const BuildContext& context) {
  constexpr auto kFindRow = FUSELITE_SIMD_TABLE(FindRow);
  FUSELITE_ASSIGN_OR_RETURN(auto* const find, kFindRow.Require(context.isa));
  const int64_t bytes = BitWidth(op.inputs[1].type) / 8;
  const SelectRow row = find(static_cast<int>(bytes));
  if (row == nullptr) return Unsupported("elements of ", bytes, " bytes");
  const BroadcastPlan plan = PlanSelect(op);
  return MakeKernel(
      "select " + std::string(DataTypeName(op.inputs[1].type)) + " " + SimdName(context.isa),
      {.units = plan.units(), .grain = GrainFor(plan.unit_elements())},
      [plan, row, bytes](const KernelArgs& args, int64_t begin, int64_t end) {
        plan.ForEach(begin, end, [&](const BroadcastPlan::Piece& piece) {
          const auto operand = [&](int k) {
            const auto* base = static_cast<const std::byte*>(args.inputs[k]);
            return SelectOperand{base + piece.offsets[k] * (k ? bytes : 1), plan.stride(k)};
          };
          row(operand(0), operand(1), operand(2),
              static_cast<std::byte*>(args.outputs[0]) + piece.offsets[3] * bytes, piece.count);
        });
      });
}

}  // namespace fuselite::kernels
#endif
