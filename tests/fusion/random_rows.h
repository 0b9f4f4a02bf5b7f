// Random graphs of rows, as transformers have them.
#pragma once

#include <string>
#include <vector>

#include "tests/fusion/value_pool.h"

namespace fuselite::fusion::testing {

// Grows a graph of values [batch, rows, channels]: layers, normalizations, gates, attention, spelt
// as one exporter or the other does, and here and there not quite so. Layers read normalized rows,
// so that values stay small and differences of roundings too.
class RandomRows {
 public:
  explicit RandomRows(Random random) : b_(random), hybrid_(b_.random().Chance(0.4)) {
    pool_.Keep(b_.Input({Int(1, 2), Int(1, 9), kChannels}));
  }

  // What fused values may differ by. A last bit may take a quantized value to the next step.
  float tolerance() const { return hybrid_ ? 5e-2f : 1e-3f; }

  const Graph& Grow(int phrases) {
    for (int i = 0; i < phrases; ++i) Add();
    for (ValueId v : pool_.Ends()) b_.Output(v);
    return b_.graph();
  }

 private:
  static constexpr int kHeads = 3, kWidth = 8, kChannels = kHeads * kWidth;

  int Int(int low, int high) { return static_cast<int>(b_.random().Int(low, high)); }
  bool Chance(double p) { return b_.random().Chance(p); }
  int rows() const { return b_.shape(pool_.first())[1]; }
  int batches() const { return b_.shape(pool_.first())[0]; }

  void Add() {
    const ValueId x = pool_.Recent();
    switch (Int(0, 9)) {
      case 0: return Keep(Layer(Norm(x)));
      case 1: return Keep(Gate(Layer(Norm(x))));
      case 2: return Keep(b_.Op("MUL", {Gate(Layer(Norm(x))), Layer(Norm(x))}));
      case 3: return Keep(Norm(x));
      case 4: return Keep(b_.Op("ADD", {x, pool_.Like(x)}));
      case 5: return Keep(There(x));
      case 6: return Keep(RotaryRows(x));
      case 7: return Keep(Scaled(x));
      default: return Keep(b_.Op("ADD", {x, Attention(Norm(x))}));
    }
  }
  void Keep(ValueId v) { pool_.Keep(v); }

  ValueId Swapped(const char* op, ValueId x, ValueId y) {
    return Chance(0.5) ? b_.Op(op, {x, y}) : b_.Op(op, {y, x});
  }
  // Constants of a pattern, one in ten times another one.
  ValueId Number(float value) { return b_.Scalar(Chance(0.9) ? value : value * 1.25f); }

  ValueId Layer(ValueId x) {
    const ValueId weights = hybrid_ ? b_.Int8Constant({kChannels, kChannels}, 0.002f)
                                    : b_.Constant({kChannels, kChannels}, -0.3f, 0.3f);
    const ValueId bias = b_.Constant({kChannels});
    return b_.Op("FULLY_CONNECTED", {x, weights, bias},
                 {{"keep_num_dims", 1}, {"asymmetric_quantize_inputs", Int(0, 1)}});
  }

  // Mean over the channels, with its dimension.
  ValueId MeanOf(ValueId x) {
    const int axis = Chance(0.1) ? 1 : Chance(0.5) ? 2 : -1;
    if (Chance(0.5)) return b_.Op("MEAN", {x, b_.Ints({axis})}, {{"keep_dims", 1}});
    const ValueId mean = b_.Op("MEAN", {x, b_.Ints({axis})});
    return b_.Op("RESHAPE", {mean, axis == 1 ? b_.Ints({batches(), 1, kChannels})
                                             : b_.Ints({batches(), rows(), 1})});
  }
  ValueId Square(ValueId x) { return Chance(0.5) ? b_.Op("SQUARE", {x}) : b_.Op("MUL", {x, x}); }
  ValueId Over(ValueId x, ValueId variance) {
    const ValueId shifted = Swapped("ADD", variance, b_.Scalar(1e-2f));
    if (Chance(0.5)) return b_.Op("DIV", {x, b_.Op("SQRT", {shifted})});
    return Swapped("MUL", x, b_.Op("RSQRT", {shifted}));
  }
  ValueId Norm(ValueId x) {
    ValueId y;
    if (Chance(0.4)) {
      y = Over(x, MeanOf(Square(x)));
    } else {
      const ValueId mean = MeanOf(x);
      const ValueId centred = b_.Op("SUB", {x, mean});
      const ValueId squares =
          Chance(0.5) ? Square(centred) : b_.Op("SQUARED_DIFFERENCE", {x, mean});
      y = Over(centred, MeanOf(squares));
    }
    if (Chance(0.5)) y = Swapped("MUL", y, b_.Constant({kChannels}));
    return Chance(0.5) ? Swapped("ADD", y, b_.Constant({kChannels})) : y;
  }

