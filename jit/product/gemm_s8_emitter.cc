#include "jit/product/gemm_s8_emitter.h"

#include <algorithm>
#include <cstddef>

#include "jit/product/gemm_byte_pairs_emitter.h"
#include "jit/tail/sum_tail_emitter.h"

namespace fuselite::jit {

using Xbyak::Reg64;

namespace {

// Bytes of weights between what is multiplied and what is fetched into L1. On a Zen 5 a row times
// 2048 x 2048 weights in L3 takes 35 us instead of 42, times 4096 x 4096 in memory 155 us instead
// of 200; with 2048 to 8192 bytes the same, with 16384 2% more. To fetch into L2 gained nothing
// there.
constexpr int kPrefetch = 4096;

// In how many chains of integer sums a tile of so few accumulators takes the steps of the depth in
// turn, a power of two: a multiplication waits 4 cycles for the sum that it continues, and two can
// begin in each. The sums of the chains are added when the depth is done, which takes 4 cycles for
// each time that their number is halved.
constexpr int SumChains(int64_t accumulators, int64_t steps) {
  if (accumulators > 4 || steps < 8) return 1;
  return accumulators > 2 ? 2 : 4;
}

class GemmS8Emitter : public Assembler {
 public:
  explicit GemmS8Emitter(const GemmS8Spec& spec)
      : Assembler(spec.isa),
        spec_(spec),
        walk_(*this, spec.depth, spec.group_values(), spec.rolled,
              {a_, w_, rax, rbx, {r8, r9, r10, r11}, count_, r13}),
        // When the depth is done, no sum is in these temporaries (MaxS8TileRows).
        tail_(*this, spec.tail,
              {.args = args_,
               .args_at = offsetof(GemmS8Args, tail),
               .out = out_,
               .out_step = spec.out_step,
               .across = spec.across,
               .layer = layer_,
               .rows = count_,
               .pointer = pointer_,
               .temporaries = {weight(0), weight(1), weight(2), weight(3)}}) {}

  size_t EmitFunction(const Tile& tile) {
    tile_ = tile;
    half_ = LastIsHalf(spec_, tile.last_lanes);
    // A pair product's addition waits one cycle for the one before; but steps of a single row, few
    // instructions by narrow weights, are taken several at a time, which spares half of a loop's.
    const bool several = spec_.isa.has_vnni() || (spec_.narrow && tile.rows == 1);
    chains_ = several ? SumChains(tile.rows * tile.vectors, DepthGroups(spec_)) : 1;
    const size_t entry = BeginFunction();
    tail_.Prepare(Sums());
    if (spec_.flips) LoadConst(kFlip(), 0x80808080u);
    mov(panel_, ptr[args_ + offsetof(GemmS8Args, panel)]);
    mov(out_, ptr[args_ + offsetof(GemmS8Args, out)]);
    mov(a_, ptr[args_ + offsetof(GemmS8Args, a)]);
    walk_.Prepare(spec_.a_step, spec_.a_runs);
    CountDown(qword[args_ + offsetof(GemmS8Args, tiles)], [this] { EmitTile(); });
    EndFunction();
    return entry;
  }

 private:
  // Accumulators from the bottom; from the top the constant that flips, the vectors of weights, a
  // broadcast group, a product.
  int kFlip() const { return isa().registers() - 1; }
  int weight(int v) const { return isa().registers() - 1 - spec_.flips - v; }
  int broadcast(int row) const {
    const int top = weight(tile_.vectors);
    const bool two = spec_.isa.has_vnni() && top - 1 >= accumulators() * chains_;
    return top - (two ? row % 2 : 0);
  }
  int product() const { return weight(tile_.vectors) - 1; }
  int accumulators() const { return tile_.rows * tile_.vectors; }
  // Behind the first chain's, whose sums those of the others are added to, come theirs.
  int acc(int row, int v, int chain = 0) const {
    return chain * accumulators() + row * tile_.vectors + v;
  }
  SumTile Sums() const {
    return {.rows = tile_.rows,
            .vectors = tile_.vectors,
            .width = isa().bytes,
            .channels = (tile_.vectors - 1) * isa().lanes() + tile_.last_lanes,
            .reg = [this](int row, int v) { return acc(row, v); },
            .last_is_half = half_ && spec_.tail.requantization};
  }
  // Register `i` for the sums and products of vector `v`. Writing a half zeroes the other one.
  Xbyak::Xmm Part(int i, int v) const {
    return VectorOf(i, half_ && v == tile_.vectors - 1 ? isa().bytes / 2 : isa().bytes);
  }

