// The sums of a tile of rows x channels in AMX's tiles: over the whole depth, and then on the
// stack, where vectors take them up.
//
// A tile of the product is cut into blocks: up to 16 of its rows times a vector of channels, whose
// sums are one AMX tile. All blocks of a function have the same rows, so that the thread enters AMX
// once for many calls; where they do not divide the tile's rows, the last block begins earlier, and
// who takes up the sums leaves out what a block before it has. A shorter tile than a block begins
// in the tile above it, so the first tile of a line is not shorter.
#pragma once

#include <functional>

#include "jit/code/assembler.h"
#include "jit/product/amx.h"
#include "kernels/product/micro_kernel.h"
#include "kernels/product/rows.h"

namespace fuselite::jit {

// What all tiles of a function multiply. Strides are in bytes.
struct AmxProduct {
  enum class Type : uint8_t { kInt8, kUInt8, kBf16 };  // of the rows; the weights' is int8 or bf16
  Type type = Type::kInt8;
  kernels::DepthRuns depth;  // in values; runs are read in whole groups
  int64_t a_step = 0;        // from a row of a tile to the next of its run
  kernels::RowRuns a_runs;   // a tile has whole ones
  int block_rows = 0;

  // The values in a group of four bytes.
  static int GroupValues(Type type) { return type == Type::kBf16 ? 2 : 4; }
  int group_values() const { return GroupValues(type); }
};

// The most rows that a tile of `vectors` vectors can have; 0: there is no such tile.
int MaxAmxTileRows(const kernels::RowRuns& runs, int vectors);
// AmxProduct::block_rows where full tiles have `rows` rows.
int AmxBlockRows(const kernels::RowRuns& runs, int rows);
// The steps of a tile through its depth.
int64_t AmxSteps(const kernels::DepthRuns& depth, AmxProduct::Type type);
// What a tile takes of a core until its sums are on the stack.
double AmxSumCycles(int64_t steps, const kernels::RowRuns& runs, int rows, int vectors);
// kUnsupported where AMX does not compute the product, whose output has rows `out_step` apart.
Status CheckAmxProduct(const AmxProduct& product, int64_t out_step);
// What a thread must have entered when it walks.
AmxShapes ShapesOf(const AmxProduct& product);

class AmxWalker {
 public:
  // What the walk takes of the registers, beside rax.
  struct Registers {
    // The tile's first row, which the function sets before its first tile, and the panel: its
    // biases, behind which the weights are.
    Xbyak::Reg64 a{Xbyak::Operand::RBP}, panel{Xbyak::Operand::RSI};
    Xbyak::Reg64 weights{Xbyak::Operand::R14};  // behind the weights, when the sums are there
    // Kept from Begin() to End().
    Xbyak::Reg64 frame{Xbyak::Operand::R13}, a_step{Xbyak::Operand::R9};
    Xbyak::Reg64 group_step{Xbyak::Operand::R10}, no_step{Xbyak::Operand::R8};
    // Clobbered: the walk's place within the rows, and the counts of its loops.
    Xbyak::Reg64 cursor{Xbyak::Operand::R11}, count{Xbyak::Operand::RBX};
    Xbyak::Reg64 outer{Xbyak::Operand::R15};
  };
  AmxWalker(Assembler& assembler, const AmxProduct& product) : a_(assembler), p_(product) {}

  // What lies `bytes` behind the weights is fetched into L2 while the first tiles of a call pass
  // these: as many tiles as there are parts, a part each. 0 bytes: nothing is.
  struct Ahead {
    int64_t bytes = 0;
    int parts = 1;  // a power of two, 16 at most
  };

  // Around the tiles of a function, all of this shape: memory on the stack, and the steps.
  void Begin(const kernels::Tile& tile, const Ahead& ahead);
  void End();
  // As many tiles as `count` says, which counts down to 0, each below the one before it. Sums begin
  // from the biases or from zero. `finish` is emitted for some of a tile's rows after the others:
  // vector v of the sums of row i of these is in vector register i * vectors + v, 28 at most. It
  // does not clobber the registers `cursor` and `count`.
  void Tiles(const Xbyak::Address& count, bool from_bias,
             const std::function<void(int rows)>& finish);

 private:
  // The sums of the tile at hand.
  void Sum(bool from_bias);
  void TakeUp(const std::function<void(int rows)>& finish);
  // The tiles behind the sums: rows and weights of a whole step, and of a run's last one where that
  // has fewer groups.
  struct Operands {
    int rows, weights;
  };
  static const Operands kWhole, kRest;
  friend AmxShapes ShapesOf(const AmxProduct& product);

  int blocks() const;
  Xbyak::Tmm SumsOf(int block, int v) const { return Xbyak::Tmm(block * tile_.vectors + v); }
  // The tile's row at which a block begins; negative: above the tile.
  int FirstRow(int block) const;
  // Bytes on the stack, behind which the distance to what is fetched is.
  int sums_bytes() const;
  Xbyak::Address Distance() const;
  bool fetches() const { return ahead_.bytes != 0; }
  void FetchBehind(int64_t weights_at);
  void TakeNextPart();
  // Sums above the tile lie before its own.
  int RowsAbove() const;
  // Bytes between rows of the sums on the stack, and between groups of weights.
  int row_bytes() const;
  void StartSums(bool from_bias);
  void Walk();
  void WalkRuns(int64_t origin);
  void WalkRun(int64_t at, const kernels::DepthRuns::Run& run);
  void Step(int64_t at, const Operands& operands);
  void Multiply(const Xbyak::Tmm& sums, const Xbyak::Tmm& rows, const Xbyak::Tmm& weights);
  int64_t BlockAt(int block) const;
  void SkipWeights(int64_t groups) { w_offset_ += groups * row_bytes(); }
  void FlushWeights();
  void StoreSums();
  void LoadSums(int rows);

  Assembler& a_;
  const AmxProduct& p_;
  const Registers r_;
  kernels::Tile tile_;
  Ahead ahead_;
  int64_t w_offset_ = 0;  // of the next weights, behind the register
};

}  // namespace fuselite::jit
