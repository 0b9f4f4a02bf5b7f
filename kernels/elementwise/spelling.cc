#include "kernels/elementwise/spelling.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/support/short_list.h"

namespace fuselite::kernels {
namespace {

// A dimension of the output, and the elements that each operand steps along it.
struct Dim {
  int64_t size;
  ShortList<int64_t, 4> strides{};
};

// The operation as a loop: operands are the operator's own inputs, the output, and then the
// operands of the tail's stages, in this order.
class Loop {
 public:
  explicit Loop(const OpDescription& op) : own_(op.own_inputs()) {
    for (size_t i = 0; i < own_; ++i) tensors_.push_back(&op.inputs[i]);
    tensors_.push_back(&op.outputs[0]);
    for (const TailStage& stage : op.tail.stages) {
      if (stage.operand.input >= 0) tail_.push_back(stage.operand);
    }
  }

  // False where a batch of the tail ends within an index of a dimension.
  bool Read(const Shape& shape, int64_t rows_per_batch) {
    AddDims(shape);
    const bool batches = !tail_.empty() && rows_per_batch < shape.elements(0, shape.rank() - 1);
    if (batches && !SplitAtBatches(rows_per_batch)) return false;
    AddTail(batches ? rows_per_batch : INT64_MAX);
    return true;
  }

  // Dimensions of 1 go, neighbours are joined. What is left as the innermost one is that of the
  // rows, along which operands step 0 or 1; false where they do not.
  bool Simplify() {
    std::erase_if(dims_, [](const Dim& d) { return d.size == 1; });
    if (dims_.empty()) return false;
    Join(&dims_, 0);
    return std::ranges::all_of(dims_.front().strides, [](int64_t s) { return s == 0 || s == 1; });
  }

  size_t rank() const { return dims_.size(); }

  // `op` in these dimensions.
  std::optional<OpDescription> Write(const OpDescription& op) const {
    OpDescription written = op;
    for (size_t k = 0; k <= own_; ++k) {
      TensorInfo& tensor = k < own_ ? written.inputs[k] : written.outputs[0];
      if (!WriteTensor(k, &tensor)) return std::nullopt;
    }
    if (!WriteTail(&written.tail)) return std::nullopt;
    return written;
  }

 private:
  // The output's dimensions, innermost first, for the operator's own operands.
  void AddDims(const Shape& shape) {
    dims_.reserve(static_cast<size_t>(shape.rank()) + 1);  // a batch may end within one
    for (int d = -1; d >= -shape.rank(); --d) {
      dims_.push_back({shape.dim(d)});
    }
    for (const TensorInfo* tensor : tensors_) {
      int64_t stride = 1;
      for (size_t d = 0; d < dims_.size(); ++d) {
        const int own = -static_cast<int>(d) - 1;
        const int32_t size = -own <= tensor->shape.rank() ? tensor->shape.dim(own) : 1;
        dims_[d].strides.push_back(size == 1 ? 0 : stride);
        stride = d == 0 ? tensor->pitch() : stride * size;
      }
    }
  }

  // Cuts the dimension in which a batch of `rows_per_batch` rows ends.
  bool SplitAtBatches(int64_t rows_per_batch) {
    int64_t rows = 1;
    for (size_t d = 1; d < dims_.size() && rows < rows_per_batch; ++d) {
      const int64_t needed = rows_per_batch / rows, size = dims_[d].size;
      if (rows_per_batch % rows != 0) return false;
      if (needed < size) {
        if (size % needed != 0) return false;
        Dim outer{size / needed, dims_[d].strides};
        for (int64_t& stride : outer.strides) stride *= needed;
        dims_[d].size = needed;
        dims_.insert(dims_.begin() + static_cast<ptrdiff_t>(d) + 1, std::move(outer));
      }
      rows *= dims_[d].size;
    }
    return true;
  }

  void AddTail(int64_t rows_per_batch) {
    for (const TailOperand& y : tail_) {
      dims_[0].strides.push_back(y.channel_stride);
      int64_t rows = 1;
      for (size_t d = 1; d < dims_.size(); ++d) {
        const bool batch = rows >= rows_per_batch;
        dims_[d].strides.push_back(batch ? rows / rows_per_batch * y.batch_stride
                                         : rows * y.row_stride);
        rows *= dims_[d].size;
      }
    }
  }

