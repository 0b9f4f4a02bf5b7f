#include "interpreter/file/options.h"

#include <array>
#include <cstring>
#include <vector>

namespace fuselite::interpreter {
namespace {

using kernels::Activation;
using kernels::Field;
using kernels::FieldKind;
using kernels::FloatList;
using kernels::IntList;
using kernels::Padding;
using kernels::PairList;

// The order is that of the schema's TensorType.
constexpr std::array kSchemaTypes = {
    DataType::kFloat32,   DataType::kFloat16,  DataType::kInt32,    DataType::kUInt8,
    DataType::kInt64,     DataType::kString,   DataType::kBool,     DataType::kInt16,
    DataType::kComplex64, DataType::kInt8,     DataType::kFloat64,  DataType::kComplex128,
    DataType::kUInt64,    DataType::kResource, DataType::kVariant,  DataType::kUInt32,
    DataType::kUInt16,    DataType::kInt4,     DataType::kBFloat16, DataType::kInt2,
    DataType::kUInt4,
};

flatbuffers::voffset_t VOffset(const Field& field) {
  return flatbuffers::FieldIndexToOffset(field.id);
}

template <class T>
T Load(const Field& field, const void* params) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(params) + field.offset, sizeof value);
  return value;
}

template <class T>
void Store(const Field& field, void* params, T value) {
  std::memcpy(static_cast<std::byte*>(params) + field.offset, &value, sizeof value);
}

template <class T>
T Get(const Field& field, const flatbuffers::Table& table) {
  return table.GetField<T>(VOffset(field), static_cast<T>(field.default_value));
}

template <class T>
const flatbuffers::Vector<T>* GetVector(const Field& field, const flatbuffers::Table& table) {
  return table.GetPointer<const flatbuffers::Vector<T>*>(VOffset(field));
}

template <class List, class T>
Status ReadList(const Field& field, const flatbuffers::Table& table, void* params) {
  const auto* vector = GetVector<T>(field, table);
  List list{};
  if (vector != nullptr) {
    if (vector->size() > List::kMax) {
      return InvalidArgument(field.name, " has ", vector->size(), " entries, at most ",
                             int{List::kMax}, " fit");
    }
    list.count = static_cast<int32_t>(vector->size());
    for (int i = 0; i < list.count; ++i) {
      list.values[i] = static_cast<int32_t>(vector->Get(i));
      if (list.values[i] != vector->Get(i)) {
        return Unsupported(field.name, " has the entry ", vector->Get(i));
      }
    }
  }
  Store(field, params, list);
  return Status();
}

Status ReadFloatList(const Field& field, const flatbuffers::Table& table, void* params) {
  const auto* vector = GetVector<float>(field, table);
  FloatList list{};
  if (vector != nullptr && vector->size() > 0) {
    list = {vector->data(), static_cast<int64_t>(vector->size())};
  }
  Store(field, params, list);
  return Status();
}

// `value` of an enumeration with the numbers [0, count).
template <class T>
Status StoreEnum(const Field& field, int value, int count, void* params) {
  if (value < 0 || value >= count) {
    return InvalidArgument(field.name, " has the unknown value ", value);
  }
  Store(field, params, static_cast<T>(value));
  return Status();
}

// What a field left out means: the schema's default is FLOAT32, where the table does not name
// another.
DataType AbsentDataType(const Field& field) {
  const auto type = static_cast<DataType>(static_cast<int>(field.default_value));
  return type == DataType::kNone ? DataType::kFloat32 : type;
}

Status ReadDataType(const Field& field, const flatbuffers::Table& table, void* params) {
  const int absent = DataTypeToSchema(AbsentDataType(field));
  const auto value = static_cast<int>(table.GetField(VOffset(field), static_cast<int8_t>(absent)));
  const std::optional<DataType> type = DataTypeFromSchema(value);
  if (!type) return Unsupported(field.name, " has the unknown type ", value);
  Store(field, params, *type);
  return Status();
}

Status ReadField(const Field& field, const flatbuffers::Table& table, void* params) {
  switch (field.kind) {
    case FieldKind::kInt32: Store(field, params, Get<int32_t>(field, table)); break;
    case FieldKind::kInt64: Store(field, params, Get<int64_t>(field, table)); break;
    case FieldKind::kFloat: Store(field, params, Get<float>(field, table)); break;
    case FieldKind::kBool: Store(field, params, Get<uint8_t>(field, table) != 0); break;
    case FieldKind::kEnum8:
      Store(field, params, static_cast<int32_t>(Get<int8_t>(field, table)));
      break;
    case FieldKind::kActivation:
      return StoreEnum<Activation>(field, Get<int8_t>(field, table), 6, params);
    case FieldKind::kPadding:
      return StoreEnum<Padding>(field, Get<int8_t>(field, table), field.choices, params);
    case FieldKind::kDataType: return ReadDataType(field, table, params);
    case FieldKind::kIntList: return ReadList<IntList, int32_t>(field, table, params);
    case FieldKind::kLongList: return ReadList<IntList, int64_t>(field, table, params);
    case FieldKind::kLongPairs: return ReadList<PairList, int64_t>(field, table, params);
    case FieldKind::kFloatList: return ReadFloatList(field, table, params);
  }
  return Status();
}

