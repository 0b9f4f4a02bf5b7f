#include "jit/gemm_s8_emitter.h"

#include <algorithm>
#include <cstddef>

namespace fuselite::jit {

using Xbyak::Reg64;
using Xbyak::RegExp;
using Xbyak::Xmm;

namespace {

constexpr int kBases = 4;        // row base registers
constexpr int kRowsPerBase = 5;  // base + {0, 1, 2, 3, 4} steps
constexpr int kGroupBytes = 4;

class GemmS8Emitter : public Assembler {
 public:
  explicit GemmS8Emitter(const GemmS8Spec& spec) : Assembler(spec.isa), spec_(spec) {}

  size_t EmitFunction(const GemmS8Tile& tile) {
    align(32);
    const size_t entry = getSize();
    tile_ = tile;
    BeginFunction();
    IntegerTailEmitter tail(*this, Plan(), weight(0), broadcast(0), table_);
    tail.Prepare(tile.last_channels);
    if (!spec_.requantization) SetPartial(tile.last_channels);
    if (spec_.flips) LoadConst(kFlip(), 0x80808080u);
    mov(panel_, ptr[args_ + offsetof(GemmS8Args, panel)]);
    mov(out_, ptr[args_ + offsetof(GemmS8Args, out)]);
    mov(a_, ptr[args_ + offsetof(GemmS8Args, a)]);
    if (Plan().lookup) mov(table_, ptr[args_ + offsetof(GemmS8Args, table)]);
    mov(step_, spec_.a_step);
    lea(step3_, ptr[step_ + step_ * 2]);
    Xbyak::Label next, done;
    cmp(qword[args_ + offsetof(GemmS8Args, tiles)], 0);
    je(done, T_NEAR);
    align(16);
    L(next);
    EmitTile(tail);
    dec(qword[args_ + offsetof(GemmS8Args, tiles)]);
    jnz(next, T_NEAR);
    L(done);
    EndFunction();
    return entry;
  }

 private:
  Requantization Plan() const { return spec_.requantization.value_or(Requantization{}); }

  // Accumulators from the bottom; from the top the constant that flips, the vectors of weights, a
  // broadcast group, a product.
  int kFlip() const { return isa().registers() - 1; }
  int weight(int v) const { return isa().registers() - 1 - spec_.flips - v; }
  int broadcast(int row) const {
    const int top = weight(tile_.vectors);
    const bool two = HasDotProduct(spec_.isa) && top - 1 >= tile_.rows * tile_.vectors;
    return top - (two ? row % 2 : 0);
  }
  int product() const { return weight(tile_.vectors) - 1; }
  // When the depth is done, beside weight(0) and broadcast(0).
  int spare() const { return tile_.vectors > 1 ? weight(1) : weight(1) - 1; }
  int acc(int row, int v) const { return row * tile_.vectors + v; }

  RegExp RowValue(int row, int64_t displacement) const {
    const RegExp base = bases_[row / kRowsPerBase] + static_cast<int>(displacement);
    switch (row % kRowsPerBase) {
      case 1: return base + step_;
      case 2: return base + step_ * 2;
      case 3: return base + step3_;
      case 4: return base + step_ * 4;
      default: return base;
    }
  }

  void EmitTile(IntegerTailEmitter& tail) {
    mov(w_, panel_);
    for (int b = 0; b * kRowsPerBase < tile_.rows; ++b) {
      if (b == 0) {
        mov(bases_[0], a_);
      } else {
        lea(bases_[b], ptr[bases_[b - 1] + step_ * 4]);
        add(bases_[b], step_);
      }
    }
    StartFromBias();
    AccumulateDepth();
    Flush(a_offset_);
    FinishTile(tail);
  }

