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

Status ImportIntList(const Field& field, const void* from, void* params) {
  IntList list{};
  list.count = Load<int32_t>(from, field.count_offset);
  if (list.count < 0 || list.count > IntList::kMax) {
    return InvalidArgument(field.name, " has ", list.count, " entries, at most ", IntList::kMax,
                           " fit");
  }
  for (int i = 0; i < list.count; ++i) {
    list.values[i] = Load<int32_t>(from, field.struct_offset + sizeof(int32_t) * i);
  }
  Store(params, field.offset, list);
  return Status();
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
      if (value != 1 && value != 2) return InvalidArgument("padding ", value, " is unknown");
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
    case FieldKind::kIntList: return ImportIntList(field, from, params);
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
      case FieldKind::kIntList: Store(params, field.offset, IntList{}); break;
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
      case FieldKind::kIntList: {
        const auto list = Load<IntList>(params, field.offset);
        for (int i = 0; i < list.count; ++i) {
          Store(builtin_data, to + sizeof(int32_t) * i, list.values[i]);
        }
        Store(builtin_data, field.count_offset, list.count);
        break;
      }
    }
  }
}

}  // namespace fuselite::kernels