  Xbyak::Address Constants() { return qword[args_ + offsetof(GemmS8Args, constants)]; }

  void EmitTile() {
    spec_.constants_apart ? mov(w_, Constants()) : mov(w_, panel_);
    walk_.Start(tile_.rows);
    StartFromBias();
    for (int i = accumulators(); i < accumulators() * chains_; ++i) Zero(i);
    if (spec_.constants_apart) {
      mov(w_, panel_);
    } else {
      walk_.SkipWeights(tile_.vectors * isa().bytes);
    }
    const auto step = [&](int64_t at, int64_t values, int chain) { Step(at, values, chain); };
    walk_.Walk(accumulators() * chains_, chains_, step);
    for (const TermGroup& group : spec_.again) walk_.Once(group.offset, group.length, step);
    walk_.Settle();
    AddChains();
    FinishTile();
  }

  void StartFromBias() {
    for (int v = 0; v < tile_.vectors; ++v)
      vmovups(Part(weight(v), v), ptr[Place(w_) + v * isa().bytes]);
    if (spec_.tail.row_zero_points()) return StartFromZeroPoints();
    if (spec_.corrects) mov(count_, ptr[args_ + offsetof(GemmS8Args, corrections)]);
    for (int row = 0; row < tile_.rows; ++row) {
      if (spec_.corrects && !isa().avx512) vpbroadcastd(Vec(broadcast(0)), ptr[count_ + row * 4]);
      for (int v = 0; v < tile_.vectors; ++v) {
        if (!spec_.corrects) {
          vmovaps(Part(acc(row, v), v), Part(weight(v), v));
        } else if (isa().avx512) {
          vpaddd(Part(acc(row, v), v), Part(weight(v), v), ptr_b[Place(count_) + row * 4]);
        } else {
          vpaddd(Vec(acc(row, v)), Vec(weight(v)), Vec(broadcast(0)));
        }
      }
    }
  }

  void StartFromZeroPoints() {
    tail_.LoadRows();
    for (int row = 0; row < tile_.rows; ++row) {
      vpbroadcastd(Vec(broadcast(0)), tail_.ZeroPoint(row));
      for (int v = 0; v < tile_.vectors; ++v) {
        vpmulld(Vec(acc(row, v)), Vec(weight(v)), Vec(broadcast(0)));
      }
    }
  }

  void AddChains() {
    for (int sums = accumulators() * chains_ / 2; sums >= accumulators(); sums /= 2) {
      for (int i = 0; i < sums; ++i) {
        const int v = i % tile_.vectors;
        vpaddd(Part(i, v), Part(i, v), Part(i + sums, v));
      }
    }
  }

  // One group of the depth: each row's values times the vectors of weights.
  void Step(int64_t displacement, int64_t values, int chain) {
    const int vectors = tile_.vectors;
    const auto w = [&](int v) { return ptr[walk_.Weights(v * spec_.weight_bytes())]; };
    if (tile_.rows > 1) {
      for (int v = 0; v < vectors; ++v) {
        spec_.narrow ? vpmovsxbw(Vec(weight(v)), w(v)) : vmovups(Part(weight(v), v), w(v));
      }
    }
    for (int row = 0; row < tile_.rows; ++row) {
      const int b = broadcast(row);
      if (spec_.to_the_byte && values < spec_.group_values()) {
        LoadPart(b, walk_.RowValue(row, displacement), values);
      } else {
        LoadGroup(b, walk_.RowValue(row, displacement));
      }
      for (int v = 0; v < vectors; ++v) {
        if (tile_.rows > 1) {
          Multiply(v, acc(row, v, chain), b, Part(weight(v), v));
        } else {
          Multiply(v, acc(row, v, chain), b, w(v));
          if (spec_.prefetch_weights) {
            prefetcht0(ptr[walk_.Weights(v * spec_.weight_bytes() + kPrefetch)]);
          }
        }
      }
    }
    walk_.SkipWeights(vectors * spec_.weight_bytes());
  }

