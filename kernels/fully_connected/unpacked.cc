// Few rows by weights known only at run time, which are read where they lie: packing them takes as
// long as the products of several rows.
#include <algorithm>
#include <cstring>

#include "kernels/fully_connected/fully_connected.h"
#include "kernels/gemm/output_tail.h"
#include "kernels/gemm/quantized_tail.h"
#include "kernels/gemm/unpacked_row.h"
#include "kernels/make_kernel.h"
#include "kernels/micro_kernels/product_s16.h"
#include "kernels/simd.h"

namespace fuselite::kernels {
namespace {

// Units of a block: a multiple of what is summed at once.
constexpr int64_t kBlock = 64;

// Rows and blocks of units, a unit of work each; blocks where the output's rows need no more than
// their own channels.
struct Blocks {
  explicit Blocks(const FullyConnectedShape& shape)
      : rows(shape.rows),
        depth(shape.depth),
        units(shape.units),
        per_row((units + kBlock - 1) / kBlock) {}
  Work work(size_t scratch_bytes) const {
    return {.units = rows * per_row,
            .grain = GrainFor(depth * std::min(units, kBlock) / 4),
            .scratch_bytes = scratch_bytes};
  }
  int64_t rows, depth, units, per_row;
};

TailTile TileOf(const TensorInfo& output, const KernelArgs& args, const void* sums, DataType type,
                int64_t row, int64_t channel, int64_t count) {
  return {.source = sums,
          .source_pitch = count,
          .source_type = type,
          .destination = static_cast<std::byte*>(args.outputs[0]) +
                         (row * output.pitch() + channel) * (BitWidth(output.type) / 8),
          .destination_pitch = output.pitch(),
          .destination_type = output.type,
          .row = row,
          .rows = 1,
          .channel = channel,
          .channels = count};
}

Result<std::unique_ptr<Kernel>> BuildFloats(const OpDescription& op,
                                            const FullyConnectedShape& shape,
                                            const UnpackedFunctions& functions, Isa isa) {
  FUSELITE_ASSIGN_OR_RETURN(FloatTail tail,
                            MakeFloatTail(op, op.params.as<FullyConnectedParams>().activation));
  const Blocks blocks(shape);
  const int64_t pitch = op.inputs[0].row_pitch ? op.inputs[0].row_pitch : shape.depth;
  return MakeKernel(
      std::string("fully_connected f32 unpacked ") + SimdName(isa),
      blocks.work(kBlock * sizeof(float)),
      [=, tail = std::move(tail), biased = op.has_input(2), output = op.outputs[0],
       apply = ApplyTail(isa)](const KernelArgs& args, int64_t begin, int64_t end) {
        auto* sums = reinterpret_cast<float*>(args.scratch);
        for (int64_t unit = begin; unit < end; ++unit) {
          const int64_t row = unit / blocks.per_row, first = unit % blocks.per_row * kBlock;
          const int64_t n = std::min(kBlock, blocks.units - first);
          functions.floats({static_cast<const float*>(args.inputs[0]) + row * pitch,
                            static_cast<const float*>(args.inputs[1]) + first * blocks.depth,
                            blocks.depth, n, 0, sums});
          const auto* bias = biased ? static_cast<const float*>(args.inputs[2]) + first : nullptr;
          for (int64_t i = 0; i < n; ++i) {
            const float sum = bias != nullptr ? sums[i] + bias[i] : sums[i];
            sums[i] = std::min(std::max(sum, tail.min), tail.max);
          }
          apply(tail.rest, args.inputs,
                TileOf(output, args, sums, DataType::kFloat32, row, first, n));
        }
      });
}

Result<std::unique_ptr<Kernel>> BuildBytes(const OpDescription& op,
                                           const FullyConnectedShape& shape,
                                           const UnpackedFunctions& functions, Isa isa) {
  const auto& params = op.params.as<FullyConnectedParams>();
  FUSELITE_ASSIGN_OR_RETURN(
      QuantizedTail tail,
      MakeQuantizedTail(op, params.activation, params.quantized_bias_type, shape.units));
  const Blocks blocks(shape);
  const size_t row_bytes = AlignUp(shape.depth * sizeof(int16_t));
  const int64_t pitch = op.inputs[0].row_pitch ? op.inputs[0].row_pitch : shape.depth;
  const bool is_signed = op.inputs[0].type == DataType::kInt8;
  return MakeKernel(
      "fully_connected " + std::string(DataTypeName(op.inputs[0].type)) + " unpacked " +
          SimdName(isa),
      blocks.work(row_bytes + kBlock * sizeof(int32_t)),
      [=, tail = std::move(tail), row_function = is_signed ? functions.int8 : functions.uint8,
       x_zero = op.inputs[0].quantization.zero_point(),
       w_zero = op.inputs[1].quantization.zero_point(),
       apply = ApplyTail(isa)](const KernelArgs& args, int64_t begin, int64_t end) {
        auto* x = reinterpret_cast<int16_t*>(args.scratch);
        auto* sums = reinterpret_cast<int32_t*>(args.scratch + row_bytes);
        int64_t widened = -1;
        for (int64_t unit = begin; unit < end; ++unit) {
          const int64_t row = unit / blocks.per_row, first = unit % blocks.per_row * kBlock;
          const int64_t n = std::min(kBlock, blocks.units - first);
          const auto* bytes = static_cast<const uint8_t*>(args.inputs[0]) + row * pitch;
          for (int64_t k = 0; widened != row && k < blocks.depth; ++k) {
            const int32_t value = is_signed ? static_cast<int8_t>(bytes[k]) : bytes[k];
            x[k] = static_cast<int16_t>(value - x_zero);
          }
          widened = row;
          row_function({x, static_cast<const uint8_t*>(args.inputs[1]) + first * blocks.depth,
                        blocks.depth, n, w_zero, sums});
          for (int64_t i = 0; i < n; ++i) {
            const auto bias = static_cast<uint64_t>(tail.Bias(args, first + i));
            sums[i] = static_cast<int32_t>(static_cast<uint64_t>(sums[i]) + bias);
          }
          apply(tail.tail, args.inputs,
                TileOf(tail.output, args, sums, DataType::kInt32, row, first, n));
        }
      });
}

}  // namespace

bool ReadsWeightsUnpacked(const OpDescription& op) {
  constexpr int64_t kRowsWorthPacking = 4;
  const Result<FullyConnectedShape> shape = ResolveFullyConnected(op);
  if (!shape.ok() || shape->rows >= kRowsWorthPacking || op.inputs[1].constant()) return false;
  const DataType type = op.inputs[0].type;
  const bool taken =
      type == DataType::kFloat32 || type == DataType::kInt8 || type == DataType::kUInt8;
  return taken && op.inputs[1].type == type && op.inputs[1].row_pitch == 0;
}

Result<std::unique_ptr<Kernel>> BuildFullyConnectedUnpacked(const OpDescription& op,
                                                            const BuildContext& context) {
  const UnpackedFunctions* const functions = FindUnpackedFunctions(context.isa);
  if (functions == nullptr) return NoVectorTarget(context.isa);
  FUSELITE_ASSIGN_OR_RETURN(const FullyConnectedShape shape, ResolveFullyConnected(op));
  if (op.inputs[0].type == DataType::kFloat32) {
    return BuildFloats(op, shape, *functions, context.isa);
  }
  return BuildBytes(op, shape, *functions, context.isa);
}

Result<KernelPlan> PlanFullyConnectedHighway(const OpDescription& op, const PlanContext& context) {
  if (!ReadsWeightsUnpacked(op)) return PlanHighwayProduct(op, context);
  return OwnPlan(BuildFullyConnectedUnpacked(op, WithoutStore(context)));
}

}  // namespace fuselite::kernels