  ValueId Gate(ValueId x) {
    switch (Int(0, 4)) {
      case 0: return Swapped("MUL", x, b_.Op("LOGISTIC", {x}));
      case 1: return b_.Op("GELU", {x}, {{"approximate", Int(0, 1)}});
      case 2: return GeluByTanh(x);
      case 3: {
        const ValueId gate = b_.Op("RELU6", {Swapped("ADD", x, Number(3))});
        return Swapped("MUL", x, b_.Op("MUL", {gate, Number(1.0f / 6)}));
      }
      default: {
        const ValueId positive = b_.Op("GREATER", {x, Number(0)});
        return b_.Op("SELECT_V2", {positive, x, Swapped("MUL", x, b_.Scalar(0.25f))});
      }
    }
  }
  ValueId GeluByTanh(ValueId x) {
    const ValueId cube =
        Chance(0.3) ? b_.Op("POW", {x, b_.Scalar(3)}) : b_.Op("MUL", {Square(x), x});
    const ValueId inner = Swapped("ADD", x, Swapped("MUL", cube, Number(0.044715f)));
    const ValueId t = b_.Op("TANH", {Swapped("MUL", inner, Number(0.7978845608f))});
    const ValueId half = Swapped("MUL", x, Number(0.5f));
    return Swapped("MUL", half, Swapped("ADD", t, Number(1)));
  }

  ValueId Reshape(ValueId x, const std::vector<int32_t>& to) {
    return b_.Op("RESHAPE", {x, b_.Ints(to)});
  }
  // There and back again, by transposes and reshapes that some rewrite or other takes out.
  ValueId There(ValueId x) {
    switch (Int(0, 3)) {
      case 0: return b_.Transpose(b_.Op("TANH", {b_.Transpose(x, {0, 2, 1})}), {0, 2, 1});
      case 1: {
        const ValueId flat = Reshape(x, {batches() * rows(), kChannels});
        return Reshape(b_.Op("TANH", {flat}), {batches(), rows(), kChannels});
      }
      case 2: {
        const ValueId apart = Reshape(x, {batches(), rows(), kHeads, kWidth});
        const ValueId moved = b_.Transpose(b_.Transpose(apart, {0, 2, 1, 3}), {0, 2, 1, 3});
        return Reshape(moved, {batches(), rows(), kChannels});
      }
      default: {
        const ValueId image = Reshape(x, {batches(), 1, rows(), kChannels});
        const ValueId turned = b_.Transpose(image, {0, 3, 1, 2});
        const ValueId added = b_.Op("ADD", {turned, b_.Constant({1, kChannels, 1, 1})});
        return Reshape(b_.Transpose(added, {0, 2, 3, 1}), {batches(), rows(), kChannels});
      }
    }
  }
  ValueId Scaled(ValueId x) {
    const ValueId y = Swapped("MUL", x, Chance(0.5) ? Number(0.5f) : b_.Constant({kChannels}));
    return Chance(0.5) ? y : Layer(y);
  }

  // Turns pairs of channels of each head by an angle that the run gives.
  ValueId RotaryRows(ValueId x) {
    const ValueId apart = Reshape(x, {batches(), rows(), kHeads, kWidth});
    return Reshape(Rotary(apart), {batches(), rows(), kChannels});
  }
  ValueId Rotary(ValueId x) {
    const ValueId cos = b_.Input({1, rows(), 1, kWidth / 2});
    const ValueId sin = b_.Input({1, rows(), 1, kWidth / 2});
    const auto halves = b_.Op("SPLIT", {b_.Ints(Shape(), {3}), x}, {{"num_splits", 2}}, 2);
    const ValueId x0 = halves[Chance(0.1) ? 1 : 0], x1 = halves[1];
    const ValueId first = b_.Op("SUB", {Swapped("MUL", x0, cos), Swapped("MUL", x1, sin)});
    const ValueId straight = Swapped("MUL", x1, cos);
    const ValueId second = Swapped("ADD", straight, Swapped("MUL", x0, sin));
    return b_.Op("CONCATENATION", {first, second}, {{"axis", 3}});
  }

  // [batch, head, row, channel] of a layer's rows.
  ValueId Heads(ValueId x, bool rotate) {
    ValueId apart = Reshape(x, {batches(), rows(), kHeads, kWidth});
    if (rotate) apart = Rotary(apart);
    return b_.Transpose(apart, {0, 2, 1, 3});
  }
  ValueId Attention(ValueId x) {
    const bool rotate = Chance(0.3), turned = Chance(0.3), flat = Chance(0.3);
    ValueId q = Heads(Layer(x), rotate), k = Heads(Layer(x), rotate), v = Heads(Layer(x), false);
    if (Chance(0.3)) q = Swapped("MUL", q, b_.Scalar(0.35f));
    if (turned) k = b_.Transpose(k, {0, 1, 3, 2});
    const int outer = batches() * kHeads;
    if (flat) {
      q = Reshape(q, {outer, rows(), kWidth});
      k = turned ? Reshape(k, {outer, kWidth, rows()}) : Reshape(k, {outer, rows(), kWidth});
      v = Reshape(v, {outer, rows(), kWidth});
    }
    ValueId scores = b_.Op("BATCH_MATMUL", {q, k}, {{"adj_y", !turned}});
    if (Chance(0.7)) scores = Swapped("MUL", scores, b_.Scalar(0.05f));
    if (!flat && Chance(0.4)) scores = Swapped("ADD", scores, b_.Input({1, 1, rows(), rows()}));
    const ValueId weights = b_.Op("SOFTMAX", {scores}, {{"beta", Chance(0.9) ? 1.0 : 0.5}});
    ValueId y = b_.Op("BATCH_MATMUL", {weights, v});
    if (flat) y = Reshape(y, {batches(), kHeads, rows(), kWidth});
    if (!Chance(0.1)) y = b_.Transpose(y, {0, 2, 1, 3});
    return Layer(Reshape(y, {batches(), rows(), kChannels}));
  }

  GraphBuilder b_;
  bool hybrid_;  // layers have int8 weights
  ValuePool pool_{b_};
};

}  // namespace fuselite::fusion::testing
