#include "kernels/elementwise/joined_rows.h"

#include <cstring>

#include "kernels/shape_rules.h"

namespace fuselite::kernels {
namespace {

// Shorter rows are joined.
constexpr int64_t kShortRow = 256;
// Elements to which a repeated operand is drawn out, about.
constexpr int64_t kPeriods = 1024;
// Rows of one value each, and such with gaps between them, are drawn out up to this length.
constexpr int64_t kLongestFill = 64;
constexpr int64_t kLongestWideFill = 16;

struct Operand {
  const std::byte* data;
  int64_t stride;
  int step;

  bool Repeats() const { return step == 1 && stride == 0; }
  bool OnePerRow() const { return step == 0 && stride != 0; }
  // Whether it is drawn out row by row: one value each, or rows of its own with gaps between them.
  bool GoesByRow(int64_t n) const { return OnePerRow() || (stride != 0 && stride != n); }
};

// `rows` rows of n elements to `out`, one after the other; the operand is read from there.
void DrawOut(const CopyLoops& loops, size_t size, int64_t rows, int64_t n, std::byte* out,
             Operand* operand) {
  const auto bytes = static_cast<int64_t>(size);
  if (operand->Repeats()) {
    std::memcpy(out, operand->data, n * size);
    for (int64_t done = 1; done < rows; done *= 2) {
      std::memcpy(out + done * n * size, out, std::min(done, rows - done) * n * size);
    }
    *operand = {out, 0, 1};
    return;
  }
  loops.DrawOut(operand->data, out, rows, operand->stride * bytes, n, operand->OnePerRow(),
                static_cast<int>(size));
  *operand = {out, n, 1};
}

// The rows of `block` to `out`, one after the other, element by element: for rows that are shorter
// than a call of CopyLoops takes.
template <class T>
void Gather(const BroadcastPlan& plan, const BroadcastPlan::Block& block, int k,
            const std::byte* data, std::byte* out) {
  const T* from = reinterpret_cast<const T*>(data) + block.offsets[k];
  T* to = reinterpret_cast<T*>(out);
  const int64_t row_stride = plan.row_stride(k), stride = plan.stride(k);
  for (int64_t r = 0; r < block.rows; ++r, from += row_stride, to += block.count) {
    for (int64_t i = 0; i < block.count; ++i) to[i] = from[i * stride];
  }
}

RowBlock MakeBlock(const Operand& x, const Operand& y, std::byte* out, int64_t out_stride,
                   int64_t rows, int64_t n) {
  return {.x = x.data,
          .y = y.data,
          .out = out,
          .x_stride = x.stride,
          .y_stride = y.stride,
          .out_stride = out_stride,
          .x_step = x.step,
          .y_step = y.step,
          .rows = rows,
          .n = n};
}

}  // namespace

JoinedRows::JoinedRows(const OpDescription& op, Isa isa)
    : plan_({&op.inputs[0], &op.inputs[1], &op.outputs[0]}, /*keep_rows=*/false),
      loops_(CopyLoopsFor(isa)),
      size_(BitWidth(op.inputs[0].type) / 8),
      out_size_(BitWidth(op.outputs[0].type) / 8) {
  const int64_t n = plan_.row_elements();
  joins_results_ = out_size_ == 1 && n <= kLongestFill && plan_.row_stride(2) != n;
  joins_ = n < kShortRow && (plan_.row_stride(2) == n || joins_results_);
  draws_out_rows_ = joins_results_;
  for (int k = 0; k < 2; ++k) {
    const Operand operand{nullptr, plan_.row_stride(k), plan_.stride(k)};
    draws_out_rows_ |= joins_ && operand.GoesByRow(n);
    is_whole_[k] = IsDense(op.inputs[k]) && op.inputs[k].elements() == op.outputs[0].elements();
  }
  // A block of less than a piece has all rows of its dimension.
  if (joins_ && IsDense(op.outputs[0]) && plan_.units() > 1 && plan_.unit_elements() < kShortRow) {
    blocks_together_ = BroadcastPlan::kPiece / std::max<int64_t>(plan_.unit_elements(), 1);
  }
  if (plan_.units() == 1) FindOneBlock();
}

// Rows that are joined wait for what is drawn out in scratch.
void JoinedRows::FindOneBlock() {
  plan_.ForEachBlock(0, 1, [&](const BroadcastPlan::Block& block) {
    const auto operand = [&](int k) {
      return Operand{nullptr, plan_.row_stride(k), plan_.stride(k)};
    };
    is_one_block_ = !joins_ || block.rows == 1;
    block_ =
        MakeBlock(operand(0), operand(1), nullptr, plan_.row_stride(2), block.rows, block.count);
  });
}

size_t JoinedRows::scratch_bytes() const {
  const int64_t results = joins_results_ ? out_size_ : 0;
  return joins_ ? BroadcastPlan::kPiece * (2 * size_ + results) : 0;
}

JoinedRows::Joined JoinedRows::Join(const KernelArgs& args,
                                    const BroadcastPlan::Block& block) const {
  const auto operand = [&](int k) {
    return Operand{static_cast<const std::byte*>(args.inputs[k]) + block.offsets[k] * size_,
                   plan_.row_stride(k), plan_.stride(k)};
  };
  auto* out = static_cast<std::byte*>(args.outputs[0]) + block.offsets[2] * out_size_;
  Operand x = operand(0), y = operand(1);
  const int64_t n = block.count;
  const bool per_row = x.GoesByRow(n) || y.GoesByRow(n);
  // Copying row by row pays for bytes, and where a row has less than a vector.
  const int64_t longest_per_row = size_ == 1 ? kLongestFill : kLongestWideFill;
  const bool join = joins_ && block.rows > 1 && (!per_row || n <= longest_per_row);
  if (!join) return {{MakeBlock(x, y, out, plan_.row_stride(2), block.rows, n)}, 1};
  if (joins_results_) out = args.scratch + 2 * BroadcastPlan::kPiece * size_;
  const int64_t periods = per_row ? block.rows : std::min(block.rows, (kPeriods + n - 1) / n);
  std::byte* scratch = args.scratch;
  for (Operand* o : {&x, &y}) {
    if (!o->Repeats() && !o->GoesByRow(n)) continue;
    DrawOut(loops_, size_, periods, n, scratch, o);
    scratch += BroadcastPlan::kPiece * size_;
  }
  const auto longer = [&](Operand o) {
    if (o.step == 1 && o.stride != 0) o.stride = n * periods;
    return o;
  };
  const int64_t whole = block.rows / periods, left = block.rows % periods;
  Joined joined{{MakeBlock(longer(x), longer(y), out, n * periods, whole, n * periods)}, 1};
  if (joins_results_) joined.results = out;
  if (left == 0) return joined;
  const int64_t done = whole * periods * n;
  for (Operand* o : {&x, &y}) o->data += o->stride == 0 ? 0 : done * size_;
  joined.blocks[joined.count++] = MakeBlock(x, y, out + done * out_size_, n, 1, left * n);
  return joined;
}

void JoinedRows::GatherBlock(const BroadcastPlan::Block& block, int k, const std::byte* data,
                             std::byte* out) const {
  constexpr int64_t kFewBytes = 32;
  if (block.count * size_ <= kFewBytes) {
    WithElement(static_cast<int>(size_),
                [&](auto element) { Gather<decltype(element)>(plan_, block, k, data, out); });
    return;
  }
  loops_.DrawOut(data + block.offsets[k] * size_, out, block.rows, plan_.row_stride(k) * size_,
                 block.count, plan_.stride(k) == 0, static_cast<int>(size_));
}

void JoinedRows::PutResults(const KernelArgs& args, const BroadcastPlan::Block& block,
                            const std::byte* results) const {
  const int64_t bytes = block.count * out_size_;
  loops_.rows(results, static_cast<std::byte*>(args.outputs[0]) + block.offsets[2] * out_size_,
              {block.rows, bytes, plan_.row_stride(2) * out_size_}, bytes);
}

RowBlock JoinedRows::JoinBlocks(const KernelArgs& args, int64_t begin, int64_t end) const {
  const int64_t unit_elements = plan_.unit_elements(), n = (end - begin) * unit_elements;
  const void* operands[2];
  for (int k = 0; k < 2; ++k) {
    const auto* data = static_cast<const std::byte*>(args.inputs[k]);
    if (is_whole_[k]) {
      operands[k] = data + begin * unit_elements * size_;
      continue;
    }
    std::byte* const scratch = args.scratch + k * BroadcastPlan::kPiece * size_;
    std::byte* to = scratch;
    int64_t from = -1;  // of the block before
    plan_.ForEachBlock(begin, end, [&](const BroadcastPlan::Block& block) {
      // Values that all blocks read are copied: group normalization's, of 4 channels each.
      if (block.offsets[k] == from) {
        std::memcpy(to, to - unit_elements * size_, unit_elements * size_);
      } else {
        GatherBlock(block, k, data, to);
      }
      from = block.offsets[k];
      to += unit_elements * size_;
    });
    operands[k] = scratch;
  }
  return {.x = operands[0],
          .y = operands[1],
          .out = static_cast<std::byte*>(args.outputs[0]) + begin * unit_elements * out_size_,
          .x_stride = n,
          .y_stride = n,
          .out_stride = n,
          .x_step = 1,
          .y_step = 1,
          .rows = 1,
          .n = n};
}

}  // namespace fuselite::kernels
