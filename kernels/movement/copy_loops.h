// The inner loops of strided copies (kernels/movement/strided_copy.h): scalar ones, and ones with
// vectors that give the same bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/cpu/isa.h"

namespace fuselite::kernels {

inline constexpr int64_t kLineBytes = 64;  // of a cache

// A dimension of a copy; strides in bytes, of any sign.
struct CopyDim {
  int64_t size;
  int64_t in_stride;
  int64_t out_stride;
};

// Pointers need no alignment. What is written does not overlap, and nothing else is touched; what
// is read may overlap.
struct CopyLoops {
  // `run_bytes` contiguous bytes at each index of `rows`.
  void (*rows)(const std::byte* in, std::byte* out, const CopyDim& rows, int64_t run_bytes);

  // At each index of `rows`, `count` elements in reverse: `in` is the last in memory, whose reading
  // goes down, and `out` the first of those written without gaps.
  void (*reverse)(const std::byte* in, std::byte* out, const CopyDim& rows, int64_t count,
                  int element_bytes);

  // Elements of 1, 2, 4, 8 or 16 bytes one by one.
  void (*elements)(const std::byte* in, std::byte* out, const CopyDim& dim, int element_bytes);

  // At each index of `rows` one such element, written `count` times without gaps.
  void (*fill)(const std::byte* in, std::byte* out, const CopyDim& rows, int64_t count,
               int element_bytes);

  // A matrix is transposed: elements, of three bytes too, are contiguous along `x` in the input and
  // along `y` in the output.
  void (*transpose)(const std::byte* in, std::byte* out, const CopyDim& x, const CopyDim& y,
                    int element_bytes);

  // Rows of an operand that broadcasts, one after the other: at each of `count` places, `stride`
  // bytes apart, n contiguous elements, or n times the one that is there.
  void DrawOut(const std::byte* in, std::byte* out, int64_t count, int64_t stride, int64_t n,
               bool one_per_row, int element_bytes) const {
    const CopyDim dim{count, stride, n * element_bytes};
    one_per_row ? fill(in, out, dim, n, element_bytes) : rows(in, out, dim, n * element_bytes);
  }
};

const CopyLoops& ScalarCopyLoops();

// The best that the ISA has; the scalar ones where it has no vectors.
CopyLoops CopyLoopsFor(Isa isa);

// Whether those are other than the scalar ones.
bool HasVectorCopyLoops(Isa isa);

// Calls `function` with a value of an unsigned type of the element's width.
struct WideElement {
  uint64_t half[2];
};
struct ThreeBytes {
  uint8_t byte[3];
};
template <class Function>
void WithElement(int bytes, Function function) {
  switch (bytes) {
    case 1: function(uint8_t{}); break;
    case 2: function(uint16_t{}); break;
    case 3: function(ThreeBytes{}); break;
    case 4: function(uint32_t{}); break;
    case 8: function(uint64_t{}); break;
    default: function(WideElement{}); break;
  }
}

}  // namespace fuselite::kernels
