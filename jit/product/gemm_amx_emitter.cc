#include "jit/product/gemm_amx_emitter.h"

#include <algorithm>
#include <cstddef>

#include "jit/tail/sum_tail_emitter.h"
#include "runtime/support/ceil_div.h"

namespace fuselite::jit {

using Xbyak::Reg64;

namespace {

constexpr int kGroupBytes = 4;                      // of the depth, as both sides have them
constexpr int kVectorBytes = AmxShapes::kRowBytes;  // of sums, and of a group's weights
constexpr int kMostBlocks = 4;                      // the tiles that hold sums
constexpr int64_t kGroups = AmxShapes::kRows;       // of the depth in one step

// Up to so many steps the depth is straight code.
constexpr int64_t kStraightSteps = 12;

// The tiles behind the sums: rows and weights of a whole step, and of a run's last one where that
// has fewer groups.
struct Operands {
  int rows, weights;
};
constexpr Operands kWhole = {4, 5}, kRest = {6, 7};

int64_t GroupsOf(const DepthRuns::Run& run) { return CeilDiv(run.length, kGroupBytes); }

int64_t StepsOf(const DepthRuns& depth) { return depth.steps(kGroups * kGroupBytes); }

class GemmAmxEmitter : public Assembler {
 public:
  explicit GemmAmxEmitter(const GemmS8Spec& spec)
      : Assembler(spec.isa),
        spec_(spec),
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
    blocks_ = static_cast<int>(CeilDiv(tile.rows, spec_.amx_rows));
    const size_t entry = BeginFunction();
    mov(frame_, rsp);
    and_(rsp, -kVectorBytes);
    sub(rsp, std::max(tile.rows, spec_.amx_rows) * row_bytes());
    tail_.Prepare(Sums(tile.rows));
    mov(panel_, ptr[args_ + offsetof(GemmS8Args, panel)]);
    mov(out_, ptr[args_ + offsetof(GemmS8Args, out)]);
    mov(a_, ptr[args_ + offsetof(GemmS8Args, a)]);
    mov(a_step_, spec_.a_step);
    mov(row_bytes_, row_bytes());
    xor_(same_row_, same_row_);
    CountDown(qword[args_ + offsetof(GemmS8Args, tiles)], [this] { EmitTile(); });
    mov(rsp, frame_);
    EndFunction();
    return entry;
  }

 private:
  // Bytes between rows of the sums on the stack, and between groups of weights.
  int row_bytes() const { return tile_.vectors * kVectorBytes; }
  Xbyak::Tmm SumsOf(int block, int v) const { return Xbyak::Tmm(block * tile_.vectors + v); }
  // The tile's row at which a block begins; negative: above the tile.
  int FirstRow(int block) const {
    return block + 1 < blocks_ ? block * spec_.amx_rows : tile_.rows - spec_.amx_rows;
  }
  // Sums above the tile lie before its own.
  int RowsAbove() const { return std::max(0, spec_.amx_rows - tile_.rows); }
  SumTile Sums(int rows) const {
    return {.rows = rows,
            .vectors = tile_.vectors,
            .width = kVectorBytes,
            .channels = (tile_.vectors - 1) * isa().lanes() + tile_.last_lanes,
            .reg = [this](int row, int v) { return row * tile_.vectors + v; }};
  }

  void EmitTile() {
    StartSums();
    lea(w_, ptr[panel_ + row_bytes()]);
    w_offset_ = 0;
    mov(cursor_, a_);
    Walk();
    StoreSums();
    FinishRows();
    add(a_, static_cast<uint32_t>(spec_.a_runs.Offset(tile_.rows, spec_.a_step)));
  }

  // Each row of a tile of sums is the same vector of biases.
  void StartSums() {
    for (int block = 0; block < blocks_; ++block) {
      for (int v = 0; v < tile_.vectors; ++v) {
        if (spec_.tail.row_zero_points()) {
          tilezero(SumsOf(block, v));
        } else {
          tileloadd(SumsOf(block, v), ptr[panel_ + same_row_ + v * kVectorBytes]);
        }
      }
    }
  }

  void Walk() {
    const DepthRuns& depth = spec_.depth;
    if (depth.outer == 1 || StepsOf(depth) <= kStraightSteps) {
      for (int64_t i = 0; i < depth.outer; ++i) WalkRuns(i * depth.outer_step);
      return FlushWeights();
    }
    mov(pointer_, depth.outer);
    Xbyak::Label next;
    align(16);
    L(next);
    WalkRuns(0);
    FlushWeights();
    add(cursor_, static_cast<uint32_t>(depth.outer_step));
    dec(pointer_);
    jnz(next, T_NEAR);
  }

