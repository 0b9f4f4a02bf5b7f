// Attention with vectors: a block of queries of one head at a time. Scores [rows, N] and the
// output [rows, D] are matrix products whose right sides, keys and values, are packed once per run.
#include <algorithm>
#include <limits>

#include "kernels/attention/attention.h"
#include "kernels/attention/block.h"
#include "kernels/gemm/gemm_f32.h"
#include "kernels/make_kernel.h"
#include "kernels/movement/copy_loops.h"
#include "kernels/rows/row_tail.h"
#include "kernels/simd.h"

namespace fuselite::kernels {
namespace {

size_t RoundUp(size_t bytes) { return (bytes + 63) / 64 * 64; }

enum Phases { kLook, kWiden, kPack, kAttend, kPhases };

// Finds how many keys each block of queries sees, packs every head's keys and values, as many as
// are seen, into panels of the matrix product, and attends. Those of bytes become floats before.
class AttentionKernel final : public Kernel {
 public:
  AttentionKernel(const OpDescription& op, const AttentionShape& shape, Isa isa,
                  const GemmF32& gemm, const AttentionFunctions& functions)
      : name_(std::string("attention f32 ") + SimdName(isa)),
        shape_(shape),
        params_(op.params.as<AttentionParams>()),
        gemm_(gemm),
        functions_(functions),
        loops_(CopyLoopsFor(isa)),
        tail_(op, ApplyTail(isa)) {}

  std::string_view name() const override { return name_; }
  int phases() const override { return kPhases; }
  int64_t units(int phase) const override {
    const int64_t key_heads = shape_.batches * shape_.key_heads;
    if (phase == kWiden) return shape_.bytes ? key_heads : 0;
    if (phase == kPack) return key_heads * (KeyPanels() + ValuePanels());
    return shape_.batches * shape_.heads * Blocks();
  }
  int64_t grain(int phase) const override {
    if (phase == kLook) return GrainFor(AttentionBlock::kMaxRows * 16);
    if (phase == kWiden) return GrainFor(shape_.keys * (shape_.depth + shape_.values) / 4);
    if (phase == kPack) return GrainFor(gemm_.panel * std::max(shape_.depth, shape_.keys) / 4);
    return GrainFor(AttentionBlock::kMaxRows * shape_.keys * (shape_.depth + shape_.values) / 16);
  }
  size_t scratch_bytes() const override {
    return RoundUp(tail_.scratch_bytes()) + ScoreBytes() +
           AttentionBlock::kMaxRows * (shape_.values + shape_.depth) * sizeof(float);
  }
  size_t shared_bytes() const override {
    return VisibleBytes() + shape_.batches * shape_.key_heads *
                                (KeyBytes() + ValueBytes() + (shape_.bytes ? WideBytes() : 0));
  }

  Status Run(const KernelArgs& args, int phase, int64_t begin, int64_t end) const override {
    for (int64_t unit = begin; unit < end; ++unit) {
      if (phase == kLook) {
        const AttentionBlock block = BlockOf(args, unit);
        Visible(args)[unit] = functions_.visible(block, shape_.keys);
      } else if (phase == kWiden) {
        Widen(args, unit);
      } else if (phase == kPack) {
        PackPanel(args, unit);
      } else {
        Attend(args, unit);
      }
    }
    return Status();
  }

 private:
  int64_t KeyPanels() const { return gemm_.panels(shape_.keys); }
  int64_t ValuePanels() const { return gemm_.panels(shape_.values); }
  size_t KeyBytes() const { return RoundUp(gemm_.PackedBytes(shape_.depth, shape_.keys)); }
  size_t ValueBytes() const { return RoundUp(gemm_.PackedBytes(shape_.keys, shape_.values)); }
  // Room for keys and values as floats, where they are bytes in memory.
  size_t WideBytes() const {
    return RoundUp(shape_.keys * (shape_.depth + shape_.values) * sizeof(float));
  }
  size_t VisibleBytes() const { return RoundUp(units(kLook) * sizeof(int64_t)); }
  int64_t Blocks() const {
    return (shape_.queries + AttentionBlock::kMaxRows - 1) / AttentionBlock::kMaxRows;
  }
  size_t ScoreBytes() const {
    return RoundUp(AttentionBlock::kMaxRows * ScorePitch(shape_.keys) * sizeof(float));
  }
  // How many positions each block sees.
  int64_t* Visible(const KernelArgs& args) const { return reinterpret_cast<int64_t*>(args.shared); }
  // `head` counts the heads of keys of all batches.
  float* PackedKeys(const KernelArgs& args, int64_t head) const {
    return reinterpret_cast<float*>(args.shared + VisibleBytes() +
                                    head * (KeyBytes() + ValueBytes()));
  }
  float* PackedValues(const KernelArgs& args, int64_t head) const {
    return PackedKeys(args, head) + KeyBytes() / sizeof(float);
  }

