// Sparse constants as files hold them, and their dense form.
//
// The dimensions of the tensor, and behind them those of blocks, are stored one inside the other in
// the order that the file says: a level is dense (every index is there) or compressed as rows of a
// sparse matrix are (`segments` says which of `indices` belong to each element of the level above).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/support/status.h"
#include "runtime/tensor.h"
#include "runtime/weights/packed_store.h"

namespace fuselite::kernels {

struct SparseLevel {
  bool compressed = false;
  int32_t dense_size = 0;                      // of a dense level
  std::vector<int32_t> segments{}, indices{};  // of a compressed one
};

struct SparseLayout {
  // Which dimension each level is: below the rank one of the tensor's own, counted in blocks where
  // it is blocked; rank + k the inside of the blocks of dimension block_map[k].
  std::vector<int32_t> traversal_order{};
  std::vector<int32_t> block_map{};
  std::vector<SparseLevel> levels{};
};

// The dense form of `stored`, the values that are there, of a tensor described by `info` (its data
// is not looked at). Nothing is believed: what does not fit together is kInvalidArgument.
// kUnsupported for types of less than a byte. Shared by all who ask for the same constant.
Result<PackedWeights> Unpack(const SparseLayout& layout, const TensorInfo& info,
                             std::span<const std::byte> stored, PackedStore& store);

}  // namespace fuselite::kernels
