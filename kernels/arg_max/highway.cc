// ARG_MAX and ARG_MIN with vectors: along short rows of bytes several rows at a time, along other
// rows in two passes, across columns one lane per column or more.
#include <cstring>

#include "kernels/arg_max/arg_max.h"
#include "kernels/make_kernel.h"
#include "kernels/shape_rules.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/arg_max/highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/arg_max/byte_rows-inl.h"
#include "kernels/arg_max/columns-inl.h"
#include "kernels/arg_max/long_row-inl.h"
#include "kernels/simd.h"

#ifndef FUSELITE_KERNELS_ARG_MAX_ONCE_
#define FUSELITE_KERNELS_ARG_MAX_ONCE_
namespace fuselite::kernels {

// `rows` of `size` values side by side; `out` gets an index of each. `readable` values may be read.
using ArgRows = void(const void* in, int64_t readable, int64_t rows, int64_t size, ArgOutput out);
// `columns` neighbouring columns of `size` values each, `stride` values apart.
using ArgColumns = void(const void* in, int64_t columns, int64_t size, int64_t stride,
                        ArgOutput out);

struct ArgFunctions {
  ArgRows* byte_rows;  // of at most 256 values; null for wider types
  ArgRows* rows;
  ArgColumns* columns;
};

}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T, bool max>
void ArgByteRows(const void* in, int64_t readable, int64_t rows, int64_t size, ArgOutput out) {
  // Makes int8 of the type, and of the least the largest.
  constexpr uint8_t kFlip = (std::is_signed_v<T> ? 0 : 0x80) ^ (max ? 0 : 0xFF);
  const auto* from = static_cast<const uint8_t*>(in);
  const auto run = [&](auto function) { function(from, readable, rows, size, kFlip, out); };
  if (size < 8) return run(&ArgByteRowsOf<ByteRowKind::kEight>);
  if (size < 16) return run(&ArgByteRowsOf<ByteRowKind::kTwoHalves>);
  if (size == 16) return run(&ArgByteRowsOf<ByteRowKind::kOne>);
  if (size <= 32) return run(&ArgByteRowsOf<ByteRowKind::kTwo>);
  run(&ArgByteRowsOf<ByteRowKind::kMany>);
}

// Without branches, of which a short row would predict about one wrongly.
template <class T, bool max>
HWY_INLINE int64_t ArgOfShortRow(const T* row, int64_t size) {
  T best = Worst<T, max>();
  int64_t index = 0;
  for (int64_t i = 0; i < size; ++i) {
    const bool better = max ? row[i] > best : row[i] < best;
    best = better ? row[i] : best;
    index = better ? i : index;
  }
  return best == Worst<T, max>() ? ArgOfLongRow<T, max>(row, size) : index;
}

template <class T, bool max>
void ArgLongRows(const void* in, int64_t, int64_t rows, int64_t size, ArgOutput out) {
  constexpr int64_t kShortRow = 8;
  if (size <= kShortRow) {
    for (int64_t r = 0; r < rows; ++r) {
      out.Set(r, ArgOfShortRow<T, max>(static_cast<const T*>(in) + r * size, size));
    }
    return;
  }
  for (int64_t r = 0; r < rows; ++r) {
    const T* row = static_cast<const T*>(in) + r * size;
    out.Set(r, ArgOfLongRow<T, max>(row, size));
  }
}

template <class T, bool max>
void ArgColumnsOrFew(const void* in, int64_t columns, int64_t size, int64_t stride, ArgOutput out) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(hn::ScalableTag<int32_t>()));
  const bool few = columns < lanes && columns == stride;
  few ? ArgFewColumnsOf<T, max>(in, columns, size, out)
      : ArgColumnsOf<T, max>(in, columns, size, stride, out);
}

template <class T, bool max>
ArgFunctions FunctionsOf() {
  ArgFunctions functions = {nullptr, &ArgLongRows<T, max>, &ArgColumnsOrFew<T, max>};
  if constexpr (sizeof(T) == 1) functions.byte_rows = &ArgByteRows<T, max>;
  return functions;
}

ArgFunctions ArgFunctionsFor(DataType type, bool max) {
  switch (type) {
    case DataType::kFloat32: return max ? FunctionsOf<float, true>() : FunctionsOf<float, false>();
    case DataType::kInt32:
      return max ? FunctionsOf<int32_t, true>() : FunctionsOf<int32_t, false>();
    case DataType::kInt8: return max ? FunctionsOf<int8_t, true>() : FunctionsOf<int8_t, false>();
    default: return max ? FunctionsOf<uint8_t, true>() : FunctionsOf<uint8_t, false>();
  }
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

template <bool max>
Result<std::unique_ptr<Kernel>> Build(const OpDescription& op, Isa isa) {
  constexpr auto kFunctions = FUSELITE_SIMD_TABLE(ArgFunctionsFor);
  FUSELITE_ASSIGN_OR_RETURN(auto* const functions_for, kFunctions.Require(isa));
  FUSELITE_ASSIGN_OR_RETURN(const ArgLines lines, ArgLinesOf(op));
  const DataType type = op.inputs[0].type;
  const ArgFunctions functions = functions_for(type, max);
  const bool short_rows = functions.byte_rows != nullptr && lines.size <= kMaxByteRow;
  ArgRows* const rows = short_rows ? functions.byte_rows : functions.rows;
  return MakeKernel(
      (max ? "arg_max " : "arg_min ") + std::string(DataTypeName(type)) + " " + SimdName(isa),
      {.units = lines.units, .grain = GrainFor(lines.size)},
      [=, bytes = BitWidth(type) / 8](const KernelArgs& args, int64_t begin, int64_t end) {
        const auto* in = static_cast<const std::byte*>(args.inputs[0]);
        const ArgOutput out{args.outputs[0], lines.wide};
        if (lines.size == 1) {
          std::memset(out.From(begin).data, 0, (end - begin) * (lines.wide ? 8 : 4));
          return;
        }
        if (lines.stride == 1) {
          return rows(in + begin * lines.size * bytes, (lines.units - begin) * lines.size,
                      end - begin, lines.size, out.From(begin));
        }
        while (begin < end) {
          const int64_t outer = begin / lines.stride, inner = begin % lines.stride;
          const int64_t columns = std::min(end - begin, lines.stride - inner);
          functions.columns(in + (outer * lines.size * lines.stride + inner) * bytes, columns,
                            lines.size, lines.stride, out.From(begin));
          begin += columns;
        }
      });
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildArgMaxHighway(const OpDescription& op,
                                                   const BuildContext& context) {
  return Build<true>(op, context.isa);
}
Result<std::unique_ptr<Kernel>> BuildArgMinHighway(const OpDescription& op,
                                                   const BuildContext& context) {
  return Build<false>(op, context.isa);
}

}  // namespace fuselite::kernels
#endif
