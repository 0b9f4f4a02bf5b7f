// Attention as converters write it of its operators.
#pragma once

#include <vector>

#include "fusion/match.h"
#include "kernels/attention/attention.h"

namespace fuselite::fusion {

// Its way up from the product with the values, which is no node of it.
class AttentionPattern : public PatternWalk {
 public:
  using PatternWalk::PatternWalk;

  struct Mask {
    ValueId value = kNone;
    float scale = 1;  // by which it is multiplied, and what it is added to
  };

  // Whether the BATCH_MATMUL `last` ends one.
  bool Match(NodeId last);

  ValueId queries = kNone, keys = kNone, values = kNone;
  ValueId weights = kNone;  // what the values are multiplied by
  std::vector<Mask> masks;  // what is added to the scores, the last one first
  Shape heads;  // of the scores where that is added: its leading dimensions are the heads'
  // Of the scale, the cap, and how keys lie.
  kernels::AttentionParams params{.scale = 1};

 private:
  ValueId WithoutHiding(ValueId value);
  bool HidesAsMaskDoes() const;
  bool MasksBySeen(ValueId mask) const;
  bool IsMaskOfSeen(ValueId mask) const;
  ValueId WithoutMasks(ValueId scores);
  bool SameHeads(ValueId value) const;
  ValueId WithoutCap(ValueId scores);
  bool TakeProduct(ValueId scores);
  bool Leads(ValueId value, int depth = 0) const;
  ValueId SameRows(ValueId value, bool scaled = false);
  ValueId Before(ValueId value, bool scaled, float* factor);

  template <class T>
  const T& ParamsOf(NodeId id) const {
    return graph_.node(id).params.as<T>();
  }

  ValueId seen_ = kNone;  // decides which weights are set to 0
  int zero_input_ = 0;    // of the SELECT_V2 that does
};

}  // namespace fuselite::fusion
