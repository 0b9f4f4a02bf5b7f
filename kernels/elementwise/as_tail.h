// Elementwise operators as stages of a tail: how they are computed alone, and how rewrites fuse
// them into their producers.
#pragma once

#include <optional>

#include "kernels/operator.h"

namespace fuselite::kernels {

// The stage that does what a unary operator (RELU, LOGISTIC, GELU ...) does; nullopt where `op` is
// none, or not float32.
std::optional<TailStage> UnaryStage(const OpDescription& op);

// How the operand at `input` of an operator, broadcast to `output`, is read by a tail's stage.
// `rows_per_batch` is INT64_MAX where any would do. nullopt where a TailOperand cannot say it: more
// than two runs of dimensions that repeat or not.
struct TailOperandUse {
  TailOperand operand;
  int64_t rows_per_batch;
};
std::optional<TailOperandUse> AsTailOperand(const TensorInfo& operand, const Shape& output);

// A binary float32 operator (ADD, MUL, PRELU ...) as a stage on the values of input
// `flowing_input`, which must have the output's shape. stage->operand.input is the other input's
// index in `op`. The fused activation is a stage of its own: BinaryActivation. False where there is
// no such stage.
bool ToTailStage(const OpDescription& op, int flowing_input, TailStage* stage,
                 int64_t* rows_per_batch);

// The clamp of a binary operator's fused activation. Without one TFLite still clamps to the finite
// floats, which only a result of infinity shows; fused into a tail, that is left out.
std::optional<TailStage> BinaryActivation(const OpDescription& op);

// Appends the clamp that TFLite applies to a binary float32 operator's result: that of the fused
// activation, without one to the finite floats.
void AppendBinaryRange(const OpDescription& op, Tail* tail);

// Appends a stage whose operand was described for `rows_per_batch`, restating it or the tail's
// where one of them leaves the batch open. False, and nothing done, where they contradict.
bool AppendStage(const TailStage& stage, int64_t rows_per_batch, Tail* tail);

// An elementwise operator as a kernel of its own sees it: the stages that it applies to one of its
// inputs, which has the output's shape. Operands are the other inputs. TFLite's clamp to the finite
// floats is there. op.tail is not.
struct StagesOnInput {
  int flowing = 0;
  Tail stages;
};
// nullopt where `op` is not elementwise or not float32, or has no such input: both broadcast.
std::optional<StagesOnInput> AsStagesOnInput(const OpDescription& op);
// As AsStagesOnInput(), or where both broadcast, on one that has whole rows of the output: these
// then repeat.
std::optional<StagesOnInput> AsStagesOnRows(const OpDescription& op);

// Where the rows of an input lie that is the output, or has whole rows of it: as the operands of
// `tail`, which is restated where it leaves the batch open. nullopt where they contradict.
std::optional<TailOperand> PlaceRows(const TensorInfo& input, const Shape& output, Tail* tail);

}  // namespace fuselite::kernels