void WriteField(const Field& field, const void* params, flatbuffers::FlatBufferBuilder& builder) {
  const flatbuffers::voffset_t at = VOffset(field);
  const double default_value = field.default_value;
  switch (field.kind) {
    case FieldKind::kInt32:
      builder.AddElement(at, Load<int32_t>(field, params), static_cast<int32_t>(default_value));
      break;
    case FieldKind::kInt64:
      builder.AddElement(at, Load<int64_t>(field, params), static_cast<int64_t>(default_value));
      break;
    case FieldKind::kFloat:
      builder.AddElement(at, Load<float>(field, params), static_cast<float>(default_value));
      break;
    case FieldKind::kBool:
      builder.AddElement(at, static_cast<uint8_t>(Load<bool>(field, params)),
                         static_cast<uint8_t>(default_value));
      break;
    case FieldKind::kEnum8:
    case FieldKind::kActivation:
    case FieldKind::kPadding:
      builder.AddElement(at, static_cast<int8_t>(Load<int32_t>(field, params)),
                         static_cast<int8_t>(default_value));
      break;
    case FieldKind::kDataType: {
      const auto type = Load<DataType>(field, params);
      const DataType absent = AbsentDataType(field);
      builder.AddElement(
          at, static_cast<int8_t>(DataTypeToSchema(type == DataType::kNone ? absent : type)),
          static_cast<int8_t>(DataTypeToSchema(absent)));
      break;
    }
    case FieldKind::kIntList:
    case FieldKind::kLongList:
    case FieldKind::kLongPairs:
    case FieldKind::kFloatList: break;  // written before the table is begun
  }
}

template <class T, class List>
flatbuffers::uoffset_t WriteVector(const List& list, flatbuffers::FlatBufferBuilder& builder) {
  return builder.CreateVector(std::vector<T>(list.values, list.values + list.count)).o;
}

// The vector's place in the file; 0 where the field is no list.
flatbuffers::uoffset_t WriteList(const Field& field, const void* params,
                                 flatbuffers::FlatBufferBuilder& builder) {
  switch (field.kind) {
    case FieldKind::kIntList: return WriteVector<int32_t>(Load<IntList>(field, params), builder);
    case FieldKind::kLongList: return WriteVector<int64_t>(Load<IntList>(field, params), builder);
    case FieldKind::kLongPairs: return WriteVector<int64_t>(Load<PairList>(field, params), builder);
    case FieldKind::kFloatList: return WriteVector<float>(Load<FloatList>(field, params), builder);
    default: return 0;
  }
}

}  // namespace

std::optional<DataType> DataTypeFromSchema(int schema_type) {
  if (schema_type < 0 || schema_type >= static_cast<int>(kSchemaTypes.size())) return std::nullopt;
  return kSchemaTypes[schema_type];
}

int DataTypeToSchema(DataType type) {
  for (size_t i = 0; i < kSchemaTypes.size(); ++i) {
    if (kSchemaTypes[i] == type) return static_cast<int>(i);
  }
  return -1;
}

Status ReadOptions(std::span<const Field> fields, const flatbuffers::Table* table, void* params) {
  kernels::SetDefaults(fields, params);
  if (table == nullptr) return Status();
  for (const Field& field : fields) FUSELITE_RETURN_IF_ERROR(ReadField(field, *table, params));
  return Status();
}

flatbuffers::Offset<void> WriteOptions(std::span<const Field> fields, const void* params,
                                       flatbuffers::FlatBufferBuilder& builder) {
  // Vectors cannot be made while a table is open.
  std::vector<flatbuffers::uoffset_t> lists;
  for (const Field& field : fields) lists.push_back(WriteList(field, params, builder));
  const flatbuffers::uoffset_t start = builder.StartTable();
  for (size_t i = 0; i < fields.size(); ++i) {
    if (lists[i] != 0) {
      builder.AddOffset(VOffset(fields[i]), flatbuffers::Offset<void>(lists[i]));
    } else {
      WriteField(fields[i], params, builder);
    }
  }
  return {builder.EndTable(start)};
}

}  // namespace fuselite::interpreter
