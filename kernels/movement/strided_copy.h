// The engine of data movement: copies of N-dimensional boxes between memory with any strides.
//
// Transposing, slicing, padding, concatenating, tiling, reversing and the like are all lists of
// such copies; what differs is only how the strides are computed (kernels/movement/movement.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/movement/copy_loops.h"
#include "runtime/support/short_list.h"
#include "runtime/tensor.h"

namespace fuselite::kernels {

// Does, for every index i of the box, out[out_offset + i . out_strides] = in[in_offset + i .
// in_strides], in bytes. An in_stride may be 0 (broadcast) or negative (reversal), an out_stride
// negative; the output's elements are distinct. The order of the dimensions is free.
struct StridedCopy {
  // TILE takes two dimensions for each of a tensor's.
  static constexpr int kMaxRank = 2 * Shape::kMaxRank;
  using Dim = CopyDim;

  int element_bytes = 1;  // 1, 2, 4, 8 or 16
  int64_t in_offset = 0;
  int64_t out_offset = 0;
  ShortList<Dim, 6> dims{};  // at most kMaxRank

  int rank() const { return static_cast<int>(dims.size()); }
  void Add(int64_t size, int64_t in_stride, int64_t out_stride) {
    dims.push_back({size, in_stride, out_stride});
  }
  int64_t elements() const {
    int64_t count = 1;
    for (const Dim& dim : dims) count *= dim.size;
    return count;
  }
};

// A copy prepared to be run: neighbouring dimensions merged, the innermost contiguous run found,
// the loop chosen. Units are independent pieces of similar size.
class CopyPlan {
 public:
  explicit CopyPlan(const StridedCopy& copy, const CopyLoops& loops = ScalarCopyLoops());

  int64_t units() const { return units_; }
  // What its time is counted in: words of four bytes, or the elements that are moved one by one.
  int64_t moves() const;
  // Units [begin, end). The pointers are the tensors' starts and need no alignment.
  void Run(const void* in, void* out, int64_t begin, int64_t end) const;

 private:
  enum class Loop : uint8_t {
    kRun,        // one run, of which a unit is a piece
    kRows,       // a run at each index of the inner dimension
    kFill,       // rows of one element each, repeated along the contiguous inner dimension
    kReverse,    // rows of the inner dimension, read from its last element down
    kElements,   // the inner dimension element by element
    kTranspose,  // a matrix of the inner dimension and of the one that is contiguous in the input
  };

  // The outer dimensions' index of a unit, and the bytes that it stands for.
  struct Cursor;

  void ChooseLoop();
  // The innermost of the outer dimensions, which is then none of them.
  CopyDim TakeLast();
  // A short inner dimension gives way to the next longer one: a loop takes long to enter.
  void PreferLonger();
  // Runs `loop` along the inner dimension, in pieces where that is long, else in many rows.
  void TakeRows(Loop loop);
  // Takes the dimension that is contiguous in the input, if there is one.
  bool TakeAcross();
  // Pieces of `step` along the dimension that is split; the last one takes what is left over.
  void Split(const CopyDim& dim, int64_t step);
  void RunPiece(const std::byte* in, std::byte* out, int64_t piece) const;

  CopyLoops loops_;
  StridedCopy copy_;  // the outer dimensions only, outermost first
  CopyDim inner_{1, 0, 0};
  CopyDim across_{1, 0, 0};  // kTranspose, kReverse, kFill
  Loop loop_ = Loop::kRun;
  int64_t run_bytes_ = 0;
  CopyDim split_{1, 0, 0};  // the dimension that a loop's pieces divide
  bool split_across_ = false;
  int64_t step_ = 1;
  int64_t pieces_ = 1;  // units for each outer index
  int64_t units_ = 0;
  int64_t bytes_ = 0;
};

}  // namespace fuselite::kernels
