#include "jit/product/amx_walker.h"

#include <algorithm>

#include "runtime/support/ceil_div.h"

namespace fuselite::jit {

using kernels::DepthRuns;
using kernels::RowRuns;
using kernels::Tile;

namespace {

constexpr int kGroupBytes = 4;                      // of the depth, as both sides have them
constexpr int kVectorBytes = AmxShapes::kRowBytes;  // of sums, and of a group's weights
constexpr int kMostBlocks = 4;                      // the tiles that hold sums
constexpr int64_t kGroups = AmxShapes::kRows;       // of the depth in one step

// Up to so many steps the depth is straight code.
constexpr int64_t kStraightSteps = 12;

int64_t GroupsOf(const AmxProduct& product, const DepthRuns::Run& run) {
  return CeilDiv(run.length, product.group_values());
}

}  // namespace

const AmxWalker::Operands AmxWalker::kWhole = {4, 5}, AmxWalker::kRest = {6, 7};

int MaxAmxTileRows(const RowRuns& runs, int vectors) {
  if (vectors > kMostBlocks || runs.rows > AmxShapes::kRows) return 0;
  const int64_t block = runs.rows == 0 ? AmxShapes::kRows : runs.rows;
  return static_cast<int>(kMostBlocks / vectors * block);
}

int AmxBlockRows(const RowRuns& runs, int rows) {
  return runs.rows == 0 ? std::min(rows, AmxShapes::kRows) : static_cast<int>(runs.rows);
}

int64_t AmxSteps(const DepthRuns& depth, AmxProduct::Type type) {
  return depth.steps(kGroups * AmxProduct::GroupValues(type));
}

// On Granite Rapids a product takes a cycle for each of its rows, and 9 at least; so does loading
// its weights, and half of that its rows. Storing sums takes a cycle a row.
double AmxSumCycles(int64_t steps, const RowRuns& runs, int rows, int vectors) {
  const int block_rows = AmxBlockRows(runs, rows);
  const double blocks = CeilDiv(rows, block_rows), products = blocks * vectors;
  const double step = std::max(products * std::max(block_rows, 9), 8.0 * (vectors + products));
  return static_cast<double>(steps) * step + products * block_rows;
}

Status CheckAmxProduct(const AmxProduct& product, int64_t out_step) {
  if (MaxAmxTileRows(product.a_runs, 1) == 0) {
    return Unsupported("runs of ", product.a_runs.rows, " rows do not fit AMX tiles");
  }
  const auto& runs = product.depth.runs;
  const int64_t length = runs.empty() ? 0 : runs.front().length;
  if (length == 0) return Unsupported("products of no terms have no AMX tiles");
  const bool equal =
      std::ranges::all_of(runs, [&](const DepthRuns::Run& run) { return run.length == length; });
  if (!equal) return Unsupported("runs of different lengths have no AMX tiles");
  constexpr int64_t kReach = int64_t{1} << 29;
  constexpr int kMostRows = kMostBlocks * AmxShapes::kRows;
  if (std::max({product.a_step, product.a_runs.step, out_step}) * kMostRows > kReach) {
    return Unsupported("rows ", product.a_step, " bytes apart are too far for AMX tiles");
  }
  return Status();
}

AmxShapes ShapesOf(const AmxProduct& product) {
  AmxShapes shapes;
  for (int i = 0; i < kMostBlocks; ++i) shapes.Set(i, product.block_rows, kVectorBytes);
  const int64_t groups = GroupsOf(product, product.depth.runs.front());
  const auto set = [&](const AmxWalker::Operands& operands, int64_t of_step) {
    const auto count = static_cast<int>(of_step);
    shapes.Set(operands.rows, product.block_rows, count * kGroupBytes);
    shapes.Set(operands.weights, count, kVectorBytes);
  };
  if (groups >= kGroups) set(AmxWalker::kWhole, kGroups);
  if (groups % kGroups != 0) set(AmxWalker::kRest, groups % kGroups);
  return shapes;
}

int AmxWalker::row_bytes() const { return tile_.vectors * kVectorBytes; }
int AmxWalker::blocks() const { return static_cast<int>(CeilDiv(tile_.rows, p_.block_rows)); }
int AmxWalker::FirstRow(int block) const {
  return block + 1 < blocks() ? block * p_.block_rows : tile_.rows - p_.block_rows;
}
int AmxWalker::RowsAbove() const { return std::max(0, p_.block_rows - tile_.rows); }

int AmxWalker::sums_bytes() const { return std::max(tile_.rows, p_.block_rows) * row_bytes(); }
Xbyak::Address AmxWalker::Distance() const { return a_.qword[a_.rsp + sums_bytes()]; }

void AmxWalker::Begin(const Tile& tile, const Ahead& ahead) {
  tile_ = tile;
  ahead_ = ahead;
  a_.mov(r_.frame, a_.rsp);
  a_.and_(a_.rsp, -kVectorBytes);
  a_.sub(a_.rsp, sums_bytes() + (fetches() ? kVectorBytes : 0));
  if (fetches()) a_.mov(Distance(), static_cast<uint32_t>(ahead.bytes));
  a_.mov(r_.a_step, p_.a_step);
  a_.mov(r_.group_step, row_bytes());
  a_.xor_(r_.no_step, r_.no_step);
}

void AmxWalker::End() { a_.mov(a_.rsp, r_.frame); }

void AmxWalker::Sum(bool from_bias) {
  StartSums(from_bias);
  a_.lea(r_.weights, a_.ptr[r_.panel + row_bytes()]);
  w_offset_ = 0;
  a_.mov(r_.cursor, r_.a);
  if (fetches()) a_.mov(a_.rax, Distance());
  Walk();
  if (fetches()) TakeNextPart();
  StoreSums();
}

void AmxWalker::Tiles(const Xbyak::Address& count, bool from_bias,
                      const std::function<void(int rows)>& finish) {
  a_.CountDown(count, [&] {
    Sum(from_bias);
    TakeUp(finish);
    a_.add(r_.a, static_cast<uint32_t>(p_.a_runs.Offset(tile_.rows, p_.a_step)));
  });
}

// Each row of a tile of sums is the same vector of biases.
void AmxWalker::StartSums(bool from_bias) {
  for (int block = 0; block < blocks(); ++block) {
    for (int v = 0; v < tile_.vectors; ++v) {
      if (from_bias) {
        a_.tileloadd(SumsOf(block, v), a_.ptr[r_.panel + r_.no_step + v * kVectorBytes]);
      } else {
        a_.tilezero(SumsOf(block, v));
      }
    }
  }
}

void AmxWalker::Walk() {
  const DepthRuns& depth = p_.depth;
  if (depth.outer == 1 || AmxSteps(p_.depth, p_.type) <= kStraightSteps) {
    for (int64_t i = 0; i < depth.outer; ++i) WalkRuns(i * depth.outer_step);
    return FlushWeights();
  }
  a_.mov(r_.outer, depth.outer);
  Xbyak::Label next;
  a_.align(16);
  a_.L(next);
  WalkRuns(0);
  FlushWeights();
  a_.add(r_.cursor, static_cast<uint32_t>(depth.outer_step));
  a_.dec(r_.outer);
  a_.jnz(next, Assembler::T_NEAR);
}

void AmxWalker::WalkRuns(int64_t origin) {
  for (const DepthRuns::Run& run : p_.depth.runs) WalkRun(origin + run.offset, run);
}

void AmxWalker::WalkRun(int64_t at, const DepthRuns::Run& run) {
  const int64_t whole = GroupsOf(p_, run) / kGroups, rest = GroupsOf(p_, run) % kGroups;
  constexpr int64_t kStepBytes = kGroups * kGroupBytes;
  if (whole > kStraightSteps) {
    FlushWeights();
    a_.add(r_.cursor, static_cast<uint32_t>(at));
    a_.mov(r_.count, whole);
    Xbyak::Label next;
    a_.align(16);
    a_.L(next);
    Step(0, kWhole);
    a_.add(r_.cursor, static_cast<uint32_t>(kStepBytes));
    SkipWeights(kGroups);
    FlushWeights();
    a_.dec(r_.count);
    a_.jnz(next, Assembler::T_NEAR);
    a_.sub(r_.cursor, static_cast<uint32_t>(at + whole * kStepBytes));
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

// Back and forth through the blocks of rows: of two neighbouring products one operand is the same.
void AmxWalker::Step(int64_t at, const Operands& operands) {
  const Xbyak::Tmm rows(operands.rows), weights(operands.weights);
  int loaded = -1;
  for (int v = 0; v < tile_.vectors; ++v) {
    a_.tileloadd(
        weights,
        a_.ptr[r_.weights + r_.group_step + static_cast<int>(w_offset_ + v * kVectorBytes)]);
    if (fetches()) FetchBehind(w_offset_ + v * kVectorBytes);
    for (int i = 0; i < blocks(); ++i) {
      const int block = v % 2 == 0 ? i : blocks() - 1 - i;
      const int64_t from = at + BlockAt(block);
      if (block != loaded) {
        a_.tileloadd(rows, a_.ptr[r_.cursor + r_.a_step + static_cast<int>(from)]);
      }
      loaded = block;
      Multiply(SumsOf(block, v), rows, weights);
    }
  }
}

// A part of the lines that a whole tile of weights has.
void AmxWalker::FetchBehind(int64_t weights_at) {
  for (int64_t group = 0; group < kGroups; group += ahead_.parts) {
    a_.prefetcht1(a_.ptr[r_.weights + a_.rax + static_cast<int>(weights_at + group * row_bytes())]);
  }
}

// A part has the lines of every so many groups. Behind the last one tiles fetch weights of their
// own panel, which are there.
void AmxWalker::TakeNextPart() {
  Xbyak::Label more;
  a_.add(a_.rax, row_bytes());
  a_.cmp(a_.rax, static_cast<uint32_t>(ahead_.bytes + ahead_.parts * row_bytes()));
  a_.jl(more);
  a_.xor_(a_.eax, a_.eax);
  a_.L(more);
  a_.mov(Distance(), a_.rax);
}

void AmxWalker::Multiply(const Xbyak::Tmm& sums, const Xbyak::Tmm& rows,
                         const Xbyak::Tmm& weights) {
  switch (p_.type) {
    case AmxProduct::Type::kInt8: return a_.tdpbssd(sums, rows, weights);
    case AmxProduct::Type::kUInt8: return a_.tdpbusd(sums, rows, weights);
    case AmxProduct::Type::kBf16: return a_.tdpbf16ps(sums, rows, weights);
  }
}

// Where a block's first row is, behind the tile's. Rows in runs are whole ones in each block.
int64_t AmxWalker::BlockAt(int block) const {
  return p_.a_runs.rows == 0 ? FirstRow(block) * p_.a_step : block * p_.a_runs.step;
}

void AmxWalker::FlushWeights() {
  if (w_offset_ != 0) a_.add(r_.weights, static_cast<uint32_t>(w_offset_));
  w_offset_ = 0;
}

void AmxWalker::StoreSums() {
  a_.mov(r_.cursor, row_bytes());
  for (int block = 0; block < blocks(); ++block) {
    const int row = FirstRow(block) + RowsAbove();
    for (int v = 0; v < tile_.vectors; ++v) {
      a_.tilestored(a_.ptr[a_.rsp + r_.cursor + (row * row_bytes() + v * kVectorBytes)],
                    SumsOf(block, v));
    }
  }
}

// As many rows at a time as registers hold, in whole packs (RowsTogether).
void AmxWalker::TakeUp(const std::function<void(int rows)>& finish) {
  const int together = tile_.vectors == 1 ? 16 : tile_.vectors == 4 ? 4 : 8;
  const auto take = [&](int rows) {
    LoadSums(rows);
    finish(rows);
    a_.add(r_.cursor, rows * row_bytes());
  };
  a_.lea(r_.cursor, a_.ptr[a_.rsp + RowsAbove() * row_bytes()]);
  const int loops = tile_.rows / together;
  if (loops > 1) a_.mov(r_.count, loops);
  Xbyak::Label next;
  a_.align(16);
  a_.L(next);
  if (loops > 0) take(together);
  if (loops > 1) {
    a_.dec(r_.count);
    a_.jnz(next, Assembler::T_NEAR);
  }
  if (tile_.rows % together != 0) take(tile_.rows % together);
}

void AmxWalker::LoadSums(int rows) {
  for (int row = 0; row < rows; ++row) {
    for (int v = 0; v < tile_.vectors; ++v) {
      a_.vmovups(a_.Vec(row * tile_.vectors + v),
                 a_.ptr[r_.cursor + (row * row_bytes() + v * kVectorBytes)]);
    }
  }
}

}  // namespace fuselite::jit
