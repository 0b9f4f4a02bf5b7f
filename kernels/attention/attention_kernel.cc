#include "kernels/attention/attention_kernel.h"

#include <algorithm>

#include "kernels/make_kernel.h"
#include "kernels/rows/row_tail.h"
#include "kernels/simd.h"
#include "runtime/support/ceil_div.h"

namespace fuselite::kernels {
namespace {

enum Phases { kLook, kWiden, kPack, kAttend, kPhases };

// Finds how many keys each block of queries sees, packs every head's keys and values, as many as
// are seen, into panels of the matrix products, and attends. Those of bytes become floats before.
class AttentionKernel final : public Kernel {
 public:
  AttentionKernel(const OpDescription& op, const AttentionShape& shape, Isa isa,
                  std::shared_ptr<const AttentionProducts> products)
      : name_(products->name()),
        shape_(shape),
        params_(op.params.as<AttentionParams>()),
        products_(std::move(products)),
        functions_(FindAttentionFunctions(isa)),
        tail_(op, ApplyTail(isa)),
        block_rows_(products_->block_rows()) {}

  std::string_view name() const override { return name_; }
  int phases() const override { return kPhases; }
  int64_t units(int phase) const override {
    const int64_t key_heads = shape_.batches * shape_.key_heads;
    if (phase == kWiden) return shape_.bytes ? key_heads : 0;
    if (phase == kPack) return key_heads * Panels();
    return shape_.batches * shape_.heads * Blocks();
  }
  int64_t grain(int phase) const override {
    const int64_t numbers = shape_.keys * (shape_.depth + shape_.values);  // of a head
    // Masks are read from the last key on, as far as they hide; the half of them is a guess.
    const int64_t looked_at = shape_.mask_count > 0 ? shape_.keys / 2 : 16;
    if (phase == kLook) return GrainFor(block_rows_ * looked_at);
    if (phase == kWiden) return GrainFor(numbers / 4);
    if (phase == kPack) return GrainFor(2 * numbers / std::max<int64_t>(1, Panels()));
    return GrainFor(block_rows_ * numbers / 16);
  }
  size_t scratch_bytes() const override {
    return AlignUp(tail_.scratch_bytes()) + ScoreBytes() + MeanBytes() + products_->scratch_bytes();
  }
  size_t shared_bytes() const override {
    return VisibleBytes() +
           shape_.batches * shape_.key_heads * (HeadBytes() + (shape_.bytes ? WideBytes() : 0));
  }

