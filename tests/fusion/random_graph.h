// Random graphs of images.
#pragma once

#include <vector>

#include "tests/fusion/value_pool.h"

namespace fuselite::fusion::testing {

// Grows a graph of images: chains, diamonds, concatenations, splits, gates, paddings. Values grow
// by no more than a factor at each node, so that tolerances mean the same everywhere.
class RandomGraph {
 public:
  explicit RandomGraph(Random random) : b_(random) {
    const int channels = static_cast<int>(b_.random().Int(1, 9));
    pool_.Keep(b_.Input({Batch(), 6, 5, channels}));
    pool_.Keep(b_.Input({b_.shape(pool_.first())[0], 6, 5, channels}));
  }

  // What fused values may differ by.
  float tolerance() const { return 1e-3f; }

  const Graph& Grow(int nodes) {
    for (int i = 0; i < nodes; ++i) Add();
    for (ValueId v : pool_.Ends()) b_.Output(v);
    return b_.graph();
  }

 private:
  int Batch() { return static_cast<int>(b_.random().Int(1, 2)); }
  void Keep(ValueId v) { pool_.Keep(v); }

  void Add() {
    const ValueId x = pool_.Recent();
    switch (b_.random().Int(0, 13)) {
      case 0:
      case 1: {
        const auto channels = static_cast<int>(b_.random().Int(1, 9));
        return Keep(b_.Conv(x, channels, 1, Activation()));
      }
      case 2: return Keep(b_.Conv(x, b_.shape(x).dim(-1), 3, Activation()));
      case 3: return Keep(Shrink(b_.Depthwise(x, 3, Activation()), 0.2f));
      case 4:
      case 5: return Keep(Unary(x));
      case 6:
      case 7: return Keep(Binary(x, pool_.Like(x)));
      case 8: return Keep(Binary(x, Operand(x)));
      case 9: return Keep(b_.Op("MUL", {b_.Op("LOGISTIC", {x}), x}));
      case 10: return Concatenate(x);
      case 11: return Split(x);
      case 12: return Pad(x);
      default: return Reshape(x);
    }
  }

  Attributes Activation() {
    return {{"fused_activation_function", b_.random().Pick({0.0, kRelu, kRelu6})}};
  }
  ValueId Shrink(ValueId x, float by) { return b_.Op("MUL", {x, b_.Scalar(by)}); }
  ValueId Unary(ValueId x) {
    return b_.Op(b_.random().Pick({"RELU", "RELU6", "TANH", "HARD_SWISH", "LOGISTIC", "GELU", "ABS",
                                   "NEG", "ELU"}),
                 {x});
  }
  ValueId Binary(ValueId x, ValueId y) {
    const char* op = b_.random().Pick({"ADD", "SUB", "MAXIMUM", "MINIMUM"});
    return b_.random().Chance(0.5) ? b_.Op(op, {x, y}) : b_.Op(op, {y, x});
  }
  // A constant or a run-time value that broadcasts to `x`.
  ValueId Operand(ValueId x) {
    Shape shape = b_.shape(x);
    for (int d = 0; d < shape.rank(); ++d) {
      if (b_.random().Chance(0.5)) shape.set(d, 1);
    }
    return b_.random().Chance(0.5) ? b_.Input(shape) : b_.Constant(shape);
  }
  void Concatenate(ValueId x) {
    std::vector<ValueId> parts = {b_.Conv(x, 3, 1), pool_.Like(x)};
    // Batches and rows of one graph came to gigabytes, three times as many with each node.
    if (b_.shape(x).dim(-1) > 20 || b_.shape(x).elements() > 1 << 14) return;
    parts[1] = b_.random().Chance(0.7) ? b_.Conv(parts[1], 3, 1) : parts[0];
    if (b_.random().Chance(0.3)) parts.push_back(b_.Depthwise(parts[0], 3));
    Keep(b_.Op("CONCATENATION", parts, {{"axis", b_.random().Pick({0.0, 1.0, 3.0})}}));
  }
  void Split(ValueId x) {
    const int axis = b_.random().Pick({0, 3});
    if (b_.shape(x)[axis] % 2) return;
    const ValueId whole = b_.Op("TANH", {x});
    const auto parts = b_.Op("SPLIT", {b_.Ints({1}, {axis}), whole}, {{"num_splits", 2}}, 2);
    Keep(parts[0]);
    Keep(parts[1]);
  }
  void Pad(ValueId x) {
    const auto side = [&] { return static_cast<int32_t>(b_.random().Int(0, 1)); };
    const ValueId padded =
        b_.Op("PAD", {x, b_.Ints({4, 2}, {0, 0, side(), side(), side(), side(), 0, 0})});
    const bool fits = b_.shape(padded)[1] >= 3 && b_.shape(padded)[2] >= 3;
    const double padding = fits && b_.random().Chance(0.5) ? kValid : kSame;
    Keep(b_.Conv(padded, 4, 3, {{"padding", padding}}));
  }
  void Reshape(ValueId x) {
    const Shape& s = b_.shape(x);
    Keep(b_.Op("RESHAPE", {x, b_.Ints({s[0], s[2], s[1], s[3]})}));
  }

  GraphBuilder b_;
  ValuePool pool_{b_};
};

}  // namespace fuselite::fusion::testing
