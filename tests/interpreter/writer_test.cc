// What the writer puts into a file, as FlatBuffers' own code reads it: what is not there is not
// written.
#include "interpreter/file/writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "interpreter/schema/tflite_generated.h"
#include "runtime/tflite/builtin_codes.h"

namespace fuselite::interpreter {
namespace {

constexpr DataType kFloat = DataType::kFloat32;

class WrittenFile {
 public:
  explicit WrittenFile(const ModelWriter& writer) : bytes_(writer.Finish()) {}
  const schema::Model& model() const { return *schema::GetModel(bytes_.data()); }
  const schema::SubGraph& graph() const { return *model().subgraphs()->Get(0); }
  const schema::Tensor& tensor(uint32_t i) const { return *graph().tensors()->Get(i); }
  const schema::Operator& op(uint32_t i) const { return *graph().operators()->Get(i); }

 private:
  std::vector<std::byte> bytes_;
};

TEST(Writer, HasACodeForEachKindOfOperator) {
  ModelWriter writer;
  for (int i = 0; i < 5; ++i) writer.AddTensor("t", kFloat, {1});
  const kernels::OperatorDef& softmax = *kernels::FindOperator("SOFTMAX");
  writer.AddOperator(softmax, {0}, {1});
  writer.AddOperator(softmax, {1}, {2});
  writer.AddOperator(softmax, {2}, {3}, 2);
  writer.AddCustomOperator("Foo", {}, {3}, {4});
  const WrittenFile file(writer);
  const auto& codes = *file.model().operator_codes();
  ASSERT_EQ(codes.size(), 3u);
  EXPECT_EQ(codes.Get(0)->custom_code(), nullptr);
  EXPECT_EQ(codes.Get(1)->version(), 2);
  EXPECT_EQ(codes.Get(2)->custom_code()->str(), "Foo");
  EXPECT_EQ(file.op(1).opcode_index(), 0u);
}

TEST(Writer, HasABufferForEachConstant) {
  ModelWriter writer;
  writer.AddTensor("value", kFloat, {1});
  writer.AddConstant("constant", kFloat, {1}, std::vector{1.0f});
  writer.AddMetadata("nothing", {});
  const WrittenFile file(writer);
  const auto& buffers = *file.model().buffers();
  ASSERT_EQ(buffers.size(), 3u);
  EXPECT_EQ(buffers.Get(0)->data(), nullptr);
  EXPECT_EQ(buffers.Get(1)->data()->size(), 4u);
  EXPECT_EQ(buffers.Get(2)->data(), nullptr);
  EXPECT_EQ(file.tensor(0).buffer(), 0u);
  EXPECT_EQ(file.tensor(1).buffer(), 1u);
}

TEST(Writer, HasScalesAndSignaturesOfTensorsThatHaveThem) {
  ModelWriter writer;
  writer.AddTensor("plain", kFloat, {1});
  writer.AddTensor("code", DataType::kInt8, {1}, {{0.5f}, {3}, 0});
  writer.AddTensor({"open", kFloat, {1}, {}, {}, false, {-1}});
  TensorSpec blocks{.name = "blocks", .type = DataType::kInt4, .shape = {2, 32}};
  blocks.blockwise = {.scales = 1, .zero_points = 2, .block_size = 32, .axis = 1};
  writer.AddTensor(blocks);
  const WrittenFile file(writer);
  EXPECT_EQ(file.tensor(0).quantization(), nullptr);
  EXPECT_EQ(file.tensor(0).shape_signature(), nullptr);
  ASSERT_NE(file.tensor(1).quantization(), nullptr);
  EXPECT_EQ(file.tensor(1).quantization()->scale()->Get(0), 0.5f);
  EXPECT_EQ(file.tensor(1).quantization()->details_type(), schema::QuantizationDetails::NONE);
  ASSERT_NE(file.tensor(2).shape_signature(), nullptr);
  EXPECT_EQ(file.tensor(2).shape_signature()->Get(0), -1);
  const auto* const blockwise = file.tensor(3).quantization()->details_as_BlockwiseQuantization();
  ASSERT_NE(blockwise, nullptr);
  EXPECT_EQ(blockwise->scales(), 1);
  EXPECT_EQ(blockwise->zero_points(), 2);
  EXPECT_EQ(blockwise->block_size(), 32);
}

// In the union that the schema has them in, and in one alone.
TEST(Writer, HasOptionsOfTheOperatorsKind) {
  using First = schema::BuiltinOptions;
  using Second = schema::BuiltinOptions2;
  struct Case {
    void (*write)(ModelWriter& writer);
    First first;
    Second second = Second::NONE;
  };
  static constexpr auto kBuiltin = [](ModelWriter& w, const char* name) {
    w.AddOperator(*kernels::FindOperator(name), {0}, {1});
  };
  static constexpr auto kFlow = [](ModelWriter& w, int code, int count) {
    w.AddControlFlow(code, std::vector<int>(count, 1), {0}, {1});
  };
  const Case cases[] = {
      {[](ModelWriter& w) { kBuiltin(w, "SOFTMAX"); }, First::SoftmaxOptions},
      {[](ModelWriter& w) { kBuiltin(w, "FLOOR"); }, First::NONE},
      {[](ModelWriter& w) { kBuiltin(w, "STABLEHLO_PAD"); }, First::NONE,
       Second::StablehloPadOptions},
      {[](ModelWriter& w) { kFlow(w, tflite::kTfLiteBuiltinIf, 2); }, First::IfOptions},
      {[](ModelWriter& w) { kFlow(w, tflite::kTfLiteBuiltinIf, 1); }, First::NONE},
      {[](ModelWriter& w) { kFlow(w, tflite::kTfLiteBuiltinWhile, 2); }, First::WhileOptions},
      {[](ModelWriter& w) { kFlow(w, tflite::kTfLiteBuiltinWhile, 1); }, First::NONE},
      {[](ModelWriter& w) { kFlow(w, tflite::kTfLiteBuiltinCallOnce, 1); }, First::CallOnceOptions},
      {[](ModelWriter& w) { kFlow(w, tflite::kTfLiteBuiltinCallOnce, 0); }, First::NONE},
      {[](ModelWriter& w) { kFlow(w, tflite::kTfLiteBuiltinStablehloCase, 3); }, First::NONE,
       Second::StablehloCaseOptions},
      {[](ModelWriter& w) { w.AddVariableHandle("v", 1); }, First::VarHandleOptions},
      {[](ModelWriter& w) { w.AddVariableHandle("", 1); }, First::NONE},
      {[](ModelWriter& w) { w.AddComposite("c", {}, 1, {0}, {1}); }, First::NONE,
       Second::StableHLOCompositeOptions},
      {[](ModelWriter& w) { kFlow(w, tflite::kTfLiteBuiltinStablehloComposite, 0); }, First::NONE},
      {[](ModelWriter& w) { w.AddCustomOperator("Foo", {std::byte{1}}, {0}, {1}); }, First::NONE},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(&c - cases);
    ModelWriter writer;
    for (int i = 0; i < 2; ++i) writer.AddTensor("t", kFloat, {1});
    c.write(writer);
    const WrittenFile file(writer);
    EXPECT_EQ(file.op(0).builtin_options_type(), c.first);
    EXPECT_EQ(file.op(0).builtin_options() != nullptr, c.first != First::NONE);
    EXPECT_EQ(file.op(0).builtin_options_2_type(), c.second);
    EXPECT_EQ(file.op(0).builtin_options_2() != nullptr, c.second != Second::NONE);
  }
}

TEST(Writer, HasOptionsOfCustomOperatorsThatHaveSome) {
  ModelWriter writer;
  for (int i = 0; i < 3; ++i) writer.AddTensor("t", kFloat, {1});
  writer.AddCustomOperator("Foo", {std::byte{1}}, {0}, {1});
  writer.AddCustomOperator("Foo", {}, {1}, {2});
  const WrittenFile file(writer);
  ASSERT_NE(file.op(0).custom_options(), nullptr);
  EXPECT_EQ(file.op(0).custom_options()->size(), 1u);
  EXPECT_EQ(file.op(1).custom_options(), nullptr);
}

}  // namespace
}  // namespace fuselite::interpreter