  Status Run(const KernelArgs& args, int phase, int64_t begin, int64_t end) const override {
    for (int64_t unit = begin; unit < end; ++unit) {
      if (phase == kLook) {
        Visible(args)[unit] = functions_.visible(BlockOf(args, PlaceOf(unit)), shape_.keys);
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
  int64_t Panels() const { return products_->key_panels() + products_->value_panels(); }
  size_t HeadBytes() const { return products_->key_bytes() + products_->value_bytes(); }
  // Room for keys and values as floats, where they are bytes in memory.
  size_t WideBytes() const {
    return AlignUp(shape_.keys * (shape_.depth + shape_.values) * sizeof(float));
  }
  size_t VisibleBytes() const { return AlignUp(units(kLook) * sizeof(int64_t)); }
  int64_t Blocks() const { return CeilDiv(shape_.queries, block_rows_); }
  size_t ScoreBytes() const {
    return AlignUp(block_rows_ * products_->score_pitch(shape_.keys) * sizeof(float));
  }
  // Of a block's means, and of its queries where they are scaled.
  size_t MeanBytes() const {
    return AlignUp(block_rows_ * (shape_.values + shape_.depth) * sizeof(float));
  }
  // How many positions each block sees.
  int64_t* Visible(const KernelArgs& args) const { return reinterpret_cast<int64_t*>(args.shared); }
  // `head` counts the heads of keys of all batches.
  std::byte* PackedKeys(const KernelArgs& args, int64_t head) const {
    return args.shared + VisibleBytes() + head * HeadBytes();
  }
  std::byte* PackedValues(const KernelArgs& args, int64_t head) const {
    return PackedKeys(args, head) + products_->key_bytes();
  }

  float* WideKeys(const KernelArgs& args, int64_t head) const {
    std::byte* const behind = PackedKeys(args, shape_.batches * shape_.key_heads);
    return reinterpret_cast<float*>(behind + head * WideBytes());
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
  // The values as the right side of the means.
  GemmSource Values(const KernelArgs& args, int64_t head, int64_t visible) const {
    const int64_t at = shape_.v.At(head / shape_.key_heads, head % shape_.key_heads);
    const bool wide = shape_.bytes;
    return {.base = wide ? WideValues(args, head) : static_cast<const float*>(args.inputs[2]) + at,
            .k_stride = wide ? shape_.values : shape_.v.row,
            .n_stride = 1,
            .depth = visible,
            .columns = shape_.values};
  }

  // What any block of the head of keys sees.
  int64_t VisibleOf(const KernelArgs& args, int64_t key_head) const {
    const int64_t blocks = shape_.group() * Blocks();
    const int64_t* const of_blocks = Visible(args) + key_head * blocks;
    return *std::max_element(of_blocks, of_blocks + blocks);
  }

  void PackPanel(const KernelArgs& args, int64_t unit) const {
    const int64_t head = unit / Panels(), panel = unit % Panels();
    const int64_t visible = VisibleOf(args, head);
    if (panel < products_->key_panels()) {
      return products_->PackKeys(Keys(args, head, visible), params_.operand_scale(), panel,
                                 PackedKeys(args, head));
    }
    products_->PackValues(Values(args, head, visible), panel - products_->key_panels(),
                          PackedValues(args, head));
  }

  // A block's queries: blocks of a head follow each other, then those of the next head. The first
  // `known` rows are another block's.
  struct Place {
    int64_t batch, head, query, rows, known;
  };
  Place PlaceOf(int64_t unit) const {
    const int64_t head = unit / Blocks(), query = unit % Blocks() * block_rows_;
    const int64_t rows = std::min(block_rows_, shape_.queries - query);
    const int64_t known = products_->repeats_rows() ? block_rows_ - rows : 0;
    return {head / shape_.heads, head % shape_.heads, query - known, rows + known, known};
  }

  AttentionBlock BlockOf(const KernelArgs& args, const Place& first) const {
    AttentionBlock block{};
    block.rows = first.rows;
    block.Take(params_);
    for (int64_t r = 0; r < block.rows; ++r) {
      block.PointAtMasks(shape_, args, r, first.batch, first.head, first.query + r);
    }
    return block;
  }

  void Attend(const KernelArgs& args, int64_t unit) const {
    const Place first = PlaceOf(unit);
    const int64_t row = shape_.Row(first.batch, first.head, first.query);
    std::byte* const scratch = args.scratch + AlignUp(tail_.scratch_bytes());
    auto* const means = reinterpret_cast<float*>(scratch + ScoreBytes());
    AttentionBlock block = BlockOf(args, first);
    block.keys = Visible(args)[unit];
    block.scores = reinterpret_cast<float*>(scratch);
    block.pitch = products_->score_pitch(block.keys);
    if (block.keys > 0) {
      AttendBlock(args, first, block, means);
    } else {
      std::fill_n(means, block.rows * shape_.values, 0.0f);
    }
    for (int64_t r = first.known; r < block.rows; ++r) {
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
      float* const scaled = means + block_rows_ * shape_.values;
      for (int64_t r = 0; r < block.rows; ++r) {
        functions_.scale(queries + r * query_pitch, params_.operand_scale(),
                         scaled + r * shape_.depth, shape_.depth);
      }
      queries = scaled;
      query_pitch = shape_.depth;
    }
    std::byte* const scratch = reinterpret_cast<std::byte*>(means) + MeanBytes();
    products_->Score(queries, query_pitch, block, PackedKeys(args, key_head), scratch);
    functions_.weigh(block);
    products_->Mean(block, PackedValues(args, key_head), scratch, means);
  }

  std::string name_;
  AttentionShape shape_;
  AttentionParams params_;
  std::shared_ptr<const AttentionProducts> products_;
  AttentionFunctions functions_;
  RowTail tail_;
  int64_t block_rows_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> MakeAttentionKernel(
    const OpDescription& op, Isa isa, std::shared_ptr<const AttentionProducts> products) {
  if (FindAttentionFunctions(isa).weigh == nullptr) return NoVectorTarget(isa);
  FUSELITE_ASSIGN_OR_RETURN(const AttentionShape shape, ResolveAttention(op));
  if (shape.bytes && shape.k.channel != 1)
    return Unsupported("does not take keys of bytes by columns");
  return std::unique_ptr<Kernel>(
      std::make_unique<AttentionKernel>(op, shape, isa, std::move(products)));
}

}  // namespace fuselite::kernels
