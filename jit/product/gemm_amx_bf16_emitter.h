// The inner function of products of bfloat16 with AMX: the contract of EmitGemm, with the sums in
// tiles.
#pragma once

#include <span>
#include <string>

#include "jit/product/amx_walker.h"
#include "jit/product/gemm_emitter.h"

namespace fuselite::jit {

// What spec's tiles multiply; spec.amx_rows is 0 before the tiling is known.
AmxProduct AmxProductOf(const GemmSpec& spec);
// What a tile takes of a core, tail included.
double AmxTileCycles(const GemmSpec& spec, int rows, int vectors);
// kUnsupported where AMX does not compute the product.
Status CheckAmxGemm(const GemmSpec& spec);
// Entry i computes tiles[i], down. Needs spec.amx_rows, and a thread that has entered
// ShapesOf(AmxProductOf(spec)).
Result<SharedCode> EmitAmxGemm(const GemmSpec& spec, std::span<const Tile> tiles,
                               const std::string& name);

}  // namespace fuselite::jit
