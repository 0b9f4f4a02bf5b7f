// The operators' field tables against the schema, read by FlatBuffers' own parser: names, ids,
// types, defaults and the tag of each options table. A table that is wrong reads other people's
// models wrong.

#include <flatbuffers/idl.h>
#include <flatbuffers/util.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "interpreter/file/options.h"
#include "kernels/operator.h"

namespace fuselite::interpreter {
namespace {

using kernels::Field;
using kernels::FieldKind;
using kernels::OperatorDef;

class FieldTablesTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string text;
    ASSERT_TRUE(flatbuffers::LoadFile(FUSELITE_SCHEMA, false, &text)) << FUSELITE_SCHEMA;
    ASSERT_TRUE(parser_.Parse(text.c_str())) << parser_.error_;
  }

  const flatbuffers::EnumDef& Enum(const std::string& name) const {
    return *parser_.enums_.Lookup("fuselite.schema." + name);
  }

  flatbuffers::Parser parser_;
};

// What a field of this kind is in the file.
std::pair<flatbuffers::BaseType, const char*> WireType(FieldKind kind) {
  switch (kind) {
    case FieldKind::kInt32: return {flatbuffers::BASE_TYPE_INT, nullptr};
    case FieldKind::kInt64: return {flatbuffers::BASE_TYPE_LONG, nullptr};
    case FieldKind::kFloat: return {flatbuffers::BASE_TYPE_FLOAT, nullptr};
    case FieldKind::kBool: return {flatbuffers::BASE_TYPE_BOOL, nullptr};
    case FieldKind::kActivation: return {flatbuffers::BASE_TYPE_CHAR, "ActivationFunctionType"};
    case FieldKind::kPadding: return {flatbuffers::BASE_TYPE_CHAR, "Padding"};
    case FieldKind::kDataType: return {flatbuffers::BASE_TYPE_CHAR, "TensorType"};
    case FieldKind::kEnum8: return {flatbuffers::BASE_TYPE_CHAR, nullptr};
    case FieldKind::kIntList:
    case FieldKind::kLongList:
    case FieldKind::kLongPairs:
    case FieldKind::kFloatList: return {flatbuffers::BASE_TYPE_VECTOR, nullptr};
  }
  return {flatbuffers::BASE_TYPE_NONE, nullptr};
}

void ExpectSameField(const Field& field, const flatbuffers::StructDef& table) {
  const flatbuffers::FieldDef* def = table.fields.Lookup(std::string(field.name));
  ASSERT_NE(def, nullptr) << "the schema's " << table.name << " has no such field";
  EXPECT_EQ(flatbuffers::FieldIndexToOffset(field.id), def->value.offset);
  const auto [base, enumeration] = WireType(field.kind);
  EXPECT_EQ(base, def->value.type.base_type);
  if (enumeration != nullptr) {
    ASSERT_NE(def->value.type.enum_def, nullptr);
    // The mode of MIRROR_PAD and the algorithm of random bits are kept as paddings: all count from
    // 0 in the file and from 1 in the struct.
    const std::string& name = def->value.type.enum_def->name;
    const bool like_padding = name == "MirrorPadMode" || name == "RngAlgorithm";
    EXPECT_EQ(like_padding ? "Padding" : name, enumeration);
  }
  if (base == flatbuffers::BASE_TYPE_VECTOR) {
    const auto element = field.kind == FieldKind::kIntList     ? flatbuffers::BASE_TYPE_INT
                         : field.kind == FieldKind::kFloatList ? flatbuffers::BASE_TYPE_FLOAT
                                                               : flatbuffers::BASE_TYPE_LONG;
    EXPECT_EQ(def->value.type.element, element);
    return;
  }
  const double schema_default = std::stod(def->value.constant);
  if (field.kind != FieldKind::kDataType) {
    EXPECT_EQ(field.default_value, schema_default);
  } else if (field.default_value != 0 || schema_default != 0) {
    // 0 stands for none here and for FLOAT32 there.
    EXPECT_EQ(DataTypeToSchema(static_cast<DataType>(static_cast<int>(field.default_value))),
              static_cast<int>(schema_default));
  }
}

