#include "kernels/blockwise/blockwise.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "kernels/blockwise/tile.h"
#include "kernels/dynamic_quantization/dynamic_scale.h"
#include "kernels/gemm/hybrid_tail.h"
#include "kernels/gemm/output_tail.h"
#include "kernels/gemm/short_rows.h"
#include "kernels/make_kernel.h"
#include "kernels/simd.h"

namespace fuselite::kernels {
namespace {

// Units of a step of work: eight vectors' worth of AVX2's, so that the tail runs over rows of 64.
constexpr int64_t kUnitsPerStep = 64;
// So many rows of weights with one scale repay neither wider panels nor weights packed twice.
constexpr int64_t kFewRows = 4;
// Rows whose sums wait for their tail.
constexpr int64_t kRowsPerStep = 64;

// How panels lie (BlockwiseTile).
struct PanelLayout {
  int width = 0;        // units of a panel
  bool halves = false;  // float16 scales
  bool bytes = false;   // weights of 8 bits
  bool exact = false;   // BlockwiseTile::exact
  int64_t depth = 0, units = 0, block_size = 0;

  int64_t blocks() const { return depth / block_size; }
  int64_t panels() const { return (units + width - 1) / width; }
  int64_t scale_bytes() const { return halves ? 2 : 4; }
  int64_t weight_bytes() const { return block_size * width / (bytes ? 1 : 2); }
  // The scales of a block follow its weights, so that all is read as one stream, which a core
  // fetches ahead by itself: a row by 1024 x 1024 weights in L2 takes 4.4 us instead of 4.9. What
  // does not fill cache lines lies behind all weights instead.
  bool scales_inside() const { return width * scale_bytes() % kAlignment == 0; }
  int64_t weights_step() const {
    return weight_bytes() + (scales_inside() ? width * scale_bytes() : 0);
  }
  int64_t scales_step() const { return scales_inside() ? weights_step() : width * scale_bytes(); }
  int64_t scales_at() const { return scales_inside() ? weight_bytes() : blocks() * weight_bytes(); }
  int64_t per_offset_at() const {
    const int64_t outside = scales_inside() ? 0 : blocks() * scales_step();
    return static_cast<int64_t>(AlignUp(blocks() * weights_step() + outside));
  }
  int64_t panel_bytes() const {
    return per_offset_at() + static_cast<int64_t>(AlignUp(width * sizeof(float)));
  }
  // Where weight `k` of the block is for lane `u`, and whether in the high half of the byte.
  int64_t ByteOf(int64_t k, int64_t u) const {
    return bytes ? k / 2 * (2 * width) + u * 2 + k % 2 : k / 8 * (4 * width) + u * 4 + k % 4;
  }
  bool InHighHalf(int64_t k) const { return !bytes && k % 8 >= 4; }
};

// The bytes of weights of 4 bits as they are in the file.
struct PackedFours {
  const std::byte* bytes;
};

template <class Weights>
void PackBlock(const PanelLayout& l, const Weights& weights, int64_t from, int64_t lane,
               std::byte* to, int64_t* sum) {
  for (int64_t k = 0; k < l.block_size; ++k) {
    const int32_t w = weights[from + k];
    *sum += w;
    std::byte& at = to[l.ByteOf(k, lane)];
    if (l.bytes) {
      at = static_cast<std::byte>(w);
    } else {
      at |= static_cast<std::byte>((w + 8) << (l.InHighHalf(k) ? 4 : 0));
    }
  }
}

// Half of the nibbles of a word become the low halves of its bytes.
uint32_t SpreadNibbles(uint32_t four) {
  four = (four | four << 8) & 0x00ff00ffu;
  return (four | four << 4) & 0x0f0f0f0fu;
}

// PackBlock for weights of 4 bits, of which the file has two to a byte as well: eight at a time.
// Rows and blocks begin with whole bytes.
void PackBlock(const PanelLayout& l, const PackedFours& weights, int64_t from, int64_t lane,
               std::byte* to, int64_t* sum) {
  const std::byte* const source = weights.bytes + from / 2;
  for (int64_t k = 0; k < l.block_size; k += 8) {
    uint32_t eight = 0;
    for (int64_t i = 0; i < 4; ++i) eight |= std::to_integer<uint32_t>(source[k / 2 + i]) << 8 * i;
    // A signed nibble plus 8 is the nibble with its sign turned.
    eight ^= 0x88888888u;
    const uint32_t low = SpreadNibbles(eight & 0xffff), high = SpreadNibbles(eight >> 16);
    *sum += int64_t{(low + high) * 0x01010101u >> 24} - 8 * 8;
    const uint32_t packed = low | high << 4;
    std::byte* const at = to + l.ByteOf(k, lane);
    for (int64_t i = 0; i < 4; ++i) at[i] = static_cast<std::byte>(packed >> 8 * i);
  }
}

// Copies one scale; its size is constant in either branch, as a call for each block would take as
// long as packing it.
void CopyScale(const PanelLayout& l, const std::byte* from, std::byte* to) {
  l.halves ? std::memcpy(to, from, sizeof(uint16_t)) : std::memcpy(to, from, sizeof(float));
}

template <class Weights>
void PackPanel(const PanelLayout& l, const Weights& weights, const TensorInfo& scales,
               int64_t panel, std::byte* to) {
  std::memset(to, 0, l.panel_bytes());
  std::vector<double> per_offset(l.width, 0.0);
  const int64_t first = panel * l.width, count = std::min<int64_t>(l.width, l.units - first);
  for (int64_t block = 0; block < l.blocks(); ++block) {
    std::byte* const scales_of_block = to + l.scales_at() + block * l.scales_step();
    for (int64_t lane = 0; lane < count; ++lane) {
      const int64_t of_scale = (first + lane) * l.blocks() + block;
      CopyScale(l, static_cast<const std::byte*>(scales.data) + of_scale * l.scale_bytes(),
                scales_of_block + lane * l.scale_bytes());
      int64_t sum = 0;
      PackBlock(l, weights, (first + lane) * l.depth + block * l.block_size, lane,
                to + block * l.weights_step(), &sum);
      const double scale = l.exact ? 1.0 : double{BlockScale(scales, of_scale)};
      per_offset[lane] += scale * static_cast<double>(sum);
    }
  }
  // Values of 16 bits have no offset.
  to += l.per_offset_at();
  for (int64_t lane = 0; lane < count && !l.bytes; ++lane) {
    if (l.exact) {
      reinterpret_cast<int32_t*>(to)[lane] = static_cast<int32_t>(per_offset[lane]);
    } else {
      reinterpret_cast<float*>(to)[lane] = static_cast<float>(per_offset[lane]);
    }
  }
}

// Phase 0 quantizes the rows, phase 1 multiplies.
class BlockwiseKernel final : public Kernel {
 public:
  // An input of the operator holds the scales of blocks, float16 or float32.
  BlockwiseKernel(const BlockwiseShape& shape, FloatTail tail)
      : shape_(shape), tail_(std::move(tail)) {}
  // Blocks are whole rows, whose scales these are.
  BlockwiseKernel(const BlockwiseShape& shape, HybridTail hybrid)
      : shape_(shape), row_scales_(std::move(hybrid.scales)), tail_(std::move(hybrid.tail)) {}