  // One index of a dimension around `inner`.
  static Dim Alone(const Dim& inner) {
    Dim dim{1, inner.strides};
    std::ranges::fill(dim.strides, 0);
    return dim;
  }

  // Joins neighbours through which the operands from `first` on step as through one.
  static void Join(std::vector<Dim>* dims, size_t first) {
    size_t last = 0;
    for (size_t d = 1; d < dims->size(); ++d) {
      Dim& inner = (*dims)[last];
      Dim& outer = (*dims)[d];
      bool joined = inner.size * outer.size <= std::numeric_limits<int32_t>::max();
      for (size_t k = first; joined && k < outer.strides.size(); ++k) {
        joined = outer.strides[k] == inner.strides[k] * inner.size;
      }
      if (joined) {
        inner.size *= outer.size;
      } else if (++last != d) {
        (*dims)[last] = std::move(outer);
      }
    }
    dims->resize(last + 1);
  }

  // False where the tensor does not lie as one of this shape does.
  bool WriteTensor(size_t k, TensorInfo* tensor) const {
    tensor->shape = Shape();
    for (auto d = dims_.rbegin(); d != dims_.rend(); ++d) {
      const bool repeats = d->strides[k] == 0 && k < own_;
      tensor->shape.push_back(repeats ? 1 : static_cast<int32_t>(d->size));
    }
    tensor->row_pitch = 0;
    int64_t expected = tensor->shape.dim(-1);
    for (size_t d = 1; d < dims_.size(); ++d) {
      const int64_t stride = dims_[d].strides[k];
      if (stride == 0 && k < own_) continue;
      if (tensor->row_pitch == 0) tensor->row_pitch = expected = stride;
      if (stride != expected) return false;
      expected *= dims_[d].size;
    }
    if (tensor->row_pitch == tensor->shape.dim(-1)) tensor->row_pitch = 0;
    return true;
  }

  // False where an operand repeats in more ways than by rows and batches.
  bool WriteTail(Tail* tail) const {
    tail->rows_per_batch = INT64_MAX;
    if (tail_.empty()) return true;
    std::vector<Dim> rows(dims_.begin() + 1, dims_.end());
    if (rows.empty()) rows.push_back(Alone(dims_[0]));
    Join(&rows, tensors_.size());
    if (rows.size() > 2) return false;
    size_t k = tensors_.size();
    if (rows.size() == 2) tail->rows_per_batch = rows[0].size;
    for (TailStage& stage : tail->stages) {
      if (stage.operand.input < 0) continue;
      stage.operand.channel_stride = static_cast<int32_t>(dims_[0].strides[k]);
      stage.operand.row_stride = rows[0].strides[k];
      stage.operand.batch_stride = rows.size() < 2 ? 0 : rows[1].strides[k];
      ++k;
    }
    return true;
  }

  size_t own_;
  ShortList<const TensorInfo*, 4> tensors_;
  ShortList<TailOperand, 2> tail_;
  std::vector<Dim> dims_;  // innermost first
};

bool HasChannelValues(const OpDescription& op) {
  const auto per_channel = [](const TensorInfo& t) { return t.quantization.per_channel(); };
  const auto stage_has = [](const TailStage& s) {
    return s.requantize.multipliers.size() > 1 || s.scales.size() > 1 || s.real_scales.size() > 1;
  };
  return per_channel(op.outputs[0]) || std::ranges::any_of(op.inputs, per_channel) ||
         std::ranges::any_of(op.tail.stages, stage_has);
}

}  // namespace

std::optional<OpDescription> InFewestDimensions(const OpDescription& op) {
  const Shape& shape = op.outputs[0].shape;
  if (shape.rank() < 2 || shape.elements() == 0 || HasChannelValues(op)) return std::nullopt;
  Loop loop(op);
  if (!loop.Read(shape, op.tail.rows_per_batch) || !loop.Simplify()) return std::nullopt;
  if (loop.rank() >= static_cast<size_t>(shape.rank())) return std::nullopt;
  return loop.Write(op);
}

}  // namespace fuselite::kernels
