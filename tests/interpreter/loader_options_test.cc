// Options of an operator as files have them, those that the project's own writer does not write.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "interpreter/file/loader.h"
#include "interpreter/schema/tflite_generated.h"

namespace fuselite::interpreter {
namespace {

using ::testing::HasSubstr;
using Builder = flatbuffers::FlatBufferBuilder;
using Options = flatbuffers::Offset<void>;

// One operator from a float32[1,2] to another, in a subgraph that has another one beside it.
struct Fields {
  schema::BuiltinOperator code;
  schema::BuiltinOptions kind = schema::BuiltinOptions::NONE;
  schema::BuiltinOptions2 second_kind = schema::BuiltinOptions2::NONE;
  std::function<Options(Builder&)> options = {};  // of the kind that is given
};

Result<std::shared_ptr<const Model>> Load(const Fields& fields) {
  Builder builder;
  const std::vector<int32_t> shape = {1, 2}, in = {0}, out = {1};
  const auto tensor = [&] {
    return schema::CreateTensorDirect(builder, &shape, schema::TensorType::FLOAT32, 0, "t");
  };
  const bool second = fields.second_kind != schema::BuiltinOptions2::NONE;
  const Options options = fields.options ? fields.options(builder) : Options();
  const auto inputs = builder.CreateVector(in), outputs = builder.CreateVector(out);
  const std::vector operators = {
      schema::CreateOperator(builder, 0, inputs, outputs, fields.kind, second ? Options() : options,
                             0, schema::CustomOptionsFormat::FLEXBUFFERS, 0, 0, 0, 0,
                             fields.second_kind, second ? options : Options())};
  const std::vector tensors = {tensor(), tensor()}, others = {tensor()};
  const std::vector graphs = {
      schema::CreateSubGraphDirect(builder, &tensors, &in, &out, &operators),
      schema::CreateSubGraphDirect(builder, &others, &in, &in)};
  const std::vector codes = {schema::CreateOperatorCode(
      builder, static_cast<int8_t>(std::min<int32_t>(static_cast<int32_t>(fields.code), 127)), 0, 1,
      fields.code)};
  const std::vector buffers = {schema::CreateBuffer(builder)};
  schema::FinishModelBuffer(
      builder, schema::CreateModelDirect(builder, 3, &codes, &graphs, nullptr, &buffers));
  const auto* bytes = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  return LoadModelFromMemory(std::span(bytes, builder.GetSize()), nullptr);
}

std::string ErrorOf(const Fields& fields) {
  const auto model = Load(fields);
  return model.ok() ? "loaded" : model.status().ToString();
}

using enum schema::BuiltinOperator;
using Kind = schema::BuiltinOptions;
using SecondKind = schema::BuiltinOptions2;

TEST(OptionsOfAFile, AreThoseOfTheOperator) {
  const auto softmax = [](Builder& b) { return schema::CreateSoftmaxOptions(b, 1).Union(); };
  EXPECT_EQ(ErrorOf({.code = SOFTMAX, .kind = Kind::SoftmaxOptions, .options = softmax}), "loaded");
  EXPECT_EQ(ErrorOf({.code = SOFTMAX}), "loaded");
  EXPECT_EQ(ErrorOf({.code = SOFTMAX, .kind = Kind::Conv2DOptions}), "loaded") << "no table";
  EXPECT_EQ(ErrorOf({.code = SOFTMAX, .options = softmax}), "loaded") << "a table of no kind";
  EXPECT_THAT(ErrorOf({.code = CONV_2D, .kind = Kind::SoftmaxOptions, .options = softmax}),
              HasSubstr("its options are of kind"));
  EXPECT_EQ(ErrorOf({.code = NEG, .kind = Kind::SoftmaxOptions, .options = softmax}), "loaded")
      << "an operator without fields";
}

TEST(OptionsOfAFile, HaveListsThatFit) {
  const auto squeeze = [](int count) {
    return [=](Builder& b) {
      const std::vector<int32_t> dims(count, 0);
      return schema::CreateSqueezeOptionsDirect(b, &dims).Union();
    };
  };
  EXPECT_EQ(ErrorOf({.code = SQUEEZE, .kind = Kind::SqueezeOptions, .options = squeeze(8)}),
            "loaded");
  EXPECT_THAT(ErrorOf({.code = SQUEEZE, .kind = Kind::SqueezeOptions, .options = squeeze(9)}),
              HasSubstr("has 9 entries, at most 8 fit"));
}

// Files have 64 bits where a shape has 32.
TEST(OptionsOfAFile, HaveEntriesThatFit) {
  const auto pad = [](int64_t low) {
    return ErrorOf(
        {.code = STABLEHLO_PAD,
         .second_kind = SecondKind::StablehloPadOptions,
         .options = [=](Builder& b) {
           const std::vector<int64_t> edge = {0, low}, none = {0, 0};
           return schema::CreateStablehloPadOptionsDirect(b, &edge, &none, &none).Union();
         }});
  };
  EXPECT_EQ(pad(2147483647), "loaded");
  EXPECT_THAT(pad(int64_t{1} << 40), HasSubstr("has the entry 1099511627776"));
}

// What a FlatBuffer leaves out is not there at all: names, attributes, lists.
TEST(OptionsOfAFile, MayLackNamesAndLists) {
  EXPECT_EQ(ErrorOf({.code = STABLEHLO_COMPOSITE,
                     .second_kind = SecondKind::StableHLOCompositeOptions,
                     .options =
                         [](Builder& b) {
                           return schema::CreateStableHLOCompositeOptions(b, 0, 1).Union();
                         }}),
            "loaded");
  EXPECT_EQ(
      ErrorOf({.code = VAR_HANDLE,
               .kind = Kind::VarHandleOptions,
               .options = [](Builder& b) { return schema::CreateVarHandleOptions(b).Union(); }}),
      "loaded");
  EXPECT_EQ(
      ErrorOf({.code = SQUEEZE,
               .kind = Kind::SqueezeOptions,
               .options = [](Builder& b) { return schema::CreateSqueezeOptions(b).Union(); }}),
      "loaded");
}

TEST(OptionsOfAFile, NameVariablesInContainers) {
  const auto model =
      Load({.code = VAR_HANDLE, .kind = Kind::VarHandleOptions, .options = [](Builder& b) {
              return schema::CreateVarHandleOptionsDirect(b, "box", "count").Union();
            }});
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const ModelOperator& handle = (*model)->subgraphs[0].operators[0];
  EXPECT_EQ(handle.container, "box");
  EXPECT_EQ(handle.shared_name, "count");
}

// An enumeration is a byte in the file, and only some bytes are its numbers.
TEST(OptionsOfAFile, HaveNumbersThatTheirEnumerationsName) {
  const auto pool = [](int padding, int activation) {
    return ErrorOf({.code = MAX_POOL_2D, .kind = Kind::Pool2DOptions, .options = [=](Builder& b) {
                      const auto function = static_cast<schema::ActivationFunctionType>(activation);
                      const auto as = static_cast<schema::Padding>(padding);
                      return schema::CreatePool2DOptions(b, as, 1, 1, 1, 1, function).Union();
                    }});
  };
  for (const int number : {-128, -1, 0, 1, 2, 5, 6, 127}) {
    EXPECT_EQ(pool(number, 0) == "loaded", number == 0 || number == 1) << pool(number, 0);
    EXPECT_EQ(pool(0, number) == "loaded", number >= 0 && number <= 5) << pool(0, number);
  }
  for (const int type : {-128, -1, 0, 2, 100, 127}) {
    const std::string error =
        ErrorOf({.code = CAST, .kind = Kind::CastOptions, .options = [&](Builder& b) {
                   const auto as = static_cast<schema::TensorType>(type);
                   return schema::CreateCastOptions(b, as, schema::TensorType::INT32).Union();
                 }});
    EXPECT_EQ(error == "loaded", type == 0 || type == 2) << type << ": " << error;
  }
}

TEST(OptionsOfAFile, NameSubgraphsThatThereAre) {
  const auto branches = [](const std::vector<int32_t>& indices) {
    return
        [=](Builder& b) { return schema::CreateStablehloCaseOptionsDirect(b, &indices).Union(); };
  };
  const auto cases = [&](const std::vector<int32_t>& indices) {
    return ErrorOf({.code = STABLEHLO_CASE,
                    .second_kind = SecondKind::StablehloCaseOptions,
                    .options = branches(indices)});
  };
  EXPECT_EQ(cases({1, 1}), "loaded");
  EXPECT_THAT(cases({}), HasSubstr("does not name its subgraphs"));
  EXPECT_THAT(cases({1, 2}), HasSubstr("names subgraph 2, of 2"));
  EXPECT_THAT(cases({-1}), HasSubstr("names subgraph -1, of 2"));
  EXPECT_EQ(cases(std::vector<int32_t>(20, 1)), "loaded");
  EXPECT_THAT(cases(std::vector<int32_t>(21, 1)), HasSubstr("has 21 subgraphs, more than 20"));
  EXPECT_THAT(
      ErrorOf(
          {.code = STABLEHLO_CASE,
           .second_kind = SecondKind::StablehloCaseOptions,
           .options = [](Builder& b) { return schema::CreateStablehloCaseOptions(b).Union(); }}),
      HasSubstr("does not name its subgraphs"));
  for (const auto code : {IF, WHILE, CALL_ONCE, STABLEHLO_CASE, STABLEHLO_COMPOSITE}) {
    EXPECT_THAT(ErrorOf({.code = code}), HasSubstr("does not name its subgraph"));
  }
  const auto then = [](int32_t index) {
    return [=](Builder& b) { return schema::CreateIfOptions(b, 1, index).Union(); };
  };
  EXPECT_EQ(ErrorOf({.code = IF, .kind = Kind::IfOptions, .options = then(1)}), "loaded");
  EXPECT_THAT(ErrorOf({.code = IF, .kind = Kind::IfOptions, .options = then(5)}),
              HasSubstr("names subgraph 5, of 2"));
}

}  // namespace
}  // namespace fuselite::interpreter