  Status Plan(const OpDescription& op, const PlanContext& context) {
    const bool exact = row_scales_.has_value();
    const TensorInfo scales = ScalesOf(op);
    functions_ = FindBlockwise(context.isa);
    quantize_ = FindShortRowFunctions(context.isa);
    if (functions_ == nullptr || quantize_ == nullptr) return NoVectorTarget(context.isa);
    if (shape_.block_size % kBlockwiseStep != 0) {
      return Unsupported("blocks of ", shape_.block_size, " are no multiple of ", kBlockwiseStep);
    }
    if (shape_.block_size > kMostBlockSize) {
      return Unsupported("sums of blocks of ", shape_.block_size, " do not fit 32 bits");
    }
    const bool halves = scales.type == DataType::kFloat16;
    const bool bytes = op.inputs[1].type == DataType::kInt8;
    tile_ = functions_->tiles[bytes][!halves];
    layout_ = {.width = functions_->lanes * tile_.vectors,
               .halves = halves,
               .bytes = bytes,
               .exact = exact,
               .depth = shape_.depth,
               .units = shape_.units,
               .block_size = shape_.block_size};
    asymmetric_ = !exact || op.params.as<FullyConnectedParams>().asymmetric_quantize_inputs;
    fetches_ahead_ = context.FetchesAhead(layout_.panels() * layout_.panel_bytes());
    apply_tail_ = ApplyTail(context.isa);
    output_ = op.outputs[0];
    pitch_ = op.inputs[0].row_pitch ? op.inputs[0].row_pitch : shape_.depth;
    biased_ = op.has_input(2);
    name_ =
        internal::Join("fully_connected ", exact ? "hybrid " : "blockwise ",
                       DataTypeName(op.inputs[1].type), " ", tile_.max_rows, "x", layout_.width,
                       " ", tile_.dot_products ? IsaName(Isa::kAvx512Vnni) : SimdName(context.isa));
    return Status();
  }

