#include "jit/product/gemm_amx_bf16_emitter.h"

#include <algorithm>
#include <cstddef>

namespace fuselite::jit {

using Xbyak::Reg64;

namespace {

class GemmAmxBf16Emitter : public Assembler {
 public:
  explicit GemmAmxBf16Emitter(const GemmSpec& spec)
      : Assembler(spec.isa),
        spec_(spec),
        product_(AmxProductOf(spec)),
        sums_(*this, product_),
        tail_(*this, spec.tail,
              {.slots_base = args_,
               .slots_offset = offsetof(GemmArgs, operands),
               .pointer = pointer_,
               .temporaries = {31, 30, 29, 28}}) {}

  size_t EmitFunction(const Tile& tile) {
    tile_ = tile;
    const size_t entry = BeginFunction();
    SetPartial(tile.last_lanes);
    mov(walk_.panel, ptr[args_ + offsetof(GemmArgs, panel)]);
    mov(out_, ptr[args_ + offsetof(GemmArgs, out)]);
    mov(walk_.a, ptr[args_ + offsetof(GemmArgs, a)]);
    const int64_t panel = tile.vectors * isa().bytes * (spec_.steps() + 1);
    sums_.Begin(tile, {.bytes = spec_.prefetch_weights ? panel : 0, .parts = spec_.fetched_parts});
    sums_.Tiles(qword[args_ + offsetof(GemmArgs, tiles)], true,
                [this](int rows) { FinishRows(rows); });
    sums_.End();
    EndFunction();
    return entry;
  }

 private:
  void FinishRows(int rows) {
    std::vector<TileValue> values;
    for (int row = 0; row < rows; ++row) {
      for (int v = 0; v < tile_.vectors; ++v) {
        values.push_back({row * tile_.vectors + v, row, v, v == tile_.vectors - 1});
      }
    }
    tail_.Emit(values);
    for (const TileValue& value : values) {
      StoreTileValue(*this, spec_, Place(out_), value, 31);
    }
    tail_.AdvanceRows(rows);
    add(out_, static_cast<uint32_t>(rows * spec_.out_step));
  }

  const GemmSpec& spec_;
  const AmxProduct product_;
  Tile tile_;

  const AmxWalker::Registers walk_;
  const Reg64 args_ = rdi, out_ = rdx, pointer_ = r15;
  AmxWalker sums_;
  TailEmitter tail_;
};

}  // namespace

AmxProduct AmxProductOf(const GemmSpec& spec) {
  return {.type = AmxProduct::Type::kBf16,
          .depth = spec.depth,
          .a_step = spec.a_step,
          .a_runs = spec.a_runs,
          .block_rows = spec.amx_rows};
}

// Each tile reads all its weights from L2, 40 bytes a cycle, which leaves tiles of 16 rows x 64
// channels behind those of 32 x 32; 8-bit products, whose weights are half of that, take as long
// either way. The tail overlaps in part with the products of the next tile. A row's stores in one
// panel are further from those of the next row than from each other.
double AmxTileCycles(const GemmSpec& spec, int rows, int vectors) {
  constexpr double kL2Bytes = 40;
  const auto weights = static_cast<double>(spec.steps() * vectors * AmxShapes::kRowBytes);
  const double sums =
      AmxSumCycles(AmxSteps(spec.depth, AmxProduct::Type::kBf16), spec.a_runs, rows, vectors);
  return std::max(sums, weights / kL2Bytes) + rows * (2.0 * vectors + 3.0) + 60;
}

Status CheckAmxGemm(const GemmSpec& spec) {
  return CheckAmxProduct(AmxProductOf(spec), spec.out_step);
}

Result<SharedCode> EmitAmxGemm(const GemmSpec& spec, std::span<const Tile> tiles,
                               const std::string& name) {
  return EmitFunctions<GemmAmxBf16Emitter>(CodeKey(spec, tiles), name, spec, tiles);
}

}  // namespace fuselite::jit
