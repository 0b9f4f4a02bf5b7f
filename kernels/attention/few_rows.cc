// Attention of a few queries, those of a decoder's next token: keys and values are read once, where
// they lie, for all queries of their head. Packing them for a matrix product would read them twice
// and write them once. Both products are summed in the order in which BATCH_MATMUL sums them: where
// the result is quantized, as a decoder's is, each last bit that differs may become a step.
#include "kernels/attention/attention.h"
#include "kernels/attention/block.h"
#include "kernels/make_kernel.h"
#include "kernels/rows/row_tail.h"
#include "runtime/support/ceil_div.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention/few_rows.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <utility>

#include "kernels/movement/matrix_transpose-inl.h"
#include "kernels/simd.h"
#include "kernels/simd_math/partial-inl.h"

#ifndef FUSELITE_KERNELS_ATTENTION_FEW_ROWS_
#define FUSELITE_KERNELS_ATTENTION_FEW_ROWS_
namespace fuselite::kernels {

// The queries of one head of keys, and where their means go.
struct FewRows {
  // Beyond, packing is repaid: half a tile of the matrix product.
  static constexpr int kMaxRows = 8;
  // Channels of keys that are transposed together.
  static constexpr int kChannels = 4;
  int64_t rows, depth, values;
  int64_t keys, readable_keys;  // those that are seen, and with others behind them
  const float* q;               // [rows, depth]
  float key_scale;              // what keys are multiplied by
  float* out[kMaxRows];
  const float *k, *v;
  int64_t key_step, value_step;
  float* scores;  // of the AttentionBlock
  // How many numbers of each position lie side by side that this head and those behind it attend
  // to; 0 where they were read for a head before.
  int64_t near_keys, near_values;
};

struct FewRowsFunctions {
  void (*score)(const FewRows&);
  void (*mean)(const FewRows&);
  int lanes;  // as many keys must be readable, and whole numbers of so many are read
};

}  // namespace fuselite::kernels
#endif

#if FUSELITE_SIMD_TARGET
HWY_BEFORE_NAMESPACE();
namespace fuselite::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DF = hn::ScalableTag<float>;
using VF = hn::Vec<DF>;

// As LiteRT's own kernels add: those for x86-64 are built for machines without FMA.
HWY_INLINE VF AddProduct(VF a, VF b, VF sum) {
#if HWY_ARCH_X86
  return hn::Add(sum, hn::Mul(a, b));
#else
  return hn::MulAdd(a, b, sum);
#endif
}

// The products of kRows queries from `row` on with a vector of keys, which lie in lanes: a few
// channels of each become vectors of a channel each.
template <int kRows>
HWY_INLINE void ScoreKeys(const FewRows& f, int64_t row, int64_t first) {
  const DF d;
  constexpr int kN = FewRows::kChannels;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  // The last ones may be scored twice.
  const int64_t begin = std::min(first, f.readable_keys - lanes);
  const auto* k = reinterpret_cast<const std::byte*>(f.k + begin * f.key_step);
  const auto pitch = static_cast<int64_t>(f.key_step * sizeof(float));
  VF sums[kRows];
  HWY_UNROLL(4)
  for (int r = 0; r < kRows; ++r) sums[r] = hn::Zero(d);
  for (int64_t i = 0; i < f.depth; i += kN, k += kN * sizeof(float)) {
    VF channels[kN];
    HWY_UNROLL(4)
    for (int c = 0; c < kN; ++c) channels[c] = LoadBlocks(d, k + c * pitch, kN * pitch);
    TransposeBlocks(d, channels);
    HWY_UNROLL(4)
    for (int c = 0; c < kN; ++c) {
      const VF key = hn::Mul(channels[c], hn::Set(d, f.key_scale));
      HWY_UNROLL(4)
      for (int r = 0; r < kRows; ++r) {
        sums[r] = AddProduct(hn::Set(d, f.q[(row + r) * f.depth + i + c]), key, sums[r]);
      }
    }
  }
  HWY_UNROLL(4)
  for (int r = 0; r < kRows; ++r) {
    StoreUpTo(sums[r], d, f.scores + (row + r) * ScorePitch(f.keys) + begin,
              static_cast<size_t>(f.keys - begin));
  }
}

// Brings positions [begin, end) into the caches, which a decoder's weights have left for other
// memory. Hardware runs ahead of two streams that are read in their order, keys and values in turn,
// at 20 GB/s; single requests ahead of what is scored give 9, since few are on their way at a time
// (AMD Zen 4).
HWY_INLINE void ReadPositions(const FewRows& f, int64_t begin, int64_t end) {
  constexpr int64_t kLine = 64 / sizeof(float);
  for (int64_t n = begin; n < end; ++n) {
    const volatile float *const key = f.k + n * f.key_step, *const value = f.v + n * f.value_step;
    for (int64_t at = 0; at < f.near_keys; at += kLine) (void)key[at];
    for (int64_t at = 0; at < f.near_values; at += kLine) (void)value[at];
  }
}

