// The values that a random graph has so far, for its next node to read.
#pragma once

#include <algorithm>
#include <vector>

#include "tests/fusion/graph_builder.h"

namespace fuselite::fusion::testing {

// Draws from the builder's numbers; the builder outlives the pool.
class ValuePool {
 public:
  explicit ValuePool(GraphBuilder& builder) : b_(builder) {}

  void Keep(ValueId v) { values_.push_back(v); }
  ValueId first() const { return values_.front(); }

  // The newest value mostly: long chains.
  ValueId Recent() {
    const int64_t back = b_.random().Chance(0.75) ? 1 : b_.random().Int(2, 4);
    return values_[std::max<int64_t>(0, static_cast<int64_t>(values_.size()) - back)];
  }
  // A value of the same shape, perhaps the same one.
  ValueId Like(ValueId v) {
    std::vector<ValueId> like;
    for (ValueId other : values_) {
      if (b_.shape(other) == b_.shape(v)) like.push_back(other);
    }
    return like[b_.random().Int(0, static_cast<int64_t>(like.size()) - 1)];
  }
  // Whatever nobody read, and a value from the middle now and then; no inputs.
  std::vector<ValueId> Ends() {
    std::vector<ValueId> ends;
    for (ValueId v : values_) {
      const bool last = b_.graph().consumers(v).empty() || b_.random().Chance(0.03);
      if (last && b_.graph().producer(v) != kNone) ends.push_back(v);
    }
    return ends;
  }

 private:
  GraphBuilder& b_;
  std::vector<ValueId> values_;
};

}  // namespace fuselite::fusion::testing
