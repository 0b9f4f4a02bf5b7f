#include "jit/depthwise/depthwise_s8_emitter.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "jit/depthwise/channel_order.h"
#include "jit/depthwise/column_emitter.h"
#include "jit/depthwise/row_walker.h"

namespace fuselite::jit {

using kernels::WindowAxis;
using Xbyak::Reg64;
using Xbyak::RegExp;
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
        layer_(*this, layer_constants_),
        tail_(*this, spec.requantization.value_or(Requantization{}), temporaries(), layer_) {}

  size_t EmitRow(const DepthwiseS8Blocks& blocks) {
    align(32);
    const size_t entry = getSize();
    width_ = blocks.width;
    channels_ = blocks.channels;
    BeginFunction();
    tail_.Prepare(channels_);
    column_.Prepare(width_, channels_);
    mov(weights_, ptr[args_ + offsetof(DepthwiseS8Args, weights)]);
    if (spec_.dequantization) PrepareFloats();
    if (spec_.requantization) {
      mov(layer_constants_, ptr[args_ + offsetof(DepthwiseS8Args, tail.layer)]);
    }
    Xbyak::Label next;
    align(16);
    L(next);
    EmitBlock();
    add(weights_, static_cast<uint32_t>(spec_.block_bytes(width_)));
    for (int ky = 0; ky < y_.filter; ++ky) add(RowSlot(ky), channels_);
    add(qword[args_ + offsetof(DepthwiseS8Args, out)], channels_ * (spec_.requantization ? 1 : 4));
    if (spec_.residual) add(qword[args_ + offsetof(DepthwiseS8Args, tail.residual)], channels_);
    dec(qword[args_ + offsetof(DepthwiseS8Args, blocks)]);
    jnz(next, T_NEAR);
    EndFunction();
    return entry;
  }

  // Behind the last row.
  CodeBytes FinishAll(std::vector<size_t> entries) {
    tail_.EmitOtherForms();
    return Finish(std::move(entries));
  }

 private:
  void PrepareFloats() {
    if (channels_ % isa().lanes() != 0) SetPartial(channels_ % isa().lanes());
    mov(scales_, ptr[args_ + offsetof(DepthwiseS8Args, tail.scales)]);
  }

  int t(int i) const { return isa().registers() - 1 - i; }
  std::array<int, 3> temporaries() const { return {t(0), t(1), t(2)}; }
  int acc(int output, int v) const { return output * spec_.group() + v; }
  Xmm V(int reg) const { return VectorOf(reg, width_); }
  Xbyak::Address RowSlot(int ky) {
    return qword[args_ + static_cast<int>(offsetof(DepthwiseS8Args, rows)) + 8 * ky];
  }

  // All pixels of a block's channels.
  void EmitBlock() {
    for (int ky = 0; ky < y_.filter; ++ky) mov(rows_[ky], RowSlot(ky));
    mov(out_, ptr[args_ + offsetof(DepthwiseS8Args, out)]);
    if (spec_.residual) mov(residual_, ptr[args_ + offsetof(DepthwiseS8Args, tail.residual)]);
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
    StartFromBias(outputs);
    for (const TileColumn& column : ColumnsUnder(x_, tile)) {
      for (int group = 0; group < spec_.row_groups(); ++group) EmitColumn(column, group);
    }
    if (spec_.dequantization) return StoreFloats(outputs);
    if (spec_.requantization) RequantizeTile(outputs);
    for (int i = 0; i < outputs; ++i) {
      spec_.requantization ? StoreValues(i) : StoreSums(i);
    }
  }

  void StartFromBias(int outputs) {
    const bool zero_points = spec_.dequantization && spec_.dequantization->row_zero_points;
    if (zero_points) vpbroadcastd(V(t(0)), ptr[scales_ + offsetof(RowScale, zero_point)]);
    for (int v = 0; v < spec_.group(); ++v) {
      const auto bias = ptr[weights_ + v * width_];
      zero_points ? vpmulld(V(acc(0, v)), V(t(0)), bias) : vmovups(V(acc(0, v)), bias);
      for (int i = 1; i < outputs; ++i) vmovaps(V(acc(i, v)), V(acc(0, v)));
    }
  }