void ScoreRows(const FewRows& f) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(DF()));
  for (int64_t n = 0; n < f.keys; n += lanes) {
    ReadPositions(f, n, std::min(n + lanes, f.keys));
    int64_t r = 0;
    for (; r + 4 <= f.rows; r += 4) ScoreKeys<4>(f, r, n);
    if (r + 2 <= f.rows) ScoreKeys<2>(f, std::exchange(r, r + 2), n);
    if (r < f.rows) ScoreKeys<1>(f, r, n);
  }
}

// Vectors [at, at + kVectors) of the weighted sums of two rows.
template <int kVectors>
HWY_INLINE void MeanOf(const FewRows& f, int64_t r, int64_t other, int64_t at, size_t left) {
  const DF d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  VF sums0[kVectors], sums1[kVectors];
  HWY_UNROLL(4)
  for (int i = 0; i < kVectors; ++i) sums0[i] = sums1[i] = hn::Zero(d);
  const float *w0 = f.scores + r * ScorePitch(f.keys), *w1 = f.scores + other * ScorePitch(f.keys);
  for (int64_t n = 0; n < f.keys; ++n) {
    const float* const v = f.v + n * f.value_step + at;
    const VF a = hn::Set(d, w0[n]), b = hn::Set(d, w1[n]);
    HWY_UNROLL(4)
    for (int i = 0; i < kVectors; ++i) {
      const VF value = kVectors == 1 ? LoadUpTo(d, v, left) : hn::LoadU(d, v + i * lanes);
      sums0[i] = AddProduct(a, value, sums0[i]);
      sums1[i] = AddProduct(b, value, sums1[i]);
    }
  }
  HWY_UNROLL(4)
  for (int i = 0; i < kVectors; ++i) {
    const size_t count = kVectors == 1 ? left : static_cast<size_t>(lanes);
    StoreUpTo(sums0[i], d, f.out[r] + at + i * lanes, count);
    StoreUpTo(sums1[i], d, f.out[other] + at + i * lanes, count);
  }
}

void MeanRows(const FewRows& f) {
  constexpr int kVectors = 4;
  const auto lanes = static_cast<int64_t>(hn::Lanes(DF()));
  for (int64_t r = 0; r < f.rows; r += 2) {
    const int64_t other = std::min(r + 1, f.rows - 1);
    int64_t at = 0;
    for (; at + kVectors * lanes <= f.values; at += kVectors * lanes) {
      MeanOf<kVectors>(f, r, other, at, 0);
    }
    for (; at < f.values; at += lanes) {
      MeanOf<1>(f, r, other, at, static_cast<size_t>(f.values - at));
    }
  }
}

constexpr FewRowsFunctions kFewRows = {ScoreRows, MeanRows, hn::MaxLanes(DF())};

}  // namespace fuselite::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif

#if HWY_ONCE
namespace fuselite::kernels {
namespace {

class FewRowsKernel final : public Kernel {
 public:
  FewRowsKernel(const OpDescription& op, const AttentionShape& shape, Isa isa,
                const FewRowsFunctions& few_rows)
      : name_(std::string(shape.bytes ? "attention f32 cache int8 few rows "
                                      : "attention f32 few rows ") +
              SimdName(isa)),
        shape_(shape),
        params_(op.params.as<AttentionParams>()),
        few_rows_(few_rows),
        functions_(FindAttentionFunctions(isa)),
        tail_(op, ApplyTail(isa)) {}

  std::string_view name() const override { return name_; }
  int64_t units(int) const override { return shape_.batches * shape_.key_heads; }
  int64_t grain(int) const override {
    return GrainFor(shape_.keys * (shape_.depth + shape_.values) / 4);
  }
  size_t scratch_bytes() const override {
    return ScoreBytes() + QueryBytes() + (shape_.bytes ? KeyBytes() + ValueBytes() : 0);
  }
  Status Run(const KernelArgs& args, int, int64_t begin, int64_t end) const override {
    for (int64_t unit = begin; unit < end; ++unit) {
      const int64_t key_head = unit % shape_.key_heads;
      const bool first = unit == begin || key_head == 0;
      Attend(args, unit, first ? std::min(end - unit, shape_.key_heads - key_head) : 0);
    }
    return Status();
  }

 private:
  size_t ScoreBytes() const {
    return AlignUp(shape_.group() * shape_.queries * ScorePitch(shape_.keys) * sizeof(float));
  }
  size_t QueryBytes() const {
    return AlignUp(shape_.group() * shape_.queries * shape_.depth * sizeof(float));
  }
  // The bytes of one head's keys as floats.
  size_t KeyBytes() const { return AlignUp(shape_.keys * shape_.depth * sizeof(float)); }
  size_t ValueBytes() const { return AlignUp(shape_.keys * shape_.values * sizeof(float)); }

