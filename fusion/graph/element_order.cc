#include "fusion/graph/element_order.h"

namespace fuselite::fusion {

bool ElementOrder::TakeDimension(int64_t size, std::vector<Piece>* rest,
                                 std::vector<Piece>* dimension) {
  while (size > 1) {
    Piece& next = rest->front();
    if (size % next.size == 0) {
      size /= next.size;
      dimension->push_back(next);
      rest->erase(rest->begin());
    } else if (next.size % size == 0) {
      next.size /= size;
      dimension->push_back({size, next.stride * next.size});
      size = 1;
    } else {
      return false;
    }
  }
  return true;
}

std::optional<std::vector<std::vector<ElementOrder::Piece>>> ElementOrder::Split(
    const Shape& shape) const {
  std::vector<std::vector<Piece>> dimensions(shape.rank());
  std::vector<Piece> rest = pieces_;
  for (int d = 0; d < shape.rank(); ++d) {
    if (!TakeDimension(shape[d], &rest, &dimensions[d])) return std::nullopt;
  }
  return dimensions;
}

std::optional<ElementOrder> ElementOrder::OfTranspose(const Shape& shape,
                                                      std::span<const int32_t> permutation) {
  ElementOrder order(shape.elements());
  if (!order.Transpose(shape, permutation)) return std::nullopt;
  return order;
}

bool ElementOrder::Transpose(const Shape& shape, std::span<const int32_t> permutation) {
  const auto dimensions = Split(shape);
  if (!dimensions) return false;
  pieces_.clear();
  for (const int32_t d : permutation) {
    pieces_.insert(pieces_.end(), (*dimensions)[d].begin(), (*dimensions)[d].end());
  }
  return Merge();
}

std::optional<ElementOrder> ElementOrder::Without(const Shape& shape, int d, const Piece& piece,
                                                  int64_t left) const {
  const auto dimensions = Split(shape);
  if (!dimensions || (*dimensions)[d] != std::vector<Piece>{piece}) return std::nullopt;
  ElementOrder order(1);
  for (int other = 0; other < shape.rank(); ++other) {
    if (other == d) {
      order.pieces_.push_back({left, piece.stride});
      continue;
    }
    for (const Piece& kept : (*dimensions)[other]) {
      const bool outside = kept.stride > piece.stride;
      order.pieces_.push_back({kept.size, outside ? kept.stride / piece.size * left : kept.stride});
    }
  }
  order.Merge();  // to no more pieces than there were
  return order;
}

bool ElementOrder::Merge() {
  std::vector<Piece> merged;
  for (const Piece& piece : pieces_) {
    if (piece.size == 1) continue;
    if (!merged.empty() && merged.back().stride == piece.size * piece.stride) {
      merged.back() = {merged.back().size * piece.size, piece.stride};
    } else {
      merged.push_back(piece);
    }
  }
  pieces_ = std::move(merged);
  return pieces_.size() <= kMostPieces;
}

}  // namespace fuselite::fusion
