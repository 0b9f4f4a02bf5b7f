#include "jit/product/gemm_amx_s8_emitter.h"

#include <algorithm>
#include <cstddef>

#include "jit/tail/sum_tail_emitter.h"

namespace fuselite::jit {

using Xbyak::Reg64;

namespace {

class GemmAmxS8Emitter : public Assembler {
 public:
  explicit GemmAmxS8Emitter(const GemmS8Spec& spec)
      : Assembler(spec.isa),
        spec_(spec),
        product_(AmxProductOf(spec)),
        sums_(*this, product_),
        tail_(*this, spec.tail,
              {.args = args_,
               .args_at = offsetof(GemmS8Args, tail),
               .out = out_,
               .out_step = spec.out_step,
               .across = false,
               .layer = layer_,
               .rows = count_,
               .pointer = pointer_,
               .temporaries = {31, 30, 29, 28}}) {}

  size_t EmitFunction(const Tile& tile) {
    tile_ = tile;
    const size_t entry = BeginFunction();
    sums_.Begin(tile, {});
    tail_.Prepare(Sums(tile.rows));
    mov(walk_.panel, ptr[args_ + offsetof(GemmS8Args, panel)]);
    mov(out_, ptr[args_ + offsetof(GemmS8Args, out)]);
    mov(walk_.a, ptr[args_ + offsetof(GemmS8Args, a)]);
    sums_.Tiles(qword[args_ + offsetof(GemmS8Args, tiles)], !spec_.tail.row_zero_points(),
                [this](int rows) { FinishRows(rows); });
    sums_.End();
    EndFunction();
    return entry;
  }

 private:
  SumTile Sums(int rows) const {
    return {.rows = rows,
            .vectors = tile_.vectors,
            .width = isa().bytes,
            .channels = (tile_.vectors - 1) * isa().lanes() + tile_.last_lanes,
            .reg = [this](int row, int v) { return row * tile_.vectors + v; }};
  }

  void FinishRows(int rows) {
    if (spec_.corrects) AddCorrections(rows);
    if (spec_.tail.row_zero_points()) AddZeroPoints(rows);
    tail_.Finish(Sums(rows), walk_.weights);
    add(out_, static_cast<uint32_t>(rows * spec_.out_step));
  }

  void AddCorrections(int rows) {
    mov(count_, ptr[args_ + offsetof(GemmS8Args, corrections)]);
    for (int row = 0; row < rows; ++row) {
      for (int v = 0; v < tile_.vectors; ++v) {
        const int sum = row * tile_.vectors + v;
        vpaddd(Vec(sum), Vec(sum), ptr_b[count_ + row * 4]);
      }
    }
    add(qword[args_ + offsetof(GemmS8Args, corrections)], rows * 4);
  }

  // The biases times the rows' zero points.
  void AddZeroPoints(int rows) {
    constexpr int kProduct = 31, kZeroPoint = 30;
    tail_.LoadRows();
    for (int row = 0; row < rows; ++row) {
      vpbroadcastd(Vec(kZeroPoint), tail_.ZeroPoint(row));
      for (int v = 0; v < tile_.vectors; ++v) {
        const int sum = row * tile_.vectors + v;
        vpmulld(Vec(kProduct), Vec(kZeroPoint), ptr[walk_.panel + v * isa().bytes]);
        vpaddd(Vec(sum), Vec(sum), Vec(kProduct));
      }
    }
  }

  const GemmS8Spec& spec_;
  const AmxProduct product_;
  Tile tile_;

  const AmxWalker::Registers walk_;
  const Reg64 args_ = rdi, out_ = rdx, layer_ = rcx, count_ = r12, pointer_ = r15;
  AmxWalker sums_;
  SumTailEmitter tail_;
};

AmxProduct::Type TypeOf(const GemmS8Spec& spec) {
  return spec.flips ? AmxProduct::Type::kInt8 : AmxProduct::Type::kUInt8;
}

// What tiles of overlapping windows bring from L2: their new rows, 25 bytes a cycle, and where L1
// does not hold the panel, that, 40 bytes a cycle. 3x3 convolutions of 28x28 pixels and 128
// channels take 0.90 of their time in tiles of 32 x 32, whose panel stays, instead of 16 x 64,
// those of 14x14 and 256 0.95 in tiles of 64 x 16 (Granite Rapids). Rows that do not overlap do not
// follow this: of 512 to 3072 bytes, tiles of 32 x 32 take 0.78 to 1.1 of the time.
double CyclesFromL2(const GemmS8Spec& spec, int rows, int64_t weights) {
  constexpr int64_t kStaysInL1 = 40 << 10;
  constexpr double kRowBytes = 25, kWeightBytes = 40;
  const int64_t fresh = spec.depth.FreshBytes(spec.a_step, 1);
  if (fresh == spec.depth.depth()) return 0;
  const double of_weights = weights > kStaysInL1 ? static_cast<double>(weights) / kWeightBytes : 0;
  return of_weights + static_cast<double>(rows * fresh) / kRowBytes;
}

}  // namespace

AmxProduct AmxProductOf(const GemmS8Spec& spec) {
  return {.type = TypeOf(spec),
          .depth = spec.depth,
          .a_step = spec.a_step,
          .a_runs = spec.a_runs,
          .block_rows = spec.amx_rows};
}

// The tail takes as long as in MicroKernelS8::TileCycles. It and the products of the next tile
// overlap in part.
double AmxTileCycles(const GemmS8Spec& spec, int rows, int vectors) {
  const int64_t steps = AmxSteps(spec.depth, TypeOf(spec));
  const int64_t weights = steps * vectors * AmxShapes::kRows * AmxShapes::kRowBytes;
  const double sums = AmxSumCycles(steps, spec.a_runs, rows, vectors);
  const int stores = vectors / 4 + (vectors % 4 + 1) / 2;
  return std::max(sums, CyclesFromL2(spec, rows, weights)) + rows * (3.5 * vectors + 2.0 * stores) +
         60;
}

Status CheckAmxGemm(const GemmS8Spec& spec) {
  FUSELITE_RETURN_IF_ERROR(CheckAmxProduct(AmxProductOf(spec), spec.out_step));
  return CheckGemmS8(spec);
}

Result<SharedCode> EmitAmxGemm(const GemmS8Spec& spec, std::span<const Tile> tiles,
                               const std::string& name) {
  return EmitFunctions<GemmAmxS8Emitter>(CodeKey(spec, tiles), name, spec, tiles);
}

}  // namespace fuselite::jit
