// Random graphs of images in the words of exporters.
#pragma once

#include <string>
#include <vector>

#include "tests/fusion/value_pool.h"

namespace fuselite::fusion::testing {

// Grows a graph of values [batch, 6, 5, channels] from phrases of several nodes, each of which some
// rewrite or other recognizes: functions that are spelt out, gates, paddings, transposes there and
// back, what moves floats that were integers. One in ten is not quite what the rewrite looks for.
class RandomPhrases {
 public:
  explicit RandomPhrases(Random random) : b_(random) {
    const int32_t batch = Chance(0.7) ? 1 : 2;
    pool_.Keep(b_.Input({batch, kHeight, kWidth, kChannels}));
  }

  // What fused values may differ by. A last bit may take a value to the next step of a QUANTIZE.
  float tolerance() const { return quantized_ ? 5e-2f : 1e-3f; }

  const Graph& Grow(int phrases) {
    for (int i = 0; i < phrases; ++i) Add();
    for (ValueId v : pool_.Ends()) b_.Output(v);
    return b_.graph();
  }

 private:
  static constexpr int32_t kHeight = 6, kWidth = 5, kChannels = 4;

  int Int(int low, int high) { return static_cast<int>(b_.random().Int(low, high)); }
  bool Chance(double p) { return b_.random().Chance(p); }
  int32_t batches() const { return b_.shape(pool_.first())[0]; }

  // Draws stand in statements of their own: in which order arguments are computed is the compiler's
  // choice, and an input means the same graph to all of them.
  ValueId Swapped(const char* op, ValueId x, ValueId y, const Attributes& how = {}) {
    return Chance(0.5) ? b_.Op(op, {x, y}, how) : b_.Op(op, {y, x}, how);
  }
  // A constant of a pattern, one in ten times another one.
  ValueId Number(float value) { return b_.Scalar(Chance(0.9) ? value : value * 1.25f + 0.125f); }
  Attributes Relu(double kind) { return {{"fused_activation_function", kind}}; }

  void Add() {
    const ValueId x = pool_.Recent();
    switch (Int(0, 12)) {
      case 0: return pool_.Keep(b_.Conv(x, kChannels, 1));
      case 1: return pool_.Keep(b_.Depthwise(x, 3, Relu(b_.random().Pick({0.0, kRelu}))));
      case 2: return pool_.Keep(Swapped("ADD", x, pool_.Like(x)));
      case 3: return pool_.Keep(HardPiece(x));
      case 4: return pool_.Keep(Prelu(x));
      case 5: return pool_.Keep(Padded(x));
      case 6: return pool_.Keep(Gated(x));
      case 7: return pool_.Keep(Turned(x));
      case 8: return pool_.Keep(Moved(x));
      case 9: return pool_.Keep(Scaled(x));
      case 10: return pool_.Keep(SteppedOver(x));
      case 11: return pool_.Keep(Twice(x));
      default: return pool_.Keep(Chance(0.5) ? Pooled(x) : Enlarged(x));
    }
  }

  // --- Functions that are spelt out ---

  // min(max(x + 3, 0), 6)
  ValueId ShiftedRelu6(ValueId x) {
    const ValueId three = Number(3), six = Number(6), zero = Number(0);
    switch (Int(0, 4)) {
      case 0: return Swapped("ADD", x, three, Relu(kRelu6));
      case 1: return b_.Op("RELU6", {Swapped("ADD", x, three)});
      case 2: return Swapped("MINIMUM", Swapped("ADD", x, three, Relu(kRelu)), six);
      case 3: return Swapped("MINIMUM", b_.Op("RELU", {Swapped("ADD", x, three)}), six);
      default: {
        const ValueId low = Swapped("MAXIMUM", Swapped("ADD", x, three), zero);
        return Swapped("MINIMUM", low, six);
      }
    }
  }
  ValueId Sixth(ValueId x) {
    const bool divides = Chance(0.5);
    const ValueId by = Number(divides ? 6 : 1.0f / 6);
    return divides ? b_.Op("DIV", {x, by}) : Swapped("MUL", x, by);
  }
  ValueId HardPiece(ValueId x) {
    const ValueId gate = ShiftedRelu6(x);
    switch (Int(0, 2)) {
      case 0: return Sixth(gate);
      case 1: return Sixth(Swapped("MUL", x, gate));
      default: return Swapped("MUL", x, Sixth(gate));
    }
  }
  ValueId Prelu(ValueId x) {
    const ValueId zero = Number(0), slope = Chance(0.5) ? Number(0.25f) : b_.Constant({kChannels});
    if (Chance(0.4)) {
      const ValueId negative = Swapped("MUL", x, Number(-1), Relu(kRelu));
      const ValueId scaled = Swapped("MUL", negative, slope);
      return b_.Op("SUB", {b_.Op("RELU", {x}), scaled});
    }
    const char* more = b_.random().Pick({"GREATER", "GREATER_EQUAL"});
    const char* less = b_.random().Pick({"LESS", "LESS_EQUAL"});
    const ValueId positive = Chance(0.5) ? b_.Op(more, {x, zero}) : b_.Op(less, {zero, x});
    const ValueId scaled = Swapped("MUL", x, slope);
    return b_.Op(b_.random().Pick({"SELECT", "SELECT_V2"}), {positive, x, scaled});
  }