  void EmitColumn(const TileColumn& column, int group) {
    const std::vector<int> values =
        column.inside ? column_.Load(column.at * spec_.pixel_bytes, group)
                      : column_.LoadZeroPoints(ptr[args_ + offsetof(DepthwiseS8Args, zero_points)]);
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

  std::vector<int> Sums(int output) const {
    std::vector<int> regs;
    for (int v = 0; v < spec_.group(); ++v) regs.push_back(acc(output, v));
    return regs;
  }
  // Those of the `v`-th vector of sums.
  RegExp Constants(int v) const {
    const int vectors = spec_.group() * (1 + x_.filter * spec_.row_groups());
    return weights_ + (vectors + v * spec_.constants()) * width_;
  }

  void RequantizeTile(int outputs) {
    for (int v = 0; v < spec_.group(); ++v) {
      std::vector<int> regs;
      for (int i = 0; i < outputs; ++i) regs.push_back(acc(i, v));
      tail_.Requantize(regs, width_, Constants(v));
    }
  }

  void StoreValues(int output) {
    const std::vector<int> regs = Sums(output);
    if (spec_.residual) {
      const auto at = static_cast<int>(output * spec_.residual->operand.row_stride);
      ResidualEmitter(*this, *spec_.residual, layer_, temporaries())
          .Emit(regs, width_, residual_ + at, channels_);
    }
    tail_.Store(regs, width_, out_ + static_cast<int>(output * spec_.out_pixel_bytes), channels_);
  }

  std::vector<int> OrderedSums(int output) {
    return EmitChannelOrder(*this, Sums(output), width_, std::array{t(0), t(1), t(2), t(3)});
  }

  void StoreSums(int output) {
    auto offset = static_cast<int>(output * spec_.out_pixel_bytes);
    for (const int reg : OrderedSums(output)) {
      vmovups(ptr[out_ + offset], Vec(reg));
      offset += isa().bytes;
    }
  }

  void StoreFloats(int outputs) {
    const int lanes = isa().lanes();
    std::vector<TileValue> values;
    for (int i = 0; i < outputs; ++i) {
      const std::vector<int> regs = OrderedSums(i);
      for (int v = 0; v * lanes < channels_; ++v) {
        values.push_back({regs[v], i, v, (v + 1) * lanes > channels_});
      }
    }
    EmitFloats(*this, *spec_.dequantization, values, outputs,
               {.args = args_,
                .tail_at = offsetof(DepthwiseS8Args, tail),
                .scales = scales_,
                .constants = Constants(0),
                .out = out_,
                .out_step = spec_.out_pixel_bytes,
                .pointer = pointer_,
                .temporaries = {t(0), t(1), t(2), t(3)}});
  }

  const DepthwiseS8Spec& spec_;
  const WindowAxis &x_, &y_;
  int width_ = 0, channels_ = 0;

  const Reg64 args_ = rdi, weights_ = rsi, out_ = rdx, tiles_ = rcx;
  const Reg64 residual_ = rbx, layer_constants_ = rbp;  // of bytes
  const Reg64 scales_ = rbx, pointer_ = rbp;            // of floats
  const Reg64 rows_[kMaxS8FilterRows] = {r8, r9, r10, r11, r12, r13, r14, r15};
  ColumnEmitter column_;
  LayerReader layer_;
  IntegerTailEmitter tail_;
};

}  // namespace

uint32_t DepthwiseS8Spec::Lane(int32_t value) const {
  if (!dot) return 0x00010001u * static_cast<uint16_t>(value);
  return 0x01010101u * static_cast<uint8_t>(value ^ (flips() ? 0x80 : 0));
}

std::string CodeKey(const DepthwiseS8Spec& spec, const std::vector<DepthwiseS8Blocks>& blocks) {
  std::string key =
      internal::Join("depthwise s8 ", spec.isa.bits(), " d", spec.dot, " u", spec.is_unsigned,
                     " in", spec.pixel_bytes, " out", spec.out_pixel_bytes) +
      WindowKey(spec.window);
  for (const auto& b : blocks) key += internal::Join(" b", b.width, '.', b.channels);
  return key + (spec.requantization ? spec.requantization->key() : "") +
         (spec.dequantization ? spec.dequantization->key() : "") +
         (spec.residual ? spec.residual->key() : "");
}

std::vector<DepthwiseS8Blocks> SplitChannels(const DepthwiseS8Spec& spec, int64_t channels) {
  const VectorIsa isa(spec.isa);
  std::vector<DepthwiseS8Blocks> blocks;
  const int whole = spec.whole_channels(isa.bytes);
  if (channels >= whole) blocks.push_back({isa.bytes, whole, channels / whole});
  auto rest = static_cast<int>(channels % whole);
  // With AVX2, vectors that are partly loaded have fewer than 16 channels.
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
  return ProcessCodeCache().GetOrEmit(CodeKey(spec, blocks), name, [&]() -> Result<CodeBytes> {
    DepthwiseS8Emitter emitter(spec);
    std::vector<size_t> entries;
    for (const DepthwiseS8Blocks& b : blocks) entries.push_back(emitter.EmitRow(b));
    return emitter.FinishAll(std::move(entries));
  });
}

}  // namespace fuselite::jit
