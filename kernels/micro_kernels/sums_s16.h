// Register tiles of integer products, and their sums.
#pragma once

#include <string>
#include <vector>

#include "kernels/gemm/gemm_s16.h"
#include "kernels/gemm/wide_row.h"
#include "kernels/micro_kernels/left_rows.h"

namespace fuselite::kernels {

// The operands of a product's sums: sum[row][n] = bias[n] + sum over k of (left[row][k] - left's
// zero point) * (right[k][n] - right's zero point), or the products alone.
struct OperandsS16 {
  // The weights' type as ReadableConstant gives them, and the type to which they were quantized.
  DataType weights = DataType::kInt8, stored_weights = DataType::kInt8;
  int32_t left_zero_point = 0, right_zero_point = 0;
  bool wide = false;    // the sums need 64 bits where there are many terms; no bias is added
  bool biased = false;  // by int32 values
};

// Panels hold the bias of all channels, then for two vectors of channels at a time the weights of
// each pair of terms. Pairs end where a piece of the depth does. 16-bit weights are two planes of
// bytes, the low ones first.
class SumsS16 {
 public:
  SumsS16(const GemmS16& gemm, const OperandsS16& operands, const DepthRuns& depth,
          const ProductProblem& problem, Isa isa);

  const GemmS16& gemm() const { return gemm_; }
  const LeftRows& left() const { return left_; }
  int64_t pairs() const { return pairs_; }
  int64_t planes() const { return operands_.weights == DataType::kInt16 ? 2 : 1; }
  size_t panel_bytes(int vectors) const {
    return static_cast<size_t>(vectors * gemm_.lanes() * (pairs_ * planes() + 1) *
                               static_cast<int64_t>(sizeof(int32_t)));
  }
  void PackPanel(const RightMatrix& right, const PanelChannels& channels, std::byte* to) const;
  std::string layout() const;

  // Whether sums of 32 bits hold all that is summed.
  bool narrow() const { return narrow_; }
  using Steps = TileSteps<TileS16Function>;
  // The sums of a tile. Rows of `sums` are `pitch` apart. Precondition: narrow().
  void Sum(const Steps& tile, const std::byte* left, const std::byte* panel, int32_t* sums,
           int64_t pitch) const;
  // As Sum(), of 64 bits. Rows of `totals` are as long as `tile.width`, as are those of `scratch`.
  void SumWide(const Steps& tile, const std::byte* left, const std::byte* panel, int32_t* scratch,
               int64_t* totals) const;

 private:
  // Pieces whose sums fit into 32 bits, behind `pairs` of others.
  struct Chunk {
    std::vector<DepthPiece> pieces;
    int64_t pairs = 0;
  };
  void CutIntoChunks(int64_t most_pairs);
  // Writes a register tile's weights, of `source` but for its depth and first term.
  void PackVectors(GemmS16Source source, int panel, int16_t* to) const;
  // A tile of sums from these pieces, of which the first is `pairs` behind the start of `weights`.
  void SumPieces(const Steps& tile, const std::vector<DepthPiece>& pieces, const std::byte* left,
                 const int32_t* bias, const int16_t* weights, int64_t pairs, int32_t* sums,
                 int64_t pitch) const;
  void TakeZeroPoint(const int16_t* weights, int panel, int32_t* bias) const;

  const GemmS16& gemm_;
  const WideRowFunctions* rows_;
  OperandsS16 operands_;
  DepthRuns depth_;
  LeftRows left_;
  int64_t pairs_ = 0;
  bool narrow_ = true;
  std::vector<Chunk> chunks_;  // of wide sums
};

}  // namespace fuselite::kernels