  float* WideKeys(const KernelArgs& args, int64_t head) const {
    float* const behind = PackedKeys(args, shape_.batches * shape_.key_heads);
    return behind + head * WideBytes() / sizeof(float);
  }
  float* WideValues(const KernelArgs& args, int64_t head) const {
    return WideKeys(args, head) + shape_.keys * shape_.depth;
  }

  void Widen(const KernelArgs& args, int64_t head) const {
    const int64_t batch = head / shape_.key_heads, key_head = head % shape_.key_heads;
    const auto bytes = [&](int input, const AttentionShape::Steps& steps) {
      return static_cast<const int8_t*>(args.inputs[input]) + steps.At(batch, key_head);
    };
    const int64_t visible = VisibleOf(args, head);
    functions_.widen(shape_.k_scale, bytes(1, shape_.k), shape_.k.row, visible, shape_.depth,
                     WideKeys(args, head));
    functions_.widen(shape_.v_scale, bytes(2, shape_.v), shape_.v.row, visible, shape_.values,
                     WideValues(args, head));
  }

  // The keys of a head as the right side of the scores.
  GemmSource Keys(const KernelArgs& args, int64_t head, int64_t visible) const {
    const int64_t at = shape_.k.At(head / shape_.key_heads, head % shape_.key_heads);
    const bool wide = shape_.bytes;
    return {.base = wide ? WideKeys(args, head) : static_cast<const float*>(args.inputs[1]) + at,
            .k_stride = shape_.k.channel,
            .n_stride = wide ? shape_.depth : shape_.k.row,
            .depth = shape_.depth,
            .columns = visible};
  }
  // The values from channel `first` on as the right side of the means.
  GemmSource Values(const KernelArgs& args, int64_t head, int64_t visible, int64_t first) const {
    const int64_t at = shape_.v.At(head / shape_.key_heads, head % shape_.key_heads);
    const bool wide = shape_.bytes;
    const float* const values =
        wide ? WideValues(args, head) : static_cast<const float*>(args.inputs[2]) + at;
    return {.base = values + first,
            .k_stride = wide ? shape_.values : shape_.v.row,
            .n_stride = 1,
            .depth = visible,
            .columns = shape_.values - first};
  }

  // What any block of the head of keys sees.
  int64_t VisibleOf(const KernelArgs& args, int64_t key_head) const {
    const int64_t blocks = shape_.group() * Blocks();
    const int64_t* const of_blocks = Visible(args) + key_head * blocks;
    return *std::max_element(of_blocks, of_blocks + blocks);
  }

  void PackPanel(const KernelArgs& args, int64_t unit) const {
    const int64_t head = unit / (KeyPanels() + ValuePanels());
    const int64_t panel = unit % (KeyPanels() + ValuePanels());
    const int64_t visible = VisibleOf(args, head);
    if (panel < KeyPanels()) {
      if (panel * gemm_.panel >= visible) return;
      PackKeys(Keys(args, head, visible), panel, PackedKeys(args, head));
      return ScaleKeys(PackedKeys(args, head) + panel * gemm_.panel * shape_.depth);
    }
    const int64_t value_panel = panel - KeyPanels();
    PackPanelsF32(Values(args, head, visible, value_panel * gemm_.panel), gemm_.panel, 0, 1,
                  ValuePanel(args, head, value_panel));
  }
  // Whole panels of keys by rows are transposed with vectors.
  void PackKeys(const GemmSource& keys, int64_t panel, float* packed) const {
    const int64_t first = panel * gemm_.panel;
    if (keys.k_stride != 1 || first + gemm_.panel > keys.columns) {
      return PackPanelsF32(keys, gemm_.panel, panel, panel + 1, packed);
    }
    constexpr int64_t kFloat = sizeof(float);
    loops_.transpose(reinterpret_cast<const std::byte*>(keys.base + first * keys.n_stride),
                     reinterpret_cast<std::byte*>(packed + first * keys.depth),
                     {keys.depth, kFloat, gemm_.panel * kFloat},
                     {gemm_.panel, keys.n_stride * kFloat, kFloat}, kFloat);
  }
  void ScaleKeys(float* panel) const {
    if (!params_.by_roots) return;
    functions_.scale(panel, params_.operand_scale(), panel, gemm_.panel * shape_.depth);
  }
  // Panels lie as if all keys were seen.
  float* ValuePanel(const KernelArgs& args, int64_t head, int64_t panel) const {
    return PackedValues(args, head) + panel * gemm_.panel * shape_.keys;
  }

