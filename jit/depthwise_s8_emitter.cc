#include "jit/depthwise_s8_emitter.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

#include "jit/depthwise_emitter.h"

namespace fuselite::jit {

using kernels::WindowAxis;
using Xbyak::Reg64;
using Xbyak::RegExp;
using Xbyak::Xmm;

namespace {

constexpr int kTemporaries = 5;  // behind them the constant that flips
const Xbyak::Opmask kLoaded(6);

class DepthwiseS8Emitter : public Assembler {
 public:
  explicit DepthwiseS8Emitter(const DepthwiseS8Spec& spec)
      : Assembler(spec.isa),
        spec_(spec),
        x_(spec.window.x),
        y_(spec.window.y),
        tail_(*this, spec.requantization.value_or(Requantization{}), t(0), t(1), table_) {}

  size_t EmitRow(const DepthwiseS8Blocks& blocks) {
    align(32);
    const size_t entry = getSize();
    width_ = blocks.width;
    channels_ = blocks.channels;
    BeginFunction();
    tail_.Prepare(channels_);
    if (partial() && isa().avx512) {
      mov(rax, channels_ >= 64 ? ~uint64_t{0} : (uint64_t{1} << channels_) - 1);
      kmovq(kLoaded, rax);
    }
    if (flips()) LoadConst(flip(), 0x80808080u);
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
  bool partial() const { return channels_ < spec_.whole_channels(width_); }
  bool flips() const { return spec_.dot && !spec_.is_unsigned; }
  int t(int i) const { return isa().registers() - 1 - i; }
  int flip() const { return t(kTemporaries); }
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
    for (const TileRun& run : SplitRow(x_, DepthwiseS8Tile(spec_))) {
      const auto outputs = static_cast<int>(run.columns.size());
      mov(tiles_, run.count);
      Xbyak::Label next;
      align(16);
      L(next);
      EmitTile(run.columns);
      for (int ky = 0; ky < y_.filter; ++ky) {
        add(rows_[ky], static_cast<uint32_t>(outputs * x_.stride * spec_.pixel_bytes));
      }
      add(out_, static_cast<uint32_t>(outputs * spec_.out_pixel_bytes));
      if (spec_.residual) {
        add(residual_, static_cast<uint32_t>(outputs * spec_.residual->operand.row_stride));
      }
      dec(tiles_);
      jnz(next, T_NEAR);
    }
  }

  // Neighbouring outputs whose windows have these columns inside of the image; the others hold
  // zero points.
  void EmitTile(const std::vector<Taps>& inside) {
    const auto outputs = static_cast<int>(inside.size());
    for (int v = 0; v < spec_.group(); ++v) {
      vmovups(V(acc(0, v)), ptr[weights_ + v * width_]);
      for (int i = 1; i < outputs; ++i) vmovaps(V(acc(i, v)), V(acc(0, v)));
    }
    const int32_t columns = (outputs - 1) * x_.stride + (x_.filter - 1) * x_.dilation + 1;
    for (int32_t column = 0; column < columns; ++column) {
      for (int group = 0; group < spec_.row_groups(); ++group) {
        EmitColumn(inside, column, group);
      }
    }
    for (int i = 0; i < outputs; ++i) StoreOutput(i);
  }

