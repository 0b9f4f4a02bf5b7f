#include "kernels/fields.h"

#include <cstring>

#include "runtime/tensor.h"

namespace fuselite::kernels {
namespace {

constexpr int kActivationCount = 6;

template <class T>
T Load(const void* base, size_t offset) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(base) + offset, sizeof value);
  return value;
}

template <class T>
void Store(void* base, size_t offset, T value) {
  std::memcpy(static_cast<std::byte*>(base) + offset, &value, sizeof value);
}

// Reads entries of type T in the struct. Fails on more entries than fit, and on larger ones.
template <class List, class T>
Status ImportList(const Field& field, const void* from, void* params) {
  List list{};
  list.count = field.count_offset < 0 ? List::kMax : Load<int32_t>(from, field.count_offset);
  if (list.count < 0 || list.count > List::kMax) {
    return InvalidArgument(field.name, " has ", list.count, " entries, at most ", int{List::kMax},
                           " fit");
  }
  for (int i = 0; i < list.count; ++i) {
    const T value = Load<T>(from, field.struct_offset + sizeof(T) * i);
    list.values[i] = static_cast<int32_t>(value);
    if (list.values[i] != value) return Unsupported(field.name, " has the entry ", value);
  }
  Store(params, field.offset, list);
  return Status();
}

template <class List, class T>
void ExportList(const Field& field, const void* params, void* to) {
  const auto list = Load<List>(params, field.offset);
  for (int i = 0; i < list.count; ++i) {
    Store(to, field.struct_offset + sizeof(T) * i, static_cast<T>(list.values[i]));
  }
  if (field.count_offset >= 0) Store(to, field.count_offset, list.count);
}

Status ImportField(const Field& field, const void* from, void* params) {
  const auto integer = [&] { return Load<int32_t>(from, field.struct_offset); };
  switch (field.kind) {
    case FieldKind::kInt32:
    case FieldKind::kEnum8: Store(params, field.offset, integer()); break;
    case FieldKind::kInt64:
      Store(params, field.offset, Load<int64_t>(from, field.struct_offset));
      break;
    case FieldKind::kFloat:
      Store(params, field.offset, Load<float>(from, field.struct_offset));
      break;
    case FieldKind::kBool:
      Store(params, field.offset, Load<uint8_t>(from, field.struct_offset) != 0);
      break;
    case FieldKind::kActivation: {
      const int32_t value = integer();
      if (value < 0 || value >= kActivationCount) {
        return Unsupported("fused activation ", value, " is unknown");
      }
      Store(params, field.offset, static_cast<Activation>(value));
      break;
    }
    case FieldKind::kPadding: {
      const int32_t value = integer();  // TfLitePadding: unknown, same, valid
      if (value < 1 || value > field.choices) {
        return InvalidArgument(field.name, " ", value, " is unknown");
      }
      Store(params, field.offset, static_cast<Padding>(value - 1));
      break;
    }
    case FieldKind::kDataType: {
      const int32_t value = integer();
      if (!IsKnownDataType(value)) {
        return InvalidArgument(field.name, " ", value, " is no known type");
      }
      Store(params, field.offset, static_cast<DataType>(value));
      break;
    }
    case FieldKind::kIntList: return ImportList<IntList, int32_t>(field, from, params);
    case FieldKind::kLongList: return ImportList<IntList, int64_t>(field, from, params);
    case FieldKind::kLongPairs: return ImportList<PairList, int64_t>(field, from, params);
    case FieldKind::kFloatList:
      Store(params, field.offset,
            FloatList{Load<const float*>(from, field.struct_offset),
                      Load<int32_t>(from, field.count_offset)});
      break;
  }
  return Status();
}

}  // namespace

void SetDefaults(std::span<const Field> fields, void* params) {
  for (const Field& field : fields) {
    switch (field.kind) {
      case FieldKind::kInt64:
        Store(params, field.offset, static_cast<int64_t>(field.default_value));
        break;
      case FieldKind::kFloat:
        Store(params, field.offset, static_cast<float>(field.default_value));
        break;
      case FieldKind::kBool: Store(params, field.offset, field.default_value != 0); break;
      case FieldKind::kDataType:
        Store(params, field.offset, static_cast<DataType>(static_cast<int>(field.default_value)));
        break;
      case FieldKind::kIntList:
      case FieldKind::kLongList: Store(params, field.offset, IntList{}); break;
      case FieldKind::kLongPairs: Store(params, field.offset, PairList{}); break;
      case FieldKind::kFloatList: Store(params, field.offset, FloatList{}); break;
      case FieldKind::kInt32:
      case FieldKind::kEnum8:
      case FieldKind::kActivation:
      case FieldKind::kPadding:
        Store(params, field.offset, static_cast<int32_t>(field.default_value));
        break;
    }
  }
}

Status ImportParams(std::span<const Field> fields, const void* builtin_data, int version,
                    void* params) {
  SetDefaults(fields, params);
  if (builtin_data == nullptr) return Status();
  for (const Field& field : fields) {
    if (field.struct_offset < 0 || version < field.since_version) continue;
    FUSELITE_RETURN_IF_ERROR(ImportField(field, builtin_data, params));
  }
  return Status();
}

void ExportParams(std::span<const Field> fields, const void* params, void* builtin_data) {
  for (const Field& field : fields) {
    if (field.struct_offset < 0) continue;
    const size_t to = field.struct_offset;
    switch (field.kind) {
      case FieldKind::kInt32:
      case FieldKind::kEnum8:
      case FieldKind::kActivation:
        Store(builtin_data, to, Load<int32_t>(params, field.offset));
        break;
      case FieldKind::kInt64: Store(builtin_data, to, Load<int64_t>(params, field.offset)); break;
      case FieldKind::kFloat: Store(builtin_data, to, Load<float>(params, field.offset)); break;
      case FieldKind::kBool: Store(builtin_data, to, Load<bool>(params, field.offset)); break;
      case FieldKind::kPadding:
        Store(builtin_data, to, Load<int32_t>(params, field.offset) + 1);
        break;
      case FieldKind::kDataType:
        Store(builtin_data, to, static_cast<int32_t>(Load<DataType>(params, field.offset)));
        break;
      case FieldKind::kIntList: ExportList<IntList, int32_t>(field, params, builtin_data); break;
      case FieldKind::kLongList: ExportList<IntList, int64_t>(field, params, builtin_data); break;
      case FieldKind::kLongPairs: ExportList<PairList, int64_t>(field, params, builtin_data); break;
      case FieldKind::kFloatList: {
        const auto list = Load<FloatList>(params, field.offset);
        Store(builtin_data, to, list.values);
        Store(builtin_data, field.count_offset, static_cast<int32_t>(list.count));
        break;
      }
    }
  }
}

}  // namespace fuselite::kernels
