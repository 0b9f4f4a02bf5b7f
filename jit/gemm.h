// Matrix products over lines of rows: how they are tiled, packed, split into units and run. The
// common part of convolutions, fully connected layers and batched products.
#pragma once

#include <string>

#include "jit/gemm_emitter.h"
#include "kernels/operator.h"
#include "kernels/tail/apply.h"

namespace fuselite::jit {

// out[row][n] = tail(bias[n] + sum over k of a[row][k] * w[k][n]). Rows come in lines of
// `line_rows`, within which they are `a_step` bytes apart; the output has all lines' rows one after
// the other.
struct GemmProblem {
  DepthRuns depth;
  int64_t a_step = 0, out_step = 0;  // bytes
  int64_t line_rows = 0;
  int64_t lines_per_image = 1, images = 1;
  int64_t line_step = 0, image_step = 0;  // of `a`, bytes
  int64_t channels = 0;
  FusedTail tail;
  std::string name;  // "conv"

  int64_t lines() const { return lines_per_image * images; }
  int64_t rows() const { return lines() * line_rows; }
};

// How the tiles cover a problem: each line by tiles of `rows` rows and a shorter one, the channels
// by panels of `vectors` vectors and a narrower one.
struct GemmTiling {
  int rows = 1, vectors = 1;
  int last_rows = 0;     // of the shorter tile; 0: there is none
  int last_vectors = 0;  // of the last panel, at least 1
  int last_lanes = 0;    // of the last panel's last vector
  int64_t tiles_per_line = 0, panels = 0;
};
GemmTiling ChooseTiling(const VectorIsa& isa, int64_t line_rows, int64_t depth, int64_t channels);

// One operand matrix of weights in memory: element (k, n) at values[k * k_step + n * n_step].
struct WeightsView {
  const float* values = nullptr;
  int64_t k_step = 0, n_step = 0;
  const float* bias = nullptr;  // null: zeros
};

class Gemm {
 public:
  // Emits the code unless `context.judging`.
  static Result<Gemm> Build(GemmProblem problem, const kernels::BuildContext& context);

  size_t panel_bytes() const;
  int64_t panels() const { return tiling_.panels; }
  // Writes panels [begin, end) behind `packed`, panel 0's place.
  void Pack(const WeightsView& weights, float* packed, int64_t begin, int64_t end) const;
  size_t packed_bytes() const { return panel_bytes() * tiling_.panels; }
  // What decides the packed bytes, for PackRequest::layout.
  std::string layout() const;

  int64_t units() const { return blocks_ * tiling_.panels; }
  int64_t grain() const;
  std::string name() const;  // "conv f32 14x32 avx512 jit"

  // Computes units [begin, end). `a` and `out` are at row 0, which is row `first_row` of the
  // output in the eyes of the tail.
  void Run(const void* const* inputs, const std::byte* a, const std::byte* packed, std::byte* out,
           int64_t first_row, int64_t begin, int64_t end) const;

 private:
  void ChooseBlocks(int threads);
  void RunTiles(const GemmArgs& base, const void* const* inputs, int64_t line, int64_t first_tile,
                int64_t tiles, int64_t panel, int64_t first_row) const;

  GemmProblem problem_;
  VectorIsa isa_{Isa::kAvx2};
  GemmTiling tiling_;
  int64_t block_tiles_ = 1, blocks_ = 1;
  kernels::ApplyTailFunction* apply_rest_ = nullptr;  // where there is a rest of the tail
  SharedCode code_;
};

}  // namespace fuselite::jit
