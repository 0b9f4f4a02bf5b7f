// What a model's file may say of one tensor, and what is refused: fields that ModelWriter does not
// write, made by FlatBuffers' own code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "interpreter/file/loader.h"
#include "interpreter/schema/tflite_generated.h"

namespace fuselite::interpreter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Builder = flatbuffers::FlatBufferBuilder;
template <class T>
using Offset = flatbuffers::Offset<T>;

// A tensor of a file; functions add tables of their own.
struct Fields {
  std::vector<int32_t> shape = {2, 3};
  schema::TensorType type = schema::TensorType::INT8;
  std::vector<uint8_t> data = {};
  std::vector<int32_t> signature = {};
  std::function<Offset<schema::QuantizationParameters>(Builder&)> quantization = {};
  std::function<Offset<schema::SparsityParameters>(Builder&)> sparsity = {};
  uint32_t external_buffer = 0;
};

Result<std::shared_ptr<const Model>> Load(const Fields& fields) {
  Builder builder;
  const std::vector<Offset<schema::Buffer>> buffers = {
      schema::CreateBuffer(builder), schema::CreateBufferDirect(builder, &fields.data)};
  const auto quantization =
      fields.quantization ? fields.quantization(builder) : Offset<schema::QuantizationParameters>();
  const auto sparsity =
      fields.sparsity ? fields.sparsity(builder) : Offset<schema::SparsityParameters>();
  const std::vector<Offset<schema::Tensor>> tensors = {schema::CreateTensorDirect(
      builder, &fields.shape, fields.type, 1, "t", quantization, false, sparsity, &fields.signature,
      false, nullptr, fields.external_buffer)};
  const std::vector<Offset<schema::SubGraph>> graphs = {
      schema::CreateSubGraphDirect(builder, &tensors)};
  schema::FinishModelBuffer(
      builder, schema::CreateModelDirect(builder, 3, nullptr, &graphs, nullptr, &buffers));
  const auto* bytes = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  return LoadModelFromMemory(std::span(bytes, builder.GetSize()), nullptr);
}

ModelTensor Loaded(const Fields& fields) {
  const auto model = Load(fields);
  EXPECT_TRUE(model.ok()) << model.status().ToString();
  return model.ok() ? (*model)->subgraphs[0].tensors[0] : ModelTensor();
}

std::string ErrorOf(const Fields& fields) {
  const auto model = Load(fields);
  return model.ok() ? "loaded" : model.status().ToString();
}

auto Scales(std::vector<float> scales, std::vector<int64_t> zero_points, int axis = 0) {
  return [=](Builder& builder) {
    return schema::CreateQuantizationParametersDirect(builder, nullptr, nullptr, &scales,
                                                      &zero_points,
                                                      schema::QuantizationDetails::NONE, 0, axis);
  };
}

auto InBlocks(int32_t size, int32_t scales = 5, int32_t zero_points = 6) {
  return [=](Builder& builder) {
    const auto blocks = schema::CreateBlockwiseQuantization(builder, scales, zero_points, size);
    return schema::CreateQuantizationParametersDirect(
        builder, nullptr, nullptr, nullptr, nullptr,
        schema::QuantizationDetails::BlockwiseQuantization, blocks.Union(), 1);
  };
}

// As in LiteRT, bytes behind those are not looked at.
TEST(TensorOfAFile, HasAsManyBytesAsItsShapeTakes) {
  EXPECT_TRUE(Loaded({.data = {1, 2, 3, 4, 5, 6}}).constant);
  const ModelTensor longer = Loaded({.data = {1, 2, 3, 4, 5, 6, 7}});
  EXPECT_TRUE(longer.constant);
  EXPECT_EQ(longer.data.size(), 6u);
  EXPECT_THAT(ErrorOf({.data = {1, 2, 3, 4, 5}}),
              HasSubstr("tensor 0 \"t\": has 5 bytes of data, but int8[2,3] takes 6"));
}

TEST(TensorOfAFile, WithoutBytesIsNoConstantUnlessItIsEmpty) {
  EXPECT_FALSE(Loaded({}).constant);
  EXPECT_TRUE(Loaded({.shape = {0, 3}}).constant);
}

TEST(TensorOfAFile, HasATypeOfTheSchema) {
  EXPECT_THAT(ErrorOf({.type = static_cast<schema::TensorType>(99)}),
              HasSubstr("element type 99 is unknown"));
}

