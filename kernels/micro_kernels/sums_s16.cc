#include "kernels/micro_kernels/sums_s16.h"

namespace fuselite::kernels {

SumsS16::SumsS16(const GemmS16& gemm, const OperandsS16& operands, const DepthRuns& depth,
                 const ProductProblem& problem, Isa isa)
    : gemm_(gemm),
      rows_(FindWideRowFunctions(isa)),
      operands_(operands),
      depth_(depth),
      left_(depth, problem, 2, sizeof(int16_t)) {
  for (const DepthPiece& piece : left_.pieces()) pairs_ += piece.terms;
  if (!operands.wide) return;
  const int64_t exact = ExactTerms(operands.stored_weights, operands.right_zero_point);
  narrow_ = planes() == 1 && 2 * pairs_ <= exact;
  if (!narrow_) CutIntoChunks(exact / 2);
}

void SumsS16::CutIntoChunks(int64_t most_pairs) {
  int64_t before = 0, room = 0;
  for (const DepthPiece& piece : left_.pieces()) {
    for (int64_t first = 0; first < piece.terms;) {
      if (room == 0) {
        chunks_.push_back({.pieces = {}, .pairs = before});
        room = most_pairs;
      }
      const int64_t pairs = std::min(room, piece.terms - first);
      chunks_.back().pieces.push_back(
          {.offset = piece.offset + first * static_cast<int64_t>(sizeof(int32_t)), .terms = pairs});
      first += pairs;
      before += pairs;
      room -= pairs;
    }
  }
}

void SumsS16::PackPanel(const RightMatrix& right, const PanelChannels& channels,
                        std::byte* to) const {
  using Bytes = GemmS16Source::Bytes;
  const int width = channels.vectors * gemm_.lanes();
  auto* const bias = reinterpret_cast<int32_t*>(to);
  auto* packed = reinterpret_cast<int16_t*>(bias + width);
  GemmS16Source source{.type = operands_.weights,
                       .data = right.values,
                       .first = 0,
                       .k_stride = right.k_step,
                       .n_stride = right.n_step,
                       .offset = -operands_.right_zero_point,
                       .depth = 0,
                       .columns = channels.last - channels.first};
  for (int64_t plane = 0; plane < planes(); ++plane) {
    if (planes() == 2) source.bytes = plane == 0 ? Bytes::kLow : Bytes::kHigh;
    source.first = channels.first * right.n_step;
    for (int64_t outer = 0; outer < depth_.outer; ++outer) {
      for (const DepthRuns::Run& run : depth_.runs) {
        source.depth = run.length;
        PackPanelsS16(source, width, 0, 1, packed);
        source.first += run.length * right.k_step;
        packed += (run.length + 1) / 2 * 2 * width;
      }
    }
  }
  std::fill_n(bias, width, 0);
  if (!operands_.wide) AddBias(right, channels, bias);
}

// The left side's zero point is taken off every sum here. Wraps around, as the sums do.
void SumsS16::AddBias(const RightMatrix& right, const PanelChannels& channels,
                      int32_t* bias) const {
  const int64_t columns = channels.last - channels.first;
  const int64_t width = int64_t{channels.vectors} * gemm_.lanes();
  if (operands_.biased) {
    std::copy_n(static_cast<const int32_t*>(right.bias) + channels.first, columns, bias);
  }
  if (operands_.left_zero_point == 0) return;
  const auto zero_point = static_cast<uint32_t>(operands_.left_zero_point);
  const auto* weights = reinterpret_cast<const int16_t*>(bias + width);
  for (int64_t k = 0; k < pairs_; ++k, weights += 2 * width) {
    for (int64_t n = 0; n < columns; ++n) {
      const int32_t both = int32_t{weights[2 * n]} + weights[2 * n + 1];
      bias[n] = static_cast<int32_t>(static_cast<uint32_t>(bias[n]) -
                                     zero_point * static_cast<uint32_t>(both));
    }
  }
}

std::string SumsS16::layout() const {
  std::string layout = internal::Join("s16 highway ", DataTypeName(operands_.weights), " z",
                                      operands_.left_zero_point, '.', operands_.right_zero_point,
                                      operands_.biased ? " bias" : "", " k", depth_.outer, '*');
  for (const DepthRuns::Run& run : depth_.runs) layout += internal::Join(run.length, ',');
  return layout;
}

void SumsS16::Sum(const TileSteps& tile, const std::byte* left, const std::byte* panel,
                  int32_t* sums, int64_t pitch) const {
  const auto* const bias = reinterpret_cast<const int32_t*>(panel);
  gemm_.tile(tile.rows, tile.vectors)({.a = reinterpret_cast<const int16_t*>(left),
                                       .rows = left_.rows(),
                                       .pieces = left_.pieces().data(),
                                       .piece_count = static_cast<int64_t>(left_.pieces().size()),
                                       .b = reinterpret_cast<const int16_t*>(bias + tile.width),
                                       .step = 2 * tile.width,
                                       .bias = bias,
                                       .c = sums,
                                       .c_pitch = pitch,
                                       .columns = tile.columns});
}

void SumsS16::SumWide(const TileSteps& tile, const std::byte* left, const std::byte* panel,
                      int32_t* scratch, int64_t* totals) const {
  TileS16Function* const function = gemm_.tile(tile.rows, tile.vectors);
  const auto* const bias = reinterpret_cast<const int32_t*>(panel);  // zeros
  const auto* const weights = reinterpret_cast<const int16_t*>(bias + tile.width);
  bool first = true;
  for (int64_t plane = 0; plane < planes(); ++plane) {
    for (const Chunk& chunk : chunks_) {
      function({.a = reinterpret_cast<const int16_t*>(left),
                .rows = left_.rows(),
                .pieces = chunk.pieces.data(),
                .piece_count = static_cast<int64_t>(chunk.pieces.size()),
                .b = weights + (plane * pairs_ + chunk.pairs) * 2 * tile.width,
                .step = 2 * tile.width,
                .bias = bias,
                .c = scratch,
                .c_pitch = tile.width,
                .columns = tile.columns});
      for (int64_t r = 0; r < tile.rows; ++r) {
        rows_->add(scratch + r * tile.width, tile.columns, static_cast<int>(8 * plane), first,
                   totals + r * tile.width);
      }
      first = false;
    }
  }
  if (first) std::fill_n(totals, tile.rows * tile.width, int64_t{0});
}

}  // namespace fuselite::kernels
