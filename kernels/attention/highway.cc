// Attention with vectors: a block of queries of one head at a time. Scores [rows, N] and the
// output [rows, D] are products of the same small matrix multiplication.
#include "kernels/attention/attention.h"
#include "kernels/attention/block.h"
#include "kernels/make_kernel.h"
#include "kernels/row_tail.h"
#include "kernels/strided_copy.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/highway.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "kernels/simd.h"
#include "kernels/softmax/softmax-inl.h"

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;

// Six rows by four vectors are 24 accumulators of AVX-512's 32 registers, by two 12 of 16.
constexpr size_t kTileRows = 6;
#if HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON
constexpr size_t kTileVectors = 4;
#else
constexpr size_t kTileVectors = 2;
#endif

// c[kRows][columns] = a[kRows][terms] b[terms][columns], row-major with these pitches; `kVectors`
// whole vectors of columns, or where it is 0 `columns` < Lanes.
template <size_t kRows, size_t kVectors>
HWY_INLINE void MultiplyTile(const float* a, int64_t a_pitch, const float* b, int64_t b_pitch,
                             float* c, int64_t c_pitch, int64_t terms, size_t columns) {
  constexpr size_t kColumns = kVectors == 0 ? 1 : kVectors;
  const D d;
  const size_t lanes = hn::Lanes(d);
  hn::Vec<D> sums[kRows][kColumns];
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t v = 0; v < kColumns; ++v) sums[r][v] = hn::Zero(d);
  }
  for (int64_t k = 0; k < terms; ++k, b += b_pitch) {
    hn::Vec<D> w[kColumns];
    for (size_t v = 0; v < kColumns; ++v) {
      w[v] = kVectors == 0 ? LoadPartial(d, b, columns) : hn::LoadU(d, b + v * lanes);
    }
    for (size_t r = 0; r < kRows; ++r) {
      const auto x = hn::Set(d, a[r * a_pitch + k]);
      for (size_t v = 0; v < kColumns; ++v) sums[r][v] = hn::MulAdd(x, w[v], sums[r][v]);
    }
  }
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t v = 0; v < kColumns; ++v) {
      if (kVectors == 0) {
        StorePartial(sums[r][v], d, c + r * c_pitch, columns);
      } else {
        hn::StoreU(sums[r][v], d, c + r * c_pitch + v * lanes);
      }
    }
  }
}

template <size_t kRows>
HWY_NOINLINE void MultiplyRows(const float* a, int64_t a_pitch, const float* b, int64_t b_pitch,
                               float* c, int64_t c_pitch, int64_t terms, size_t columns) {
  const size_t lanes = hn::Lanes(D());
  size_t j = 0;
  for (; j + kTileVectors * lanes <= columns; j += kTileVectors * lanes) {
    MultiplyTile<kRows, kTileVectors>(a, a_pitch, b + j, b_pitch, c + j, c_pitch, terms, 0);
  }
  for (; j + lanes <= columns; j += lanes) {
    MultiplyTile<kRows, 1>(a, a_pitch, b + j, b_pitch, c + j, c_pitch, terms, 0);
  }
  if (j < columns) {
    MultiplyTile<kRows, 0>(a, a_pitch, b + j, b_pitch, c + j, c_pitch, terms, columns - j);
  }
}

// Every row's sums are those of one row alone: how rows fall into tiles does not change bits.
HWY_INLINE void Multiply(const float* a, int64_t a_pitch, const float* b, int64_t b_pitch, float* c,
                         int64_t c_pitch, int64_t rows, int64_t terms, size_t columns) {
  int64_t r = 0;
  for (; r + static_cast<int64_t>(kTileRows) <= rows; r += kTileRows) {
    MultiplyRows<kTileRows>(a + r * a_pitch, a_pitch, b, b_pitch, c + r * c_pitch, c_pitch, terms,
                            columns);
  }
  for (; r < rows; ++r) {
    MultiplyRows<1>(a + r * a_pitch, a_pitch, b, b_pitch, c + r * c_pitch, c_pitch, terms, columns);
  }
}

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

void AttendBlock(const AttentionShape& s, const AttentionBlock& b) {
  Multiply(b.queries, b.query_pitch, b.keys, s.keys, b.scores, s.keys, b.rows, s.depth, s.keys);
  for (int64_t r = 0; r < b.rows; ++r) {
    float* scores = b.scores + r * s.keys;
    if (b.scale != 1.0f || s.masked) {
      ScaleAndMask(scores, s.keys, b.scale, b.masks[r], b.mask_step);
    }
    SoftmaxRow(scores, scores, s.keys, 1.0f);
  }
  Multiply(b.scores, s.keys, b.values, s.values, b.means, s.values, b.rows, s.keys, s.values);
}

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

using AttendFunction = void(const AttentionShape&, const AttentionBlock&);

size_t RoundUp(size_t bytes) { return (bytes + 63) / 64 * 64; }