  void StartFromBias() {
    for (int v = 0; v < tile_.vectors; ++v) vmovups(Vec(weight(v)), ptr[w_ + v * isa().bytes]);
    if (spec_.dequantization && spec_.dequantization->row_zero_points) return StartFromZeroPoints();
    if (spec_.corrects) mov(count_, ptr[args_ + offsetof(GemmS8Args, corrections)]);
    for (int row = 0; row < tile_.rows; ++row) {
      if (spec_.corrects && !isa().avx512) vpbroadcastd(Vec(broadcast(0)), ptr[count_ + row * 4]);
      for (int v = 0; v < tile_.vectors; ++v) {
        if (!spec_.corrects) {
          vmovaps(Vec(acc(row, v)), Vec(weight(v)));
        } else if (isa().avx512) {
          vpaddd(Vec(acc(row, v)), Vec(weight(v)), ptr_b[count_ + row * 4]);
        } else {
          vpaddd(Vec(acc(row, v)), Vec(weight(v)), Vec(broadcast(0)));
        }
      }
    }
    SkipBias();
  }

  void StartFromZeroPoints() {
    mov(count_, ptr[args_ + offsetof(GemmS8Args, scales)]);
    for (int row = 0; row < tile_.rows; ++row) {
      const auto at =
          static_cast<int>(row * spec_.dequantization->row_step() + offsetof(RowScale, zero_point));
      vpbroadcastd(Vec(broadcast(0)), ptr[count_ + at]);
      for (int v = 0; v < tile_.vectors; ++v) {
        vpmulld(Vec(acc(row, v)), Vec(weight(v)), Vec(broadcast(0)));
      }
    }
    SkipBias();
  }
  void SkipBias() {
    w_offset_ = tile_.vectors * isa().bytes;
    a_offset_ = 0;
  }

  int64_t Groups(int64_t values) const {
    const int each = GroupValues(spec_.isa);
    return (values + each - 1) / each;
  }

  void AccumulateDepth() {
    const DepthRuns& depth = spec_.depth;
    // Short depths are straight code: the loops' start and end cost more than the sums.
    if (DepthGroups(depth, spec_.isa) <= 36 || depth.outer == 1) {
      for (int64_t i = 0; i < depth.outer; ++i) {
        for (const DepthRuns::Run& run : depth.runs) AccumulateRun(i * depth.outer_step, run);
      }
      return;
    }
    mov(outer_, depth.outer);
    Flush(0);
    Xbyak::Label next;
    align(16);
    L(next);
    for (const DepthRuns::Run& run : depth.runs) AccumulateRun(0, run);
    Flush(depth.outer_step);
    a_offset_ = 0;
    dec(outer_);
    jnz(next, T_NEAR);
  }

  // Moves the row bases to `a_offset`, and the weights' cursor to the next weights.
  void Flush(int64_t a_offset) {
    if (w_offset_ != 0) add(w_, static_cast<uint32_t>(w_offset_));
    w_offset_ = 0;
    const int64_t move = a_offset - a_offset_;
    if (move != 0) MoveBases(move);
    a_offset_ = a_offset;
  }
  void MoveBases(int64_t bytes) {
    for (int b = 0; b * kRowsPerBase < tile_.rows; ++b) {
      add(bases_[b], static_cast<uint32_t>(bytes));
    }
  }

  void AccumulateRun(int64_t origin, const DepthRuns::Run& run) {
    const int64_t start = origin + run.offset, groups = Groups(run.length);
    constexpr int64_t kUnroll = 8;
    if (groups < 2 * kUnroll) {
      for (int64_t g = 0; g < groups; ++g) Step(start + g * kGroupBytes - a_offset_);
      return;
    }
    const int64_t loops = groups / kUnroll;
    Flush(start);
    mov(count_, loops);
    Xbyak::Label next;
    align(32);
    L(next);
    for (int64_t g = 0; g < kUnroll; ++g) Step(g * kGroupBytes);
    add(w_, static_cast<uint32_t>(w_offset_));
    MoveBases(kUnroll * kGroupBytes);
    w_offset_ = 0;
    dec(count_);
    jnz(next, T_NEAR);
    a_offset_ = start + loops * kUnroll * kGroupBytes;
    for (int64_t g = 0; g < groups % kUnroll; ++g) Step(g * kGroupBytes);
  }

