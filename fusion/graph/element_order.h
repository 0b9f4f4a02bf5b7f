// In which order RESHAPE and TRANSPOSE, any number of them, put a value's elements.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/tensor.h"

namespace fuselite::fusion {

class ElementOrder {
 public:
  // A dimension of the result: `size` elements that stand `stride` apart in the source.
  struct Piece {
    int64_t size, stride;
    friend bool operator==(const Piece&, const Piece&) = default;
  };

  // An order has no more pieces than a TRANSPOSE, which brings it about, has dimensions.
  static constexpr size_t kMostPieces = 8;

  // The order as it is.
  explicit ElementOrder(int64_t elements) { pieces_.push_back({elements, 1}); }

  // That of a TRANSPOSE of a value of `shape`, which has elements; nullopt where it has too many
  // pieces.
  static std::optional<ElementOrder> OfTranspose(const Shape& shape,
                                                 std::span<const int32_t> permutation);

  // Transposes what has been reshaped to `shape`; entries of `permutation` in [0, rank). False,
  // and the order is undefined, where the shape cuts through what was moved before, and where the
  // result has too many pieces.
  bool Transpose(const Shape& shape, std::span<const int32_t> permutation);

  // The pieces, cut where `shape`, of as many elements, has its dimensions; nullopt where that cuts
  // through one.
  std::optional<std::vector<std::vector<Piece>>> Split(const Shape& shape) const;

  // The order of a source of whose dimension `piece` only `left` are there, in a result of which as
  // many are left of dimension `d`; nullopt where that dimension of `shape` is not that one of the
  // source.
  std::optional<ElementOrder> Without(const Shape& shape, int d, const Piece& piece,
                                      int64_t left = 1) const;

  // The result's dimensions, outermost first: as few as there can be, none of size 1.
  const std::vector<Piece>& pieces() const { return pieces_; }
  bool unchanged() const { return pieces_.size() <= 1; }

 private:
  // Takes the outermost pieces that make a dimension of `size` out of `rest`.
  static bool TakeDimension(int64_t size, std::vector<Piece>* rest, std::vector<Piece>* dimension);
  // Whether there are not too many pieces once they are merged.
  bool Merge();

  std::vector<Piece> pieces_;
};

}  // namespace fuselite::fusion
