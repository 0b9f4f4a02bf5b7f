// Attention by the matrix product of vectors.
#include <algorithm>
#include <limits>

#include "kernels/attention/attention_kernel.h"
#include "kernels/movement/copy_loops.h"
#include "kernels/simd.h"
#include "runtime/memory/aligned_buffer.h"

namespace fuselite::kernels {
namespace {

constexpr int64_t kFloat = sizeof(float);

class VectorProducts final : public AttentionProducts {
 public:
  VectorProducts(const AttentionShape& shape, const GemmF32& gemm, Isa isa)
      : shape_(shape),
        gemm_(gemm),
        target_(SimdName(isa)),
        loops_(CopyLoopsFor(isa)),
        scale_(FindAttentionFunctions(isa).scale) {}

  std::string name() const override { return "attention f32 " + target_; }
  // Whole tiles on every target.
  int64_t block_rows() const override { return 28; }
  bool repeats_rows() const override { return false; }
  int64_t score_pitch(int64_t keys) const override { return ScorePitch(keys); }
  size_t scratch_bytes() const override { return 0; }

  int64_t key_panels() const override { return gemm_.panels(shape_.keys); }
  int64_t value_panels() const override { return gemm_.panels(shape_.values); }
  size_t key_bytes() const override {
    return AlignUp(gemm_.PackedBytes(shape_.depth, shape_.keys));
  }
  size_t value_bytes() const override {
    return AlignUp(gemm_.PackedBytes(shape_.keys, shape_.values));
  }

  void PackKeys(const GemmSource& keys, float factor, int64_t panel,
                std::byte* packed) const override {
    if (panel * gemm_.panel >= keys.columns) return;
    auto* const to = reinterpret_cast<float*>(packed);
    PackKeyPanel(keys, panel, to);
    if (factor == 1) return;
    float* const own = to + panel * gemm_.panel * shape_.depth;
    scale_(own, factor, own, gemm_.panel * shape_.depth);
  }
  void PackValues(const GemmSource& values, int64_t panel, std::byte* packed) const override {
    GemmSource behind = values;
    behind.base += panel * gemm_.panel;
    behind.columns -= panel * gemm_.panel;
    PackPanelsF32(behind, gemm_.panel, 0, 1,
                  reinterpret_cast<float*>(packed) + ValuePanelAt(panel));
  }

  void Score(const float* queries, int64_t pitch, const AttentionBlock& block,
             const std::byte* keys, std::byte* /*scratch*/) const override {
    Multiply(queries, pitch, block.rows, shape_.depth, reinterpret_cast<const float*>(keys),
             block.keys, block.scores, block.pitch);
  }
  void Mean(const AttentionBlock& block, const std::byte* values, std::byte* /*scratch*/,
            float* means) const override {
    for (int64_t panel = 0; panel < value_panels(); ++panel) {
      const int64_t column = panel * gemm_.panel;
      Multiply(block.scores, block.pitch, block.rows, block.keys,
               reinterpret_cast<const float*>(values) + ValuePanelAt(panel),
               std::min<int64_t>(gemm_.panel, shape_.values - column), means + column,
               shape_.values);
    }
  }

 private:
  // Panels lie as if all keys were seen.
  int64_t ValuePanelAt(int64_t panel) const { return panel * gemm_.panel * shape_.keys; }

  // Whole panels of keys by rows are transposed with vectors.
  void PackKeyPanel(const GemmSource& keys, int64_t panel, float* packed) const {
    const int64_t first = panel * gemm_.panel;
    if (keys.k_stride != 1 || first + gemm_.panel > keys.columns) {
      return PackPanelsF32(keys, gemm_.panel, panel, panel + 1, packed);
    }
    loops_.transpose(reinterpret_cast<const std::byte*>(keys.base + first * keys.n_stride),
                     reinterpret_cast<std::byte*>(packed + first * keys.depth),
                     {keys.depth, kFloat, gemm_.panel * kFloat},
                     {gemm_.panel, keys.n_stride * kFloat, kFloat}, kFloat);
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

  AttentionShape shape_;
  const GemmF32& gemm_;
  std::string target_;
  CopyLoops loops_;
  ScaleFunction* scale_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> BuildAttentionHighway(const OpDescription& op,
                                                      const BuildContext& context) {
  const GemmF32* const gemm = FindGemmF32(context.isa);
  if (gemm == nullptr) return NoVectorTarget(context.isa);
  FUSELITE_ASSIGN_OR_RETURN(const AttentionShape shape, ResolveAttention(op));
  return MakeAttentionKernel(op, context.isa,
                             std::make_shared<VectorProducts>(shape, *gemm, context.isa));
}

}  // namespace fuselite::kernels