  Status Pack(const OpDescription& op, const BuildContext& context) {
    const TensorInfo& weights = op.inputs[1];
    const TensorInfo scales = ScalesOf(op);
    PackRequest request;
    request.source = weights.data;
    request.source_bytes = weights.bytes();
    request.source2 = scales.data;
    request.source2_bytes = scales.bytes();
    request.bytes = layout_.panels() * layout_.panel_bytes();
    request.layout =
        internal::Join("blockwise ", DataTypeName(weights.type), " b", layout_.block_size, " s",
                       layout_.scale_bytes(), layout_.exact ? " exact k" : " k", layout_.depth,
                       " u", layout_.width, layout_.scales_inside() ? " inside" : "");
    FUSELITE_ASSIGN_OR_RETURN(packed_, context.Pack(request, [&](std::byte* to) {
      const auto pack_all = [&](const auto& values) {
        for (int64_t panel = 0; panel < layout_.panels(); ++panel) {
          PackPanel(layout_, values, scales, panel, to + panel * layout_.panel_bytes());
        }
      };
      if (weights.type == DataType::kInt4) {
        pack_all(PackedFours{static_cast<const std::byte*>(weights.data)});
      } else {
        WithBlockWeights(weights, pack_all);
      }
    }));
    row_scales_.reset();
    return Status();
  }

  std::string_view name() const override { return name_; }
  int phases() const override { return 2; }
  int64_t units(int phase) const override {
    return phase == 0 ? shape_.rows : (shape_.units + kUnitsPerStep - 1) / kUnitsPerStep;
  }
  int64_t grain(int phase) const override {
    if (phase == 0) return GrainFor(shape_.depth);
    return GrainFor(shape_.rows * kUnitsPerStep * shape_.depth / 8);
  }
  size_t shared_bytes() const override { return shape_.rows * RowBytes(); }
  size_t scratch_bytes() const override {
    return in_place() ? 0 : kRowsPerStep * kUnitsPerStep * sizeof(float);
  }

  Status Run(const KernelArgs& args, int phase, int64_t begin, int64_t end) const override {
    for (int64_t unit = begin; unit < end; ++unit) {
      if (phase == 0) {
        QuantizeRow(args, unit);
        continue;
      }
      for (int64_t row = 0; row < shape_.rows; row += kRowsPerStep) {
        Multiply(args, unit * kUnitsPerStep, row, std::min(kRowsPerStep, shape_.rows - row));
      }
    }
    return Status();
  }

 private:
  bool in_place() const { return output_.type == DataType::kFloat32; }

  // A quantized row in shared memory: its scale and offset, the sums of its blocks, its values.
  struct Header {
    float scale, offset;
  };
  size_t SumBytes() const { return layout_.bytes ? 0 : layout_.blocks() * sizeof(int32_t); }
  size_t ValuesAt() const { return AlignUp(sizeof(Header) + SumBytes()); }
  size_t RowBytes() const { return ValuesAt() + AlignUp(shape_.depth * (layout_.bytes ? 2 : 1)); }

  TensorInfo ScalesOf(const OpDescription& op) const {
    if (!row_scales_) return op.inputs[kBlockScalesInput];
    TensorInfo scales;
    scales.type = DataType::kFloat32;
    scales.shape = Shape({shape_.units, 1});
    scales.data = row_scales_->data();
    return scales;
  }

  void QuantizeRow(const KernelArgs& args, int64_t row) const {
    const auto* x = static_cast<const float*>(args.inputs[0]) + row * pitch_;
    std::byte* const to = args.shared + row * RowBytes();
    DynamicRange range{x[0], x[0]};
    quantize_->extend_range(x, shape_.depth, &range);
    const DynamicScale scale = MakeDynamicScale(range, asymmetric_);
    auto& header = *reinterpret_cast<Header*>(to);
    header = {scale.scale, layout_.bytes ? 0.0f : static_cast<float>(scale.offset)};
    if (layout_.bytes) {
      quantize_->quantize(x, shape_.depth, scale, reinterpret_cast<int16_t*>(to + ValuesAt()));
      return;
    }
    auto* const bytes = reinterpret_cast<uint8_t*>(to + ValuesAt());
    quantize_->quantize_u8(x, shape_.depth, scale, bytes);
    functions_->sign_bytes(bytes, layout_.blocks(), layout_.block_size,
                           reinterpret_cast<int32_t*>(to + sizeof(Header)));
  }

  BlockwiseRow RowAt(const KernelArgs& args, int64_t row) const {
    const std::byte* const at = args.shared + row * RowBytes();
    const auto& header = *reinterpret_cast<const Header*>(at);
    return {at + ValuesAt(), reinterpret_cast<const int32_t*>(at + sizeof(Header)), header.scale,
            header.offset};
  }

