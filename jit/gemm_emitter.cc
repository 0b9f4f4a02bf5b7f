#include "jit/gemm_emitter.h"

#include <algorithm>
#include <cstddef>

namespace fuselite::jit {

using Xbyak::Reg64;
using Xbyak::RegExp;

namespace {

constexpr int kBases = 4;        // row base registers
constexpr int kRowsPerBase = 5;  // base + {0, 1, 2, 3, 4} steps
constexpr int kTemporaries = 4;
// Bytes of weights between what is multiplied and what is fetched: some 250 cycles, what L3 takes.
// On a Zen 5 with 1 MiB of L2, ResNet-50 gains 3 per cent by it.
constexpr int kPrefetch = 4096;

class GemmEmitter : public Assembler {
 public:
  explicit GemmEmitter(const GemmSpec& spec) : Assembler(spec.isa), spec_(spec) {}

  size_t EmitFunction(const GemmTile& tile) {
    align(32);
    const size_t entry = getSize();
    tile_ = tile;
    BeginFunction();
    SetPartial(tile.last_lanes);
    mov(panel_, ptr[args_ + offsetof(GemmArgs, panel)]);
    mov(out_, ptr[args_ + offsetof(GemmArgs, out)]);
    mov(tiles_, ptr[args_ + offsetof(GemmArgs, tiles)]);
    mov(a_, ptr[args_ + offsetof(GemmArgs, a)]);
    mov(step_, spec_.a_step);
    lea(step3_, ptr[step_ + step_ * 2]);
    Xbyak::Label next, done;
    test(tiles_, tiles_);
    jz(done);
    align(16);
    L(next);
    EmitTile();
    dec(tiles_);
    jnz(next);
    L(done);
    EndFunction();
    return entry;
  }

 private:
  int acc(int row, int v) const { return row * tile_.vectors + v; }
  // Behind the accumulators, from the top: the vectors of weights, then two broadcast values; when
  // the depth is done, the tail's temporaries.
  int weight(int v) const { return isa().registers() - 1 - v; }
  int broadcast(int row) const {
    const int spare = isa().registers() - tile_.rows * tile_.vectors - tile_.vectors;
    return isa().registers() - 1 - tile_.vectors - (spare > 1 ? row % 2 : 0);
  }

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

  void EmitTile() {
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
    FinishTile();
  }

  void StartFromBias() {
    for (int v = 0; v < tile_.vectors; ++v) {
      vmovups(Vec(acc(0, v)), ptr[w_ + v * isa().bytes]);
      for (int row = 1; row < tile_.rows; ++row) vmovaps(Vec(acc(row, v)), Vec(acc(0, v)));
    }
    w_offset_ = tile_.vectors * isa().bytes;
    a_offset_ = 0;
  }

