#include "kernels/micro_kernels/product_s16.h"

#include <algorithm>
#include <cstdlib>

#include "kernels/gemm/hybrid_tail.h"
#include "kernels/gemm/quantized_tail.h"
#include "kernels/micro_kernels/product_f32.h"
#include "kernels/micro_kernels/scaled_terms.h"
#include "kernels/micro_kernels/sums_s16.h"
#include "kernels/product/constant.h"
#include "kernels/simd.h"
#include "kernels/source/image_source.h"
#include "runtime/is_byte.h"

namespace fuselite::kernels {
namespace {

// What each row of a tile costs, however long it is.
constexpr double kTailRowCycles = 40;
// The most sums of a tile: 16 lanes are the most on any target.
constexpr int kMostSums = GemmS16::kMostRows * kMostTileVectors * 16;

// What becomes of the sums, and their operands.
struct FormatS16 {
  OperandsS16 operands;
  std::string types;                 // for the kernel's name
  QuantizedTail tail;                // of integer activations
  std::optional<HybridTail> hybrid;  // of float32 ones, instead
  DataType output = DataType::kNone;

  // The type that tiles are stored in.
  DataType stored() const { return hybrid ? DataType::kFloat32 : tail.source_type; }
  const Tail& rest() const { return hybrid ? hybrid->tail.rest : tail.tail; }
};

class HighwayMicroKernelS16 final : public MicroKernel {
 public:
  HighwayMicroKernelS16(std::shared_ptr<const FormatS16> format, const GemmS16& gemm,
                        const DepthRuns& depth, const ProductProblem& problem, Isa isa)
      : format_(std::move(format)),
        isa_(isa),
        sums_(gemm, format_->operands, depth, problem, isa),
        store_hybrid_(FindHybridRow(isa)),
        wide_rows_(FindWideRowFunctions(isa)),
        value_bytes_(BitWidth(format_->stored()) / 8),
        out_step_(problem.out.row * problem.out_row_bytes),
        row_values_step_(problem.row_values.row),
        waits_(problem.rest.waits()) {
    if (!waits_) return;
    const int64_t widest = int64_t{kMostTileVectors} * lanes();
    waiting_bytes_ = std::min(widest, problem.group_channels()) * value_bytes_;
  }

  std::string types() const override { return format_->types; }
  std::string target() const override { return SimdName(isa_); }
  int lanes() const override { return sums_.gemm().lanes(); }
  int max_rows(int vectors) const override {
    const int most = std::min(sums_.gemm().tile_rows, sums_.left().rows_together());
    return vectors <= kMostTileVectors ? most : 0;
  }
  double TileCycles(int rows, int vectors) const override;
  // Includes what waits for its tail.
  int64_t row_bytes() const override { return sums_.left().fresh_bytes() + waiting_bytes_; }
  int64_t small_block_bytes() const override { return 32 << 10; }
  size_t panel_bytes(int vectors) const override { return sums_.panel_bytes(vectors); }
  void PackPanel(const RightMatrix& right, const PanelChannels& channels,
                 std::byte* to) const override {
    sums_.PackPanel(right, channels, to);
  }
  std::string layout() const override { return sums_.layout(); }
  Result<std::shared_ptr<const MicroKernel>> Emit(std::span<const Tile> tiles,
                                                  const TileCalls& calls,
                                                  const std::string& name) const override;
  void Run(const TileRun& run) const override;

 private:
  // A tile's place: what Run says of the first one.
  struct Place {
    const std::byte *left, *panel, *row_values;
    std::byte* out;
    int64_t channel;
    const void* const* inputs;
  };
  void StoreFloats(const SumsS16::Steps& tile, const Place& at, const int32_t* sums) const;
  void RunWide(const SumsS16::Steps& tile, const Place& at, int32_t* sums) const;
  template <class Sum>
  void StoreWide(const SumsS16::Steps& tile, const Place& at, const Sum* sums) const;