  void LoadGroup(int to, const Place& address) {
    if (!spec_.flips) return vpbroadcastd(Vec(to), ptr[address]);
    if (isa().avx512) return vpxord(Vec(to), Vec(kFlip()), ptr_b[address]);
    vpbroadcastd(Vec(to), ptr[address]);
    vpxor(Vec(to), Vec(to), Vec(kFlip()));
  }

  // One to three bytes. A tile of one row has no use for the steps' registers.
  void LoadPart(int to, const Place& address, int64_t bytes) {
    bytes == 1 ? movzx(eax, byte[address]) : movzx(eax, word[address]);
    if (bytes == 3) {
      movzx(ebx, byte[address + 2]);
      shl(ebx, 16);
      or_(eax, ebx);
    }
    vmovd(Xbyak::Xmm(to), eax);
    vpbroadcastd(Vec(to), Xbyak::Xmm(to));
    if (!spec_.flips) return;
    isa().avx512 ? vpxord(Vec(to), Vec(to), Vec(kFlip())) : vpxor(Vec(to), Vec(to), Vec(kFlip()));
  }

  // Several rows find narrow weights widened already.
  template <class Weights>
  void Multiply(int v, int sum, int values, const Weights& weights) {
    if (spec_.isa.has_vnni()) {
      vpdpbusd(Part(sum, v), Part(values, v), weights,
               isa().avx512 ? Xbyak::EvexEncoding : Xbyak::VexEncoding);
      return;
    }
    if (spec_.narrow && tile_.rows == 1) {
      vpmovsxbw(Vec(product()), weights);
      vpmaddwd(Vec(product()), Vec(values), Vec(product()));
    } else {
      vpmaddwd(Vec(product()), Vec(values), weights);
    }
    vpaddd(Vec(sum), Vec(sum), Vec(product()));
  }

  void FinishTile() {
    if (spec_.constants_apart) {
      mov(w_, Constants());
      tail_.Finish(Sums(), Place(w_) + tile_.vectors * isa().bytes);
    } else {
      tail_.Finish(Sums(), w_);
    }
    if (spec_.across) {
      if (spec_.constants_apart) {
        add(Constants(), static_cast<uint32_t>(ConstantsBytes(spec_, tile_.vectors)));
      }
      add(panel_, static_cast<uint32_t>(PanelBytes(spec_, tile_.vectors)));
      add(out_, tile_.vectors * isa().lanes() * spec_.tail.out_bytes());
      return;
    }
    add(a_, static_cast<uint32_t>(spec_.a_runs.Offset(tile_.rows, spec_.a_step)));
    add(out_, static_cast<uint32_t>(tile_.rows * spec_.out_step));
    if (spec_.corrects) {
      add(qword[args_ + offsetof(GemmS8Args, corrections)], tile_.rows * 4);
    }
  }

  const GemmS8Spec& spec_;
  Tile tile_;
  bool half_ = false;  // LastIsHalf
  int chains_ = 1;

