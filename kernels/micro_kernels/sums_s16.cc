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
  const int64_t used = channels.last - channels.first;
  auto* const bias = reinterpret_cast<int32_t*>(to);
  auto* packed = reinterpret_cast<int16_t*>(bias + width);
  GemmS16Source source{.type = operands_.weights,
                       .data = right.values,
                       .first = 0,
                       .k_stride = right.k_step,
                       .n_stride = right.n_step,
                       .offset = -operands_.right_zero_point,
                       .depth = 0,
                       .columns = 0};
  std::fill_n(bias, width, 0);
  if (operands_.biased && !operands_.wide) {
    std::copy_n(static_cast<const int32_t*>(right.bias) + channels.first, used, bias);
  }
  for (int64_t plane = 0; plane < planes(); ++plane) {
    if (planes() == 2) source.bytes = plane == 0 ? Bytes::kLow : Bytes::kHigh;
    for (int first = 0; first < width;) {
      const int vectors = (width - first) / gemm_.lanes();
      const int panel = NextTileVectors(GemmS16::kMostRows, vectors) * gemm_.lanes();
      source.first = (channels.first + first) * right.n_step;
      source.columns = used - first;
      PackVectors(source, panel, packed);
      if (!operands_.wide) TakeZeroPoint(packed, panel, bias + first);
      packed += 2 * pairs_ * panel;
      first += panel;
    }
  }
}

void SumsS16::PackVectors(GemmS16Source source, int panel, int16_t* to) const {
  for (int64_t outer = 0; outer < depth_.outer; ++outer) {
    for (const DepthRuns::Run& run : depth_.runs) {
      source.depth = run.length;
      PackPanelsS16(source, panel, 0, 1, to);
      source.first += run.length * source.k_stride;
      to += (run.length + 1) / 2 * 2 * panel;
    }
  }
}

// The left side's zero point is taken off every sum here. Wraps around, as the sums do.
void SumsS16::TakeZeroPoint(const int16_t* weights, int panel, int32_t* bias) const {
  if (operands_.left_zero_point == 0) return;
  const auto zero_point = static_cast<uint32_t>(operands_.left_zero_point);
  for (int64_t k = 0; k < pairs_; ++k, weights += int64_t{2} * panel) {
    for (int n = 0; n < panel; ++n) {
      const auto both = static_cast<uint32_t>(int32_t{weights[2 * n]} + weights[2 * n + 1]);
      bias[n] = static_cast<int32_t>(static_cast<uint32_t>(bias[n]) - zero_point * both);
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

void SumsS16::SumPieces(const Steps& tile, const std::vector<DepthPiece>& pieces,
                        const std::byte* left, const int32_t* bias, const int16_t* weights,
                        int64_t pairs, int32_t* sums, int64_t pitch) const {
  for (const Steps::Part& part : tile.all_parts()) {
    const int64_t step = int64_t{2} * std::min(part.vectors, 2) * gemm_.lanes();
    part.function({.a = reinterpret_cast<const int16_t*>(left),
                   .rows = left_.rows(),
                   .pieces = pieces.data(),
                   .piece_count = static_cast<int64_t>(pieces.size()),
                   .b = weights + 2 * part.first * pairs_ + pairs * step,
                   .step = step,
                   .pair_step = int64_t{4} * gemm_.lanes() * pairs_,
                   .bias = bias + part.first,
                   .c = sums + part.first,
                   .c_pitch = pitch,
                   .columns = part.columns});
  }
}

void SumsS16::Sum(const Steps& tile, const std::byte* left, const std::byte* panel, int32_t* sums,
                  int64_t pitch) const {
  const auto* const bias = reinterpret_cast<const int32_t*>(panel);
  const auto* const weights = reinterpret_cast<const int16_t*>(bias + tile.width);
  SumPieces(tile, left_.pieces(), left, bias, weights, 0, sums, pitch);
}

void SumsS16::SumWide(const Steps& tile, const std::byte* left, const std::byte* panel,
                      int32_t* scratch, int64_t* totals) const {
  const auto* const bias = reinterpret_cast<const int32_t*>(panel);  // zeros
  const auto* weights = reinterpret_cast<const int16_t*>(bias + tile.width);
  bool first = true;
  for (int plane = 0; plane < planes(); ++plane, weights += 2 * pairs_ * tile.width) {
    for (const Chunk& chunk : chunks_) {
      SumPieces(tile, chunk.pieces, left, bias, weights, chunk.pairs, scratch, tile.width);
      for (int64_t r = 0; r < tile.rows; ++r) {
        rows_->add(scratch + r * tile.width, tile.columns, 8 * plane, first,
                   totals + r * tile.width);
      }
      first = false;
    }
  }
  if (first) std::fill_n(totals, tile.rows * tile.width, int64_t{0});
}

}  // namespace fuselite::kernels