  std::shared_ptr<const FormatS16> format_;
  Isa isa_;
  SumsS16 sums_;
  HybridRowFunction* store_hybrid_;
  const WideRowFunctions* wide_rows_;
  int64_t value_bytes_, out_step_, row_values_step_;
  int64_t waiting_bytes_ = 0;
  bool waits_;
  std::array<SumsS16::Steps, 4> steps_{};
};

double HighwayMicroKernelS16::TileCycles(int rows, int vectors) const {
  const bool dot = isa_.has_vnni();
  return CyclesOfTile({.steps = sums_.pairs() * sums_.planes(),
                       .pieces = static_cast<int64_t>(sums_.left().pieces().size()),
                       .arithmetic = dot ? 1.0 : 2.0,
                       .latency = dot ? 5.0 : 2.0,
                       .row = kTailRowCycles},
                      rows, vectors);
}

Result<std::shared_ptr<const MicroKernel>> HighwayMicroKernelS16::Emit(
    std::span<const Tile> tiles, const TileCalls& calls, const std::string& /*name*/) const {
  auto kernel = std::make_shared<HighwayMicroKernelS16>(*this);
  if (waits_) kernel->out_step_ = int64_t{tiles.front().vectors} * lanes() * value_bytes_;
  for (size_t i = 0; i < tiles.size(); ++i) {
    kernel->steps_[i] = TileSteps(*this, sums_.left(), tiles[i], calls.order, kernel->out_step_,
                                  value_bytes_, sums_.gemm().tile);
  }
  return std::shared_ptr<const MicroKernel>(std::move(kernel));
}

void HighwayMicroKernelS16::Run(const TileRun& run) const {
  alignas(64) int32_t sums[kMostSums];
  const SumsS16::Steps& tile = steps_[run.tile];
  Place at{run.left, run.panel, run.row_values, run.out, run.channel, run.inputs};
  for (int64_t i = 0; i < run.tiles; ++i) {
    if (format_->operands.wide) {
      RunWide(tile, at, sums);
    } else if (format_->hybrid) {
      sums_.Sum(tile, at.left, at.panel, sums, tile.width);
      StoreFloats(tile, at, sums);
    } else {
      sums_.Sum(tile, at.left, at.panel, reinterpret_cast<int32_t*>(at.out),
                out_step_ / value_bytes_);
    }
    at.left += tile.left;
    at.panel += tile.panel;
    at.row_values += tile.row * row_values_step_;
    at.out += tile.out;
    at.channel += tile.channel;
  }
}

void HighwayMicroKernelS16::StoreFloats(const SumsS16::Steps& tile, const Place& at,
                                        const int32_t* sums) const {
  const HybridTail& tail = *format_->hybrid;
  HybridRow row{.sums = sums,
                .n = tile.columns,
                .scale = 0,
                .scales = tail.scales.data() + at.channel,
                .weights_first = tail.weights_first,
                .bias = nullptr,
                .min = tail.tail.min,
                .max = tail.tail.max,
                .to = nullptr};
  if (tail.bias >= 0) row.bias = static_cast<const float*>(at.inputs[tail.bias]) + at.channel;
  for (int64_t r = 0; r < tile.rows; ++r, row.sums += tile.width) {
    row.scale = reinterpret_cast<const RowScale*>(at.row_values + r * row_values_step_)->scale;
    row.to = reinterpret_cast<float*>(at.out + r * out_step_);
    store_hybrid_(row);
  }
}

void HighwayMicroKernelS16::RunWide(const SumsS16::Steps& tile, const Place& at,
                                    int32_t* sums) const {
  if (sums_.narrow()) {
    sums_.Sum(tile, at.left, at.panel, sums, tile.width);
    return StoreWide(tile, at, sums);
  }
  int64_t totals[kMostSums];
  sums_.SumWide(tile, at.left, at.panel, sums, totals);
  StoreWide(tile, at, totals);
}

template <class Sum>
void HighwayMicroKernelS16::StoreWide(const SumsS16::Steps& tile, const Place& at,
                                      const Sum* sums) const {
  const KernelArgs args{at.inputs, nullptr, nullptr, nullptr};
  wide_rows_->scale(format_->tail.WideRowsOf(args, sums,
                                             {.channel = at.channel,
                                              .n = tile.columns,
                                              .to = reinterpret_cast<int16_t*>(at.out),
                                              .rows = tile.rows,
                                              .sums_pitch = tile.width,
                                              .to_pitch = out_step_ / value_bytes_}));
}

Status CheckOperands(const OpDescription& op, const FormatS16& format) {
  const ProductInputs& inputs = *op.op->product_inputs;
  const TensorInfo &in = op.inputs[inputs.x], &weights = op.inputs[inputs.weights];
  const QuantizedTail& tail = format.tail;
  if (!format.hybrid && !IsByte(in.type) && in.type != DataType::kInt16) {
    return Unsupported("takes activations of 8 and 16 bits, not ", DataTypeName(in.type));
  }
  const bool shorts = weights.type == DataType::kInt16 && tail.wide;
  if (!IsByte(ReadableType(weights.type)) && !shorts) {
    return Unsupported("takes weights of 8 bits, not ", DataTypeName(weights.type));
  }
  if (tail.wide && tail.source_type != DataType::kInt16)
    return Unsupported("does not take sums of 64 bits");
  if (!tail.wide && tail.bias_type != DataType::kNone && tail.bias_type != DataType::kInt32) {
    return Unsupported("does not take a bias of ", DataTypeName(tail.bias_type));
  }
  if (std::abs(format.operands.left_zero_point) > 255 ||
      std::abs(format.operands.right_zero_point) > (shorts ? 0 : 255)) {
    return Unsupported("does not take a zero point beyond 8 bits");
  }
  return Status();
}

Result<FormatS16> MakeFormat(const OpDescription& op, const ProductDescription& d) {
  const ProductInputs& inputs = *op.op->product_inputs;
  const TensorInfo &in = op.inputs[inputs.x], &weights = op.inputs[inputs.weights];
  FormatS16 format;
  format.output = op.outputs[0].type;
  format.operands = {.weights = ReadableType(weights.type),
                     .stored_weights = weights.type,
                     .right_zero_point = weights.quantization.zero_point()};
  if (d.hybrid) {
    format.types = internal::Join("hybrid ", DataTypeName(weights.type));
    format.hybrid = d.hybrid->tail;
  } else {
    FUSELITE_ASSIGN_OR_RETURN(
        format.tail, MakeQuantizedTail(op, d.activation, d.quantized_bias_type, d.channels_out));
    format.types = DataTypeName(in.type);
    format.operands.left_zero_point = in.quantization.zero_point();
    format.operands.wide = format.tail.wide;
    format.operands.biased = format.tail.bias_type == DataType::kInt32;
  }
  FUSELITE_RETURN_IF_ERROR(CheckOperands(op, format));
  return format;
}

}  // namespace

Result<KernelPlan> PlanHighwayProductS16(const OpDescription& op, const PlanContext& context) {
  const GemmS16* const gemm = FindGemmS16(context.isa);
  if (gemm == nullptr) return NoVectorTarget(context.isa);
  FUSELITE_ASSIGN_OR_RETURN(const ProductDescription d, op.op->product(op));
  if (d.hybrid && d.hybrid->scales_terms) return PlanScaledTerms(op, d, context);
  FUSELITE_ASSIGN_OR_RETURN(FormatS16 made, MakeFormat(op, d));
  const auto format = std::make_shared<const FormatS16>(std::move(made));
  const ProductInputs& inputs = *op.op->product_inputs;
  ProductKernelSpec spec;
  if (d.hybrid) {
    if (d.left_transposed) return Unsupported("does not take adj_x of float32 with 8-bit weights");
    spec.source = std::make_unique<QuantizedSource>(inputs.x, HybridLayout(d, false), context.isa);
    spec.row_value_bytes = sizeof(RowScale);
    spec.row_values_per_image = !d.hybrid->scale_per_row;
  } else {
    spec.source = MakeByteSource(inputs.x, d, op.inputs[inputs.x], context.isa, false).source;
  }
  spec.value_bytes = sizeof(int16_t);
  spec.takes_empty_sums = true;
  spec.packs_bias = !format->tail.wide;  // int64 biases meet int64 sums
  spec.tail_is_linear = true;            // tiles have no operands but channels' biases
  spec.micro_kernel = [&](const DepthRuns& depth,
                          ProductProblem* problem) -> Result<std::shared_ptr<const MicroKernel>> {
    // Sums of 32 bits wait in any case where there is a rest.
    problem->rest = RestBehind(format->stored(), format->output, format->rest(), context.isa);
    return std::shared_ptr<const MicroKernel>(
        std::make_shared<HighwayMicroKernelS16>(format, *gemm, depth, *problem, context.isa));
  };
  return PlanProductKernel(op, d, spec, context);
}

Result<KernelPlan> PlanHighwayProduct(const OpDescription& op, const PlanContext& context) {
  const bool floats = op.inputs[op.op->product_inputs->weights].type == DataType::kFloat32;
  return floats ? PlanHighwayProductF32(op, context) : PlanHighwayProductS16(op, context);
}

}  // namespace fuselite::kernels