  void AccumulateDepth() {
    const DepthRuns& depth = spec_.depth;
    // Short depths are straight code: the loops' start and end cost more than the sums.
    if (depth.depth() <= 36 || depth.outer == 1) {
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
    const int64_t start = origin + run.offset;
    const int64_t unroll = run.length >= 128 && tile_.rows * tile_.vectors < 20 ? 16 : 8;
    if (run.length < 2 * unroll) {
      for (int64_t k = 0; k < run.length; ++k) Step(start + k * 4 - a_offset_);
      return;
    }
    const int64_t loops = run.length / unroll;
    Flush(start);
    mov(count_, loops);
    Xbyak::Label next;
    align(32);
    L(next);
    for (int64_t k = 0; k < unroll; ++k) Step(k * 4);
    add(w_, static_cast<uint32_t>(w_offset_));
    MoveBases(unroll * 4);
    w_offset_ = 0;
    dec(count_);
    jnz(next, T_NEAR);
    a_offset_ = start + loops * unroll * 4;
    for (int64_t k = 0; k < run.length % unroll; ++k) Step(k * 4);
  }

  // One depth: each row's value times the vectors of weights.
  void Step(int64_t displacement) {
    const int vectors = tile_.vectors;
    const auto w = [&](int v) { return ptr[w_ + static_cast<int>(w_offset_ + v * isa().bytes)]; };
    if (tile_.rows == 1) {
      vbroadcastss(Vec(broadcast(0)), ptr[RowValue(0, displacement)]);
      for (int v = 0; v < vectors; ++v) vfmadd231ps(Vec(acc(0, v)), Vec(broadcast(0)), w(v));
    } else {
      for (int v = 0; v < vectors; ++v) {
        vmovups(Vec(weight(v)), w(v));
        if (spec_.prefetch_weights) {
          prefetcht0(ptr[w_ + static_cast<int>(w_offset_ + v * isa().bytes + kPrefetch)]);
        }
      }
      for (int row = 0; row < tile_.rows; ++row) {
        if (vectors == 1 && isa().avx512) {
          vfmadd231ps(Vec(acc(row, 0)), Vec(weight(0)), ptr_b[RowValue(row, displacement)]);
          continue;
        }
        const int b = broadcast(row);
        vbroadcastss(Vec(b), ptr[RowValue(row, displacement)]);
        for (int v = 0; v < vectors; ++v) vfmadd231ps(Vec(acc(row, v)), Vec(b), Vec(weight(v)));
      }
    }
    w_offset_ += vectors * isa().bytes;
  }

  void FinishTile() {
    const TailRegisters registers{.slots_base = args_,
                                  .slots_offset = offsetof(GemmArgs, operands),
                                  .pointer = pointer_,
                                  .temporaries = {Top(0), Top(1), Top(2), Top(3)}};
    TailEmitter tail(*this, spec_.tail, registers);
    std::vector<TileValue> values;
    for (int row = 0; row < tile_.rows; ++row) {
      for (int v = 0; v < tile_.vectors; ++v) {
        values.push_back({acc(row, v), row, v, v == tile_.vectors - 1});
      }
    }
    tail.Emit(values);
    for (const TileValue& value : values) {
      const auto offset =
          static_cast<int32_t>(value.row * spec_.out_step + value.vector * isa().bytes);
      StoreLanes(out_ + offset, value.reg, value.partial, Top(0));
    }
    tail.AdvanceRows(tile_.rows);
    add(a_, static_cast<uint32_t>(tile_.rows * spec_.a_step));
    add(out_, static_cast<uint32_t>(tile_.rows * spec_.out_step));
  }
  int Top(int i) const { return isa().registers() - 1 - i; }

  const GemmSpec& spec_;
  GemmTile tile_;
  // The next weights, relative to w_; where the bases stand, relative to their rows' values.
  int64_t w_offset_ = 0, a_offset_ = 0;

  const Reg64 args_ = rdi, panel_ = rsi, out_ = rdx, tiles_ = rcx;
  const Reg64 a_ = rbp, step_ = rax, step3_ = rbx;
  const Reg64 bases_[kBases] = {r8, r9, r10, r11};
  const Reg64 count_ = r12, outer_ = r13, w_ = r14, pointer_ = r15;
};

std::string Key(const GemmSpec& spec, const std::vector<GemmTile>& tiles) {
  std::string key = internal::Join("gemm f32 ", static_cast<int>(spec.isa), " a", spec.a_step, " o",
                                   spec.out_step, spec.prefetch_weights ? " prefetch k" : " k",
                                   spec.depth.outer, '*', spec.depth.outer_step);
  for (const auto& run : spec.depth.runs) key += internal::Join(' ', run.offset, '+', run.length);
  for (const GemmTile& tile : tiles) {
    key += internal::Join(" t", tile.rows, 'x', tile.vectors, '.', tile.last_lanes);
  }
  return key + TailKey(spec.tail);
}

}  // namespace

int64_t DepthRuns::depth() const {
  int64_t sum = 0;
  for (const Run& run : runs) sum += run.length;
  return sum * outer;
}

int MaxTileRows(const VectorIsa& isa, int vectors) {
  const int rows = (isa.registers() - kTemporaries) / vectors;
  // Weights and a broadcast value must fit beside the accumulators.
  const int beside = vectors + (vectors == 1 && isa.avx512 ? 0 : 1);
  const int fitting = (isa.registers() - beside) / vectors;
  return std::min({rows, fitting, kBases * kRowsPerBase});
}

Status CheckGemm(const GemmSpec& spec) {
  constexpr int64_t kReach = int64_t{1} << 30;
  const DepthRuns& depth = spec.depth;
  int64_t furthest = std::max(spec.a_step, spec.out_step) * kBases * kRowsPerBase;
  for (const auto& run : depth.runs) furthest = std::max(furthest, run.offset + run.length * 4);
  furthest += depth.outer * depth.outer_step;
  if (furthest > kReach) return Unsupported("a tile of ", furthest, " bytes' extent");
  return Status();
}

Result<SharedCode> EmitGemm(const GemmSpec& spec, const std::vector<GemmTile>& tiles,
                            const std::string& name) {
  return ProcessCodeCache().GetOrEmit(Key(spec, tiles), name, [&]() -> Result<CodeBytes> {
    GemmEmitter emitter(spec);
    std::vector<size_t> entries;
    for (const GemmTile& tile : tiles) entries.push_back(emitter.EmitFunction(tile));
    return emitter.Finish(std::move(entries));
  });
}

}  // namespace fuselite::jit