  void WalkRuns(int64_t origin) {
    for (const DepthRuns::Run& run : spec_.depth.runs) WalkRun(origin + run.offset, run);
  }

  void WalkRun(int64_t at, const DepthRuns::Run& run) {
    const int64_t whole = GroupsOf(run) / kGroups, rest = GroupsOf(run) % kGroups;
    constexpr int64_t kStepBytes = kGroups * kGroupBytes;
    if (whole > kStraightSteps) {
      FlushWeights();
      add(cursor_, static_cast<uint32_t>(at));
      mov(count_, whole);
      Xbyak::Label next;
      align(16);
      L(next);
      Step(0, kWhole);
      add(cursor_, static_cast<uint32_t>(kStepBytes));
      SkipWeights(kGroups);
      FlushWeights();
      dec(count_);
      jnz(next, T_NEAR);
      sub(cursor_, static_cast<uint32_t>(at + whole * kStepBytes));
    } else {
      for (int64_t i = 0; i < whole; ++i) {
        Step(at + i * kStepBytes, kWhole);
        SkipWeights(kGroups);
      }
    }
    if (rest == 0) return;
    Step(at + whole * kStepBytes, kRest);
    SkipWeights(rest);
  }

  // Back and forth through the blocks of rows: of two neighbouring products one operand is the
  // same.
  void Step(int64_t at, const Operands& operands) {
    const Xbyak::Tmm rows(operands.rows), weights(operands.weights);
    int loaded = -1;
    for (int v = 0; v < tile_.vectors; ++v) {
      tileloadd(weights, ptr[w_ + row_bytes_ + static_cast<int>(w_offset_ + v * kVectorBytes)]);
      for (int i = 0; i < blocks_; ++i) {
        const int block = v % 2 == 0 ? i : blocks_ - 1 - i;
        const int64_t from = at + BlockAt(block);
        if (block != loaded) tileloadd(rows, ptr[cursor_ + a_step_ + static_cast<int>(from)]);
        loaded = block;
        spec_.flips ? tdpbssd(SumsOf(block, v), rows, weights)
                    : tdpbusd(SumsOf(block, v), rows, weights);
      }
    }
  }

  // Where a block's first row is, behind the tile's. Rows in runs are whole ones in each block.
  int64_t BlockAt(int block) const {
    const int first = FirstRow(block);
    return spec_.a_runs.rows == 0 ? first * spec_.a_step : block * spec_.a_runs.step;
  }

  void SkipWeights(int64_t groups) { w_offset_ += groups * row_bytes(); }
  void FlushWeights() {
    if (w_offset_ != 0) add(w_, static_cast<uint32_t>(w_offset_));
    w_offset_ = 0;
  }

  void StoreSums() {
    for (int block = 0; block < blocks_; ++block) {
      const int row = FirstRow(block) + RowsAbove();
      for (int v = 0; v < tile_.vectors; ++v) {
        tilestored(ptr[rsp + row_bytes_ + (row * row_bytes() + v * kVectorBytes)],
                   SumsOf(block, v));
      }
    }
  }

  // As many rows at a time as registers hold beside the temporaries, in whole packs
  // (RowsTogether).
  void FinishRows() {
    const int together = tile_.vectors == 1 ? 16 : tile_.vectors == 4 ? 4 : 8;
    lea(cursor_, ptr[rsp + RowsAbove() * row_bytes()]);
    const int loops = tile_.rows / together;
    if (loops > 1) mov(loop_, loops);
    Xbyak::Label next;
    align(16);
    L(next);
    if (loops > 0) FinishRows(together);
    if (loops > 1) {
      dec(loop_);
      jnz(next, T_NEAR);
    }
    if (tile_.rows % together != 0) FinishRows(tile_.rows % together);
  }

