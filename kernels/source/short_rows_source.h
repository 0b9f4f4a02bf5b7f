// Rows of activations as int16 with their zero points taken off.
#pragma once

#include <memory>
#include <vector>

#include "kernels/dynamic_quantization/dynamic_groups.h"
#include "kernels/gemm/short_rows.h"
#include "kernels/product/source.h"
#include "runtime/tensor.h"

namespace fuselite::kernels {

// `groups` times `rows` rows of `values` elements, `pitch` apart. float32 is quantized dynamically,
// a scale for each group.
struct ShortRowsLayout {
  int64_t groups = 0, rows = 0, values = 0, pitch = 0;
  int32_t repeat = 1;    // each value stands that many times in the result
  int64_t to_pitch = 0;  // of the result, at least values * repeat; what is between is zero
  bool asymmetric = false;
};

// An image is a group, in one line. Of float32 there is a RowScale for each group.
class ShortRowsSource final : public Source {
 public:
  // kUnsupported where there is no vector target, or for types other than int8, uint8, int16
  // (whose zero point must be 0) and float32. `x` is input `input`.
  static Result<std::shared_ptr<const ShortRowsSource>> Make(int input, const TensorInfo& x,
                                                             const ShortRowsLayout& layout,
                                                             Isa isa);

  ImageMemory memory() const override;
  size_t shared_bytes() const override { return shared_bytes_; }
  std::vector<Phase> phases() const override;
  SourcePlaces places() const override {
    return {.row_values_at = is_float() ? static_cast<int64_t>(scales_at_) : -1};
  }

 private:
  ShortRowsSource(int input, const TensorInfo& x, const ShortRowsLayout& layout,
                  const ShortRowFunctions& functions);
  bool is_float() const { return type_ == DataType::kFloat32; }
  DynamicRange* Ranges(std::byte* shared) const {
    return reinterpret_cast<DynamicRange*>(shared + ranges_at_);
  }
  void Convert(const KernelArgs& args, int64_t unit) const;

  int input_;
  const ShortRowFunctions& functions_;
  ShortRowsLayout layout_;
  DynamicGroups groups_;
  DataType type_;
  int32_t x_offset_ = 0;
  size_t scales_at_ = 0, ranges_at_ = 0, shared_bytes_ = 0;
};

}  // namespace fuselite::kernels
