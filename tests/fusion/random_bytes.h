// Random graphs of int8 images.
#pragma once

#include <vector>

#include "tests/fusion/value_pool.h"

namespace fuselite::fusion::testing {

// Grows a graph of int8 values [batch, height, width, channels] between QUANTIZE and DEQUANTIZE:
// layers, residuals, functions of one value, what moves bytes, and islands of floats.
class RandomBytes {
 public:
  explicit RandomBytes(Random random) : b_(random) {
    pool_.Keep(b_.In({Int(1, 2), 6, 5, Int(1, 9)}));
  }

  // What fused values may differ by.
  float tolerance() const { return 1e-3f; }

  const Graph& Grow(int nodes) {
    for (int i = 0; i < nodes; ++i) Add();
    for (ValueId v : pool_.Ends()) b_.Out(v);
    return b_.graph();
  }

 private:
  int Int(int low, int high) { return static_cast<int>(b_.random().Int(low, high)); }
  bool Chance(double p) { return b_.random().Chance(p); }
  float Scale() { return b_.random().Pick({0.01f, 0.02f, 0.05f, 0.1f}); }
  int32_t Zero() { return static_cast<int32_t>(b_.random().Int(-128, 127)); }
  Attributes Activation() {
    return {{"fused_activation_function", b_.random().Pick({0.0, kRelu, kRelu6})}};
  }
  void Keep(ValueId v) { pool_.Keep(v); }
  const Quantization& quantization(ValueId v) { return b_.graph().value(v).info.quantization; }
  // What keeps the bytes of `x` as they are.
  ValueId Moved(const char* op, const std::vector<ValueId>& inputs, const Attributes& how = {}) {
    const Quantization& q = quantization(inputs[0]);
    return b_.Int8Op(op, inputs, q.scales[0], q.zero_points[0], how);
  }
  // What gives codes of a drawn scale and zero point. Draws stand in statements of their own, here
  // and elsewhere: in which order arguments are computed is the compiler's choice, and an input
  // means the same graph to all of them.
  ValueId Coded(const char* op, const std::vector<ValueId>& inputs, const Attributes& how = {}) {
    const float scale = Scale();
    return b_.Int8Op(op, inputs, scale, Zero(), how);
  }
  ValueId Conv(ValueId x, int channels, int filter) {
    const float scale = Scale();
    const int32_t zero = Zero();
    return b_.Conv8(x, channels, filter, scale, zero, Activation());
  }
  ValueId Depthwise(ValueId x) {
    const float scale = Scale();
    const int32_t zero = Zero();
    return b_.Depthwise8(x, 3, scale, zero, Activation());
  }
  void Add() {
    const ValueId x = pool_.Recent();
    switch (Int(0, 11)) {
      case 0:
      case 1: return Keep(Conv(x, Int(1, 9), 1));
      case 2: return Keep(Conv(x, b_.shape(x).dim(-1), 3));
      case 3: return Keep(Depthwise(x));
      case 4: return Keep(Function(x));
      case 5: return Keep(Gate(x));
      case 6: return Keep(Coded("QUANTIZE", {x}));
      case 7: return Keep(Island(x));
      case 8: return Keep(Move(x));
      case 9: return Keep(Pool(x));
      case 10: return Keep(Chance(0.5) ? Sum(x) : Enlarged(x));
      default: return Keep(Sum(x));
    }
  }

  // A transposed convolution to few channels, mostly with scales of their own.
  ValueId Enlarged(ValueId x) {
    const Shape s = b_.shape(x);
    if (s.elements() > 1 << 9) return Sum(x);
    const int32_t stride = Int(1, 3), filter = Int(1, 4), channels = Int(1, 3);
    const ValueId weights = b_.Int8Constant({channels, filter, filter, s[3]}, 0.01f);
    if (Chance(0.7)) {
      Quantization& q = b_.graph().value(weights).info.quantization;
      std::vector<float> scales;
      for (int i = 0; i < channels; ++i) scales.push_back(0.01f * static_cast<float>(i + 1));
      q = {.scales = ChannelValues<float>(std::move(scales)),
           .zero_points = ChannelValues<int32_t>::Repeated(channels, 0),
           .axis = 0};
    }
    const ValueId size = b_.Ints({s[0], s[1] * stride, s[2] * stride, channels});
    return Coded("TRANSPOSE_CONV", {size, weights, x},
                 {{"stride_w", stride}, {"stride_h", stride}, {"padding", kSame}});
  }
  ValueId Function(ValueId x) {
    switch (Int(0, 4)) {
      case 0: return b_.Int8Op("LOGISTIC", {x}, 1.0f / 256, -128);
      case 1: return b_.Int8Op("TANH", {x}, 1.0f / 128, 0);
      case 2: return Coded("HARD_SWISH", {x});
      case 3: return Coded("LEAKY_RELU", {x}, {{"alpha", 0.25}});
      default: return Coded("RELU6", {x});
    }
  }
  ValueId Gate(ValueId x) {
    const ValueId gate = b_.Int8Op("LOGISTIC", {x}, 1.0f / 256, -128);
    if (Chance(0.3)) Keep(gate);
    return Chance(0.5) ? Coded("MUL", {x, gate}) : Coded("MUL", {gate, x});
  }
  ValueId Island(ValueId x) {
    ValueId v = b_.Op("DEQUANTIZE", {x});
    for (int i = Int(0, 3); i > 0; --i) {
      v = Chance(0.5) ? b_.Op("MUL", {v, b_.Scalar(0.7f)})
                      : b_.Op(b_.random().Pick({"TANH", "RELU", "ABS", "NEG"}), {v});
    }
    return Coded("QUANTIZE", {v});
  }
  ValueId Move(ValueId x) {
    const Shape& s = b_.shape(x);
    switch (Int(0, 3)) {
      case 0: return Moved("RESHAPE", {x, b_.Ints({s[0], s[2], s[1], s[3]})});
      case 1: return Moved("TRANSPOSE", {x, b_.Ints({0, 2, 1, 3})});
      case 2: {
        const auto side = [&] { return static_cast<int32_t>(Int(0, 1)); };
        if (s.elements() > 1 << 12) return x;
        return Moved("PAD", {x, b_.Ints({4, 2}, {0, 0, side(), side(), side(), side(), 0, 0})});
      }
      default: {
        if (s.elements() > 1 << 12) return x;
        const ValueId other = b_.Int8Op("QUANTIZE", {pool_.Like(x)}, quantization(x).scales[0],
                                        quantization(x).zero_points[0]);
        return Moved("CONCATENATION", {x, other}, {{"axis", b_.random().Pick({1.0, 3.0})}});
      }
    }
  }
  ValueId Pool(ValueId x) {
    const Attributes window = {{"filter_width", 2},
                               {"filter_height", 2},
                               {"stride_w", Chance(0.5) + 1},
                               {"stride_h", 1},
                               {"padding", kSame}};
    return Moved(Chance(0.5) ? "MAX_POOL_2D" : "AVERAGE_POOL_2D", {x}, window);
  }
  ValueId Sum(ValueId x) {
    const char* op = b_.random().Pick({"ADD", "SUB", "MUL"});
    const ValueId y =
        Chance(0.3) ? b_.Int8Constant({1, 1, 1, b_.shape(x).dim(-1)}, Scale()) : pool_.Like(x);
    return Coded(op, {x, y}, Activation());
  }

  Int8Builder b_;
  ValuePool pool_{b_};
};

}  // namespace fuselite::fusion::testing
