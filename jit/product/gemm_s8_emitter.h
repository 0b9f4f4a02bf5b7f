// The inner function of every matrix product of 8-bit integers: tiles of rows x channels summed in
// 32 bits in registers over the whole depth, then requantized, or brought to float32 and through a
// float tail, and stored.
//
// Activations are read in groups of four bytes, broadcast to all lanes:
//   dot products (AVX-VNNI, AVX512-VNNI)   4 unsigned bytes with 4 signed weights a lane. Signed
//                                          activations are flipped: + 128
//   pair products (AVX2, AVX-512)          2 int16 values with 2 int16 weights a lane
#pragma once

#include <span>
#include <string>
#include <vector>

#include "jit/product/centered_weights.h"
#include "jit/product/gemm_emitter.h"
#include "jit/tail/sum_tail.h"

namespace fuselite::jit {

struct GemmS8Spec {
  Isa isa = Isa::kAvx2;
  // In values; each run is read in whole groups, so up to three bytes behind its end, unless
  // `to_the_byte`.
  DepthRuns depth;
  // Groups of the depth that are multiplied once more behind it, with weights of their own.
  std::vector<TermGroup> again;
  int64_t a_step = 0;       // bytes from a row of a tile to the next of its run
  kernels::RowRuns a_runs;  // a tile has whole ones
  int64_t out_step = 0;
  // Dot products, byte pairs: the activations are int8 in memory. AMX multiplies them as they are.
  bool flips = false;
  bool corrects = false;  // rows have a correction that is added to their sums
  bool across = false;    // tiles go across
  // Dot products, tiles of one row: nothing is read behind the end of a run.
  bool to_the_byte = false;
  // Pair products: the weights are int8 in memory, and widened when they are read, once for all
  // rows of a tile. Each read takes longer so, and few rows read them from beyond L1: on a Zen 3
  // layers of 49 rows take 4% less than by int16, of 64 as long, of 100 and more 3% to 6% longer.
  // They lie in half of the memory, too: EfficientNet-B0 grows by 23.0 MiB instead of 25.3.
  bool narrow = false;
  // Products of unsigned bytes by int8 in pairs, without dot products (gemm_byte_pairs_emitter.h).
  bool byte_pairs = false;
  bool split_rows = false;        // of byte pairs: rows lie in their three forms
  bool rolled = false;            // loops take one step at a time (RollsLoops)
  bool prefetch_weights = false;  // they come from beyond L2; tiles have one row
  // With a requantization, bias and constants of the tail lie apart from the weights.
  bool constants_apart = false;
  // AMX (gemm_amx_s8_emitter.h): the rows of a block. 0: sums are in vector registers.
  int amx_rows = 0;
  SumTail tail;

  // The values in a group of four bytes.
  int group_values() const { return isa.has_vnni() || byte_pairs ? 4 : 2; }
  int value_bytes() const { return 4 / group_values(); }
  // The biases of a vector: byte pairs have a second one, which no zero point multiplies.
  int biases() const { return byte_pairs && tail.row_zero_points() ? 2 : 1; }
  // How many bytes a vector's weights take for one group of the depth.
  int weight_bytes() const { return VectorIsa(isa).bytes / (narrow ? 2 : 1); }
};

// `panel` holds, for `vectors` vectors of channels: the bias (with row_zero_points it is multiplied
// by the row's); the weights of each group of the depth and of those taken again; the constants of
// the tail vector by vector. With constants_apart the weights alone, and `constants` the others.
// Lanes are those of ChannelOfLane where there is a requantization, else in order.
struct GemmS8Args {
  const std::byte* a;
  const std::byte* panel;
  const std::byte* constants;
  std::byte* out;
  int64_t tiles;
  const int32_t* corrections;  // of the first tile's rows
  SumTailArgs tail;            // for the first tile
};
using GemmS8Function = void(GemmS8Args* args);  // the arguments are consumed

// The groups in one pass over the depth.
int64_t DepthGroups(const GemmS8Spec& spec);
// Bytes of a vector's bias and tail constants.
int64_t VectorConstantsBytes(const GemmS8Spec& spec);
// Whether the last of a tile's vectors, with so many channels, is computed as half of a vector of
// 64 bytes: in half the time on cores that halve the larger ones (Zen 4), and elsewhere in no more.
// Its constants are those of a vector of that width, at the whole one's place.
bool LastIsHalf(const GemmS8Spec& spec, int64_t last_lanes);
// The distance from a panel of so many vectors to the next.
int64_t PanelBytes(const GemmS8Spec& spec, int vectors);
// The distance between constants of panels that lie apart from them; else 0.
int64_t ConstantsBytes(const GemmS8Spec& spec, int vectors);
// The most rows that a tile of `vectors` vectors can have; 0: there is no such tile.
int MaxS8TileRows(const VectorIsa& isa, int vectors);
// The cycles of a tile of so many groups of the depth, on a core with two multiplications and two
// loads a cycle (compare MicroKernelF32), with its start and end: of products whose groups take
// `multiplication` cycles for two sums each.
double S8TileCycles(int64_t groups, double multiplication, int rows, int vectors);
// S8TileCycles of pair products, each of which an addition follows.
inline double PairTileCycles(int64_t groups, int rows, int vectors) {
  return S8TileCycles(groups, 1.5, rows, vectors);
}
// kUnsupported where strides do not fit instructions.
Status CheckGemmS8(const GemmS8Spec& spec);
// Everything that decides the code: under this key it is kept.
std::string CodeKey(const GemmS8Spec& spec, std::span<const Tile> tiles);
// Entry i computes tiles[i]. Precondition: CheckGemmS8(spec).
Result<SharedCode> EmitGemmS8(const GemmS8Spec& spec, std::span<const Tile> tiles,
                              const std::string& name);

}  // namespace fuselite::jit
