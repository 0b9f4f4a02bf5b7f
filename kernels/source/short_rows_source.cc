#include "kernels/source/short_rows_source.h"

#include <algorithm>
#include <cstdlib>

#include "kernels/make_kernel.h"
#include "kernels/simd.h"
#include "runtime/memory/aligned_buffer.h"

namespace fuselite::kernels {

Result<std::shared_ptr<const ShortRowsSource>> ShortRowsSource::Make(int input, const TensorInfo& x,
                                                                     const ShortRowsLayout& layout,
                                                                     Isa isa) {
  const ShortRowFunctions* const functions = FindShortRowFunctions(isa);
  if (functions == nullptr) return NoVectorTarget(isa);
  if (x.type == DataType::kInt8 || x.type == DataType::kUInt8) {
    if (std::abs(x.quantization.zero_point()) > 255) {
      return Unsupported("does not take a zero point beyond 8 bits");
    }
  } else if (x.type != DataType::kInt16 && x.type != DataType::kFloat32) {
    return Unsupported("does not take activations of ", DataTypeName(x.type));
  }
  if (layout.values <= 0) return Unsupported("does not take rows without values");
  return std::shared_ptr<const ShortRowsSource>(new ShortRowsSource(input, x, layout, *functions));
}

ShortRowsSource::ShortRowsSource(int input, const TensorInfo& x, const ShortRowsLayout& layout,
                                 const ShortRowFunctions& functions)
    : input_(input),
      functions_(functions),
      layout_(layout),
      groups_(layout.groups, layout.rows, layout.values, layout.pitch),
      type_(x.type) {
  if (type_ == DataType::kInt8 || type_ == DataType::kUInt8) {
    x_offset_ = -x.quantization.zero_point();
  }
  scales_at_ = AlignUp(layout.groups * layout.rows * layout.to_pitch * sizeof(int16_t));
  ranges_at_ = scales_at_ + (is_float() ? AlignUp(layout.groups * sizeof(RowScale)) : 0);
  const bool ranges = is_float() && groups_.several_chunks();
  shared_bytes_ = ranges_at_ + (ranges ? AlignUp(groups_.chunks() * sizeof(DynamicRange)) : 0);
}

ImageMemory ShortRowsSource::memory() const {
  const auto row = layout_.to_pitch * static_cast<int64_t>(sizeof(int16_t));
  const int64_t group = layout_.rows * row;
  return {row, group, group, layout_.to_pitch == layout_.values * layout_.repeat};
}

std::vector<Phase> ShortRowsSource::phases() const {
  Phase convert{
      .units = groups_.chunks(),
      // As for QuantizedImage, where values are quantized; bytes only become wider.
      .grain = GrainFor(is_float() ? 2 * groups_.chunk_values() : groups_.chunk_values() / 4),
      .run = [this](const KernelArgs& args, int64_t begin, int64_t end) {
        for (int64_t unit = begin; unit < end; ++unit) Convert(args, unit);
      }};
  if (!is_float() || !groups_.several_chunks()) return {std::move(convert)};
  // The range of a group is gathered from several units.
  Phase find = convert;
  find.run = [this](const KernelArgs& args, int64_t begin, int64_t end) {
    for (int64_t unit = begin; unit < end; ++unit) {
      groups_.FindRange(functions_.extend_range, static_cast<const float*>(args.inputs[input_]),
                        unit, Ranges(args.shared));
    }
  };
  return {std::move(find), std::move(convert)};
}

void ShortRowsSource::Convert(const KernelArgs& args, int64_t unit) const {
  const void* const x = args.inputs[input_];
  DynamicScale scale;
  if (is_float()) {
    scale = groups_.ScaleOf(functions_.extend_range, static_cast<const float*>(x), unit,
                            layout_.asymmetric, Ranges(args.shared));
    // Every unit of the group finds the same one; the first tells.
    if (groups_.IsFirst(unit)) {
      reinterpret_cast<RowScale*>(args.shared + scales_at_)[groups_.GroupOf(unit)] = {scale.scale,
                                                                                      0};
    }
  }
  const int64_t first = groups_.FirstRow(unit), last = groups_.LastRow(unit);
  const int64_t group = groups_.GroupOf(unit) * layout_.rows;
  // Rows that are dense on both sides are one long one.
  const bool dense = layout_.pitch == layout_.values && layout_.to_pitch == layout_.values;
  const int64_t n = dense ? (last - first) * layout_.values : layout_.values;
  for (int64_t row = group + first; row < group + (dense ? first + 1 : last); ++row) {
    const int64_t at = row * layout_.pitch;
    int16_t* to = reinterpret_cast<int16_t*>(args.shared) + row * layout_.to_pitch;
    if (is_float()) {
      functions_.quantize(static_cast<const float*>(x) + at, n, scale, to);
    } else if (type_ == DataType::kInt16) {
      std::copy_n(static_cast<const int16_t*>(x) + at, n, to);
    } else if (type_ == DataType::kUInt8) {
      functions_.widen_u8(static_cast<const uint8_t*>(x) + at, n, x_offset_, to);
    } else {
      functions_.widen_s8(static_cast<const int8_t*>(x) + at, n, x_offset_, to);
    }
    // From the last on, since a value's copies lie behind it.
    for (int64_t i = layout_.repeat > 1 ? n - 1 : -1; i >= 0; --i) {
      std::fill_n(to + i * layout_.repeat, layout_.repeat, int16_t{to[i]});
    }
    if (!dense) std::fill(to + n * layout_.repeat, to + layout_.to_pitch, int16_t{0});
  }
}

}  // namespace fuselite::kernels
