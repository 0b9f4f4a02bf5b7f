// Data movement as addresses: where the parts of a tensor lie within the whole.
//
// A concatenation's inputs can be produced right inside of its output, the outputs of a split read
// right out of its input, if each is a dense block of the whole or rows at a constant distance.
#pragma once

#include <vector>

#include "kernels/operator.h"

namespace fuselite::kernels {

struct PlacedPart {
  int operand;          // index among the inputs or outputs
  int64_t byte_offset;  // of its first element from the whole's first
  int64_t row_pitch;    // as in TensorInfo: elements between its rows, 0 where it is dense
};

struct Placement {
  // True: the parts are inputs, the whole is an output, which they cover:
  // OperatorDef::places_inputs. False: the parts are outputs, the whole is an input.
  bool parts_are_inputs;
  int whole;  // index of the whole among the outputs or inputs
  std::vector<PlacedPart> parts;
};

// The placement of an inferred operation whose parts are not placed elsewhere (their own row pitch
// does not count; the whole's does). kUnsupported, with the reason, where OperatorDef::places is
// null or one of its parts is no such block.
//
// CONCATENATION and SPLIT of the outermost dimension that is not 1 give dense blocks, those of the
// innermost dimension give rows. An input named twice in a concatenation has one place only: the
// caller looks for that.
Result<Placement> FindPlacement(const OpDescription& op);

}  // namespace fuselite::kernels