  // --- Around layers ---

  // A PAD, or two, before what has padding of its own.
  ValueId Padded(ValueId x) {
    if (Chance(0.4)) x = b_.Op(b_.random().Pick({"RELU", "RELU6"}), {x});
    for (int i = Int(1, 2); i > 0; --i) {
      const int32_t top = Int(0, 2), bottom = Int(0, 1), left = Int(0, 1), right = Int(0, 2);
      const int32_t other = Chance(0.1) ? 1 : 0;
      const ValueId sides = b_.Ints({4, 2}, {0, 0, top, bottom, left, right, 0, other});
      const ValueId fill = Number(0);
      x = Chance(0.5) ? b_.Op("PAD", {x, sides}) : b_.Op("PADV2", {x, sides, fill});
    }
    const double padding = Chance(0.5) ? kSame : kValid;
    const int channels = b_.shape(x).dim(-1);
    ValueId y;
    switch (Int(0, 3)) {
      case 0: y = b_.Conv(x, channels, 3, {{"padding", padding}}); break;
      case 1: y = b_.Depthwise(x, 3, {{"padding", padding}}); break;
      case 2: y = Window("MAX_POOL_2D", x, Int(2, 3), padding); break;
      default: y = Window("AVERAGE_POOL_2D", x, 3, padding); break;
    }
    return Cut(y);
  }
  ValueId Window(const char* op, ValueId x, int size, double padding) {
    return b_.Op(op, {x},
                 {{"filter_width", size},
                  {"filter_height", size},
                  {"stride_w", 1},
                  {"stride_h", 1},
                  {"padding", padding}});
  }
  // A residual sum of which layers of 1x1 read every second row or column, mostly.
  ValueId SteppedOver(ValueId x) {
    const ValueId layer = Chance(0.8) ? b_.Conv(x, kChannels, Chance(0.5) ? 1 : 3) : Padded(x);
    ValueId sum = Swapped("ADD", layer, Chance(0.8) ? x : b_.Constant({kChannels}));
    if (Chance(0.5)) sum = b_.Op("RELU", {sum});
    if (Chance(0.1)) pool_.Keep(sum);
    const int rows = Int(1, 2), columns = Int(1, 3), other = Chance(0.1) ? 3 : rows;
    const auto steps = [&](int y) {
      return Attributes{{"stride_h", y}, {"stride_w", columns}, {"padding", kValid}};
    };
    const ValueId one = b_.Conv(sum, kChannels, 1, steps(rows));
    const ValueId two = b_.Conv(sum, kChannels, Chance(0.9) ? 1 : 2, steps(other));
    return b_.Op("ADD", {Cut(one), Cut(two)});
  }
  // A layer that stands there twice, and the sum of what both give.
  ValueId Twice(ValueId x) {
    const ValueId weights = b_.Constant({kChannels, 1, 1, b_.shape(x).dim(-1)});
    const ValueId bias = b_.Constant({kChannels});
    const ValueId one = b_.ConvBy(x, weights, bias);
    ValueId other = b_.ConvBy(x, Chance(0.9) ? weights : b_.Constant(b_.shape(weights)), bias);
    if (Chance(0.5)) other = b_.Op(b_.random().Pick({"RELU", "TANH", "LOGISTIC"}), {other});
    return Swapped("ADD", one, other);
  }
  // Cuts x back to the images' size and number of channels.
  ValueId Cut(ValueId x) {
    const Shape& s = b_.shape(x);
    if (s[1] < kHeight || s[2] < kWidth) {
      x = b_.Op("RESIZE_NEAREST_NEIGHBOR", {x, b_.Ints({kHeight, kWidth})});
    } else if (s[1] > kHeight || s[2] > kWidth) {
      const ValueId size = b_.Ints({batches(), kHeight, kWidth, s[3]});
      x = b_.Op("SLICE", {x, b_.Ints({0, 0, 0, 0}), size});
    }
    return b_.shape(x)[3] == kChannels ? x : b_.Conv(x, kChannels, 1);
  }
  // Squeeze-excite: a factor for each channel before a convolution.
  ValueId Gated(ValueId x) {
    ValueId means = b_.Input({batches(), 1, 1, kChannels});
    if (Chance(0.5)) means = b_.Op("MEAN", {x, b_.Ints({1, 2})}, {{"keep_dims", 1}});
    const ValueId gate = b_.Op("LOGISTIC", {b_.Conv(means, kChannels, 1)});
    const ValueId gated = Swapped("MUL", x, gate);
    const int filter = Chance(0.8) ? 1 : 3;
    ValueId y = b_.Conv(gated, kChannels, filter, Relu(b_.random().Pick({0.0, kRelu6})));
    if (Chance(0.5)) y = Swapped("ADD", y, x);
    return y;
  }
  // Constants before and behind a layer, which go into its weights.
  ValueId Scaled(ValueId x) {
    const auto constant = [&] { return Chance(0.5) ? b_.Scalar(0.5f) : b_.Constant({kChannels}); };
    if (Chance(0.5)) x = Swapped("MUL", x, constant());
    if (Chance(0.3)) x = Swapped("ADD", x, constant());
    x = Chance(0.5) ? b_.Conv(x, kChannels, 1) : b_.Depthwise(x, 3);
    if (Chance(0.5)) x = Swapped("ADD", x, constant());
    if (Chance(0.5)) x = Swapped("MUL", x, constant());
    if (Chance(0.3)) x = b_.Op("SUB", {x, constant()});
    return Chance(0.3) ? b_.Op("DIV", {x, b_.Scalar(2)}) : x;
  }

