#include <algorithm>

#include "kernels/convert/convert.h"
#include "kernels/make_kernel.h"
#include "kernels/numbers/short_floats.h"
#include "kernels/packed_integers.h"
#include "kernels/shape_rules.h"

namespace fuselite::kernels {
namespace {

// A kernel that computes every element by itself: f(value, channel) -> Out.
template <class In, class Out, class F>
std::unique_ptr<Kernel> Elementwise(const OpDescription& op, std::string name, ChannelOf channel,
                                    F f) {
  const Pieces pieces(op.inputs[0], op.outputs[0]);
  return MakeKernel(
      std::move(name), {.units = pieces.units, .grain = GrainFor(pieces.size)},
      [=](const KernelArgs& args, int64_t begin, int64_t end) {
        const auto* in = static_cast<const In*>(args.inputs[0]);
        auto* out = static_cast<Out*>(args.outputs[0]);
        pieces.ForEach(begin, end, [&](int64_t from, int64_t to, int64_t first, int64_t count) {
          for (int64_t i = 0; i < count; ++i) {
            out[to + i] = f(in[from + i], channel.channels == 1 ? 0 : channel(first + i));
          }
        });
      });
}

template <class Out>
std::unique_ptr<Kernel> MakeQuantize(const OpDescription& op) {
  const TensorInfo& out = op.outputs[0];
  return Elementwise<float, Out>(
      op, "quantize " + std::string(DataTypeName(out.type)) + " reference", ChannelOf(out),
      [scales = out.quantization.scales, zeros = out.quantization.zero_points](float x, int64_t c) {
        return QuantizeOne<Out>(x, scales[c], zeros[c]);
      });
}

template <class In, class Out>
std::unique_ptr<Kernel> MakeRequantize(const OpDescription& op) {
  const std::string name = "requantize " + std::string(DataTypeName(op.inputs[0].type)) + " " +
                           std::string(DataTypeName(op.outputs[0].type)) + " reference";
  const Requantizer requantize(op);
  return Elementwise<In, Out>(op, name, ChannelOf(TensorInfo()), [requantize](In x, int64_t) {
    return static_cast<Out>(requantize(x));
  });
}

template <class In>
std::unique_ptr<Kernel> MakeDequantize(const OpDescription& op) {
  const TensorInfo& in = op.inputs[0];
  return Elementwise<In, float>(
      op, "dequantize " + std::string(DataTypeName(in.type)) + " reference", ChannelOf(in),
      [scales = in.quantization.scales, zeros = in.quantization.zero_points](In x, int64_t c) {
        const double value = static_cast<double>(x) - zeros[c];
        return static_cast<float>(static_cast<double>(scales[c]) * value);
      });
}

Result<std::unique_ptr<Kernel>> MakeDequantizePacked(const OpDescription& op) {
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  const TensorInfo& in = op.inputs[0];
  const Pieces pieces(in, op.outputs[0]);
  return MakeKernel(
      "dequantize " + std::string(DataTypeName(in.type)) + " reference",
      {.units = pieces.units, .grain = GrainFor(pieces.size)},
      [=, channel = ChannelOf(in), scales = in.quantization.scales,
       zeros = in.quantization.zero_points,
       type = in.type](const KernelArgs& args, int64_t begin, int64_t end) {
        const PackedIntegers values(type, args.inputs[0]);
        auto* out = static_cast<float*>(args.outputs[0]);
        pieces.ForEach(begin, end, [&](int64_t from, int64_t to, int64_t first, int64_t count) {
          for (int64_t i = 0; i < count; ++i) {
            const int64_t c = channel.channels == 1 ? 0 : channel(first + i);
            out[to + i] = static_cast<float>(static_cast<double>(scales[c]) *
                                             (values[from + i] - static_cast<double>(zeros[c])));
          }
        });
      });
}

// Pieces of dense operands start at a byte's first element.
Result<std::unique_ptr<Kernel>> MakeQuantizePacked(const OpDescription& op) {
  constexpr int64_t kBlock = 256;
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  const TensorInfo& out = op.outputs[0];
  const Pieces pieces(op.inputs[0], out);
  int32_t min, max;
  QuantizedTypeRange(out.type, &min, &max);
  return MakeKernel(
      "quantize " + std::string(DataTypeName(out.type)) + " reference",
      {.units = pieces.units, .grain = GrainFor(pieces.size)},
      [=, type = out.type, scale = out.quantization.scale(), zero = out.quantization.zero_point()](
          const KernelArgs& args, int64_t begin, int64_t end) {
        const auto* in = static_cast<const float*>(args.inputs[0]);
        auto* to = static_cast<std::byte*>(args.outputs[0]);
        pieces.ForEach(begin, end, [&](int64_t from, int64_t start, int64_t, int64_t count) {
          int8_t values[kBlock];
          for (int64_t done = 0; done < count; done += kBlock) {
            const int64_t n = std::min(kBlock, count - done);
            for (int64_t i = 0; i < n; ++i) {
              values[i] = QuantizeOne<int8_t>(in[from + done + i], scale, zero, min, max);
            }
            PackIntegers(type, values, n, to + (start + done) * BitWidth(type) / 8);
          }
        });
      });
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildQuantizeReference(const OpDescription& op,
                                                       const BuildContext&) {
  if (!op.tail.empty()) return Unsupported("QUANTIZE takes no fused tail");
  const DataType to = op.outputs[0].type;
  switch (op.inputs[0].type) {
    case DataType::kFloat32:
      if (IsPacked(to)) return MakeQuantizePacked(op);
      if (to == DataType::kInt8) return MakeQuantize<int8_t>(op);
      return to == DataType::kUInt8 ? MakeQuantize<uint8_t>(op) : MakeQuantize<int16_t>(op);
    case DataType::kInt8:
      if (to == DataType::kInt16) return MakeRequantize<int8_t, int16_t>(op);
      return to == DataType::kInt8 ? MakeRequantize<int8_t, int8_t>(op)
                                   : MakeRequantize<int8_t, uint8_t>(op);
    case DataType::kUInt8:
      if (to == DataType::kInt16) return MakeRequantize<uint8_t, int16_t>(op);
      return to == DataType::kInt8 ? MakeRequantize<uint8_t, int8_t>(op)
                                   : MakeRequantize<uint8_t, uint8_t>(op);
    case DataType::kInt16:
      if (to == DataType::kInt8) return MakeRequantize<int16_t, int8_t>(op);
      return to == DataType::kInt16 ? MakeRequantize<int16_t, int16_t>(op)
                                    : MakeRequantize<int16_t, int32_t>(op);
    default:
      return to == DataType::kInt8 ? MakeRequantize<int32_t, int8_t>(op)
                                   : MakeRequantize<int32_t, int16_t>(op);
  }
}

Result<std::unique_ptr<Kernel>> BuildDequantizeReference(const OpDescription& op,
                                                         const BuildContext&) {
  if (!op.tail.empty()) return Unsupported("DEQUANTIZE takes no fused tail");
  switch (op.inputs[0].type) {
    case DataType::kInt8: return MakeDequantize<int8_t>(op);
    case DataType::kUInt8: return MakeDequantize<uint8_t>(op);
    case DataType::kInt16: return MakeDequantize<int16_t>(op);
    case DataType::kInt4:
    case DataType::kUInt4:
    case DataType::kInt2: return MakeDequantizePacked(op);
    default:
      return Elementwise<Half, float>(op, "dequantize float16", ChannelOf(TensorInfo()),
                                      [](Half x, int64_t) -> float { return x; });
  }
}

}  // namespace fuselite::kernels
