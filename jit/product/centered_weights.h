// Weights of bytes with their zero point taken off, as dot products of int8 read them. Nearly all
// fit: a converter's zero point is near the middle of the weights' range, and one or two weights of
// a layer lie at its far end. What these have more is multiplied in a step of its own, so that no
// row needs the sum of its values.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "kernels/product/description.h"
#include "kernels/product/rows.h"
#include "runtime/tensor.h"

namespace fuselite::jit {

// The smallest int8 that has an opposite.
inline constexpr int8_t kLeastWithOpposite = -INT8_MAX;

// The terms, in order, in which some channel's weight less the zero point is no int8 of `least`
// (see Centering) or more. Absent where the weights are not known, do not lie term by term, or
// leave more than int8 beside the nearest one.
std::optional<std::vector<int64_t>> TermsOfOutliers(const kernels::ProductDescription& description,
                                                    const TensorInfo& weights,
                                                    int8_t least = INT8_MIN);

// Neighbouring terms: of so many, the first one, and where a row has its value, in bytes.
struct TermGroup {
  int64_t first = 0, offset = 0, length = 0;
};

// The groups of `values` values of `value_bytes` bytes (of a run of the depth, the last perhaps of
// fewer) that hold these terms, each once.
std::vector<TermGroup> GroupsOfTerms(const kernels::DepthRuns& depth, int64_t values,
                                     int64_t value_bytes, std::span<const int64_t> terms);

// Bytes of a type with a zero point taken off.
class Centering {
 public:
  // `type`: int8 or uint8. `least`: the smallest int8 that is used, -128 or kLeastWithOpposite.
  Centering(DataType type, int32_t zero_point, int8_t least = INT8_MIN);

  // Whether no weight has an excess, as the zero point is in the middle of the type.
  static bool IsNone(DataType type, int32_t zero_point) {
    return zero_point == (type == DataType::kUInt8 ? 128 : 0);
  }
  // Whether what is left of any weight beside the nearest int8 fits int8, too: all but where the
  // largest is 255 more than the zero point. Of one 255 less than it -128 is left beside -127.
  static bool Divides(DataType type, int32_t zero_point) {
    return zero_point != (type == DataType::kUInt8 ? 0 : -128);
  }

  // The nearest int8 of each weight, and what is left beside it, where Divides(). Either may be
  // written in the weights' place.
  void Divide(const uint8_t* weights, int64_t count, uint8_t* nearest, uint8_t* excess) const;
  // Sets bits of those of `marks` whose weights, as many, have an excess.
  void MarkExcess(const uint8_t* weights, std::span<uint8_t> marks) const;
  // Whether any weight has an excess, even one that cannot be divided.
  bool HasExcess(const uint8_t* weights, int64_t count) const;

 private:
  uint8_t Nearest(uint8_t weight) const;
  uint8_t Excess(uint8_t weight) const;

  uint8_t flip_;  // makes int8 of the type
  uint8_t zero_point_;
  int8_t least_;
};

// Some channels' weights.
class CenteredRows {
 public:
  // `rows`: of `depth` weights each.
  CenteredRows(std::span<const uint8_t* const> rows, int64_t depth, const Centering& centering);
  // As many rows, which a reader may move.
  std::span<const uint8_t*> nearest() { return nearest_; }
  // What its weights have more, as int8.
  const uint8_t* excess(size_t row) const {
    return copies_.data() + (nearest_.size() + row) * static_cast<size_t>(depth_);
  }

 private:
  int64_t depth_;
  std::vector<const uint8_t*> nearest_;
  std::vector<uint8_t> copies_;  // the nearest of all rows, then their excess
};

}  // namespace fuselite::jit
