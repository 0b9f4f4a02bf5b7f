#include "tests/fuzz/change_model.h"

#include <gtest/gtest.h>

#include "interpreter/file/loader.h"
#include "interpreter/file/writer.h"
#include "interpreter/schema/tflite_generated.h"

namespace fuselite::fuzz {
namespace {

using interpreter::ModelWriter;

std::vector<std::byte> Pair(const char* first, const char* second) {
  ModelWriter writer;
  for (int i = 0; i < 3; ++i) writer.AddTensor("t", DataType::kFloat32, {1, 4});
  writer.AddOperator(*kernels::FindOperator(first), {0}, {1});
  writer.AddOperator(*kernels::FindOperator(second), {1}, {2});
  writer.SetInputs({0});
  writer.SetOutputs({2});
  return writer.Finish();
}

bool Loads(const std::vector<std::byte>& file) {
  return interpreter::LoadModelFromMemory(file, nullptr).ok();
}

TEST(ChangeModel, GivesFilesThatAreReadAndDiffer) {
  const std::vector<std::byte> file = Pair("RELU", "TANH");
  int loaded = 0, differ = 0;
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed), again(seed);
    const auto changed = ChangeModel(file, 2, random);
    ASSERT_FALSE(changed.empty());
    EXPECT_EQ(changed, ChangeModel(file, 2, again));
    flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(changed.data()),
                                   changed.size());
    // A changed option may be a reference, which leads anywhere; none of these operators has one.
    EXPECT_TRUE(schema::VerifyModelBuffer(verifier));
    Random none(seed);
    differ += changed != ChangeModel(file, 0, none);
    loaded += Loads(changed);
  }
  EXPECT_GT(differ, 200);
  // Wrong enough to be refused, right enough to get further than the loader.
  EXPECT_GT(loaded, 50);
  EXPECT_LT(loaded, 250);
}

TEST(ChangeModel, TakesNothingThatIsNoModel) {
  Random random(1);
  EXPECT_TRUE(ChangeModel({}, 1, random).empty());
  EXPECT_TRUE(ChangeModel(std::vector<std::byte>(64), 1, random).empty());
}

// Such files pass FlatBuffers' verifier; packing them again once read through a null pointer.
TEST(ChangeModel, OptionsThatAreNamedAndNotThere) {
  flatbuffers::FlatBufferBuilder builder;
  schema::QuantizationParametersBuilder quantization(builder);
  quantization.add_details_type(schema::QuantizationDetails::BlockwiseQuantization);
  const auto details = quantization.Finish();
  const auto tensor = schema::CreateTensor(builder, 0, schema::TensorType::INT8, 0, 0, details);
  schema::OperatorBuilder op(builder);
  op.add_builtin_options_type(schema::BuiltinOptions::ConcatenationOptions);
  const auto operators = builder.CreateVector(std::vector{op.Finish()});
  const auto graph =
      schema::CreateSubGraph(builder, builder.CreateVector(std::vector{tensor}), 0, 0, operators);
  const auto graphs = builder.CreateVector(std::vector{graph});
  schema::FinishModelBuffer(builder, schema::CreateModel(builder, 3, 0, graphs));
  Random random(1);
  const auto file = std::as_bytes(std::span(builder.GetBufferPointer(), builder.GetSize()));
  EXPECT_FALSE(ChangeModel(file, 0, random).empty());
}

TEST(JoinModels, FeedsTheSecondFromTheFirst) {
  const auto first = Pair("RELU", "TANH"), second = Pair("ABS", "NEG");
  int fed = 0;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random(seed);
    const auto joined = JoinModels(first, second, random);
    const auto model = interpreter::LoadModelFromMemory(joined, nullptr);
    ASSERT_TRUE(model.ok()) << model.status().ToString();
    const auto& graph = (*model)->subgraphs[0];
    ASSERT_EQ(graph.operators.size(), 4u);
    EXPECT_EQ(graph.operators[2].def->name, "ABS");
    EXPECT_EQ(graph.outputs, (std::vector{2, 5}));
    fed += graph.operators[2].inputs[0] == 2;
  }
  EXPECT_GT(fed, 2);
  EXPECT_LT(fed, 18);
}

}  // namespace
}  // namespace fuselite::fuzz