  // Finds the rows' sums at the cursor.
  void FinishRows(int rows) {
    for (int row = 0; row < rows; ++row) {
      for (int v = 0; v < tile_.vectors; ++v) {
        vmovups(Vec(row * tile_.vectors + v), ptr[cursor_ + row * row_bytes() + v * kVectorBytes]);
      }
    }
    if (spec_.corrects) AddCorrections(rows);
    if (spec_.tail.row_zero_points()) AddZeroPoints(rows);
    tail_.Finish(Sums(rows), w_);
    add(cursor_, rows * row_bytes());
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
        vpmulld(Vec(kProduct), Vec(kZeroPoint), ptr[panel_ + v * kVectorBytes]);
        vpaddd(Vec(sum), Vec(sum), Vec(kProduct));
      }
    }
  }

  const GemmS8Spec& spec_;
  Tile tile_;
  int blocks_ = 0;
  int64_t w_offset_ = 0;  // of the next weights, behind the register

  const Reg64 args_ = rdi, panel_ = rsi, out_ = rdx, layer_ = rcx;
  const Reg64 a_ = rbp, w_ = r14, count_ = r12, pointer_ = r15, frame_ = r13, loop_ = rbx;
  // Distances between rows, and the place within the depth, or in the sums on the stack.
  const Reg64 same_row_ = r8, a_step_ = r9, row_bytes_ = r10, cursor_ = r11;
  SumTailEmitter tail_;
};

}  // namespace

int MaxAmxTileRows(const GemmS8Spec& spec, int vectors) {
  if (vectors > kMostBlocks || spec.a_runs.rows > AmxShapes::kRows) return 0;
  const int64_t block = spec.a_runs.rows == 0 ? AmxShapes::kRows : spec.a_runs.rows;
  return static_cast<int>(kMostBlocks / vectors * block);
}

int AmxBlockRows(const GemmS8Spec& spec, int rows) {
  return spec.a_runs.rows == 0 ? std::min(rows, AmxShapes::kRows)
                               : static_cast<int>(spec.a_runs.rows);
}

// On Granite Rapids a product takes a cycle for each of its rows, and 9 at least; so does loading
// its weights, and half of that its rows. Storing sums takes a cycle a row, and the tail as long as
// in MicroKernelS8::TileCycles. Tails and the products of the next tile overlap in part.
double AmxTileCycles(const GemmS8Spec& spec, int rows, int vectors) {
  const int block_rows = AmxBlockRows(spec, rows);
  const double blocks = CeilDiv(rows, block_rows), products = blocks * vectors;
  const double step = std::max(products * std::max(block_rows, 9), 8.0 * (vectors + products));
  const int stores = vectors / 4 + (vectors % 4 + 1) / 2;
  const double walk = static_cast<double>(StepsOf(spec.depth)) * step;
  const double tail = products * block_rows + rows * (3.5 * vectors + 2.0 * stores);
  return walk + tail + 60;
}

Status CheckAmxGemm(const GemmS8Spec& spec) {
  if (MaxAmxTileRows(spec, 1) == 0) {
    return Unsupported("runs of ", spec.a_runs.rows, " rows do not fit AMX tiles");
  }
  const auto& runs = spec.depth.runs;
  const bool equal = std::ranges::all_of(
      runs, [&](const DepthRuns::Run& run) { return run.length == runs.front().length; });
  if (!equal) return Unsupported("runs of different lengths have no AMX tiles");
  constexpr int64_t kReach = int64_t{1} << 29;
  constexpr int kMostRows = kMostBlocks * AmxShapes::kRows;
  if (std::max({spec.a_step, spec.a_runs.step, spec.out_step}) * kMostRows > kReach) {
    return Unsupported("rows ", spec.a_step, " bytes apart are too far for AMX tiles");
  }
  return CheckGemmS8(spec);
}

AmxShapes ShapesOf(const GemmS8Spec& spec) {
  AmxShapes shapes;
  for (int i = 0; i < kMostBlocks; ++i) shapes.Set(i, spec.amx_rows, kVectorBytes);
  const int64_t groups = GroupsOf(spec.depth.runs.front());
  const auto set = [&](const Operands& operands, int64_t of_step) {
    const auto count = static_cast<int>(of_step);
    shapes.Set(operands.rows, spec.amx_rows, count * kGroupBytes);
    shapes.Set(operands.weights, count, kVectorBytes);
  };
  if (groups >= kGroups) set(kWhole, kGroups);
  if (groups % kGroups != 0) set(kRest, groups % kGroups);
  return shapes;
}

Result<SharedCode> EmitAmxGemm(const GemmS8Spec& spec, std::span<const Tile> tiles,
                               const std::string& name) {
  return EmitFunctions<GemmAmxEmitter>(CodeKey(spec, tiles), name, spec, tiles);
}

}  // namespace fuselite::jit