  void EmitColumn(const std::vector<Taps>& inside, int32_t column, int group) {
    bool loaded = false;
    std::vector<int> values;
    for (int i = 0; i < static_cast<int>(inside.size()); ++i) {
      const int32_t distance = column - i * x_.stride;
      if (distance < 0 || distance % x_.dilation != 0) continue;
      const int32_t kx = distance / x_.dilation;
      if (kx >= x_.filter) continue;
      if (!loaded) {
        // A column lies inside of the image for all windows or for none.
        const bool is_inside = inside[i].first <= kx && kx < inside[i].last;
        values = is_inside ? LoadColumn(column * spec_.pixel_bytes, group) : LoadZeroPoints();
        loaded = true;
      }
      for (int v = 0; v < spec_.group(); ++v) {
        const int at = spec_.group() * (1 + kx * spec_.row_groups() + group) + v;
        Multiply(acc(i, v), values[v], ptr[weights_ + at * width_]);
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

  std::vector<int> LoadZeroPoints() {
    const auto value = static_cast<uint32_t>(spec_.zero_point);
    if (spec_.dot) {
      LoadConst(t(4), 0x01010101u * ((value ^ (flips() ? 0x80 : 0)) & 0xFF));
    } else {
      LoadConst(t(4), 0x00010001u * (value & 0xFFFF));
    }
    return std::vector<int>(spec_.group(), t(4));
  }

  // The column's values of up to lane_rows() filter rows, interleaved. Lanes of rows that the
  // filter does not have hold anything: their weights are zero. Returns where.
  std::vector<int> LoadColumn(int64_t offset, int group) {
    const int first = group * spec_.lane_rows();
    const int rows = std::min(spec_.lane_rows(), y_.filter - first);
    for (int i = 0; i < rows; ++i) {
      LoadValues(t(i), rows_[first + i] + static_cast<int>(offset));
    }
    if (!spec_.dot) {
      const int second = t(rows - 1);
      vpunpcklwd(V(t(2)), V(t(0)), V(second));
      vpunpckhwd(V(t(0)), V(t(0)), V(second));
      return {t(2), t(0)};
    }
    const int second = rows > 1 ? t(1) : t(0);
    vpunpcklbw(V(t(4)), V(t(0)), V(second));
    vpunpckhbw(V(t(0)), V(t(0)), V(second));
    int low = t(4), high = t(0);  // of rows 2 and 3
    if (rows > 2) {
      const int fourth = t(rows - 1);
      vpunpcklbw(V(t(1)), V(t(2)), V(fourth));
      vpunpckhbw(V(t(2)), V(t(2)), V(fourth));
      low = t(1), high = t(2);
    }
    vpunpcklwd(V(t(3)), V(t(4)), V(low));
    vpunpckhwd(V(t(4)), V(t(4)), V(low));
    vpunpcklwd(V(t(1)), V(t(0)), V(high));
    vpunpckhwd(V(t(0)), V(t(0)), V(high));
    return {t(3), t(4), t(1), t(0)};
  }

  void LoadValues(int to, const RegExp& address) {
    if (spec_.dot) {
      if (!partial()) {
        if (!flips()) return vmovups(V(to), ptr[address]);
        return isa().avx512 ? vpxord(V(to), V(flip()), ptr[address])
                            : vpxor(V(to), V(flip()), ptr[address]);
      }
      isa().avx512 ? vmovdqu8(V(to) | kLoaded | T_z, ptr[address]) : LoadPieces(to, address);
      if (flips()) isa().avx512 ? vpxord(V(to), V(to), V(flip())) : vpxor(V(to), V(to), V(flip()));
      return;
    }
    if (!partial()) {
      Widen(V(to), ptr[address]);
    } else if (isa().avx512) {
      Widen(V(to) | kLoaded | T_z, ptr[address]);
    } else {
      LoadPieces(to, address);
      Widen(V(to), Xmm(to));
    }
  }
  void Widen(const Xmm& to, const Xbyak::Operand& from) {
    spec_.is_unsigned ? vpmovzxbw(to, from) : vpmovsxbw(to, from);
  }

  // AVX2: fewer than 16 bytes, none behind them.
  void LoadPieces(int to, RegExp address) {
    const Xmm v(to);
    int at = 0;
    if (channels_ & 8) {
      vmovq(v, ptr[address]);
      at = 8;
    } else {
      vpxor(v, v, v);
    }
    for (const int piece : {4, 2, 1}) {
      if (!(channels_ & piece)) continue;
      const RegExp from = address + at;
      switch (piece) {
        case 4: vpinsrd(v, v, ptr[from], at / 4); break;
        case 2: vpinsrw(v, v, ptr[from], at / 2); break;
        default: vpinsrb(v, v, ptr[from], at); break;
      }
      at += piece;
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
  IntegerTailEmitter tail_;
};

std::string Key(const DepthwiseS8Spec& spec, const std::vector<DepthwiseS8Blocks>& blocks) {
  std::string key = internal::Join("depthwise s8 ", static_cast<int>(spec.isa), " d", spec.dot,
                                   " u", spec.is_unsigned, " z", spec.zero_point, " in",
                                   spec.pixel_bytes, " out", spec.out_pixel_bytes);
  for (const WindowAxis& axis : {spec.window.y, spec.window.x}) {
    key += internal::Join(" w", axis.input, '.', axis.filter, '.', axis.stride, '.', axis.dilation,
                          '.', axis.output, '.', axis.before);
  }
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
  const auto& x = spec.window.x;
  const int registers = VectorIsa(spec.isa).registers() - kTemporaries - 1;
  const int most = std::min<int>({registers / spec.group(), 8, std::max(x.output, 1)});
  int best = 1;
  double best_cost = 1e300;
  for (int tile = 1; tile <= most; ++tile) {
    const int tiles = (x.output + tile - 1) / tile;
    const int columns = (tile - 1) * std::min(x.stride, x.filter) + x.filter;
    const double cost = tiles * (columns * 2.0 * spec.row_groups() + 2.0);
    if (cost < best_cost * 0.999) {
      best_cost = cost;
      best = tile;
    }
  }
  return best;
}

Status CheckDepthwiseS8(const DepthwiseS8Spec& spec) {
  const auto& [y, x] = spec.window;
  if (y.filter > kMaxS8FilterRows || x.filter > 16) {
    return Unsupported("a filter of ", y.filter, 'x', x.filter, " has no emitter");
  }
  const auto runs = static_cast<int64_t>(SplitRow(x, DepthwiseS8Tile(spec)).size());
  const int64_t multiplies = runs * 3 * 8 * spec.group() * spec.row_groups() * x.filter;
  if (multiplies > 30000) {
    return Unsupported("windows of ", y.filter, 'x', x.filter, " are too large to be unrolled");
  }
  constexpr int64_t kReach = int64_t{1} << 30;
  const int64_t columns = int64_t{16} * x.stride + int64_t{x.filter} * x.dilation;
  if (columns * spec.pixel_bytes > kReach || spec.out_pixel_bytes * 8 > kReach) {
    return Unsupported("a tile of ", columns * spec.pixel_bytes, " bytes' extent");
  }
  return Status();
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
