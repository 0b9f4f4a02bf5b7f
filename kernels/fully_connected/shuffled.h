// What the kernels of FUSELITE_SHUFFLED_FULLY_CONNECTED (kernels/fully_connected/fully_connected.h)
// share.
#pragma once

#include <cstdint>

#include "kernels/fully_connected/fully_connected.h"

namespace fuselite::kernels {

// A block of weights: [units / 4][depth / 16][4][16], without their zero point.
inline constexpr int kShuffledUnits = 4, kShuffledDepth = 16;
// Takes the zero point out of a byte, which is 128 whatever the model says.
inline constexpr uint8_t kShuffledSign = 0x80;

// The input as LiteRT's kernel leaves it in the second output: without its zero point, and of 4
// rows 16 columns of each after the other.
void ShuffleInput(const FullyConnectedShape& shape, const uint8_t* x, uint8_t* to);

// The kernel with vectors, to the reference's bits. A unit is four of the operator's units.
Result<std::unique_ptr<Kernel>> BuildShuffledHighway(const OpDescription& op,
                                                     const BuildContext& context);

}  // namespace fuselite::kernels