  // As decoders end: a transposed convolution to few channels.
  ValueId Enlarged(ValueId x) {
    const int32_t stride = Int(1, 3), filter = Int(1, 4), channels = Int(1, 3);
    const bool same = Chance(0.7);
    const auto extent = [&](int32_t in) { return same ? in * stride : (in - 1) * stride + filter; };
    const ValueId size = b_.Ints({batches(), extent(kHeight), extent(kWidth), channels});
    std::vector<ValueId> inputs = {size, b_.Constant({channels, filter, filter, kChannels}), x};
    if (Chance(0.5)) inputs.push_back(b_.Constant({channels}));
    ValueId y = b_.Op("TRANSPOSE_CONV", inputs,
                      {{"stride_w", stride},
                       {"stride_h", stride},
                       {"padding", same ? kSame : kValid},
                       {"fused_activation_function", b_.random().Pick({0.0, kRelu})}});
    if (Chance(0.5)) y = b_.Op("TANH", {y});
    if (Chance(0.2)) y = b_.Op("ADD", {y, b_.Constant({channels})});
    return Cut(y);
  }

  // --- Transposes ---

  // With channels in front, as PyTorch has them, some functions long.
  ValueId Turned(ValueId x) {
    if (Chance(0.5)) x = b_.Conv(x, kChannels, 1);
    const ValueId before = x;
    x = b_.Transpose(x, {0, 3, 1, 2});
    if (Chance(0.1)) b_.Output(x);
    for (int i = Int(1, 4); i > 0; --i) x = OfTurned(x, before);
    if (Chance(0.15)) {
      const ValueId mean = b_.Op("MEAN", {x, b_.Ints({0, 1, 2, 3})}, {{"keep_dims", Int(0, 1)}});
      return Swapped("ADD", before, mean);
    }
    return b_.Transpose(x, {0, 2, 3, 1});
  }
  ValueId OfTurned(ValueId x, ValueId before) {
    switch (Int(0, 6)) {
      case 0: return b_.Op(b_.random().Pick({"TANH", "RELU", "ABS"}), {x});
      case 1: return Swapped("MUL", x, b_.Constant({1, kChannels, 1, 1}));
      case 2: return Swapped("ADD", x, b_.Constant({kHeight, kWidth}));
      case 3: return Swapped("ADD", x, b_.Input({1, kChannels, 1, 1}));
      case 4: return Swapped("ADD", x, b_.Transpose(before, {0, 3, 1, 2}));
      case 5: {
        const ValueId flat =
            b_.Op("RESHAPE", {x, b_.Ints({batches(), kChannels, kHeight * kWidth})});
        const ValueId y = Swapped("MUL", flat, b_.Constant({kChannels, 1}));
        return b_.Op("RESHAPE", {y, b_.Ints({batches(), kChannels, kHeight, kWidth})});
      }
      default: return Swapped("MAXIMUM", x, b_.Constant(Shape({kChannels, kHeight, kWidth})));
    }
  }