TEST_F(FieldTablesTest, AgreeWithTheSchema) {
  int operators = 0;
  for (const OperatorDef* op : kernels::AllOperators()) {
    SCOPED_TRACE(std::string(op->name));
    if (op->builtin_code < 0) continue;
    const auto* code = Enum("BuiltinOperator").Lookup(std::string(op->name));
    ASSERT_NE(code, nullptr);
    EXPECT_EQ(code->GetAsInt64(), op->builtin_code);
    ++operators;
    if (op->options_type == 0) {
      EXPECT_TRUE(op->fields.empty());
      continue;
    }
    const bool second = op->options_type >= kernels::kSecondUnion;
    const auto* tag = Enum(second ? "BuiltinOptions2" : "BuiltinOptions")
                          .ReverseLookup(op->options_type % kernels::kSecondUnion,
                                         /*skip_union_default=*/true);
    ASSERT_NE(tag, nullptr);
    for (const Field& field : op->fields) {
      SCOPED_TRACE(std::string(field.name));
      ExpectSameField(field, *tag->union_type.struct_def);
      EXPECT_LT(field.offset, op->params_bytes);
      EXPECT_LT(field.struct_offset, static_cast<int>(op->struct_bytes));
    }
  }
  EXPECT_GT(operators, 0);
}

// Parameters of `op` with every field away from its default.
kernels::Params UnusualParams(const OperatorDef& op) {
  kernels::Params params;
  for (const Field& field : op.fields) {
    const auto store = [&](auto value) {
      std::memcpy(static_cast<std::byte*>(params.data()) + field.offset, &value, sizeof value);
    };
    switch (field.kind) {
      case FieldKind::kInt32: store(int32_t{-7}); break;
      case FieldKind::kInt64: store(int64_t{-5000000000}); break;
      case FieldKind::kFloat: store(2.5f); break;
      case FieldKind::kBool: store(field.default_value == 0); break;
      case FieldKind::kActivation: store(kernels::Activation::kRelu6); break;
      case FieldKind::kPadding: store(kernels::Padding::kValid); break;
      case FieldKind::kDataType: store(DataType::kInt16); break;
      case FieldKind::kEnum8: store(int32_t{1}); break;
      case FieldKind::kIntList:
      case FieldKind::kLongList:
        store(kernels::IntList{{4, -1, 9}, field.count_offset < 0 ? kernels::IntList::kMax : 3});
        break;
      case FieldKind::kLongPairs: store(kernels::PairList{{4, -1, 9}, 16}); break;
      case FieldKind::kFloatList: store(kernels::FloatList{}); break;
    }
  }
  return params;
}

TEST_F(FieldTablesTest, OptionsSurviveWritingAndReading) {
  for (const OperatorDef* op : kernels::AllOperators()) {
    SCOPED_TRACE(std::string(op->name));
    const kernels::Params params = UnusualParams(*op);
    flatbuffers::FlatBufferBuilder builder;
    const auto table = WriteOptions(op->fields, params.data(), builder);
    builder.Finish(flatbuffers::Offset<flatbuffers::Table>(table.o));
    kernels::Params read;
    const auto* root = flatbuffers::GetRoot<flatbuffers::Table>(builder.GetBufferPointer());
    const Status status = ReadOptions(op->fields, root, read.data());
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_TRUE(params == read);
  }
}

// They go through TFLite's C struct and back: what a delegate sees of the same operator.
TEST_F(FieldTablesTest, ParametersSurviveTheStruct) {
  for (const OperatorDef* op : kernels::AllOperators()) {
    SCOPED_TRACE(std::string(op->name));
    kernels::Params expected = UnusualParams(*op);
    for (const Field& field : op->fields) {
      if (field.struct_offset < 0) {
        kernels::SetDefaults(std::span(&field, 1), expected.data());
      }
    }
    alignas(16) std::array<std::byte, 512> builtin_data{};
    ASSERT_LE(op->struct_bytes, builtin_data.size());
    kernels::ExportParams(op->fields, expected.data(), builtin_data.data());
    kernels::Params read;
    const Status status =
        kernels::ImportParams(op->fields, builtin_data.data(), op->max_version, read.data());
    ASSERT_TRUE(status.ok()) << status.ToString();
    EXPECT_TRUE(expected == read);
  }
}

}  // namespace
}  // namespace fuselite::interpreter