  // `fresh_heads`: so many from `unit` on no head before has read, where they lie side by side.
  void Attend(const KernelArgs& args, int64_t unit, int64_t fresh_heads) const {
    const int64_t batch = unit / shape_.key_heads, key_head = unit % shape_.key_heads;
    auto* const queries = reinterpret_cast<float*>(args.scratch + ScoreBytes());
    FewRows f{};
    AttentionBlock block{};
    int64_t rows[FewRows::kMaxRows] = {};
    for (int64_t in_group = 0; in_group < shape_.group(); ++in_group) {
      const int64_t head = key_head * shape_.group() + in_group;
      for (int64_t query = 0; query < shape_.queries; ++query, ++f.rows) {
        const int64_t row = rows[f.rows] = shape_.Row(batch, head, query);
        const float* const q = static_cast<const float*>(args.inputs[0]) +
                               shape_.q.At(batch, head) + query * shape_.q.row;
        functions_.scale(q, params_.operand_scale(), queries + f.rows * shape_.depth, shape_.depth);
        f.out[f.rows] = tail_.Row(args, row);
        block.PointAtMasks(shape_, args, f.rows, batch, head, query);
      }
    }
    f.q = queries;
    f.key_scale = params_.operand_scale();
    block.rows = f.rows;
    block.Take(params_);
    block.keys = f.keys = functions_.visible(block, shape_.keys);
    block.scores = f.scores = reinterpret_cast<float*>(args.scratch);
    block.pitch = ScorePitch(f.keys);
    const int64_t lanes = few_rows_.lanes;
    f.readable_keys = std::min(CeilDiv(f.keys, lanes) * lanes, shape_.keys);
    f.depth = shape_.depth;
    f.values = shape_.values;
    if (shape_.bytes) {
      Widen(args, batch, key_head, &f);
    } else {
      f.k = static_cast<const float*>(args.inputs[1]) + shape_.k.At(batch, key_head);
      f.v = static_cast<const float*>(args.inputs[2]) + shape_.v.At(batch, key_head);
      f.key_step = shape_.k.row;
      f.value_step = shape_.v.row;
      f.near_keys = Near(shape_.k, shape_.depth, fresh_heads);
      f.near_values = Near(shape_.v, shape_.values, fresh_heads);
    }
    few_rows_.score(f);
    functions_.weigh(block);
    few_rows_.mean(f);
    for (int64_t r = 0; r < f.rows; ++r) tail_.Finish(args, rows[r]);
  }

  static int64_t Near(const AttentionShape::Steps& steps, int64_t width, int64_t fresh_heads) {
    return steps.head == width ? fresh_heads * width : width;
  }

  // Keys and values of bytes that are read become floats in scratch memory, which stays in L2.
  void Widen(const KernelArgs& args, int64_t batch, int64_t key_head, FewRows* f) const {
    const auto widen = [&](int input, const AttentionShape::Steps& steps,
                           const AttentionShape::Scaled& scaled, int64_t width, std::byte* to) {
      const auto* const from =
          static_cast<const int8_t*>(args.inputs[input]) + steps.At(batch, key_head);
      auto* const floats = reinterpret_cast<float*>(to);
      functions_.widen(scaled, from, steps.row, f->readable_keys, width, floats);
      return floats;
    };
    std::byte* const keys = args.scratch + ScoreBytes() + QueryBytes();
    f->k = widen(1, shape_.k, shape_.k_scale, shape_.depth, keys);
    f->v = widen(2, shape_.v, shape_.v_scale, shape_.values, keys + KeyBytes());
    f->key_step = shape_.depth;
    f->value_step = shape_.values;
  }

  std::string name_;
  AttentionShape shape_;
  AttentionParams params_;
  FewRowsFunctions few_rows_;
  AttentionFunctions functions_;
  RowTail tail_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> BuildAttentionFewRows(const OpDescription& op,
                                                      const BuildContext& context) {
  static constexpr auto kTable = FUSELITE_SIMD_TABLE(kFewRows);
  FUSELITE_ASSIGN_OR_RETURN(const auto* const functions, kTable.Require(context.isa));
  FUSELITE_ASSIGN_OR_RETURN(const AttentionShape shape, ResolveAttention(op));
  const int64_t rows = shape.group() * shape.queries;
  if (rows > FewRows::kMaxRows)
    return Unsupported("packing keys and values is worth it for ", rows, " rows");
  if (shape.k.channel != 1) return Unsupported("does not take keys by columns");
  if (shape.depth % FewRows::kChannels != 0 || shape.keys < functions->lanes) {
    return Unsupported(shape.keys, " keys of ", shape.depth, " channels fill no vectors");
  }
  if (op.outputs[0].type != DataType::kFloat32) {
    return Unsupported("does not take an output of ", DataTypeName(op.outputs[0].type));
  }
  return std::unique_ptr<Kernel>(
      std::make_unique<FewRowsKernel>(op, shape, context.isa, *functions));
}

}  // namespace fuselite::kernels
#endif
