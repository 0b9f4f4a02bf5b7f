#include "kernels/lstm/integer_products.h"

#include <algorithm>
#include <cstring>
#include <functional>

#include "kernels/lstm/products.h"
#include "kernels/simd.h"

namespace fuselite::kernels {
namespace {

// By how much flipping the highest bit of an int8 raises it.
constexpr int32_t kFlipped = 128;

// With x the values: sum of (x - zero point) w = sum of (x + 128) w - (zero point + 128) sum of w.
std::vector<int32_t> Corrections(std::span<const TensorInfo> weights, int32_t zero_point) {
  std::vector<int32_t> corrections = LstmWeightSums(weights);
  for (int32_t& sum : corrections) {
    // Wraps around, as sums do.
    sum = static_cast<int32_t>(-(zero_point + kFlipped) * int64_t{sum});
  }
  return corrections;
}

}  // namespace

Status IntegerProducts::Init(Isa isa) {
  quads_ = FindGemmQuads(isa);
  wide_ = FindGemmS16(isa);
  widen_ = FindShortRowFunctions(isa);
  return wide_ == nullptr ? NoVectorTarget(isa) : Status();
}

Result<IntegerMatrix> IntegerProducts::Pack(std::span<const TensorInfo> weights, int32_t zero_point,
                                            const BuildContext& context) const {
  IntegerMatrix matrix;
  matrix.depth = weights.front().shape[1];
  matrix.columns = weights.front().shape[0] * static_cast<int64_t>(weights.size());
  matrix.zero_point = zero_point;
  if (!bytes()) {
    FUSELITE_ASSIGN_OR_RETURN(matrix.packed, PackLstmS16(weights, 0, *wide_, context));
    return matrix;
  }
  matrix.corrections = Corrections(weights, zero_point);
  FUSELITE_ASSIGN_OR_RETURN(matrix.packed, PackLstmQuads(weights, *quads_, context));
  return matrix;
}

int64_t IntegerProducts::RowBytes(int64_t depth) const { return LstmRowBytes(depth, bytes()); }

IntegerRow IntegerProducts::RowIn(std::byte* memory, const IntegerMatrix& matrix) const {
  if (bytes()) return {.bytes = reinterpret_cast<int8_t*>(memory)};
  return {.wide = reinterpret_cast<int16_t*>(memory), .zero_point = matrix.zero_point};
}

void IntegerProducts::Prepare(const int8_t* values, int64_t depth, const IntegerRow& row) const {
  if (!bytes()) return widen_->widen_s8(values, depth, -row.zero_point, row.wide);
  int64_t i = 0;
  for (; i + 8 <= depth; i += 8) {
    uint64_t eight;
    std::memcpy(&eight, values + i, sizeof eight);
    eight ^= 0x8080808080808080;
    std::memcpy(row.bytes + i, &eight, sizeof eight);
  }
  for (; i < depth; ++i) row.bytes[i] = static_cast<int8_t>(values[i] ^ -kFlipped);
}

void IntegerProducts::Multiply(const IntegerMatrix& matrix, const IntegerRow& first,
                               const Output& to, int32_t* scratch) const {
  const int32_t* bias = to.bias;
  if (bytes() && bias == nullptr) {
    bias = matrix.corrections.data();
  } else if (bytes()) {
    std::ranges::transform(matrix.corrections, std::span(bias, matrix.corrections.size()), scratch,
                           std::plus<>());
    bias = scratch;
  }
  (bytes() ? quads_ : wide_)
      ->run({.a = bytes() ? reinterpret_cast<const int16_t*>(first.bytes) : first.wide,
             .rows = to.rows,
             .depth = RowBytes(matrix.depth) / 2,
             .b = matrix.packed->as<int16_t>(),
             .columns = matrix.columns,
             .bias = bias,
             .c = to.sums,
             .c_pitch = matrix.columns,
             .backwards = to.backwards});
}

}  // namespace fuselite::kernels
