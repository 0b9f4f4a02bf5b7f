// Kernels over rows of bytes that keep the exponentials of several rows at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "kernels/make_kernel.h"
#include "kernels/operator.h"
#include "runtime/memory/aligned_buffer.h"

namespace fuselite::kernels {

struct QuantizedRows {
  explicit QuantizedRows(const OpDescription& op)
      : n(op.inputs[0].shape.dim(-1)),
        in_pitch(op.inputs[0].pitch()),
        out_pitch(op.outputs[0].pitch()),
        exps_pitch((n + 15) / 16 * 16),
        rows(n ? op.inputs[0].elements() / n : 0),
        in_bytes(BitWidth(op.inputs[0].type) / 8),
        out_bytes(BitWidth(op.outputs[0].type) / 8),
        is_signed(op.inputs[0].type != DataType::kUInt8),
        together(std::clamp<int64_t>(4096 / std::max<int64_t>(1, exps_pitch), 1, 16)) {}

  // body(in, out, count, exps) computes `count` rows, which begin at `in` and `out`, with scratch
  // of exps_pitch elements for each. A unit is one row.
  template <class Body>
  std::unique_ptr<Kernel> Make(std::string name, Body body) const {
    const Work work{.units = rows,
                    .grain = GrainFor(4 * n),
                    .scratch_bytes = together * exps_pitch * sizeof(int32_t)};
    return MakeKernel(
        std::move(name), work,
        [r = *this, body = std::move(body)](const KernelArgs& args, int64_t begin, int64_t end) {
          const auto* in = static_cast<const std::byte*>(args.inputs[0]);
          auto* out = static_cast<std::byte*>(args.outputs[0]);
          for (int64_t row = begin; row < end; row += r.together) {
            body(in + row * r.in_pitch * r.in_bytes, out + row * r.out_pitch * r.out_bytes,
                 std::min(r.together, end - row), reinterpret_cast<int32_t*>(args.scratch));
          }
        });
  }

  // As Make(), for rows of one element, of which all give what `body` makes of any: its share of
  // the sum is the whole.
  template <class Body>
  std::unique_ptr<Kernel> MakeSingles(std::string name, Body body) const {
    const std::array<std::byte, 2> any{};
    std::array<std::byte, 2> result{};
    alignas(kAlignment) std::array<int32_t, 16> exps{};  // exps_pitch of them
    body(any.data(), result.data(), 1, exps.data());
    return MakeKernel(std::move(name), {.units = rows, .grain = GrainFor(1)},
                      [result, r = *this](const KernelArgs& args, int64_t begin, int64_t end) {
                        const int64_t step = r.out_pitch * r.out_bytes;
                        auto* const out = static_cast<std::byte*>(args.outputs[0]) + begin * step;
                        const int64_t bytes = (end - begin) * step;
                        if (step == 1) {
                          std::memset(out, static_cast<int>(result[0]), bytes);
                          return;
                        }
                        for (int64_t at = 0; at < bytes; at += step) {
                          std::memcpy(out + at, result.data(), r.out_bytes);
                        }
                      });
  }

  // As Make(), for rows of two bytes, of which both results depend on the difference alone: `body`
  // makes those of all differences before.
  template <class Body>
  std::unique_ptr<Kernel> MakePairs(std::string name, Body body) const {
    const int flip = is_signed ? 0x80 : 0;
    std::vector<Pair> pairs(511);
    alignas(kAlignment) std::array<int32_t, 16> exps{};  // exps_pitch of them
    for (int i = 0; i < 511; ++i) {
      const int difference = i - 255;
      const std::array<uint8_t, 2> in = {static_cast<uint8_t>(std::max(difference, 0) ^ flip),
                                         static_cast<uint8_t>(std::max(-difference, 0) ^ flip)};
      body(in.data(), pairs[i].data(), 1, exps.data());
    }
    return MakeKernel(std::move(name), {.units = rows, .grain = GrainFor(4)},
                      [pairs = std::move(pairs), flip, r = *this](const KernelArgs& args,
                                                                  int64_t begin, int64_t end) {
                        const auto* in = static_cast<const uint8_t*>(args.inputs[0]);
                        auto* const out = static_cast<std::byte*>(args.outputs[0]);
                        const int64_t step = r.out_pitch * r.out_bytes;
                        for (int64_t row = begin; row < end; ++row) {
                          const uint8_t* const x = in + row * r.in_pitch;
                          const Pair& pair = pairs[255 + (x[0] ^ flip) - (x[1] ^ flip)];
                          std::byte* const to = out + row * step;
                          r.out_bytes == 1 ? std::memcpy(to, pair.data(), 2)
                                           : std::memcpy(to, pair.data(), 4);
                        }
                      });
  }

  using Pair = std::array<std::byte, 4>;
  int64_t n, in_pitch, out_pitch, exps_pitch, rows, in_bytes, out_bytes;
  bool is_signed;
  int64_t together;  // at most 16
};

}  // namespace fuselite::kernels