  const Reg64 args_ = rdi, panel_ = rsi, out_ = rdx;
  const Reg64 a_ = rbp, count_ = r12, w_ = r14, pointer_ = r15, layer_ = rcx;
  DepthWalker walk_;
  SumTailEmitter tail_;
};

}  // namespace

std::string CodeKey(const GemmS8Spec& spec, std::span<const Tile> tiles) {
  std::string key = internal::Join(
      "gemm s8 ", spec.isa.bits(), " a", spec.a_step, '/', spec.a_runs.rows, '*', spec.a_runs.step,
      " o", spec.out_step, " f", int{spec.flips}, " c", int{spec.corrects}, " n", int{spec.narrow},
      " q", int{spec.byte_pairs}, int{spec.split_rows}, " m", spec.amx_rows, " x", int{spec.across},
      " b", int{spec.to_the_byte}, " p", int{spec.constants_apart}, " r", int{spec.rolled}, " w",
      int{spec.prefetch_weights}, " k", spec.depth.outer, '*', spec.depth.outer_step);
  for (const auto& run : spec.depth.runs) key += internal::Join(' ', run.offset, '+', run.length);
  for (const auto& group : spec.again)
    key += internal::Join(" again", group.offset, '+', group.length);
  for (const Tile& tile : tiles) {
    key += internal::Join(" t", tile.rows, 'x', tile.vectors, '.', tile.last_lanes);
  }
  return key + spec.tail.key();
}

int64_t DepthGroups(const GemmS8Spec& spec) { return spec.depth.steps(spec.group_values()); }

int64_t VectorConstantsBytes(const GemmS8Spec& spec) {
  return int64_t{spec.biases() + spec.tail.constants()} * VectorIsa(spec.isa).bytes;
}

bool LastIsHalf(const GemmS8Spec& spec, int64_t last_lanes) {
  const VectorIsa isa(spec.isa);
  const bool rescales = spec.tail.requantization && spec.tail.requantization->real;
  return isa.avx512 && isa.dot && !rescales && last_lanes * 2 <= isa.lanes();
}

int64_t PanelBytes(const GemmS8Spec& spec, int vectors) {
  const int64_t groups = DepthGroups(spec) + std::ssize(spec.again);
  int64_t vector = groups * spec.weight_bytes();
  if (!spec.constants_apart) vector += VectorConstantsBytes(spec);
  const int64_t table = spec.byte_pairs ? BytePairTableBytes(groups) : 0;
  return static_cast<int64_t>(AlignUp(static_cast<size_t>(vectors * vector + table)));
}

int64_t ConstantsBytes(const GemmS8Spec& spec, int vectors) {
  if (!spec.constants_apart) return 0;
  return static_cast<int64_t>(AlignUp(static_cast<size_t>(vectors * VectorConstantsBytes(spec))));
}

// Beside the accumulators: weights, a broadcast group and a product or a second group, of dot
// products the flipping constant; and four temporaries when the depth is done.
int MaxS8TileRows(const VectorIsa& isa, int vectors) {
  const int others = isa.dot && vectors > 1 ? 1 : 2, flip = isa.dot ? 1 : 0;
  const int left = isa.registers() - flip - std::max(vectors + others, isa.dot ? 0 : 4);
  return std::min(left / vectors, DepthWalker::kMaxRows);
}

double S8TileCycles(int64_t groups, double multiplication, int rows, int vectors) {
  const double multiplies = rows * vectors / 2.0 * multiplication;
  const double loads = (rows + vectors) / 2.0;
  const double step = std::max({multiplies, loads, 4.0}) + 0.25 * vectors + 0.1 * rows;
  const int stores = vectors / 4 + (vectors % 4 + 1) / 2;
  return static_cast<double>(groups) * step + rows * (3.0 * vectors + 2.0 * stores) + 16;
}

Status CheckGemmS8(const GemmS8Spec& spec) {
  const int64_t step =
      std::max({spec.a_step, spec.a_runs.step, spec.out_step, spec.tail.longest_residual_step()});
  return CheckDepth(spec.depth, spec.group_values(), 2, step * DepthWalker::kMaxRows);
}

Result<SharedCode> EmitGemmS8(const GemmS8Spec& spec, std::span<const Tile> tiles,
                              const std::string& name) {
  return EmitFunctions<GemmS8Emitter>(CodeKey(spec, tiles), name, spec, tiles);
}

}  // namespace fuselite::jit
