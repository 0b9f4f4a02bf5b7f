// Elementwise operators: of one input (RELU, LOGISTIC, EXP ...), of two that broadcast (ADD, MUL,
// MAXIMUM ...), and chains of them.
//
// float32 operators are stages of a tail (kernels/tail), run over the input's rows; whatever cannot
// be said as a stage (both inputs broadcast) and integers go row by row through a BroadcastPlan.
#pragma once

#include <optional>

#include "kernels/elementwise/broadcast.h"
#include "kernels/operator.h"

namespace fuselite::kernels {

struct LeakyReluParams {
  float alpha;
};

struct GeluParams {
  bool approximate;  // with tanh
};

// ADD, SUB, MUL, DIV.
struct ArithmeticParams {
  Activation activation;
  bool pot_scale_int16;  // ADD and SUB of int16: scales are powers of two
};

// FUSELITE_ELEMENTWISE: input 0 as it is, then the tail.
const OperatorDef& ElementwiseOperator();

// What a binary operator does to (input 0, input 1); nullopt where it is none that a tail has.
std::optional<BinaryKind> BinaryKindOf(const OperatorDef& op);
// Whether its parameters are ArithmeticParams.
bool HasActivation(BinaryKind kind);

// A kernel that runs `first` and then op.tail over input 0, which has the output's shape.
// `candidate`: the ISA is that of the context, or the reference is asked for.
enum class TailCandidate { kReference, kHighway };
Result<std::unique_ptr<Kernel>> BuildTailKernel(std::string_view name, const OpDescription& op,
                                                const BuildContext& context, Tail first,
                                                int flowing_input, TailCandidate candidate);

// The type that `op` gives before its tail: sets the output's type and shape, checks the tail.
Status SetElementwiseOutput(OpDescription& op, DataType type, const Shape& shape);

}  // namespace fuselite::kernels