// Phase 0 brings keys that lie by rows into [depth, keys] of every head; phase 1 attends.
class AttentionKernel final : public Kernel {
 public:
  AttentionKernel(const OpDescription& op, const AttentionShape& shape, Isa isa,
                  AttendFunction* attend)
      : name_(std::string("attention f32 ") + SimdName(isa)),
        shape_(shape),
        attend_(attend),
        tail_(op, ApplyTail(isa)),
        query_pitch_(op.inputs[0].pitch()),
        scale_(op.params.as<AttentionParams>().scale) {
    if (!op.params.as<AttentionParams>().keys_by_rows) return;
    StridedCopy copy{.element_bytes = sizeof(float)};
    const int64_t element = sizeof(float), head = shape.keys * shape.depth * element;
    copy.Add(shape.heads, head, head);
    copy.Add(shape.depth, element, shape.keys * element);
    copy.Add(shape.keys, shape.depth * element, element);
    transpose_.emplace(copy);
  }

  std::string_view name() const override { return name_; }
  int phases() const override { return transpose_ ? 2 : 1; }
  int64_t units(int phase) const override {
    return Transposes(phase) ? transpose_->units() : shape_.heads * Blocks();
  }
  int64_t grain(int phase) const override {
    if (Transposes(phase)) {
      return GrainFor(transpose_->bytes() / std::max<int64_t>(1, transpose_->units()) / 4);
    }
    return GrainFor(AttentionBlock::kMaxRows * shape_.keys * (shape_.depth + shape_.values) / 16);
  }
  size_t scratch_bytes() const override {
    return RoundUp(tail_.scratch_bytes()) + ScoreBytes() +
           AttentionBlock::kMaxRows * shape_.values * sizeof(float);
  }
  size_t shared_bytes() const override {
    return transpose_ ? shape_.heads * shape_.keys * shape_.depth * sizeof(float) : 0;
  }

  Status Run(const KernelArgs& args, int phase, int64_t begin, int64_t end) const override {
    if (Transposes(phase)) {
      transpose_->Run(args.inputs[1], args.shared, begin, end);
      return Status();
    }
    for (int64_t unit = begin; unit < end; ++unit) Attend(args, unit);
    return Status();
  }

 private:
  bool Transposes(int phase) const { return transpose_ && phase == 0; }
  int64_t Blocks() const {
    return (shape_.queries + AttentionBlock::kMaxRows - 1) / AttentionBlock::kMaxRows;
  }
  size_t ScoreBytes() const {
    return RoundUp(AttentionBlock::kMaxRows * shape_.keys * sizeof(float));
  }

  const float* MaskRow(const KernelArgs& args, int64_t row) const {
    if (!shape_.masked) return nullptr;
    const TailOperand& m = shape_.mask.operand;
    return static_cast<const float*>(args.inputs[3]) +
           row / shape_.mask.rows_per_batch * m.batch_stride +
           row % shape_.mask.rows_per_batch * m.row_stride;
  }

  void Attend(const KernelArgs& args, int64_t unit) const {
    const int64_t head = unit / Blocks();
    const int64_t first = unit % Blocks() * AttentionBlock::kMaxRows;
    const int64_t row = head * shape_.queries + first;
    const auto operand = [&](int i) { return static_cast<const float*>(args.inputs[i]); };
    const float* keys = transpose_ ? reinterpret_cast<const float*>(args.shared) : operand(1);
    std::byte* scratch = args.scratch + RoundUp(tail_.scratch_bytes());
    AttentionBlock block{};
    block.queries = operand(0) + row * query_pitch_;
    block.query_pitch = query_pitch_;
    block.keys = keys + head * shape_.keys * shape_.depth;
    block.values = operand(2) + head * shape_.keys * shape_.values;
    block.rows = std::min<int64_t>(AttentionBlock::kMaxRows, shape_.queries - first);
    block.scale = scale_;
    for (int64_t r = 0; r < block.rows; ++r) block.masks[r] = MaskRow(args, row + r);
    block.mask_step = shape_.mask.operand.channel_stride;
    block.scores = reinterpret_cast<float*>(scratch);
    block.means = reinterpret_cast<float*>(scratch + ScoreBytes());
    attend_(shape_, block);
    for (int64_t r = 0; r < block.rows; ++r) {
      std::memcpy(tail_.Row(args, row + r), block.means + r * shape_.values,
                  shape_.values * sizeof(float));
      tail_.Finish(args, row + r);
    }
  }

  std::string name_;
  AttentionShape shape_;
  AttendFunction* attend_;
  RowTail tail_;
  int64_t query_pitch_;
  float scale_;
  std::optional<CopyPlan> transpose_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> BuildAttentionHighway(const OpDescription& op,
                                                      const BuildContext& context) {
  constexpr auto kAttend = FUSELITE_SIMD_TABLE(AttendBlock);
  auto* const attend = kAttend.For(context.isa);
  if (attend == nullptr) return Unsupported("no vector target at isa=", IsaName(context.isa));
  FUSELITE_ASSIGN_OR_RETURN(const AttentionShape shape, ResolveAttention(op));
  return std::unique_ptr<Kernel>(std::make_unique<AttentionKernel>(op, shape, context.isa, attend));
}

}  // namespace fuselite::kernels
#endif
