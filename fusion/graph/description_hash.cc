#include "fusion/graph/description_hash.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace fuselite::fusion {
namespace {

// Lists from this size on are hashed where they lie.
constexpr size_t kLongList = 256;

// The hash of the fields one after the other, each list behind its length. The fields are gathered
// in a small buffer: the scales of thousands of channels would make a whole description a new block
// of memory for each question, whose first touch takes longer than the hash.
class Description {
 public:
  explicit Description(const kernels::OpDescription& op) {
    Add(reinterpret_cast<uintptr_t>(op.op));
    AddParams(op.params);
    Add(op.version);
    Add(op.tail_inputs);
    AddAll(op.inputs);
    AddAll(op.outputs);
    AddAll(op.intermediates);
    AddAll(op.tail.stages);
    Add(op.tail.rows_per_batch);
  }
  Hash128 Hash() const { return HashBytes(bytes_.data(), size_); }

 private:
  // A copy of so many bytes as the compiler knows takes no call: a description has some 200 fields.
  template <class T>
  requires(std::is_trivially_copyable_v<T> && sizeof(T) < kLongList) void Add(const T& value) {
    if (size_ + sizeof(T) > bytes_.size()) Shorten();
    std::memcpy(bytes_.data() + size_, &value, sizeof(T));
    size_ += sizeof(T);
  }
  // Most parameters are a fifth of what there is room for: zeros at the end are left out.
  void AddParams(const kernels::Params& params) {
    std::array<uint64_t, kernels::Params::kMaxBytes / sizeof(uint64_t)> words;
    std::memcpy(words.data(), params.data(), sizeof words);
    size_t count = words.size();
    while (count > 0 && words[count - 1] == 0) --count;
    Add(count);
    AddBytes(words.data(), count * sizeof(uint64_t));
  }
  template <class Values>
  void AddAll(const Values& values) {
    using T = typename Values::value_type;
    Add(values.size());
    if constexpr (std::is_arithmetic_v<T>) {
      AddBytes(values.data(), values.size() * sizeof(T));
    } else {
      for (const T& value : values) AddStruct(value);
    }
  }
  void AddBytes(const void* data, size_t bytes) {
    if (bytes >= kLongList) return Add(HashBytes(data, bytes));
    if (size_ + bytes > bytes_.size()) Shorten();
    if (bytes > 0) std::memcpy(bytes_.data() + size_, data, bytes);
    size_ += bytes;
  }
  // What was gathered until now becomes its hash.
  void Shorten() {
    const Hash128 hash = Hash();
    std::memcpy(bytes_.data(), &hash, sizeof hash);
    size_ = sizeof hash;
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
    if (info.constant() && info.bytes() <= kHashedByContent) {
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

  std::array<std::byte, 1024> bytes_;
  size_t size_ = 0;  // of what is gathered
};

}  // namespace

Hash128 HashOf(const kernels::OpDescription& op) { return Description(op).Hash(); }

}  // namespace fuselite::fusion