  // c = a b, b packed, for the rows of a block.
  void Multiply(const float* a, int64_t a_pitch, int64_t rows, int64_t depth, const float* b,
                int64_t columns, float* c, int64_t c_pitch) const {
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    gemm_.run({.a = a,
               .a_pitch = a_pitch,
               .rows = rows,
               .depth = depth,
               .b = b,
               .columns = columns,
               .bias = nullptr,
               .min = -kInfinity,
               .max = kInfinity,
               .c = c,
               .c_pitch = c_pitch});
  }

  // Blocks of a head follow each other, then those of the next head.
  struct Place {
    int64_t batch, head, query;
  };
  Place PlaceOf(int64_t unit) const {
    const int64_t head = unit / Blocks();
    return {head / shape_.heads, head % shape_.heads, unit % Blocks() * AttentionBlock::kMaxRows};
  }

  AttentionBlock BlockOf(const KernelArgs& args, int64_t unit) const {
    const Place first = PlaceOf(unit);
    AttentionBlock block{};
    block.rows = std::min<int64_t>(AttentionBlock::kMaxRows, shape_.queries - first.query);
    block.Take(params_);
    for (int64_t r = 0; r < block.rows; ++r) {
      block.PointAtMasks(shape_, args, r, first.batch, first.head, first.query + r);
    }
    return block;
  }

  void Attend(const KernelArgs& args, int64_t unit) const {
    const Place first = PlaceOf(unit);
    const int64_t row = shape_.Row(first.batch, first.head, first.query);
    std::byte* scratch = args.scratch + RoundUp(tail_.scratch_bytes());
    auto* means = reinterpret_cast<float*>(scratch + ScoreBytes());
    AttentionBlock block = BlockOf(args, unit);
    block.keys = Visible(args)[unit];
    block.scores = reinterpret_cast<float*>(scratch);
    if (block.keys > 0) {
      AttendBlock(args, first, block, means);
    } else {
      std::fill_n(means, block.rows * shape_.values, 0.0f);
    }
    for (int64_t r = 0; r < block.rows; ++r) {
      const int64_t out = row + r * shape_.query_rows;
      std::copy_n(means + r * shape_.values, shape_.values, tail_.Row(args, out));
      tail_.Finish(args, out);
    }
  }
  // The weighted means of a block's rows, [rows, values].
  void AttendBlock(const KernelArgs& args, const Place& first, const AttentionBlock& block,
                   float* means) const {
    const int64_t key_head = first.batch * shape_.key_heads + first.head / shape_.group();
    const float* queries = static_cast<const float*>(args.inputs[0]) +
                           shape_.q.At(first.batch, first.head) + first.query * shape_.q.row;
    int64_t query_pitch = shape_.q.row;
    if (params_.by_roots) {
      float* const scaled = means + AttentionBlock::kMaxRows * shape_.values;
      for (int64_t r = 0; r < block.rows; ++r) {
        functions_.scale(queries + r * query_pitch, params_.operand_scale(),
                         scaled + r * shape_.depth, shape_.depth);
      }
      queries = scaled;
      query_pitch = shape_.depth;
    }
    Multiply(queries, query_pitch, block.rows, shape_.depth, PackedKeys(args, key_head), block.keys,
             block.scores, ScorePitch(block.keys));
    functions_.weigh(block);
    for (int64_t panel = 0; panel < ValuePanels(); ++panel) {
      const int64_t column = panel * gemm_.panel;
      Multiply(block.scores, ScorePitch(block.keys), block.rows, block.keys,
               ValuePanel(args, key_head, panel),
               std::min<int64_t>(gemm_.panel, shape_.values - column), means + column,
               shape_.values);
    }
  }

  std::string name_;
  AttentionShape shape_;
  AttentionParams params_;
  const GemmF32& gemm_;
  AttentionFunctions functions_;
  CopyLoops loops_;
  RowTail tail_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> BuildAttentionHighway(const OpDescription& op,
                                                      const BuildContext& context) {
  const AttentionFunctions functions = FindAttentionFunctions(context.isa);
  if (functions.weigh == nullptr) return NoVectorTarget(context.isa);
  const GemmF32* const gemm = FindGemmF32(context.isa);
  FUSELITE_ASSIGN_OR_RETURN(const AttentionShape shape, ResolveAttention(op));
  if (shape.bytes && shape.k.channel != 1)
    return Unsupported("does not take keys of bytes by columns");
  return std::unique_ptr<Kernel>(
      std::make_unique<AttentionKernel>(op, shape, context.isa, *gemm, functions));
}

}  // namespace fuselite::kernels
