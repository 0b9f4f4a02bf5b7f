#include "jit/depthwise_s8_emitter.h"

#include <algorithm>
#include <cstddef>

#include "jit/column_emitter.h"
#include "jit/row_walker.h"

namespace fuselite::jit {

using kernels::WindowAxis;
using Xbyak::Reg64;
using Xbyak::Xmm;

namespace {

class DepthwiseS8Emitter : public Assembler {
 public:
  explicit DepthwiseS8Emitter(const DepthwiseS8Spec& spec)
      : Assembler(spec.isa),
        spec_(spec),
        x_(spec.window.x),
        y_(spec.window.y),
        column_(*this, spec, rows_),
        tail_(*this, spec.requantization.value_or(Requantization{}), t(0), t(1), table_) {}

  size_t EmitRow(const DepthwiseS8Blocks& blocks) {
    align(32);
    const size_t entry = getSize();
    width_ = blocks.width;
    channels_ = blocks.channels;
    BeginFunction();
    tail_.Prepare(channels_);
    column_.Prepare(width_, channels_);
    mov(weights_, ptr[args_ + offsetof(DepthwiseS8Args, weights)]);
    if (spec_.requantization && spec_.requantization->lookup) {
      mov(table_, ptr[args_ + offsetof(DepthwiseS8Args, table)]);
    }
    Xbyak::Label next;
    align(16);
    L(next);
    EmitBlock();
    add(weights_, static_cast<uint32_t>(spec_.block_bytes(width_)));
    for (int ky = 0; ky < y_.filter; ++ky) add(RowSlot(ky), channels_);
    add(qword[args_ + offsetof(DepthwiseS8Args, out)], channels_ * (spec_.requantization ? 1 : 4));
    if (spec_.residual) add(qword[args_ + offsetof(DepthwiseS8Args, residual)], channels_);
    dec(qword[args_ + offsetof(DepthwiseS8Args, blocks)]);
    jnz(next, T_NEAR);
    EndFunction();
    return entry;
  }

 private:
  int t(int i) const { return isa().registers() - 1 - i; }
  int acc(int output, int v) const { return output * spec_.group() + v; }
  Xmm V(int reg) const { return VectorOf(reg, width_); }
  Xbyak::Address RowSlot(int ky) {
    return qword[args_ + static_cast<int>(offsetof(DepthwiseS8Args, rows)) + 8 * ky];
  }

  // All pixels of a block's channels.
  void EmitBlock() {
    for (int ky = 0; ky < y_.filter; ++ky) mov(rows_[ky], RowSlot(ky));
    mov(out_, ptr[args_ + offsetof(DepthwiseS8Args, out)]);
    if (spec_.residual) mov(residual_, ptr[args_ + offsetof(DepthwiseS8Args, residual)]);
    WalkRow(*this, x_, DepthwiseS8Tile(spec_), tiles_, [&](const RowTile& tile) {
      EmitTile(tile);
      Advance(static_cast<int>(tile.size()));
    });
  }

  void Advance(int outputs) {
    for (int ky = 0; ky < y_.filter; ++ky) {
      add(rows_[ky], static_cast<uint32_t>(outputs * x_.stride * spec_.pixel_bytes));
    }
    add(out_, static_cast<uint32_t>(outputs * spec_.out_pixel_bytes));
    if (spec_.residual) {
      add(residual_, static_cast<uint32_t>(outputs * spec_.residual->operand.row_stride));
    }
  }

  // Columns outside of the image hold zero points.
  void EmitTile(const RowTile& tile) {
    const auto outputs = static_cast<int>(tile.size());
    for (int v = 0; v < spec_.group(); ++v) {
      vmovups(V(acc(0, v)), ptr[weights_ + v * width_]);
      for (int i = 1; i < outputs; ++i) vmovaps(V(acc(i, v)), V(acc(0, v)));
    }
    for (const TileColumn& column : ColumnsUnder(x_, tile)) {
      for (int group = 0; group < spec_.row_groups(); ++group) EmitColumn(column, group);
    }
    for (int i = 0; i < outputs; ++i) StoreOutput(i);
  }

  void EmitColumn(const TileColumn& column, int group) {
    const std::vector<int> values = column.inside
                                        ? column_.Load(column.at * spec_.pixel_bytes, group)
                                        : column_.LoadZeroPoints();
    for (const auto [output, kx] : column.uses) {
      for (int v = 0; v < spec_.group(); ++v) {
        const int at = spec_.group() * (1 + kx * spec_.row_groups() + group) + v;
        Multiply(acc(output, v), values[v], ptr[weights_ + at * width_]);
      }
    }
  }

  void Multiply(int sum, int values, const Xbyak::Address& weights) {
    if (spec_.dot) {
      vpdpbusd(V(sum), V(values), weights, isa().avx512 ? Xbyak::EvexEncoding : Xbyak::VexEncoding);
    } else {
      vpmaddwd(V(t(3)), V(values), weights);
      vpaddd(V(sum), V(sum), V(t(3)));
    }
  }

