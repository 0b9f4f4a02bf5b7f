#include <algorithm>
#include <cstring>

#include "kernels/make_kernel.h"
#include "kernels/resize/resize.h"

namespace fuselite::kernels {
namespace {

template <class T>
T Interpolate(T a, T b, T c, T d, const Tap& y, const Tap& x) {
  const float value = static_cast<float>(a) * (1 - y.t) * (1 - x.t) +
                      static_cast<float>(b) * y.t * (1 - x.t) +
                      static_cast<float>(c) * (1 - y.t) * x.t + static_cast<float>(d) * y.t * x.t;
  if constexpr (std::is_same_v<T, uint8_t>) {
    return static_cast<uint8_t>(std::clamp(value + 0.5f, 0.0f, 255.0f));
  } else {
    return value;
  }
}

template <class T>
T Interpolate(T a, T b, T c, T d, const FixedTap& y, const FixedTap& x) {
  constexpr int64_t kOne = 1 << 10;
  const int64_t sum = a * ((kOne - y.t) * (kOne - x.t)) + b * (y.t * (kOne - x.t)) +
                      c * ((kOne - y.t) * x.t) + d * (int64_t{y.t} * x.t);
  const int64_t half = sum > 0 ? (1 << 19) : -(1 << 19);
  return static_cast<T>((sum + half) / (1 << 20));
}

template <class T, class AnyTap>
std::unique_ptr<Kernel> MakeBilinear(const OpDescription& op, std::vector<AnyTap> ys,
                                     std::vector<AnyTap> xs) {
  const ResizeShape m(op);
  return MakeKernel(
      "resize_bilinear " + std::string(DataTypeName(op.inputs[0].type)) + " reference",
      {.units = m.rows, .grain = GrainFor(4 * m.out_w * m.channels)},
      [m, ys = std::move(ys), xs = std::move(xs)](const KernelArgs& args, int64_t begin,
                                                  int64_t end) {
        const auto* in = static_cast<const T*>(args.inputs[0]);
        auto* out = static_cast<T*>(args.outputs[0]);
        for (int64_t row = begin; row < end; ++row) {
          const AnyTap& y = ys[row % m.out_h];
          const T* image = in + row / m.out_h * m.in_h * m.in_w * m.in_pitch;
          const T* top = image + int64_t{y.low} * m.in_w * m.in_pitch;
          const T* bottom = image + int64_t{y.high} * m.in_w * m.in_pitch;
          for (int32_t x = 0; x < m.out_w; ++x) {
            const int64_t left = xs[x].low * m.in_pitch;
            const int64_t right = xs[x].high * m.in_pitch;
            T* pixel = out + (row * m.out_w + x) * m.out_pitch;
            for (int64_t c = 0; c < m.channels; ++c) {
              pixel[c] = Interpolate(top[left + c], bottom[left + c], top[right + c],
                                     bottom[right + c], y, xs[x]);
            }
          }
        }
      });
}

template <size_t bytes>
void CopyPixels(const std::byte* in, std::byte* out, const std::vector<int32_t>& xs,
                int64_t in_pitch, int64_t out_pitch) {
  for (size_t x = 0; x < xs.size(); ++x) {
    std::memcpy(out + x * out_pitch, in + xs[x] * in_pitch, bytes);
  }
}

}  // namespace

Result<std::unique_ptr<Kernel>> BuildResizeBilinearReference(const OpDescription& op,
                                                             const BuildContext&) {
  if (!op.tail.empty()) return Unsupported("RESIZE_BILINEAR takes no fused tail");
  const ResizeShape m(op);
  const auto& params = op.params.as<ResizeParams>();
  const auto real = [&](auto type) {
    return MakeBilinear<decltype(type)>(op, BilinearTaps(m.in_h, m.out_h, params),
                                        BilinearTaps(m.in_w, m.out_w, params));
  };
  const auto fixed = [&](auto type) {
    return MakeBilinear<decltype(type)>(op, FixedBilinearTaps(m.in_h, m.out_h, params),
                                        FixedBilinearTaps(m.in_w, m.out_w, params));
  };
  switch (op.inputs[0].type) {
    case DataType::kFloat32: return real(float{});
    case DataType::kUInt8: return real(uint8_t{});
    case DataType::kInt8: return fixed(int8_t{});
    default: return fixed(int16_t{});
  }
}

Result<std::unique_ptr<Kernel>> BuildResizeNearest(const OpDescription& op, const BuildContext&) {
  if (!op.tail.empty()) return Unsupported("RESIZE_NEAREST_NEIGHBOR takes no fused tail");
  const ResizeShape m(op);
  const auto& params = op.params.as<ResizeParams>();
  const int64_t element = BitWidth(op.inputs[0].type) / 8;
  const int64_t bytes = m.channels * element;
  return MakeKernel(
      "resize_nearest " + std::string(DataTypeName(op.inputs[0].type)),
      {.units = m.rows, .grain = GrainFor(m.out_w * m.channels)},
      [=, ys = NearestTaps(m.in_h, m.out_h, params), xs = NearestTaps(m.in_w, m.out_w, params),
       in_pitch = m.in_pitch * element,
       out_pitch = m.out_pitch * element](const KernelArgs& args, int64_t begin, int64_t end) {
        const auto* in = static_cast<const std::byte*>(args.inputs[0]);
        auto* out = static_cast<std::byte*>(args.outputs[0]);
        for (int64_t row = begin; row < end; ++row) {
          const int64_t source = row / m.out_h * m.in_h + ys[row % m.out_h];
          const std::byte* from = in + source * m.in_w * in_pitch;
          std::byte* to = out + row * m.out_w * out_pitch;
          switch (bytes) {
            case 1: CopyPixels<1>(from, to, xs, in_pitch, out_pitch); break;
            case 4: CopyPixels<4>(from, to, xs, in_pitch, out_pitch); break;
            case 8: CopyPixels<8>(from, to, xs, in_pitch, out_pitch); break;
            case 16: CopyPixels<16>(from, to, xs, in_pitch, out_pitch); break;
            case 32: CopyPixels<32>(from, to, xs, in_pitch, out_pitch); break;
            case 64: CopyPixels<64>(from, to, xs, in_pitch, out_pitch); break;
            default:
              for (int32_t x = 0; x < m.out_w; ++x) {
                std::memcpy(to + x * out_pitch, from + xs[x] * in_pitch, bytes);
              }
          }
        }
      });
}

}  // namespace fuselite::kernels
