#include "kernels/sparse.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "runtime/weights/hash.h"

namespace fuselite::kernels {
namespace {

// The sizes of the levels' dimensions, in elements of the level: blocks, or what is inside of one.
class Dimensions {
 public:
  static Result<Dimensions> Of(const SparseLayout& layout, const Shape& shape) {
    Dimensions dimensions;
    const int rank = shape.rank();
    // Blocks of one element could be nested for ever.
    if (layout.block_map.size() > static_cast<size_t>(rank)) {
      return InvalidArgument("a sparse layout with blocks in ", layout.block_map.size(),
                             " dimensions of ", rank);
    }
    const int count = rank + static_cast<int>(layout.block_map.size());
    if (static_cast<int>(layout.levels.size()) != count ||
        static_cast<int>(layout.traversal_order.size()) != count) {
      return InvalidArgument("a sparse layout of ", layout.levels.size(), " levels, expected ",
                             count);
    }
    for (int32_t size : shape.dims()) dimensions.size_.push_back(size);
    dimensions.size_.resize(count, 1);
    dimensions.block_.assign(rank, 1);
    for (int k = 0; k < count - rank; ++k) {
      const auto at = std::ranges::find(layout.traversal_order, rank + k);
      const int dim = layout.block_map[k];
      if (at == layout.traversal_order.end() || dim < 0 || dim >= rank) {
        return InvalidArgument("a sparse layout whose blocks are of no dimension");
      }
      const int32_t size = layout.levels[at - layout.traversal_order.begin()].dense_size;
      if (size < 1 || dimensions.block_[dim] != 1 || shape[dim] % size != 0) {
        return InvalidArgument("blocks of ", size, " in dimension ", dim, " of ", shape);
      }
      dimensions.block_[dim] = dimensions.size_[rank + k] = size;
      dimensions.size_[dim] /= size;
    }
    return dimensions;
  }

  int64_t size(int dimension) const { return size_[dimension]; }
  // The steps that an index of each dimension is worth, in elements of the dense tensor.
  std::vector<int64_t> Steps(const SparseLayout& layout, const Shape& shape) const {
    std::vector<int64_t> steps(size_.size());
    int64_t step = 1;
    for (int d = shape.rank() - 1; d >= 0; --d) {
      steps[d] = step * block_[d];
      const auto inside = std::ranges::find(layout.block_map, d);
      if (inside != layout.block_map.end()) {
        steps[shape.rank() + (inside - layout.block_map.begin())] = step;
      }
      step *= shape[d];
    }
    return steps;
  }

 private:
  std::vector<int64_t> size_;
  std::vector<int32_t> block_;  // of each dimension of the tensor
};

Status CheckOrder(const SparseLayout& layout) {
  std::vector<int32_t> sorted = layout.traversal_order;
  std::ranges::sort(sorted);
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<int32_t>(i)) {
      return InvalidArgument("a sparse layout that does not name each dimension once");
    }
  }
  return Status();
}

Status CheckCompressed(const SparseLevel& level, int64_t parents, int64_t size) {
  if (static_cast<int64_t>(level.segments.size()) != parents + 1 || level.segments[0] != 0 ||
      !std::ranges::is_sorted(level.segments) ||
      level.segments.back() != static_cast<int64_t>(level.indices.size())) {
    return InvalidArgument("a sparse layout whose segments do not fit its indices");
  }
  const bool inside =
      std::ranges::all_of(level.indices, [&](int32_t index) { return index >= 0 && index < size; });
  return inside ? Status() : InvalidArgument("a sparse layout with an index beyond ", size);
}

// A few bytes may say that a constant is of any size. What pruning leaves is a hundredth at the
// least, which leaves room; small constants may be as empty as they like.
Status CheckDenseBytes(const SparseLayout& layout, const TensorInfo& info, size_t stored_bytes) {
  constexpr double kSmall = 1 << 20, kMaxRatio = 256;
  size_t told = stored_bytes;
  for (const SparseLevel& level : layout.levels) {
    told += (level.segments.size() + level.indices.size()) * sizeof(int32_t);
  }
  const auto dense = static_cast<double>(info.bytes());
  if (dense <= kSmall + kMaxRatio * static_cast<double>(told)) return Status();
  return InvalidArgument("is sparse with ", told, " bytes for ", info.bytes(), ", more than ",
                         kMaxRatio, " times as many");
}

