// FUSELITE_SHUFFLED_FULLY_CONNECTED: FULLY_CONNECTED with weights_format SHUFFLED4x16INT8, which
// old converters wrote for small batches on phones.
#include "kernels/fully_connected/shuffled.h"

#include <algorithm>
#include <cstring>

#include "kernels/filter_operands.h"
#include "kernels/gemm/quantized_tail.h"
#include "kernels/make_kernel.h"
#include "kernels/shape_rules.h"

namespace fuselite::kernels {
namespace {

constexpr DataType kU8 = DataType::kUInt8;
constexpr TypeRow kTypes[] = {{{kU8, kU8, DataType::kInt32}, DataType::kInt16}};

Status InferShuffled(OpDescription& op) {
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  const auto& params = op.params.as<FullyConnectedParams>();
  FUSELITE_ASSIGN_OR_RETURN(const FullyConnectedShape shape, ResolveRows(op));
  if (shape.rows != 1 && shape.rows != 4) {
    return InvalidArgument(shape.rows, " rows by shuffled weights, which are for 1 or 4");
  }
  if (shape.units % kShuffledUnits != 0 || shape.depth % kShuffledDepth != 0) {
    return InvalidArgument("weights ", op.inputs[1].shape, " are not made of blocks of 4 x 16");
  }
  if (!op.has_input(2)) return InvalidArgument("shuffled weights without a bias");
  FUSELITE_RETURN_IF_ERROR(CheckBiasScale(op));
  SetFullyConnectedOutput(op, shape);
  FUSELITE_RETURN_IF_ERROR(SetOutput(op, 1, kU8, op.inputs[0].shape));
  return CheckQuantizedTail(op, params.activation, params.quantized_bias_type, shape.units);
}

// The sums of one row.
void RowSums(const FullyConnectedShape& shape, const uint8_t* x, const int8_t* weights,
             int64_t* sums) {
  std::fill_n(sums, shape.units, 0);
  for (int64_t u = 0; u < shape.units; u += kShuffledUnits) {
    for (int64_t d = 0; d < shape.depth; d += kShuffledDepth) {
      for (int64_t i = 0; i < kShuffledUnits; ++i) {
        for (int64_t j = 0; j < kShuffledDepth; ++j)
          sums[u + i] += *weights++ * (x[d + j] - kShuffledSign);
      }
    }
  }
}

// One unit: all rows, since the second output holds them together.
Result<std::unique_ptr<Kernel>> BuildReference(const OpDescription& op, const BuildContext&) {
  if (!op.tail.empty()) return Unsupported(op.op->name, " takes no fused tail");
  const auto& params = op.params.as<FullyConnectedParams>();
  FUSELITE_ASSIGN_OR_RETURN(const FullyConnectedShape shape, ResolveRows(op));
  FUSELITE_ASSIGN_OR_RETURN(
      QuantizedTail tail,
      MakeQuantizedTail(op, params.activation, params.quantized_bias_type, shape.units));
  const size_t sums_bytes = AlignUp(shape.units * sizeof(int64_t));
  const Work work{.scratch_bytes = sums_bytes + tail.row_bytes()};
  return MakeKernel(
      "fully_connected shuffled reference", work,
      [=, tail = std::move(tail)](const KernelArgs& args, int64_t begin, int64_t end) {
        if (begin == end) return;
        const auto* x = static_cast<const uint8_t*>(args.inputs[0]);
        const auto* weights = static_cast<const int8_t*>(args.inputs[1]);
        auto* sums = reinterpret_cast<int64_t*>(args.scratch);
        for (int64_t row = 0; row < shape.rows; ++row) {
          RowSums(shape, x + row * shape.depth, weights, sums);
          tail.StoreRow(args, row, sums, args.scratch + sums_bytes);
        }
        ShuffleInput(shape, x, static_cast<uint8_t*>(args.outputs[1]));
      });
}

constexpr Candidate kCandidates[] = {{"highway", BuildShuffledHighway},
                                     {"reference", BuildReference}};

}  // namespace

void ShuffleInput(const FullyConnectedShape& shape, const uint8_t* x, uint8_t* to) {
  constexpr uint64_t kSigns = ~uint64_t{0} / 0xFF * kShuffledSign;
  for (int64_t d = 0; d < shape.depth; d += kShuffledDepth) {
    for (int64_t row = 0; row < shape.rows; ++row, to += kShuffledDepth) {
      uint64_t eights[kShuffledDepth / sizeof(uint64_t)];
      std::memcpy(eights, x + row * shape.depth + d, sizeof(eights));
      for (uint64_t& eight : eights) eight ^= kSigns;
      std::memcpy(to, eights, sizeof(eights));
    }
  }
}

const OperatorDef& ShuffledFullyConnectedOperator() {
  static constexpr OperatorDef kDef = {
      .name = "FUSELITE_SHUFFLED_FULLY_CONNECTED",
      .max_version = 14,
      .params_bytes = sizeof(FullyConnectedParams),
      .min_inputs = 3,
      .max_inputs = 3,
      .min_outputs = 2,
      .max_outputs = 2,
      .types = kTypes,
      .limits =
          "rank 1 or more; 1 or 4 rows; weights and bias of multiples of 4 units and 16 "
          "columns, zero points of 128",
      .infer = InferShuffled,
      .candidates = kCandidates,
      .product_inputs = ProductInputs{.scaling = SumScaling::kFixedPointOfFloat},
      .cost =
          [](const OpDescription& op) {
            return static_cast<double>(op.inputs[0].elements()) * op.inputs[1].shape[0];
          },
  };
  return kDef;
}

}  // namespace fuselite::kernels