  // --- Floats that were integers and will be ---

  ValueId Quantized(ValueId x, float scale, int32_t zero) {
    quantized_ = true;
    return b_.Int8Op("QUANTIZE", {x}, scale, zero);
  }
  ValueId Moved(ValueId x) {
    const float scale = b_.random().Pick({0.02f, 0.05f});
    const int32_t zero = Int(-10, 10);
    const ValueId codes = Quantized(x, scale, zero);
    ValueId y = b_.Op("DEQUANTIZE", {codes});
    if (Chance(0.1)) b_.Output(y);
    for (int i = Int(1, 4); i > 0; --i) y = OfMoved(y, codes);
    if (Chance(0.8)) {
      const float after = Chance(0.6) ? scale : 0.03f;
      y = b_.Op("DEQUANTIZE", {Quantized(y, after, zero)});
    }
    return Cut(y);
  }
  ValueId OfMoved(ValueId x, ValueId codes) {
    const Shape s = b_.shape(x);
    if (s.elements() > 1 << 11) return b_.Op("TANH", {x});
    switch (Int(0, 12)) {
      case 0: return b_.Op("PAD", {x, b_.Ints({4, 2}, {0, 0, 1, 0, 2, 1, 0, 0})});
      case 1: return Window("MAX_POOL_2D", x, 2, Chance(0.5) ? kSame : kValid);
      case 2: return b_.Transpose(x, {0, 2, 1, 3});
      case 3: return b_.Op("RESHAPE", {x, b_.Ints({s[0], s[2], s[1], s[3]})});
      case 4: return b_.Op("REVERSE_V2", {x, b_.Ints({2})});
      case 5: return b_.Op("GATHER", {x, b_.Ints({1, 0, 1})}, {{"axis", 3}});
      case 6: return b_.Op("RESIZE_NEAREST_NEIGHBOR", {x, b_.Ints({5, 3})});
      case 7: return b_.Op("MIRROR_PAD", {x, b_.Ints({4, 2}, {0, 0, 1, 1, 0, 1, 0, 0})});
      case 8: {
        // Beside `x` stand the same integers, or others.
        const bool again = b_.shape(codes) == s && Chance(0.5);
        const ValueId other = again ? b_.Op("DEQUANTIZE", {codes}) : x;
        return b_.Op("CONCATENATION", {x, other}, {{"axis", b_.random().Pick({1.0, 3.0})}});
      }
      case 9: {
        if (s[3] % 2 != 0) return x;
        return b_.Op("SPLIT", {b_.Ints({1}, {3}), x}, {{"num_splits", 2}}, 2)[Int(0, 1)];
      }
      case 10: return b_.Op("TILE", {x, b_.Ints({1, 1, 2, 1})});
      case 11: return Residual(x, b_.shape(codes) == s ? codes : Quantized(x, 0.04f, 3));
      default: return b_.Op("RELU", {x});
    }
  }

  // Perhaps a sum whose bytes somebody reads beside its floats.
  ValueId Residual(ValueId x, ValueId codes) {
    const ValueId other = b_.Op("DEQUANTIZE", {codes});
    const double activation = b_.random().Pick({0.0, kRelu, kRelu6});
    const ValueId sum = Swapped("ADD", x, other, {{"fused_activation_function", activation}});
    if (Chance(0.5)) b_.Output(b_.Op("DEQUANTIZE", {Quantized(sum, 0.06f, -2)}));
    return sum;
  }

  ValueId Pooled(ValueId x) {
    const bool most = Chance(0.5);
    return Window(most ? "MAX_POOL_2D" : "AVERAGE_POOL_2D", x, Int(1, 3), kSame);
  }

  Int8Builder b_;
  ValuePool pool_{b_};
  bool quantized_ = false;
};

}  // namespace fuselite::fusion::testing