  // One group of the depth: each row's values times the vectors of weights.
  void Step(int64_t displacement) {
    const int vectors = tile_.vectors;
    const auto w = [&](int v) { return ptr[w_ + static_cast<int>(w_offset_ + v * isa().bytes)]; };
    if (tile_.rows > 1) {
      for (int v = 0; v < vectors; ++v) vmovups(Vec(weight(v)), w(v));
    }
    for (int row = 0; row < tile_.rows; ++row) {
      const int b = broadcast(row);
      LoadGroup(b, RowValue(row, displacement));
      for (int v = 0; v < vectors; ++v) {
        if (tile_.rows > 1) {
          Multiply(acc(row, v), b, Vec(weight(v)));
        } else {
          Multiply(acc(row, v), b, w(v));
        }
      }
    }
    w_offset_ += vectors * isa().bytes;
  }

  void LoadGroup(int to, const RegExp& address) {
    if (!spec_.flips) return vpbroadcastd(Vec(to), ptr[address]);
    if (isa().avx512) return vpxord(Vec(to), Vec(kFlip()), ptr_b[address]);
    vpbroadcastd(Vec(to), ptr[address]);
    vpxor(Vec(to), Vec(to), Vec(kFlip()));
  }

  void Multiply(int sum, int values, const Xbyak::Operand& weights) {
    if (HasDotProduct(spec_.isa)) {
      vpdpbusd(Vec(sum), Vec(values), weights,
               isa().avx512 ? Xbyak::EvexEncoding : Xbyak::VexEncoding);
      return;
    }
    vpmaddwd(Vec(product()), Vec(values), weights);
    vpaddd(Vec(sum), Vec(sum), Vec(product()));
  }

  void FinishTile(IntegerTailEmitter& tail) {
    if (spec_.residual) mov(count_, ptr[args_ + offsetof(GemmS8Args, residual)]);
    if (spec_.dequantization) StoreFloats();
    for (int row = 0; row < tile_.rows; ++row) {
      if (spec_.requantization) StoreValues(tail, row);
      if (spec_.stores_sums()) StoreSums(row);
    }
    add(a_, static_cast<uint32_t>(tile_.rows * spec_.a_step));
    add(out_, static_cast<uint32_t>(tile_.rows * spec_.out_step));
    if (spec_.corrects) {
      add(qword[args_ + offsetof(GemmS8Args, corrections)], tile_.rows * 4);
    }
    if (spec_.residual) {
      add(qword[args_ + offsetof(GemmS8Args, residual)],
          static_cast<uint32_t>(tile_.rows * spec_.residual->operand.row_stride));
    }
  }

  void StoreFloats() {
    const Dequantization& d = *spec_.dequantization;
    std::vector<TileValue> values;
    for (int row = 0; row < tile_.rows; ++row) {
      for (int v = 0; v < tile_.vectors; ++v) {
        values.push_back({acc(row, v), row, v, v == tile_.vectors - 1});
      }
    }
    mov(count_, ptr[args_ + offsetof(GemmS8Args, scales)]);
    EmitDequantization(*this, d, values, count_, w_, Top(0), Top(1));
    TailEmitter tail(*this, d.tail,
                     {.slots_base = args_,
                      .slots_offset = offsetof(GemmS8Args, operands),
                      .pointer = pointer_,
                      .temporaries = {Top(0), Top(1), Top(2), Top(3)}});
    tail.Emit(values);
    for (const TileValue& value : values) {
      const int64_t offset = value.row * spec_.out_step + value.vector * isa().bytes;
      StoreLanes(out_ + static_cast<int>(offset), value.reg, value.partial, Top(0));
    }
    tail.AdvanceRows(tile_.rows);
    if (d.per_row) {
      add(qword[args_ + offsetof(GemmS8Args, scales)],
          static_cast<uint32_t>(tile_.rows * d.row_step()));
    }
  }
  // When the depth is done, no sum is in these four (MaxS8TileRows).
  int Top(int i) const { return isa().registers() - 1 - i; }

  void StoreSums(int row) {
    for (int v = 0; v < tile_.vectors; ++v) {
      const auto offset = static_cast<int>(row * spec_.out_step + v * isa().bytes);
      StoreLanes(out_ + offset, acc(row, v), v == tile_.vectors - 1, weight(0));
    }
  }

