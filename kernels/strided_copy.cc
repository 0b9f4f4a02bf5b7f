#include "kernels/strided_copy.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace fuselite::kernels {
namespace {

// A run is split into pieces of this size, so that threads can share a large one.
constexpr int64_t kPieceBytes = 64 * 1024;
// Rows of the transposed tile: one cache line of 4-byte elements in either direction.
constexpr int64_t kTile = 16;

struct Wide {
  uint64_t half[2];
};

template <class T>
void CopyElements(const std::byte* in, std::byte* out, StridedCopy::Dim dim) {
  for (int64_t i = 0; i < dim.size; ++i) {
    T value;
    std::memcpy(&value, in + i * dim.in_stride, sizeof value);
    std::memcpy(out + i * dim.out_stride, &value, sizeof value);
  }
}

template <class T>
void FillElements(const std::byte* in, std::byte* out, int64_t size) {
  T value;
  std::memcpy(&value, in, sizeof value);
  for (int64_t i = 0; i < size; ++i) std::memcpy(out + i * sizeof value, &value, sizeof value);
}

template <class T>
void TransposeTile(const std::byte* in, std::byte* out, StridedCopy::Dim across,
                   StridedCopy::Dim inner) {
  for (int64_t y = 0; y < inner.size; y += kTile) {
    const int64_t count = std::min(kTile, inner.size - y);
    for (int64_t x = 0; x < across.size; ++x) {
      CopyElements<T>(in + x * across.in_stride + y * inner.in_stride,
                      out + x * across.out_stride + y * inner.out_stride,
                      {count, inner.in_stride, inner.out_stride});
    }
  }
}

// Calls `function` with a value of the element's width.
template <class Function>
void WithElement(int bytes, Function function) {
  switch (bytes) {
    case 1: function(uint8_t{}); break;
    case 2: function(uint16_t{}); break;
    case 4: function(uint32_t{}); break;
    case 8: function(uint64_t{}); break;
    default: function(Wide{}); break;
  }
}

// Drops dimensions of size one, sorts by the distance in the output, merges what is contiguous on
// both sides.
void Merge(StridedCopy* copy) {
  auto* const begin = copy->dims.begin();
  auto* end = std::remove_if(begin, begin + copy->rank, [](const auto& d) { return d.size == 1; });
  std::stable_sort(begin, end, [](const auto& a, const auto& b) {
    return std::abs(a.out_stride) > std::abs(b.out_stride);
  });
  int rank = 0;
  for (auto* d = begin; d != end; ++d) {
    StridedCopy::Dim* outer = rank ? &copy->dims[rank - 1] : nullptr;
    if (outer && outer->in_stride == d->in_stride * d->size &&
        outer->out_stride == d->out_stride * d->size) {
      *outer = {outer->size * d->size, d->in_stride, d->out_stride};
    } else {
      copy->dims[rank++] = *d;
    }
  }
  copy->rank = rank;
}

bool IsElementWidth(int64_t bytes) {
  return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16;
}

}  // namespace

CopyPlan::CopyPlan(const StridedCopy& copy) : copy_(copy) {
  bytes_ = copy.elements() * copy.element_bytes;
  if (bytes_ == 0) return;
  Merge(&copy_);
  run_bytes_ = copy_.element_bytes;
  const auto contiguous = [](const StridedCopy::Dim& d, int64_t bytes) {
    return d.in_stride == bytes && d.out_stride == bytes;
  };
  if (copy_.rank > 0 && contiguous(copy_.dims[copy_.rank - 1], run_bytes_)) {
    run_bytes_ *= copy_.dims[--copy_.rank].size;
  }
  // A run as wide as a register is moved as one element.
  if (copy_.rank > 0 && IsElementWidth(run_bytes_)) {
    copy_.element_bytes = static_cast<int>(run_bytes_);
    inner_ = copy_.dims[--copy_.rank];
    const bool dense = inner_.out_stride == run_bytes_;
    loop_ = dense && inner_.in_stride == 0 ? Loop::kFill : Loop::kElements;
    if (dense && inner_.in_stride != 0) {
      for (int i = 0; i < copy_.rank; ++i) {
        if (copy_.dims[i].in_stride != run_bytes_) continue;
        loop_ = Loop::kTranspose;
        across_ = copy_.dims[i];
        std::copy(&copy_.dims[i + 1], &copy_.dims[copy_.rank], &copy_.dims[i]);
        --copy_.rank;
        break;
      }
    }
  }
  if (loop_ == Loop::kRuns) pieces_ = (run_bytes_ + kPieceBytes - 1) / kPieceBytes;
  if (loop_ == Loop::kTranspose) pieces_ = (across_.size + kTile - 1) / kTile;
  units_ = pieces_;
  for (int i = 0; i < copy_.rank; ++i) units_ *= copy_.dims[i].size;
}

struct CopyPlan::Cursor {
  const StridedCopy& copy;
  std::array<int64_t, StridedCopy::kMaxRank> index{};
  int64_t in, out;

  Cursor(const StridedCopy& c, int64_t position) : copy(c), in(c.in_offset), out(c.out_offset) {
    for (int d = copy.rank - 1; d >= 0; --d) {
      index[d] = position % copy.dims[d].size;
      position /= copy.dims[d].size;
      in += index[d] * copy.dims[d].in_stride;
      out += index[d] * copy.dims[d].out_stride;
    }
  }

  void Next() {
    for (int d = copy.rank - 1; d >= 0; --d) {
      const StridedCopy::Dim& dim = copy.dims[d];
      in += dim.in_stride;
      out += dim.out_stride;
      if (++index[d] < dim.size) return;
      index[d] = 0;
      in -= dim.in_stride * dim.size;
      out -= dim.out_stride * dim.size;
    }
  }
};

void CopyPlan::Run(const void* in, void* out, int64_t begin, int64_t end) const {
  const auto* from = static_cast<const std::byte*>(in);
  auto* to = static_cast<std::byte*>(out);
  Cursor cursor(copy_, begin / pieces_);
  int64_t piece = begin % pieces_;
  for (int64_t unit = begin; unit < end; ++unit) {
    const std::byte* source = from + cursor.in;
    std::byte* target = to + cursor.out;
    switch (loop_) {
      case Loop::kRuns: {
        const int64_t start = piece * kPieceBytes;
        std::memcpy(target + start, source + start, std::min(kPieceBytes, run_bytes_ - start));
        break;
      }
      case Loop::kFill:
        WithElement(copy_.element_bytes, [&](auto element) {
          FillElements<decltype(element)>(source, target, inner_.size);
        });
        break;
      case Loop::kElements:
        WithElement(copy_.element_bytes,
                    [&](auto element) { CopyElements<decltype(element)>(source, target, inner_); });
        break;
      case Loop::kTranspose: {
        const int64_t start = piece * kTile;
        const StridedCopy::Dim rows = {std::min(kTile, across_.size - start), across_.in_stride,
                                       across_.out_stride};
        WithElement(copy_.element_bytes, [&](auto element) {
          TransposeTile<decltype(element)>(source + start * rows.in_stride,
                                           target + start * rows.out_stride, rows, inner_);
        });
        break;
      }
    }
    if (++piece == pieces_) {
      piece = 0;
      cursor.Next();
    }
  }
}

}  // namespace fuselite::kernels
