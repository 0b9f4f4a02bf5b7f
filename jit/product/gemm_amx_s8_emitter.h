// The inner function of products of 8-bit integers with AMX: the contract of EmitGemmS8, whose
// panels it reads, with the sums in tiles.
#pragma once

#include <span>
#include <string>

#include "jit/product/amx_walker.h"
#include "jit/product/gemm_s8_emitter.h"

namespace fuselite::jit {

// What spec's tiles multiply; spec.amx_rows is 0 before the tiling is known.
AmxProduct AmxProductOf(const GemmS8Spec& spec);
// What a tile takes of a core, tail included.
double AmxTileCycles(const GemmS8Spec& spec, int rows, int vectors);
// kUnsupported where AMX does not compute the product.
Status CheckAmxGemm(const GemmS8Spec& spec);
// Entry i computes tiles[i], down. The depth's last step reads nothing behind a run's last group.
// Needs spec.amx_rows, and a thread that has entered ShapesOf(AmxProductOf(spec)).
Result<SharedCode> EmitAmxGemm(const GemmS8Spec& spec, std::span<const Tile> tiles,
                               const std::string& name);

}  // namespace fuselite::jit