TEST(TensorOfAFile, LiesInTheFileItself) {
  EXPECT_THAT(ErrorOf({.external_buffer = 1}), HasSubstr("constants in other files are not taken"));
}

TEST(TensorOfAFile, KeepsASignatureOnlyForSizesThatAreNotKnown) {
  EXPECT_THAT(Loaded({.signature = {-1, 3}}).shape_signature, ElementsAre(-1, 3));
  EXPECT_THAT(Loaded({.signature = {2, 3}}).shape_signature, IsEmpty());
  EXPECT_THAT(Loaded({.signature = {}}).shape_signature, IsEmpty());
  EXPECT_THAT(ErrorOf({.signature = {-2, 3}}), HasSubstr("dimension -2 in its shape signature"));
  EXPECT_THAT(ErrorOf({.signature = {-1}}), HasSubstr("its shape signature has 1 dimensions"));
}

TEST(TensorOfAFile, TakesItsScalesAndTheirAxis) {
  const ModelTensor one = Loaded({.quantization = Scales({0.5f}, {-128}, 7)});
  EXPECT_THAT(one.quantization.scales, ElementsAre(0.5f));
  EXPECT_THAT(one.quantization.zero_points, ElementsAre(-128));
  EXPECT_EQ(one.quantization.axis, 0) << "one scale has no axis";
  const ModelTensor three = Loaded({.quantization = Scales({0.5f, 0.25f, 2.0f}, {0, 127, 1}, 1)});
  EXPECT_THAT(three.quantization.scales, ElementsAre(0.5f, 0.25f, 2.0f));
  EXPECT_THAT(three.quantization.zero_points, ElementsAre(0, 127, 1));
  EXPECT_EQ(three.quantization.axis, 1);
}

TEST(TensorOfAFile, HasNoScalesWhereItsTypeIsNotQuantized) {
  const Fields fields{.type = schema::TensorType::FLOAT32, .quantization = Scales({-1}, {3})};
  EXPECT_THAT(Loaded(fields).quantization.scales, IsEmpty());
  EXPECT_THAT(Loaded({.quantization = Scales({}, {})}).quantization.scales, IsEmpty());
}

// As converters write what they only observed.
TEST(TensorOfAFile, HasNoScalesWhereTheirListIsEmpty) {
  const Fields fields{.quantization = [](Builder& builder) {
    const std::vector<float> low = {-1}, high = {1}, none;
    return schema::CreateQuantizationParametersDirect(builder, &low, &high, &none, nullptr);
  }};
  EXPECT_TRUE(Loaded(fields).quantization.empty());
}

TEST(TensorOfAFile, HasAZeroPointForEachScale) {
  EXPECT_THAT(ErrorOf({.quantization = Scales({1}, {})}),
              HasSubstr("has 1 scales, but 0 zero points"));
  const auto without = [](Builder& builder) {
    const std::vector<float> scales = {1};
    return schema::CreateQuantizationParametersDirect(builder, nullptr, nullptr, &scales);
  };
  EXPECT_THAT(ErrorOf({.quantization = without}), HasSubstr("has 1 scales, but 0 zero points"));
}

TEST(TensorOfAFile, HasFiniteScalesForADimensionThatItHas) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const schema::TensorType type :
       {schema::TensorType::INT8, schema::TensorType::INT32, schema::TensorType::INT64}) {
    for (const float scale : {-1.0f, kInfinity, NAN}) {
      EXPECT_THAT(ErrorOf({.type = type, .quantization = Scales({scale}, {0})}),
                  HasSubstr("expected no negative number"));
    }
    // What was always 0 in a converter's calibration has this scale.
    EXPECT_THAT(Loaded({.type = type, .quantization = Scales({0}, {0})}).quantization.scales,
                ElementsAre(0));
  }
  for (const int axis : {-1, 2}) {
    EXPECT_THAT(ErrorOf({.quantization = Scales({1, 1}, {0, 0}, axis)}),
                HasSubstr("quantized dimension " + std::to_string(axis) + " of rank 2"));
  }
  EXPECT_THAT(ErrorOf({.quantization = Scales({1, 1}, {0, 0}, 1)}),
              HasSubstr("has 2 scales for dimension 1 of size 3"));
}