  void StoreOutput(int output) {
    const auto offset = static_cast<int>(output * spec_.out_pixel_bytes);
    std::vector<int> regs;
    for (int v = 0; v < spec_.group(); ++v) regs.push_back(acc(output, v));
    if (!spec_.requantization) return StoreSums(regs, offset);
    const int taps = x_.filter * spec_.row_groups();
    for (int v = 0; v < spec_.group(); ++v) {
      const int at = spec_.group() * (1 + taps) + v * spec_.constants();
      tail_.Requantize(regs[v], width_, weights_ + at * width_);
    }
    if (spec_.residual) {
      const auto at = static_cast<int>(output * spec_.residual->operand.row_stride);
      ResidualEmitter(*this, *spec_.residual, t(0), t(1), t(2))
          .Emit(regs, width_, residual_ + at, channels_);
    }
    tail_.Store(regs, width_, out_ + offset, channels_);
  }

  // Each 16 bytes of a vector are four channels in order.
  void StoreSums(const std::vector<int>& regs, int offset) {
    for (size_t v = 0; v < regs.size(); ++v) {
      for (int lane = 0; lane < width_ / 4; lane += 4) {
        const int channel = ChannelOfLane(spec_.group(), static_cast<int>(v), lane);
        Xmm part(regs[v]);
        if (lane > 0) {
          part = Xmm(t(0));
          ExtractQuad(part, regs[v], lane / 4);
        }
        vmovups(ptr[out_ + offset + channel * 4], part);
      }
    }
  }

  void ExtractQuad(const Xmm& to, int reg, int quad) {
    if (width_ == 64) return vextracti32x4(to, Xbyak::Zmm(reg), quad);
    if (isa().avx512) return vextracti32x4(to, Xbyak::Ymm(reg), quad);
    vextracti128(to, Xbyak::Ymm(reg), quad);
  }

  const DepthwiseS8Spec& spec_;
  const WindowAxis &x_, &y_;
  int width_ = 0, channels_ = 0;

  const Reg64 args_ = rdi, weights_ = rsi, out_ = rdx, tiles_ = rcx;
  const Reg64 residual_ = rbx, table_ = rbp;
  const Reg64 rows_[kMaxS8FilterRows] = {r8, r9, r10, r11, r12, r13, r14, r15};
  ColumnEmitter column_;
  IntegerTailEmitter tail_;
};

std::string Key(const DepthwiseS8Spec& spec, const std::vector<DepthwiseS8Blocks>& blocks) {
  std::string key = internal::Join("depthwise s8 ", static_cast<int>(spec.isa), " d", spec.dot,
                                   " u", spec.is_unsigned, " z", spec.zero_point, " in",
                                   spec.pixel_bytes, " out", spec.out_pixel_bytes) +
                    WindowKey(spec.window);
  for (const auto& b : blocks) key += internal::Join(" b", b.width, '.', b.channels);
  return key + (spec.requantization ? spec.requantization->key() : " sums") +
         (spec.residual ? spec.residual->key() : "");
}

}  // namespace

std::vector<DepthwiseS8Blocks> SplitChannels(const DepthwiseS8Spec& spec, int64_t channels) {
  const VectorIsa isa(spec.isa);
  std::vector<DepthwiseS8Blocks> blocks;
  const int whole = spec.whole_channels(isa.bytes);
  if (channels >= whole) blocks.push_back({isa.bytes, whole, channels / whole});
  auto rest = static_cast<int>(channels % whole);
  // Of AVX2, vectors that are partly loaded have fewer than 16 channels.
  while (rest > 0) {
    int width = isa.bytes;
    const int narrowest = spec.dot ? 16 : 32;
    while (width > narrowest && spec.whole_channels(width / 2) >= rest) width /= 2;
    if (!isa.avx512) width = narrowest;
    const int taken = std::min(rest, spec.whole_channels(width));
    blocks.push_back({width, taken, 1});
    rest -= taken;
  }
  return blocks;
}

int DepthwiseS8Tile(const DepthwiseS8Spec& spec) {
  const WindowAxis& x = spec.window.x;
  const int registers = VectorIsa(spec.isa).registers() - ColumnEmitter::kRegisters;
  return ChooseTile(x, std::min(registers / spec.group(), 8), [&](int outputs) {
    const int columns = (outputs - 1) * std::min(x.stride, x.filter) + x.filter;
    return columns * 2.0 * spec.row_groups() + 2.0;
  });
}

Status CheckDepthwiseS8(const DepthwiseS8Spec& spec) {
  const auto& [y, x] = spec.window;
  if (y.filter > kMaxS8FilterRows) {
    return Unsupported("a filter of ", y.filter, " rows has no emitter");
  }
  const auto tiles = static_cast<int64_t>(SplitRow(x, DepthwiseS8Tile(spec)).size());
  return CheckRow(spec.window,
                  {.multiplies = tiles * 3 * 8 * spec.group() * spec.row_groups() * x.filter,
                   .most_multiplies = 30000,
                   .pixel_bytes = spec.pixel_bytes,
                   .out_pixel_bytes = spec.out_pixel_bytes});
}

Result<SharedCode> EmitDepthwiseS8(const DepthwiseS8Spec& spec,
                                   const std::vector<DepthwiseS8Blocks>& blocks,
                                   const std::string& name) {
  return ProcessCodeCache().GetOrEmit(Key(spec, blocks), name, [&]() -> Result<CodeBytes> {
    DepthwiseS8Emitter emitter(spec);
    std::vector<size_t> entries;
    for (const DepthwiseS8Blocks& b : blocks) entries.push_back(emitter.EmitRow(b));
    return emitter.Finish(std::move(entries));
  });
}

}  // namespace fuselite::jit
