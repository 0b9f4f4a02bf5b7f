#include "jit/product/gemm_emitter.h"

#include <algorithm>
#include <cstddef>

namespace fuselite::jit {

using Xbyak::Reg64;

namespace {

constexpr int kTemporaries = 4;
// Bytes of weights between what is multiplied and what is fetched: some 250 cycles, what L3 takes.
// On a Zen 5 with 1 MiB of L2, ResNet-50 gains 3 per cent by it.
constexpr int kPrefetch = 4096;

// The largest panel that stays in L2 beside a block's rows while the next one is fetched. Cores
// with AVX-512 or AVX-VNNI have 1 MiB and more, AMD's before them 512 KiB: BEiT-Base, whose deepest
// products have panels of 192 KiB, takes 1 to 3% longer on a Zen 3 where these are fetched.
constexpr int64_t LargestFetched(const VectorIsa& isa) {
  return (isa.avx512 || isa.dot ? 320 : 160) << 10;
}

class GemmEmitter : public Assembler {
 public:
  explicit GemmEmitter(const GemmSpec& spec)
      : Assembler(spec.isa),
        spec_(spec),
        walk_(*this, spec.depth, spec.step_values(), spec.rolled,
              {a_, w_, rax, rbx, {r8, r9, r10, r11}, r12, r13}) {}

  size_t EmitFunction(const Tile& tile) {
    tile_ = tile;
    const size_t entry = BeginFunction();
    SetPartial(tile.last_lanes);
    if (spec_.bf16) {
      mov(eax, 0x55555555);
      kmovd(first_of_pairs_, eax);
    }
    mov(panel_, ptr[args_ + offsetof(GemmArgs, panel)]);
    mov(out_, ptr[args_ + offsetof(GemmArgs, out)]);
    mov(tiles_, ptr[args_ + offsetof(GemmArgs, tiles)]);
    mov(a_, ptr[args_ + offsetof(GemmArgs, a)]);
    walk_.Prepare(spec_.a_step, spec_.a_runs);
    if (fetches_next_panel()) {
      lea(pointer_, ptr[panel_ + static_cast<int>(PanelBytes(tile.vectors))]);
      mov(qword[args_ + offsetof(GemmArgs, ahead)], pointer_);
    }
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
  // The tiles of a call take long enough to bring the weights of the next one into L2: those come
  // slower than the first tile multiplies them.
  bool fetches_next_panel() const {
    return spec_.prefetch_weights && !spec_.across && tile_.rows > 1 &&
           PanelBytes(tile_.vectors) <= LargestFetched(isa());
  }
  int64_t PanelBytes(int vectors) const { return vectors * isa().bytes * (spec_.steps() + 1); }

  int acc(int row, int v) const { return row * tile_.vectors + v; }
  // Register `i` for the products of vector `v`.
  const Xbyak::Xmm& Part(int i, int v) const { return Vec(i, v == tile_.vectors - 1); }
  // Behind the accumulators, from the top: the vectors of weights, then two broadcast values; when
  // the depth is done, the tail's temporaries.
  int weight(int v) const { return isa().registers() - 1 - v; }
  int broadcast(int row) const {
    const int spare = isa().registers() - tile_.rows * tile_.vectors - tile_.vectors;
    return isa().registers() - 1 - tile_.vectors - (spare > 1 ? row % 2 : 0);
  }

  void EmitTile() {
    mov(w_, panel_);
    walk_.Start(tile_.rows);
    StartFromBias();
    if (fetches_next_panel()) mov(pointer_, ptr[args_ + offsetof(GemmArgs, ahead)]);
    // In one chain: a row's bits must not depend on how many rows there are.
    walk_.Walk(tile_.rows * tile_.vectors, 1,
               [&](int64_t at, int64_t values, int) { Step(at, values); });
    if (fetches_next_panel()) mov(ptr[args_ + offsetof(GemmArgs, ahead)], pointer_);
    FinishTile();
  }

  void StartFromBias() {
    for (int v = 0; v < tile_.vectors; ++v) {
      vmovups(Part(acc(0, v), v), ptr[Place(w_) + v * isa().bytes]);
      for (int row = 1; row < tile_.rows; ++row) vmovaps(Part(acc(row, v), v), Part(acc(0, v), v));
    }
    walk_.SkipWeights(tile_.vectors * isa().bytes);
  }

  void PrefetchWeights(int v) {
    if (spec_.prefetch_weights) prefetcht0(ptr[walk_.Weights(v * isa().bytes + kPrefetch)]);
  }

  // One step of the depth: each row's value or pair times the vectors of weights.
  void Step(int64_t displacement, int64_t values) {
    const int vectors = tile_.vectors;
    const auto w = [&](int v) { return ptr[walk_.Weights(v * isa().bytes)]; };
    if (tile_.rows == 1) {
      Broadcast(broadcast(0), walk_.RowValue(0, displacement), values);
      for (int v = 0; v < vectors; ++v) {
        Multiply(v, acc(0, v), broadcast(0), w(v));
        PrefetchWeights(v);
      }
    } else {
      for (int v = 0; v < vectors; ++v) {
        vmovups(Part(weight(v), v), w(v));
        PrefetchWeights(v);
      }
      if (fetches_next_panel()) {
        prefetcht1(ptr[pointer_]);
        add(pointer_, isa().bytes);
      }
      for (int row = 0; row < tile_.rows; ++row) {
        const Place value = walk_.RowValue(row, displacement);
        if (vectors == 1 && isa().avx512 && values == spec_.step_values()) {
          Multiply(0, acc(row, 0), weight(0), ptr_b[value]);
          continue;
        }
        const int b = broadcast(row);
        Broadcast(b, value, values);
        for (int v = 0; v < vectors; ++v) Multiply(v, acc(row, v), b, Part(weight(v), v));
      }
    }
    walk_.SkipWeights(vectors * isa().bytes);
  }

  // Four bytes of a row to all lanes. Of half a pair the other half is not read: behind the last
  // row it may be nobody's memory, and elsewhere an infinity, which times zero is no number.
  void Broadcast(int to, const Place& value, int64_t values) {
    if (values == spec_.step_values()) return vbroadcastss(Vec(to), ptr[value]);
    vpbroadcastw(Vec(to) | first_of_pairs_ | T_z, ptr[value]);
  }

  template <class Weights>
  void Multiply(int v, int sum, int values, const Weights& weights) {
    if (spec_.bf16) return vdpbf16ps(Part(sum, v), Part(values, v), weights);
    vfmadd231ps(Part(sum, v), Part(values, v), weights);
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
      StoreTileValue(*this, spec_, Place(out_), value, Top(0));
    }
    if (spec_.across) return GoAcross(&tail);
    tail.AdvanceRows(tile_.rows);
    add(a_, static_cast<uint32_t>(spec_.a_runs.Offset(tile_.rows, spec_.a_step)));
    add(out_, static_cast<uint32_t>(tile_.rows * spec_.out_step));
  }
  void GoAcross(TailEmitter* tail) {
    tail->AdvanceChannels(tile_.vectors * isa().bytes);
    add(out_, tile_.vectors * spec_.out_vector_bytes());
    add(panel_, static_cast<uint32_t>(PanelBytes(tile_.vectors)));
  }
  int Top(int i) const { return isa().registers() - 1 - i; }

