// FULLY_CONNECTED: rows of inputs with weights [units, depth], an optional bias [units] and a fused
// activation.
#pragma once

#include "kernels/operator.h"

namespace fuselite::kernels {

struct FullyConnectedParams {
  Activation activation;
  int32_t weights_format;  // 0: row-major; kShuffledWeights
  bool keep_num_dims;
  bool asymmetric_quantize_inputs;
  DataType quantized_bias_type;
  bool unpacked_weights;  // not in the file: a single row reads its float32 weights where they lie
};

// FUSELITE_SHUFFLED_FULLY_CONNECTED: uint8 to int16, weights in blocks of 4 units and 16 columns
// with the sign bit flipped. 1 or 4 rows. The second output is the input as LiteRT shuffles it.
inline constexpr int32_t kShuffledWeights = 1;
const OperatorDef& ShuffledFullyConnectedOperator();

const OperatorDef& FullyConnectedOperator();

struct FullyConnectedShape {
  int64_t rows = 0;
  int32_t depth = 0, units = 0;
};

// Validates ranks, sizes and parameters; everything that a kernel relies on. The input is taken as
// rows of `depth` elements, wherever its innermost dimension ends.
Result<FullyConnectedShape> ResolveFullyConnected(const OpDescription& op);
// As ResolveFullyConnected(), for weights of any format.
Result<FullyConnectedShape> ResolveRows(const OpDescription& op);
// The output's type and shape.
void SetFullyConnectedOutput(OpDescription& op, const FullyConnectedShape& shape);

// The output's shape: [rows, units], or with keep_num_dims the input's with the last dimension
// replaced.
Shape FullyConnectedOutput(const OpDescription& op, int64_t rows, int32_t units);

// y[r][u] = act(bias[u] + sum over d of x[r][d] * w[u][d]). Weights and biases may be
// run-time values. Input rows may be pitched where the innermost dimension is `depth`; output rows
// may be. float32; the reference also 8-bit integers (int8, uint8, and uint8 to int16), int16 with
// int8 or int16 weights, to the bit of TFLite's reference kernels, int4 weights among them; and
// float32 with int8 or int4 weights (hybrid): each row is quantized by itself.
Result<std::unique_ptr<Kernel>> BuildFullyConnectedReference(const OpDescription&,
                                                             const BuildContext&);
// The parts of the reference that take integers, and float32 with integer weights.
Result<std::unique_ptr<Kernel>> BuildFullyConnectedQuantizedReference(const OpDescription&);
Result<std::unique_ptr<Kernel>> BuildFullyConnectedHybridReference(const OpDescription&);
// All types: PlanHighwayProduct, or where ReadsWeightsUnpacked, BuildFullyConnectedUnpacked.
Result<KernelPlan> PlanFullyConnectedHighway(const OpDescription&, const PlanContext&);

// Whether the weights are read where they lie: few rows by weights, or with a bias, known only at
// run time, of the input's type or of int8 with int16 or float32; rows by the float32 weights of
// few units; and what has `unpacked_weights`.
bool ReadsWeightsUnpacked(const OpDescription& op);
// Precondition: ReadsWeightsUnpacked.
Result<std::unique_ptr<Kernel>> BuildFullyConnectedUnpacked(const OpDescription&,
                                                            const BuildContext&);

// float32 with constant int8 or int4 weights and so few rows that memory decides
// (kernels/blockwise): reads the weights as the file has them, which packings for many rows make
// twice to four times as large. To the bit of the hybrid reference.
Result<KernelPlan> PlanFullyConnectedFewRows(const OpDescription&, const PlanContext&);
// Whether PlanFullyConnectedFewRows() takes the operation on ISAs that have vectors; else why not.
Status CheckFewRows(const OpDescription& op);

}  // namespace fuselite::kernels
