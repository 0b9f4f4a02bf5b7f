// The inner function of matrix products of 8-bit integers on AVX2, which has no dot products:
// unsigned bytes are multiplied by signed ones in pairs, each pair summed in 16 bits, where sums
// saturate, and two of these summed in 32 bits by a multiplication by one. For 32 products in a
// vector that is three instructions, where pairs of int16 (gemm_s8_emitter.h) take four, which keep
// all ports busy, and half of the loads. On a Zen 3 tiles in registers run at 98% of the peak
// instead of 76%. Where weights are so small that two groups are joined, the sums of 16 bits of
// both are added first: five instructions for 64 products.
//
// No sum saturates: a vector of weights with which one could (a wide one: see
// kernels/product/byte_pairs.h) takes the values' signs, one instruction more, and is multiplied by
// their magnitudes, 128 at most: 128 * (127 + 127) fits.
#pragma once

#include <span>
#include <string>
#include <tuple>

#include "jit/product/gemm_s8_emitter.h"
#include "kernels/product/byte_pairs.h"

namespace fuselite::jit {

// Rows are uint8, or int8 with GemmS8Spec::flips; or, with split_rows, they have the three forms of
// kernels/source/split_rows.h, as many bytes of each as the depth, one run of whole groups: blocks
// of rows that are split once for all panels take 1% to 6% less (Zen 3) than rows whose forms each
// panel makes. Windows overlap, and are read as they are.
//
// Panels, of GemmS8Spec::byte_pairs, hold
//   the bias of each vector of channels, then the second one of each, where there are two
//   (GemmS8Spec::biases);
//   the weights of each group of the depth and of those taken again, in the order in which
//   OrderByPairs() leaves them, without -128 in wide vectors;
//   the constants of the tail;
//   as int32 the PairCounts, and of each group the place of its values in a row.

// The most rows that a tile of `vectors` vectors can have; 0: there is no such tile. With three
// vectors there would be eight kinds of groups.
int MaxBytePairRows(int vectors);
// Where a panel of so many vectors has its int32, how many bytes they take for so many groups, and
// how many of them are counts.
int64_t BytePairTableAt(const GemmS8Spec& spec, int vectors);
int64_t BytePairTableBytes(int64_t groups);
inline constexpr int kBytePairCounts =
    1 + std::tuple_size_v<decltype(kernels::PairCounts::of_kind)>;
// As EmitGemmS8(), for functions of GemmS8Args. Tiles go down.
Result<SharedCode> EmitBytePairs(const GemmS8Spec& spec, std::span<const Tile> tiles,
                                 const std::string& name);

}  // namespace fuselite::jit