TEST(TensorOfAFile, HasZeroPointsThatItsTypeCanSay) {
  struct Range {
    schema::TensorType type;
    int64_t low, high;
  };
  constexpr int64_t kLow = std::numeric_limits<int32_t>::min(),
                    kHigh = std::numeric_limits<int32_t>::max();
  for (const Range& range : {Range{schema::TensorType::UINT8, 0, 255},
                             {schema::TensorType::INT8, -128, 127},
                             {schema::TensorType::INT4, -8, 7},
                             {schema::TensorType::INT2, -2, 1},
                             {schema::TensorType::INT16, -32768, 32767},
                             {schema::TensorType::UINT16, 0, 65535},
                             {schema::TensorType::INT32, kLow, kHigh}}) {
    SCOPED_TRACE(schema::EnumNameTensorType(range.type));
    for (const int64_t point : {range.low, range.high}) {
      EXPECT_EQ(ErrorOf({.type = range.type, .quantization = Scales({1}, {point})}), "loaded");
    }
    for (const int64_t point : {range.low - 1, range.high + 1}) {
      EXPECT_THAT(ErrorOf({.type = range.type, .quantization = Scales({1}, {point})}),
                  HasSubstr("zero point " + std::to_string(point) + " is out of range"));
    }
  }
}

TEST(TensorOfAFile, SaysTheSizeOfItsBlocksAndWhereTheirScalesAre) {
  EXPECT_THAT(ErrorOf({.quantization = InBlocks(32)}),
              HasSubstr("its scales are no tensor of the subgraph"));
  // The subgraph has tensor 0 alone.
  for (const auto& [scales, zero_points, there] :
       {std::tuple(0, -1, true), {0, 0, true}, {1, -1, false}, {-1, -1, false}, {0, 1, false}}) {
    const std::string error = ErrorOf({.quantization = InBlocks(32, scales, zero_points)});
    EXPECT_EQ(error == "loaded", there) << scales << ", " << zero_points << ": " << error;
  }
  for (const int32_t size : {0, -32}) {
    EXPECT_THAT(ErrorOf({.quantization = InBlocks(size)}),
                HasSubstr("its block-wise quantization has no block size"));
  }
}

// [[0, 7, 0], [0, 0, 9]] by rows, with the columns of what is not zero.
auto Sparse(bool with_levels, std::vector<uint8_t> columns) {
  return [=](Builder& builder) {
    using schema::DimensionType, schema::SparseIndexVector;
    const std::vector<int32_t> order = {0, 1}, ends = {0, 1, 2};
    std::vector<Offset<schema::DimensionMetadata>> levels;
    if (with_levels) {
      const auto segments = schema::CreateInt32VectorDirect(builder, &ends);
      const auto indices = schema::CreateUint8VectorDirect(builder, &columns);
      levels = {schema::CreateDimensionMetadata(builder, DimensionType::DENSE, 2),
                schema::CreateDimensionMetadata(builder, DimensionType::SPARSE_CSR, 0,
                                                SparseIndexVector::Int32Vector, segments.Union(),
                                                SparseIndexVector::Uint8Vector, indices.Union())};
    }
    return schema::CreateSparsityParametersDirect(builder, &order, nullptr,
                                                  with_levels ? &levels : nullptr);
  };
}

TEST(TensorOfAFile, IsUnpackedWhereItIsSparse) {
  const Fields fields{.data = {7, 9}, .sparsity = Sparse(true, {1, 2})};
  const auto model = Load(fields);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const ModelTensor& tensor = (*model)->subgraphs[0].tensors[0];
  EXPECT_TRUE(tensor.constant);
  const auto* values = reinterpret_cast<const int8_t*>(tensor.data.data());
  EXPECT_THAT(std::vector<int8_t>(values, values + tensor.data.size()),
              ElementsAre(0, 7, 0, 0, 0, 9));
}

TEST(TensorOfAFile, IsRefusedWhereItsSparseLayoutIsBroken) {
  EXPECT_THAT(ErrorOf({.data = {7, 9}, .sparsity = Sparse(false, {})}),
              HasSubstr("a sparse layout of 0 levels, expected 2"));
  EXPECT_NE(ErrorOf({.data = {7, 9}, .sparsity = Sparse(true, {1, 3})}), "loaded");
  EXPECT_NE(ErrorOf({.data = {7, 9}, .sparsity = Sparse(true, {1})}), "loaded");
  EXPECT_NE(ErrorOf({.data = {7}, .sparsity = Sparse(true, {1, 2})}), "loaded");
}

}  // namespace
}  // namespace fuselite::interpreter
