#include "kernels/movement/copy_loops.h"

#include <algorithm>
#include <cstring>

namespace fuselite::kernels {
namespace {

// Rows of the transposed tile: one cache line of 4-byte elements in either direction.
constexpr int64_t kTile = 16;

void CopyRows(const std::byte* in, std::byte* out, const CopyDim& rows, int64_t run_bytes) {
  for (int64_t i = 0; i < rows.size; ++i) {
    std::memcpy(out + i * rows.out_stride, in + i * rows.in_stride, run_bytes);
  }
}

template <class T>
void CopyTyped(const std::byte* in, std::byte* out, const CopyDim& dim) {
  for (int64_t i = 0; i < dim.size; ++i) {
    T value;
    std::memcpy(&value, in + i * dim.in_stride, sizeof value);
    std::memcpy(out + i * dim.out_stride, &value, sizeof value);
  }
}

void CopyElements(const std::byte* in, std::byte* out, const CopyDim& dim, int element_bytes) {
  WithElement(element_bytes, [&](auto element) { CopyTyped<decltype(element)>(in, out, dim); });
}

void ReverseRows(const std::byte* in, std::byte* out, const CopyDim& rows, int64_t count,
                 int element_bytes) {
  for (int64_t i = 0; i < rows.size; ++i) {
    CopyElements(in + i * rows.in_stride, out + i * rows.out_stride,
                 {count, -element_bytes, element_bytes}, element_bytes);
  }
}

void FillRows(const std::byte* in, std::byte* out, const CopyDim& rows, int64_t count,
              int element_bytes) {
  for (int64_t i = 0; i < rows.size; ++i) {
    CopyElements(in + i * rows.in_stride, out + i * rows.out_stride, {count, 0, element_bytes},
                 element_bytes);
  }
}

void Transpose(const std::byte* in, std::byte* out, const CopyDim& x, const CopyDim& y,
               int element_bytes) {
  for (int64_t begin = 0; begin < y.size; begin += kTile) {
    const CopyDim piece = {std::min(kTile, y.size - begin), y.in_stride, y.out_stride};
    for (int64_t i = 0; i < x.size; ++i) {
      CopyElements(in + i * x.in_stride + begin * y.in_stride,
                   out + i * x.out_stride + begin * y.out_stride, piece, element_bytes);
    }
  }
}

}  // namespace

const CopyLoops& ScalarCopyLoops() {
  static constexpr CopyLoops kLoops = {CopyRows, ReverseRows, CopyElements, FillRows, Transpose};
  return kLoops;
}

}  // namespace fuselite::kernels
