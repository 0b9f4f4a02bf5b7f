// UNIQUE: (the values of a vector without repetitions, in the order of their first appearance; for
// each element the place of its value there).
#include <cmath>
#include <cstring>
#include <map>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/make_kernel.h"
#include "kernels/shape_rules.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

struct UniqueParams {
  DataType index_type;
};
constexpr Field kFields[] = {
    {"idx_out_type", FieldKind::kDataType, 0, offsetof(UniqueParams, index_type),
     offsetof(tflite::TfLiteUniqueParams, index_out_type), -1, 1,
     static_cast<double>(DataType::kInt32)},
};
constexpr TypeRow Row(DataType type) { return {{type}, type}; }
constexpr TypeRow kTypes[] = {Row(DataType::kFloat32), Row(DataType::kInt8),
                              Row(DataType::kUInt8),   Row(DataType::kInt16),
                              Row(DataType::kInt32),   Row(DataType::kInt64)};

// The places of values: a table with open addressing, which grows with the values that are found.
template <class T>
class Places {
 public:
  // The place of `value`: the next one where it is new. Negative where values are such that many of
  // them collide: a search would take as long as there are values.
  int64_t Of(T value) {
    if (2 * count_ >= entries_.size()) Grow();
    Entry* const entry = Find(value);
    if (entry == nullptr || lost_) return -1;
    if (entry->place < 0) *entry = {value, static_cast<int64_t>(count_++)};
    return entry->place;
  }
  int64_t count() const { return static_cast<int64_t>(count_); }

 private:
  struct Entry {
    T value = 0;
    int64_t place = -1;
  };
  // Collisions after which a value is given up. In a table that is half full of numbers without a
  // pattern, 40 are one in a million.
  static constexpr int kMostCollisions = 100;

  // Where the value is, or would be; null after too many collisions.
  Entry* Find(T value) {
    constexpr uint64_t kOddByGoldenRatio = 0x9E3779B97F4A7C15;
    if constexpr (std::is_floating_point_v<T>) value += 0;  // -0 is 0
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    const size_t mask = entries_.size() - 1;
    size_t slot = bits * kOddByGoldenRatio >> 32 & mask;
    for (int i = 0; i < kMostCollisions; ++i, slot = (slot + 1) & mask) {
      Entry& entry = entries_[slot];
      if (entry.place < 0 || entry.value == value) return &entry;
    }
    return nullptr;
  }

  void Grow() {
    const std::vector<Entry> before =
        std::exchange(entries_, std::vector<Entry>(4 * entries_.size()));
    for (const Entry& entry : before) {
      if (entry.place < 0) continue;
      Entry* const to = Find(entry.value);
      if (to == nullptr) {
        lost_ = true;
      } else {
        *to = entry;
      }
    }
  }

  std::vector<Entry> entries_ = std::vector<Entry>(64);
  size_t count_ = 0;
  bool lost_ = false;  // a value that collided with too many as the table grew
};

// Places for values that collide too often, and for floats with a NaN among them: a NaN is neither
// less nor greater than anything, so that what it is found as depends on the search in LiteRT's
// map.
template <class T>
class PlacesInMap {
 public:
  int64_t Of(T value) { return places_.try_emplace(value, count()).first->second; }
  int64_t count() const { return static_cast<int64_t>(places_.size()); }

 private:
  std::map<T, int64_t> places_;
};

// Calls f(i, place) for each element, place being that of its value; the number of places, or a
// negative number where `places` does not find one.
template <class T, class Table, class F>
int64_t ForEachPlaceIn(Table places, const void* data, int64_t count, F f) {
  for (int64_t i = 0; i < count; ++i) {
    const int64_t place = places.Of(LoadUnaligned<T>(data, i));
    if (place < 0) return place;
    f(i, place);
  }
  return places.count();
}
template <class T>
bool HasNan(const void* data, int64_t count) {
  if constexpr (std::is_floating_point_v<T>) {
    for (int64_t i = 0; i < count; ++i) {
      if (std::isnan(LoadUnaligned<T>(data, i))) return true;
    }
  }
  return false;
}
template <class T, class F>
int64_t ForEachPlace(const void* data, int64_t count, F f) {
  const int64_t places =
      HasNan<T>(data, count) ? -1 : ForEachPlaceIn<T>(Places<T>(), data, count, f);
  return places >= 0 ? places : ForEachPlaceIn<T>(PlacesInMap<T>(), data, count, f);
}

