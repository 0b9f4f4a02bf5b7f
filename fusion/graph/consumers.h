// Who reads a value.
#pragma once

#include <algorithm>
#include <cstddef>

#include "runtime/support/short_list.h"

namespace fuselite::fusion {

// Nodes in the order of their ids, and how many of each one's inputs read the value.
class Consumers {
 public:
  struct Reader {
    int node = 0, inputs = 0;
  };
  const Reader* begin() const { return readers_.begin(); }
  const Reader* end() const { return readers_.end(); }
  size_t size() const { return readers_.size(); }
  bool empty() const { return readers_.empty(); }

  void Add(int node, int inputs) {
    Reader* const at = PlaceOf(node);
    if (at != readers_.end() && at->node == node) {
      at->inputs += inputs;
    } else {
      readers_.insert(at, {node, inputs});
    }
  }
  void Remove(int node) {
    Reader* const at = PlaceOf(node);
    if (at != readers_.end() && at->node == node) readers_.erase(at, at + 1);
  }
  void Clear() { readers_.clear(); }

 private:
  Reader* PlaceOf(int node) {
    return std::lower_bound(readers_.begin(), readers_.end(), node,
                            [](const Reader& reader, int id) { return reader.node < id; });
  }

  ShortList<Reader, 2> readers_;
};

}  // namespace fuselite::fusion
