// The inner function of products of 8-bit integers with AMX: the contract of EmitGemmS8, whose
// panels it reads, with the sums in tiles.
//
// A tile of the product is cut into blocks: up to 16 of its rows times a vector of channels, whose
// sums are one AMX tile. All blocks of a function have the same rows, so that the thread enters AMX
// once for many calls; where they do not divide the tile's rows, the last block begins earlier, and
// the tail leaves out what a block before it has. A shorter tile than a block begins in the tile
// above it, so the first tile of a line is not shorter.
#pragma once

#include <span>
#include <string>

#include "jit/product/amx.h"
#include "jit/product/gemm_s8_emitter.h"

namespace fuselite::jit {

// The most rows that a tile of `vectors` vectors can have; 0: there is no such tile.
int MaxAmxTileRows(const GemmS8Spec& spec, int vectors);
// The rows of a block where full tiles have `rows` rows: GemmS8Spec::amx_rows.
int AmxBlockRows(const GemmS8Spec& spec, int rows);
// What a tile takes of a core, tail included.
double AmxTileCycles(const GemmS8Spec& spec, int rows, int vectors);
// kUnsupported where AMX does not compute the product.
Status CheckAmxGemm(const GemmS8Spec& spec);

// What a thread must have entered when it calls the code of EmitAmxGemm(). The functions from here
// on need spec.amx_rows.
AmxShapes ShapesOf(const GemmS8Spec& spec);
// Entry i computes tiles[i], down. The depth's last step reads nothing behind a run's last group.
Result<SharedCode> EmitAmxGemm(const GemmS8Spec& spec, std::span<const Tile> tiles,
                               const std::string& name);

}  // namespace fuselite::jit
