// Attention with vectors: a block of queries of one head at a time. Scores [rows, N] and the
// output [rows, D] are matrix products whose right sides, keys and values, are packed once per run.
#include "kernels/attention/attention.h"
#include "kernels/attention/block.h"
#include "kernels/gemm/gemm_f32.h"
#include "kernels/make_kernel.h"
#include "kernels/row_tail.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "kernels/simd.h"
#include "kernels/softmax/softmax-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;

// y[i] = scale x[i] + mask[i step], rounded one by one as MUL and ADD are.
HWY_INLINE void ScaleAndMask(float* row, size_t n, float scale, const float* mask, int step) {
  const D d;
  const auto factor = hn::Set(d, scale);
  const size_t lanes = hn::Lanes(d);
  for (size_t i = 0; i < n; i += lanes) {
    const size_t count = std::min(lanes, n - i);
    auto x = hn::Mul(LoadUpTo(d, row + i, count), factor);
    if (mask != nullptr) {
      x = hn::Add(x, step == 0 ? hn::Set(d, *mask) : LoadUpTo(d, mask + i, count));
    }
    StoreUpTo(x, d, row + i, count);
  }
}

// Turns a block's products into weights, row by row.
void NormalizeScores(const AttentionShape& s, const AttentionBlock& b) {
  for (int64_t r = 0; r < b.rows; ++r) {
    float* scores = b.scores + r * s.keys;
    if (b.scale != 1.0f || s.masked) {
      ScaleAndMask(scores, s.keys, b.scale, b.masks[r], b.mask_step);
    }
    SoftmaxRow(scores, scores, s.keys, 1.0f);
  }
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

using NormalizeFunction = void(const AttentionShape&, const AttentionBlock&);

size_t RoundUp(size_t bytes) { return (bytes + 63) / 64 * 64; }

// Phase 0 packs every head's keys and values into panels of the matrix product; phase 1 attends.
class AttentionKernel final : public Kernel {
 public:
  AttentionKernel(const OpDescription& op, const AttentionShape& shape, Isa isa,
                  const GemmF32& gemm, NormalizeFunction* normalize)
      : name_(std::string("attention f32 ") + SimdName(isa)),
        shape_(shape),
        gemm_(gemm),
        normalize_(normalize),
        tail_(op, ApplyTail(isa)),
        query_pitch_(op.inputs[0].pitch()),
        scale_(op.params.as<AttentionParams>().scale),
        keys_by_rows_(op.params.as<AttentionParams>().keys_by_rows) {}

  std::string_view name() const override { return name_; }
  int phases() const override { return 2; }
  int64_t units(int phase) const override {
    return shape_.heads * (phase == 0 ? KeyPanels() + ValuePanels() : Blocks());
  }
  int64_t grain(int phase) const override {
    if (phase == 0) return GrainFor(gemm_.panel * std::max(shape_.depth, shape_.keys) / 4);
    return GrainFor(AttentionBlock::kMaxRows * shape_.keys * (shape_.depth + shape_.values) / 16);
  }
  size_t scratch_bytes() const override {
    return RoundUp(tail_.scratch_bytes()) + ScoreBytes() +
           AttentionBlock::kMaxRows * shape_.values * sizeof(float);
  }
  size_t shared_bytes() const override { return shape_.heads * (KeyBytes() + ValueBytes()); }

  Status Run(const KernelArgs& args, int phase, int64_t begin, int64_t end) const override {
    for (int64_t unit = begin; unit < end; ++unit) {
      phase == 0 ? PackPanel(args, unit) : Attend(args, unit);
    }
    return Status();
  }

 private:
  int64_t KeyPanels() const { return gemm_.panels(shape_.keys); }
  int64_t ValuePanels() const { return gemm_.panels(shape_.values); }
  size_t KeyBytes() const { return RoundUp(gemm_.PackedBytes(shape_.depth, shape_.keys)); }
  size_t ValueBytes() const { return RoundUp(gemm_.PackedBytes(shape_.keys, shape_.values)); }
  int64_t Blocks() const {
    return (shape_.queries + AttentionBlock::kMaxRows - 1) / AttentionBlock::kMaxRows;
  }
  size_t ScoreBytes() const {
    return RoundUp(AttentionBlock::kMaxRows * shape_.keys * sizeof(float));
  }
  float* PackedKeys(const KernelArgs& args, int64_t head) const {
    return reinterpret_cast<float*>(args.shared + head * (KeyBytes() + ValueBytes()));
  }
  float* PackedValues(const KernelArgs& args, int64_t head) const {
    return reinterpret_cast<float*>(args.shared + head * (KeyBytes() + ValueBytes()) + KeyBytes());
  }

  void PackPanel(const KernelArgs& args, int64_t unit) const {
    const int64_t head = unit / (KeyPanels() + ValuePanels());
    const int64_t panel = unit % (KeyPanels() + ValuePanels());
    if (panel < KeyPanels()) {
      const GemmSource keys{
          .base = static_cast<const float*>(args.inputs[1]) + head * shape_.keys * shape_.depth,
          .k_stride = keys_by_rows_ ? 1 : shape_.keys,
          .n_stride = keys_by_rows_ ? shape_.depth : 1,
          .depth = shape_.depth,
          .columns = shape_.keys};
      return PackPanelsF32(keys, gemm_.panel, panel, panel + 1, PackedKeys(args, head));
    }
    const GemmSource values{
        .base = static_cast<const float*>(args.inputs[2]) + head * shape_.keys * shape_.values,
        .k_stride = shape_.values,
        .n_stride = 1,
        .depth = shape_.keys,
        .columns = shape_.values};
    PackPanelsF32(values, gemm_.panel, panel - KeyPanels(), panel - KeyPanels() + 1,
                  PackedValues(args, head));
  }

  const float* MaskRow(const KernelArgs& args, int64_t row) const {
    if (!shape_.masked) return nullptr;
    const TailOperand& m = shape_.mask.operand;
    return static_cast<const float*>(args.inputs[3]) +
           row / shape_.mask.rows_per_batch * m.batch_stride +
           row % shape_.mask.rows_per_batch * m.row_stride;
  }

  // c = a b, b packed, for the rows of a block.
  void Multiply(const float* a, int64_t a_pitch, int64_t rows, int64_t depth, const float* b,
                int64_t columns, float* c) const {
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
               .c_pitch = columns});
  }

  void Attend(const KernelArgs& args, int64_t unit) const {
    const int64_t head = unit / Blocks();
    const int64_t first = unit % Blocks() * AttentionBlock::kMaxRows;
    const int64_t row = head * shape_.queries + first;
    std::byte* scratch = args.scratch + RoundUp(tail_.scratch_bytes());
    auto* means = reinterpret_cast<float*>(scratch + ScoreBytes());
    AttentionBlock block{};
    block.rows = std::min<int64_t>(AttentionBlock::kMaxRows, shape_.queries - first);
    block.scale = scale_;
    for (int64_t r = 0; r < block.rows; ++r) block.masks[r] = MaskRow(args, row + r);
    block.mask_step = shape_.mask.operand.channel_stride;
    block.scores = reinterpret_cast<float*>(scratch);
    Multiply(static_cast<const float*>(args.inputs[0]) + row * query_pitch_, query_pitch_,
             block.rows, shape_.depth, PackedKeys(args, head), shape_.keys, block.scores);
    normalize_(shape_, block);
    Multiply(block.scores, shape_.keys, block.rows, shape_.keys, PackedValues(args, head),
             shape_.values, means);
    for (int64_t r = 0; r < block.rows; ++r) {
      std::memcpy(tail_.Row(args, row + r), means + r * shape_.values,
                  shape_.values * sizeof(float));
      tail_.Finish(args, row + r);
    }
  }

  std::string name_;
  AttentionShape shape_;
  const GemmF32& gemm_;
  NormalizeFunction* normalize_;
  RowTail tail_;
  int64_t query_pitch_;
  float scale_;
  bool keys_by_rows_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> BuildAttentionHighway(const OpDescription& op,
                                                      const BuildContext& context) {
  constexpr auto kNormalize = FUSELITE_SIMD_TABLE(NormalizeScores);
  FUSELITE_ASSIGN_OR_RETURN(auto* const normalize, kNormalize.Require(context.isa));
  const GemmF32* const gemm = FindGemmF32(context.isa);
  FUSELITE_ASSIGN_OR_RETURN(const AttentionShape shape, ResolveAttention(op));
  return std::unique_ptr<Kernel>(
      std::make_unique<AttentionKernel>(op, shape, context.isa, *gemm, normalize));
}

}  // namespace fuselite::kernels
#endif
