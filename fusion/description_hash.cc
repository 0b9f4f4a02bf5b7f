#include "fusion/description_hash.h"

#include <string>
#include <type_traits>
#include <vector>

namespace fuselite::fusion {
namespace {

// Shapes, axes and the like: what is computed before the graph is built, and gone afterwards.
constexpr size_t kByContent = 512;

// Most descriptions, but for those with hundreds of channels' scales.
constexpr size_t kReserved = 2048;

// The fields one after the other, each list behind its length.
class Description {
 public:
  explicit Description(const kernels::OpDescription& op) {
    bytes_.reserve(kReserved);
    Add(op.op);
    Add(op.params);
    Add(op.version);
    Add(op.tail_inputs);
    AddAll(op.inputs);
    AddAll(op.outputs);
    AddAll(op.intermediates);
    AddAll(op.tail.stages);
    Add(op.tail.rows_per_batch);
  }
  Hash128 Hash() const { return HashBytes(bytes_.data(), bytes_.size()); }

 private:
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void Add(const T& value) { AddBytes(&value, sizeof value); }
  template <class T>
  void AddAll(const std::vector<T>& values) {
    Add(values.size());
    if constexpr (std::is_arithmetic_v<T>) {
      AddBytes(values.data(), values.size() * sizeof(T));
    } else {
      for (const T& value : values) AddStruct(value);
    }
  }
  void AddBytes(const void* data, size_t bytes) {
    bytes_.append(static_cast<const char*>(data), bytes);
  }

  void AddStruct(const Quantization& q) {
    AddAll(q.scales);
    AddAll(q.zero_points);
    Add(q.axis);
  }
  void AddStruct(const TensorInfo& info) {
    Add(info.type);
    Add(info.shape.rank());
    AddBytes(info.shape.dims().data(), info.shape.dims().size_bytes());
    AddStruct(info.quantization);
    Add(info.row_pitch);
    Add(info.constant());
    if (info.constant() && info.bytes() <= kByContent) {
      AddBytes(info.data, info.bytes());
    } else {
      Add(info.data);
    }
  }
  void AddStruct(const kernels::TailStage& stage) {
    Add(stage.kind);
    Add(stage.unary);
    Add(stage.binary);
    Add(stage.a);
    Add(stage.b);
    Add(stage.operand.input);
    Add(stage.operand.batch_stride);
    Add(stage.operand.row_stride);
    Add(stage.operand.channel_stride);
    AddAll(stage.requantize.multipliers);
    AddAll(stage.requantize.shifts);
    Add(stage.requantize.zero_point);
    Add(stage.requantize.min);
    Add(stage.requantize.max);
    AddAdd(stage.add);
    AddAll(stage.table);
    AddAll(stage.scales);
    AddAll(stage.real_scales);
    Add(stage.zero_point);
    Add(stage.min);
    Add(stage.max);
  }
  // Field by field: what lies between them is nobody's.
  void AddAdd(const kernels::QuantizedAdd& add) {
    for (const int32_t field :
         {add.left_shift, add.x_offset, add.x_multiplier, add.x_shift, add.y_offset,
          add.y_multiplier, add.y_shift, add.output_multiplier, add.output_shift, add.output_offset,
          add.min, add.max, int32_t{add.negate_x}, int32_t{add.negate_y}}) {
      Add(field);
    }
  }

  std::string bytes_;  // appends faster than a vector
};

}  // namespace

Hash128 HashOf(const kernels::OpDescription& op) { return Description(op).Hash(); }

}  // namespace fuselite::fusion
