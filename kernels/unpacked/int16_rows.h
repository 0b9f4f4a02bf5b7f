// Few rows of int16 by matrices of 16 or 8 bits that are read where they lie: sums are of 64 bits,
// as TFLite's.
#pragma once

#include <cstdint>

#include "runtime/cpu/isa.h"
#include "runtime/support/status.h"

namespace fuselite::kernels {

// sums[r * columns + c] = sum over d of x[r * x_row + d * x_term] * y[d * y_term + c * y_column].
// y_term or y_column is 1. No alignment is needed beyond that of the elements.
template <class Y>
struct Int16Rows {
  const int16_t* x;
  const Y* y;
  int64_t rows, depth, columns;
  int64_t x_row, x_term, y_term, y_column;
  int16_t* gathered;  // room for a row of x
};

struct Int16RowFunctions {
  void (*shorts)(const Int16Rows<int16_t>& rows, int64_t* sums);
  void (*bytes)(const Int16Rows<int8_t>& rows, int64_t* sums);
};

// kUnsupported without vectors.
Result<const Int16RowFunctions*> FindInt16Rows(Isa isa);

}  // namespace fuselite::kernels