  void Multiply(const KernelArgs& args, int64_t unit, int64_t row, int64_t rows) const {
    const int64_t units = std::min(kUnitsPerStep, shape_.units - unit);
    const int64_t out_pitch = output_.pitch();
    std::byte* const out = static_cast<std::byte*>(args.outputs[0]) +
                           (row * out_pitch + unit) * (BitWidth(output_.type) / 8);
    auto* const sums = reinterpret_cast<float*>(in_place() ? out : args.scratch);
    const int64_t sums_pitch = in_place() ? out_pitch : units;
    BlockwiseTile tile{};
    tile.blocks = layout_.blocks();
    tile.block_size = layout_.block_size;
    tile.exact = layout_.exact;
    tile.fetches_ahead = fetches_ahead_;
    tile.weights_step = layout_.weights_step();
    tile.scales_step = layout_.scales_step();
    tile.min = tail_.min;
    tile.max = tail_.max;
    tile.out_pitch = sums_pitch;
    std::array<BlockwiseRow, kRowsPerStep> quantized;
    for (int64_t r = 0; r < rows; ++r) quantized[r] = RowAt(args, row + r);
    for (int64_t u = 0; u < units; u += layout_.width) {
      tile.weights = packed_->data() + (unit + u) / layout_.width * layout_.panel_bytes();
      tile.scales = tile.weights + layout_.scales_at();
      tile.per_offset = tile.weights + layout_.per_offset_at();
      tile.units = std::min<int64_t>(layout_.width, units - u);
      tile.bias = biased_ ? static_cast<const float*>(args.inputs[2]) + unit + u : nullptr;
      for (int64_t r = 0; r < rows; r += tile.row_count) {
        tile.row_count = static_cast<int>(std::min<int64_t>(tile_.max_rows, rows - r));
        tile.rows = &quantized[r];
        tile.out = sums + r * sums_pitch + u;
        tile_.run(tile);
      }
    }
    if (in_place() && tail_.rest.empty()) return;
    apply_tail_(tail_.rest, args.inputs,
                {.source = sums,
                 .source_pitch = sums_pitch,
                 .source_type = DataType::kFloat32,
                 .destination = out,
                 .destination_pitch = out_pitch,
                 .destination_type = output_.type,
                 .row = row,
                 .rows = rows,
                 .channel = unit,
                 .channels = units});
  }

  std::string name_;
  BlockwiseShape shape_;
  PanelLayout layout_;
  const BlockwiseFunctions* functions_ = nullptr;
  const ShortRowFunctions* quantize_ = nullptr;
  BlockwiseFunctions::Tile tile_;
  std::optional<ChannelValues<float>> row_scales_;  // until they are packed
  FloatTail tail_;
  ApplyTailFunction* apply_tail_ = nullptr;
  TensorInfo output_;
  int64_t pitch_ = 0;
  bool biased_ = false, asymmetric_ = true, fetches_ahead_ = false;
  PackedWeights packed_;
};

}  // namespace

Result<KernelPlan> PlanBlockwiseFullyConnected(const OpDescription& op,
                                               const PlanContext& context) {
  FUSELITE_ASSIGN_OR_RETURN(const BlockwiseShape shape, ResolveBlockwise(op));
  FUSELITE_ASSIGN_OR_RETURN(FloatTail tail,
                            MakeFloatTail(op, op.params.as<FullyConnectedParams>().activation));
  return PlanThenPack(BlockwiseKernel(shape, std::move(tail)), op, context);
}

Status CheckFewRows(const OpDescription& op) {
  FUSELITE_ASSIGN_OR_RETURN(const FullyConnectedShape shape, ResolveFullyConnected(op));
  const TensorInfo& weights = op.inputs[1];
  if (op.inputs[0].type != DataType::kFloat32 || !weights.constant() ||
      (weights.type != DataType::kInt8 && weights.type != DataType::kInt4)) {
    return Unsupported("takes float32 by constant weights of int8 or int4 alone");
  }
  if (shape.rows > kFewRows) {
    return Unsupported("making weights wider is worth it for ", shape.rows, " rows");
  }
  if (shape.depth % kBlockwiseStep != 0) {
    return Unsupported("a depth of ", shape.depth, " is no multiple of ", kBlockwiseStep);
  }
  return Status();
}

Result<KernelPlan> PlanFullyConnectedFewRows(const OpDescription& op, const PlanContext& context) {
  FUSELITE_RETURN_IF_ERROR(CheckFewRows(op));
  FUSELITE_ASSIGN_OR_RETURN(const FullyConnectedShape resolved, ResolveFullyConnected(op));
  const auto& params = op.params.as<FullyConnectedParams>();
  FUSELITE_ASSIGN_OR_RETURN(HybridTail hybrid,
                            MakeHybridTail(op, params.activation, resolved.units));
  BlockwiseShape shape;
  static_cast<FullyConnectedShape&>(shape) = resolved;
  shape.block_size = resolved.depth;
  return PlanThenPack(BlockwiseKernel(shape, std::move(hybrid)), op, context);
}

}  // namespace fuselite::kernels