  const GemmSpec& spec_;
  Tile tile_;

  const Reg64 args_ = rdi, panel_ = rsi, out_ = rdx, tiles_ = rcx;
  const Reg64 a_ = rbp, w_ = r14, pointer_ = r15;
  // The low words of all lanes; no function of the tail uses this mask.
  const Xbyak::Opmask first_of_pairs_ = k3;
  DepthWalker walk_;
};

}  // namespace

void StoreTileValue(Assembler& assembler, const GemmSpec& spec, const Place& out,
                    const TileValue& value, int temporary) {
  const int64_t at = value.row * spec.out_step + value.vector * spec.out_vector_bytes();
  assembler.StoreFloats(out + at, value.reg, value.partial, spec.bf16_out, temporary);
}

std::string CodeKey(const GemmSpec& spec, std::span<const Tile> tiles) {
  std::string key = internal::Join(
      "gemm f", spec.bf16 ? 16 : 32, ' ', spec.isa.bits(), " a", spec.a_step, '/', spec.a_runs.rows,
      '*', spec.a_runs.step, " o", spec.out_step, spec.bf16_out ? "b" : "", " x", int{spec.across},
      " r", int{spec.rolled}, " w", int{spec.prefetch_weights}, " m", spec.amx_rows, '/',
      spec.fetched_parts, " k", spec.depth.outer, '*', spec.depth.outer_step);
  for (const auto& run : spec.depth.runs) key += internal::Join(' ', run.offset, '+', run.length);
  for (const Tile& tile : tiles) {
    key += internal::Join(" t", tile.rows, 'x', tile.vectors, '.', tile.last_lanes);
  }
  return key + TailKey(spec.tail);
}

int MaxTileRows(const VectorIsa& isa, int vectors) {
  const int rows = (isa.registers() - kTemporaries) / vectors;
  // Weights and a broadcast value must fit beside the accumulators.
  const int beside = vectors + (vectors == 1 && isa.avx512 ? 0 : 1);
  const int fitting = (isa.registers() - beside) / vectors;
  return std::min({rows, fitting, DepthWalker::kMaxRows});
}

Status CheckGemm(const GemmSpec& spec) {
  const int64_t step = std::max({spec.a_step, spec.a_runs.step, spec.out_step});
  return CheckDepth(spec.depth, spec.step_values(), 4, step * DepthWalker::kMaxRows);
}

Result<SharedCode> EmitGemm(const GemmSpec& spec, std::span<const Tile> tiles,
                            const std::string& name) {
  return EmitFunctions<GemmEmitter>(CodeKey(spec, tiles), name, spec, tiles);
}

}  // namespace fuselite::jit