// f of the element's type.
template <class F>
auto OfType(DataType type, F f) {
  switch (type) {
    case DataType::kFloat32: return f(float{});
    case DataType::kInt8: return f(int8_t{});
    case DataType::kUInt8: return f(uint8_t{});
    case DataType::kInt16: return f(int16_t{});
    case DataType::kInt64: return f(int64_t{});
    default: return f(int32_t{});
  }
}

Status InferUnique(OpDescription& op) {
  const TensorInfo& in = op.inputs[0];
  const DataType index = op.params.as<UniqueParams>().index_type;
  if (index != DataType::kInt32 && index != DataType::kInt64) {
    return InvalidArgument("places of type ", DataTypeName(index), ", not int32 or int64");
  }
  if (in.shape.rank() != 1) return InvalidArgument("the input ", in.shape, " is no vector");
  FUSELITE_RETURN_IF_ERROR(SetOutput(op, 1, index, in.shape));
  if (!in.constant() && in.elements() > 0) {
    return DynamicShape("the number of values is known at run time only");
  }
  const int64_t count = OfType(in.type, [&]<class T>(T /*zero*/) {
    return ForEachPlace<T>(in.data, in.elements(), [](int64_t, int64_t) {});
  });
  return SetOutput(op, 0, in.type, Shape{static_cast<int32_t>(count)});
}

template <class T, class Index>
std::unique_ptr<Kernel> BuildOf(const OpDescription& op) {
  return MakeKernel("unique " + std::string(DataTypeName(op.inputs[0].type)), {},
                    [count = op.inputs[0].elements(), values = op.outputs[0].elements()](
                        const KernelArgs& args, int64_t, int64_t) -> Status {
                      const auto* in = static_cast<const T*>(args.inputs[0]);
                      int64_t found = 0;
                      const auto store = [&](int64_t i, int64_t place) {
                        static_cast<Index*>(args.outputs[1])[i] = static_cast<Index>(place);
                        if (place == found && found < values)
                          static_cast<T*>(args.outputs[0])[found] = in[i];
                        found = std::max(found, place + 1);
                      };
                      ForEachPlace<T>(in, count, store);
                      if (found == values) return Status();
                      return InvalidArgument("has ", found, " values, not the ", values,
                                             " that were counted");
                    });
}

Result<std::unique_ptr<Kernel>> Build(const OpDescription& op, const BuildContext&) {
  if (!op.tail.empty()) return Unsupported("UNIQUE takes no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  const bool wide = op.outputs[1].type == DataType::kInt64;
  return OfType(op.inputs[0].type, [&]<class T>(T /*zero*/) {
    return wide ? BuildOf<T, int64_t>(op) : BuildOf<T, int32_t>(op);
  });
}

constexpr Candidate kCandidates[] = {{"reference", Build}};

}  // namespace

const OperatorDef& UniqueOperator() {
  static constexpr OperatorDef kDef = {
      .name = "UNIQUE",
      .builtin_code = tflite::kTfLiteBuiltinUnique,
      .options_type = 80,
      .fields = kFields,
      .params_bytes = sizeof(UniqueParams),
      .struct_bytes = sizeof(tflite::TfLiteUniqueParams),
      .min_outputs = 2,
      .max_outputs = 2,
      .types = kTypes,
      .limits = "rank 1",
      .infer = InferUnique,
      .candidates = kCandidates,
      .cost = [](const OpDescription& op) { return 16.0 * op.inputs[0].elements(); },
  };
  return kDef;
}

}  // namespace fuselite::kernels
