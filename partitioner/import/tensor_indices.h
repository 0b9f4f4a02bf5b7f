// Numbers by the host's tensors.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace fuselite::partitioner {

// An index for each of some tensors of a graph: what else is known of them lies at that index of a
// list. Graphs number their tensors from 0 on, so that finding one takes no search.
class TensorIndices {
 public:
  static constexpr int kNone = -1;

  // kNone for tensors that were not set, and for those left out, which have the number -1.
  int operator[](int tensor) const { return contains(tensor) ? indices_[Place(tensor)] : kNone; }
  bool contains(int tensor) const {
    return Place(tensor) < indices_.size() && indices_[Place(tensor)] != kNone;
  }
  // Neither is negative.
  void Set(int tensor, int index) {
    if (Place(tensor) >= indices_.size()) {
      indices_.resize(std::max(Place(tensor) + 1, 2 * indices_.size()), kNone);
    }
    indices_[Place(tensor)] = index;
  }
  // Beyond those that were set.
  int end() const { return static_cast<int>(indices_.size()); }

 private:
  static size_t Place(int tensor) { return static_cast<size_t>(tensor); }

  std::vector<int> indices_;
};

// Tensors, each at its place in the list; of one that stands there twice the last.
inline TensorIndices PlacesOf(std::span<const int> tensors) {
  TensorIndices places;
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i] >= 0) places.Set(tensors[i], static_cast<int>(i));
  }
  return places;
}

}  // namespace fuselite::partitioner