  void StoreValues(IntegerTailEmitter& tail, int row) {
    int channel = 0;
    for (int v = 0; v < tile_.vectors;) {
      const int group = GroupSize(tile_.vectors - v);
      std::vector<int> regs;
      for (int i = 0; i < group; ++i) {
        regs.push_back(acc(row, v + i));
        const int constants = (v + i) * spec_.constants() * isa().bytes;
        tail.Requantize(regs.back(), isa().bytes, w_ + constants);
      }
      v += group;
      const int channels = v == tile_.vectors ? tile_.last_channels : group * isa().lanes();
      if (spec_.residual) {
        const int64_t at = row * spec_.residual->operand.row_stride + channel;
        ResidualEmitter residual(*this, *spec_.residual, weight(0), broadcast(0), spare());
        residual.Emit(regs, isa().bytes, count_ + static_cast<int>(at), channels);
      }
      tail.Store(regs, isa().bytes, out_ + static_cast<int>(row * spec_.out_step + channel),
                 channels);
      channel += channels;
    }
  }

  const GemmS8Spec& spec_;
  GemmS8Tile tile_;
  // The next weights, relative to w_; where the bases stand, relative to their rows' values.
  int64_t w_offset_ = 0, a_offset_ = 0;

  const Reg64 args_ = rdi, panel_ = rsi, out_ = rdx;
  const Reg64 a_ = rbp, step_ = rax, step3_ = rbx;
  const Reg64 bases_[kBases] = {r8, r9, r10, r11};
  const Reg64 count_ = r12, outer_ = r13, w_ = r14, pointer_ = r15, table_ = rcx;
};

std::string Key(const GemmS8Spec& spec, const std::vector<GemmS8Tile>& tiles) {
  std::string key = internal::Join("gemm s8 ", static_cast<int>(spec.isa), " a", spec.a_step, " o",
                                   spec.out_step, " f", spec.flips, " c", spec.corrects, " k",
                                   spec.depth.outer, '*', spec.depth.outer_step);
  for (const auto& run : spec.depth.runs) key += internal::Join(' ', run.offset, '+', run.length);
  for (const GemmS8Tile& tile : tiles) {
    key += internal::Join(" t", tile.rows, 'x', tile.vectors, '.', tile.last_channels);
  }
  return key + (spec.requantization ? spec.requantization->key() : "") +
         (spec.dequantization ? spec.dequantization->key() : "") +
         (spec.residual ? spec.residual->key() : "");
}

}  // namespace

int64_t DepthGroups(const DepthRuns& depth, Isa isa) {
  const int each = GroupValues(isa);
  int64_t groups = 0;
  for (const DepthRuns::Run& run : depth.runs) groups += (run.length + each - 1) / each;
  return groups * depth.outer;
}

// Beside the accumulators: the flipping constant, weights, a broadcast group and a product or a
// second group; and four temporaries when the depth is done.
int MaxS8TileRows(const VectorIsa& isa, int vectors) {
  const int others = HasDotProduct(isa.level) && vectors > 1 ? 1 : 2;
  const int left = isa.registers() - 1 - vectors - others;
  return std::min(left / vectors, kBases * kRowsPerBase);
}

Status CheckGemmS8(const GemmS8Spec& spec) {
  constexpr int64_t kReach = int64_t{1} << 30;
  const DepthRuns& depth = spec.depth;
  int64_t furthest = std::max({spec.a_step, spec.out_step,
                               spec.residual ? spec.residual->operand.row_stride : 0}) *
                     kBases * kRowsPerBase;
  for (const auto& run : depth.runs) furthest = std::max(furthest, run.offset + run.length * 2);
  furthest += depth.outer * depth.outer_step;
  if (furthest > kReach) return Unsupported("a tile of ", furthest, " bytes' extent");
  return Status();
}

Result<SharedCode> EmitGemmS8(const GemmS8Spec& spec, const std::vector<GemmS8Tile>& tiles,
                              const std::string& name) {
  return ProcessCodeCache().GetOrEmit(Key(spec, tiles), name, [&]() -> Result<CodeBytes> {
    GemmS8Emitter emitter(spec);
    std::vector<size_t> entries;
    for (const GemmS8Tile& tile : tiles) entries.push_back(emitter.EmitFunction(tile));
    return emitter.Finish(std::move(entries));
  });
}

}  // namespace fuselite::jit