// How many values are stored.
Result<int64_t> CountValues(const SparseLayout& layout, const Dimensions& dimensions) {
  int64_t count = 1;
  for (size_t i = 0; i < layout.levels.size(); ++i) {
    const SparseLevel& level = layout.levels[i];
    const int64_t size = dimensions.size(layout.traversal_order[i]);
    if (level.compressed) {
      FUSELITE_RETURN_IF_ERROR(CheckCompressed(level, count, size));
      count = static_cast<int64_t>(level.indices.size());
    } else {
      if (level.dense_size != size) {
        return InvalidArgument("a sparse layout with a dense level of ", level.dense_size,
                               " for a dimension of ", size);
      }
      if (__builtin_mul_overflow(count, size, &count)) {
        return InvalidArgument("a sparse layout with too many values");
      }
    }
  }
  return count;
}

// Writes the values below one element of the level above: the `parent`-th of it.
class Writer {
 public:
  Writer(const SparseLayout& layout, std::vector<int64_t> steps, size_t element_bytes,
         const std::byte* from, std::byte* to)
      : layout_(layout),
        steps_(std::move(steps)),
        element_bytes_(element_bytes),
        from_(from),
        to_(to) {}

  void Write(size_t depth, int64_t parent, int64_t offset) const {
    if (depth == layout_.levels.size()) {
      std::memcpy(to_ + static_cast<size_t>(offset) * element_bytes_,
                  from_ + static_cast<size_t>(parent) * element_bytes_, element_bytes_);
      return;
    }
    const SparseLevel& level = layout_.levels[depth];
    const int64_t step = steps_[layout_.traversal_order[depth]];
    if (!level.compressed) {
      for (int64_t i = 0; i < level.dense_size; ++i) {
        Write(depth + 1, parent * level.dense_size + i, offset + i * step);
      }
      return;
    }
    for (int32_t i = level.segments[parent]; i < level.segments[parent + 1]; ++i) {
      Write(depth + 1, i, offset + level.indices[i] * step);
    }
  }

 private:
  const SparseLayout& layout_;
  const std::vector<int64_t> steps_;
  const size_t element_bytes_;
  const std::byte* const from_;
  std::byte* const to_;
};

// Tells layouts apart.
std::string KeyOf(const SparseLayout& layout, const TensorInfo& info) {
  Hash128 hash;
  const auto add = [&](const std::vector<int32_t>& values) {
    const Hash128 more = HashBytes(values.data(), values.size() * sizeof(int32_t), hash.low);
    hash = {more.low + values.size(), hash.high ^ more.high};
  };
  add(layout.traversal_order);
  add(layout.block_map);
  for (const SparseLevel& level : layout.levels) {
    add({level.compressed, level.dense_size});
    add(level.segments);
    add(level.indices);
  }
  return "dense of sparse " + std::string(DataTypeName(info.type)) + info.shape.ToString() + " " +
         std::to_string(hash.low) + "," + std::to_string(hash.high);
}

}  // namespace

Result<PackedWeights> Unpack(const SparseLayout& layout, const TensorInfo& info,
                             std::span<const std::byte> stored, PackedStore& store) {
  if (BitWidth(info.type) < 8) return Unsupported("is sparse and ", DataTypeName(info.type));
  const size_t element_bytes = static_cast<size_t>(BitWidth(info.type)) / 8;
  FUSELITE_ASSIGN_OR_RETURN(const Dimensions dimensions, Dimensions::Of(layout, info.shape));
  FUSELITE_RETURN_IF_ERROR(CheckOrder(layout));
  FUSELITE_ASSIGN_OR_RETURN(const int64_t values, CountValues(layout, dimensions));
  if (values > info.elements() || static_cast<size_t>(values) * element_bytes > stored.size()) {
    return InvalidArgument("is sparse with ", stored.size(), " bytes of data for ", values,
                           " values");
  }
  FUSELITE_RETURN_IF_ERROR(CheckDenseBytes(layout, info, stored.size()));
  PackRequest request;
  request.source = stored.data();
  request.source_bytes = stored.size();
  request.layout = KeyOf(layout, info);
  request.bytes = std::max<size_t>(info.bytes(), 1);
  return store.GetOrPack(request, [&](std::byte* to) {
    std::memset(to, 0, request.bytes);
    // Without values there may be any number of rows without elements.
    if (values == 0) return;
    Writer(layout, dimensions.Steps(layout, info.shape), element_bytes, stored.data(), to)
        .Write(0, 0, 0);
  });
}

}  // namespace fuselite::kernels
