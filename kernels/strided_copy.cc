#include "kernels/strided_copy.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace fuselite::kernels {
namespace {

// A loop is split into pieces of about this size, so that threads can share a large one.
constexpr int64_t kPieceBytes = 16 * 1024;

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

CopyPlan::CopyPlan(const StridedCopy& copy, const CopyLoops& loops) : loops_(loops), copy_(copy) {
  bytes_ = copy.elements() * copy.element_bytes;
  if (bytes_ == 0) return;
  Merge(&copy_);
  ChooseLoop();
  units_ = pieces_;
  for (int i = 0; i < copy_.rank; ++i) units_ *= copy_.dims[i].size;
}

void CopyPlan::ChooseLoop() {
  run_bytes_ = copy_.element_bytes;
  if (copy_.rank > 0) {
    const CopyDim& last = copy_.dims[copy_.rank - 1];
    if (last.in_stride == run_bytes_ && last.out_stride == run_bytes_) {
      run_bytes_ *= last.size;
      --copy_.rank;
    }
  }
  if (copy_.rank == 0 || run_bytes_ >= 4 * kPieceBytes) {
    return Split({run_bytes_, 1, 1}, 4 * kPieceBytes);
  }
  TakeInner();
  loop_ = Loop::kRows;
  // A run as wide as a register is moved as one element.
  if (IsElementWidth(run_bytes_)) {
    copy_.element_bytes = static_cast<int>(run_bytes_);
    loop_ = Loop::kElements;
    if (inner_.out_stride == run_bytes_) {
      if (inner_.in_stride == 0) return TakeRows(Loop::kFill);
      if (inner_.in_stride == -run_bytes_) return TakeRows(Loop::kReverse);
      if (TakeAcross()) loop_ = Loop::kTranspose;
    }
  }
  if (loop_ != Loop::kTranspose) {
    PreferLonger();
    return Split(inner_, kPieceBytes / run_bytes_);
  }
  // The longer side is split, in whole lines.
  const auto& [shorter, longer] =
      std::minmax(across_, inner_, [](const auto& a, const auto& b) { return a.size < b.size; });
  split_across_ = &longer == &across_;
  const int64_t line = kLineBytes / run_bytes_;
  Split(longer, line * std::max<int64_t>(1, kPieceBytes / (kLineBytes * shorter.size)));
}

void CopyPlan::PreferLonger() {
  constexpr int64_t kShort = 8;
  for (int d = copy_.rank - 1; d >= 0 && inner_.size < kShort; --d) {
    if (copy_.dims[d].size >= kShort) std::swap(inner_, copy_.dims[d]);
  }
}

void CopyPlan::TakeRows(Loop loop) {
  loop_ = loop;
  if (inner_.size * run_bytes_ >= kPieceBytes) return Split(inner_, kPieceBytes / run_bytes_);
  if (copy_.rank > 0) across_ = copy_.dims[--copy_.rank];
  split_across_ = true;
  Split(across_, kPieceBytes / (inner_.size * run_bytes_));
}

bool CopyPlan::TakeAcross() {
  for (int i = 0; i < copy_.rank; ++i) {
    if (copy_.dims[i].in_stride != run_bytes_) continue;
    across_ = copy_.dims[i];
    std::copy(&copy_.dims[i + 1], &copy_.dims[copy_.rank], &copy_.dims[i]);
    --copy_.rank;
    return true;
  }
  return false;
}

void CopyPlan::Split(const CopyDim& dim, int64_t step) {
  split_ = dim;
  step_ = std::max<int64_t>(1, step);
  pieces_ = std::max<int64_t>(1, dim.size / step_);
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

void CopyPlan::RunPiece(const std::byte* in, std::byte* out, int64_t piece) const {
  const int64_t start = piece * step_;
  const CopyDim part = {piece + 1 < pieces_ ? step_ : split_.size - start, split_.in_stride,
                        split_.out_stride};
  in += start * split_.in_stride;
  out += start * split_.out_stride;
  switch (loop_) {
    case Loop::kRun: loops_.rows(in, out, {1, 0, 0}, part.size); break;
    case Loop::kRows: loops_.rows(in, out, part, run_bytes_); break;
    case Loop::kFill:
      loops_.fill(in, out, split_across_ ? part : across_, split_across_ ? inner_.size : part.size,
                  copy_.element_bytes);
      break;
    case Loop::kReverse:
      loops_.reverse(in, out, split_across_ ? part : across_,
                     split_across_ ? inner_.size : part.size, copy_.element_bytes);
      break;
    case Loop::kElements: loops_.elements(in, out, part, copy_.element_bytes); break;
    case Loop::kTranspose:
      loops_.transpose(in, out, split_across_ ? part : across_, split_across_ ? inner_ : part,
                       copy_.element_bytes);
      break;
  }
}

void CopyPlan::Run(const void* in, void* out, int64_t begin, int64_t end) const {
  const auto* from = static_cast<const std::byte*>(in);
  auto* to = static_cast<std::byte*>(out);
  Cursor cursor(copy_, begin / pieces_);
  int64_t piece = begin % pieces_;
  for (int64_t unit = begin; unit < end; ++unit) {
    RunPiece(from + cursor.in, to + cursor.out, piece);
    if (++piece == pieces_) {
      piece = 0;
      cursor.Next();
    }
  }
}

}  // namespace fuselite::kernels
