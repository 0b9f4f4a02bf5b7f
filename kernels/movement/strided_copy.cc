#include "kernels/movement/strided_copy.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

namespace fuselite::kernels {
namespace {

// A loop is split into pieces of about this size, so that threads can share a large one.
constexpr int64_t kPieceBytes = 16 * 1024;

// Drops dimensions of size one, sorts by the distance in the output, merges what is contiguous on
// both sides.
void Merge(StridedCopy* copy) {
  CopyDim* const begin = copy->dims.begin();
  CopyDim* const end =
      std::remove_if(begin, copy->dims.end(), [](const CopyDim& d) { return d.size == 1; });
  std::stable_sort(begin, end, [](const CopyDim& a, const CopyDim& b) {
    return std::abs(a.out_stride) > std::abs(b.out_stride);
  });
  CopyDim* merged = begin;
  for (const CopyDim* d = begin; d != end; ++d) {
    CopyDim* const outer = merged != begin ? merged - 1 : nullptr;
    if (outer && outer->in_stride == d->in_stride * d->size &&
        outer->out_stride == d->out_stride * d->size) {
      *outer = {outer->size * d->size, d->in_stride, d->out_stride};
    } else {
      *merged++ = *d;
    }
  }
  copy->dims.erase(merged, copy->dims.end());
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
  for (const CopyDim& dim : copy_.dims) units_ *= dim.size;
}

int64_t CopyPlan::moves() const {
  const bool one_by_one =
      loop_ == Loop::kElements || loop_ == Loop::kTranspose || loop_ == Loop::kReverse;
  return std::max(bytes_ / 4, one_by_one ? bytes_ / copy_.element_bytes : 0);
}

void CopyPlan::ChooseLoop() {
  run_bytes_ = copy_.element_bytes;
  if (!copy_.dims.empty()) {
    const CopyDim& last = copy_.dims.back();
    if (last.in_stride == run_bytes_ && last.out_stride == run_bytes_) {
      run_bytes_ *= last.size;
      copy_.dims.pop_back();
    }
  }
  if (copy_.dims.empty() || run_bytes_ >= 4 * kPieceBytes) {
    return Split({run_bytes_, 1, 1}, 4 * kPieceBytes);
  }
  inner_ = TakeLast();
  loop_ = Loop::kRows;
  constexpr int64_t kPixel = 3;  // bytes of an image's colours
  if (run_bytes_ == kPixel && inner_.out_stride == kPixel && TakeAcross()) {
    copy_.element_bytes = kPixel;
    loop_ = Loop::kTranspose;
  }
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

CopyDim CopyPlan::TakeLast() {
  const CopyDim last = copy_.dims.back();
  copy_.dims.pop_back();
  return last;
}

void CopyPlan::PreferLonger() {
  constexpr int64_t kShort = 8;
  for (size_t d = copy_.dims.size(); d-- > 0 && inner_.size < kShort;) {
    if (copy_.dims[d].size >= kShort) std::swap(inner_, copy_.dims[d]);
  }
}

void CopyPlan::TakeRows(Loop loop) {
  loop_ = loop;
  if (inner_.size * run_bytes_ >= kPieceBytes) return Split(inner_, kPieceBytes / run_bytes_);
  if (!copy_.dims.empty()) across_ = TakeLast();
  split_across_ = true;
  Split(across_, kPieceBytes / (inner_.size * run_bytes_));
}

bool CopyPlan::TakeAcross() {
  CopyDim* const dim = std::ranges::find(copy_.dims, run_bytes_, &CopyDim::in_stride);
  if (dim == copy_.dims.end()) return false;
  across_ = *dim;
  copy_.dims.erase(dim, dim + 1);
  return true;
}

void CopyPlan::Split(const CopyDim& dim, int64_t step) {
  split_ = dim;
  step_ = std::max<int64_t>(1, step);
  pieces_ = std::max<int64_t>(1, dim.size / step_);
}

struct CopyPlan::Cursor {
  const CopyDim* dims;
  int rank;
  std::array<int64_t, StridedCopy::kMaxRank> index{};
  int64_t in, out;

  Cursor(const StridedCopy& copy, int64_t position)
      : dims(copy.dims.begin()), rank(copy.rank()), in(copy.in_offset), out(copy.out_offset) {
    for (int d = rank - 1; d >= 0; --d) {
      index[d] = position % dims[d].size;
      position /= dims[d].size;
      in += index[d] * dims[d].in_stride;
      out += index[d] * dims[d].out_stride;
    }
  }

  void Next() {
    for (int d = rank - 1; d >= 0; --d) {
      const CopyDim& dim = dims[d];
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
