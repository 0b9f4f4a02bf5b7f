#include "interpreter/file/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "interpreter/file/writer.h"
#include "interpreter/schema/tflite_generated.h"
#include "runtime/tflite/builtin_codes.h"
#include "tools/zoo/zoo.h"

namespace fuselite::interpreter {
namespace {

using testing::HasSubstr;

Result<std::shared_ptr<const Model>> Load(const std::vector<std::byte>& bytes) {
  return LoadModelFromMemory(bytes, nullptr);
}

std::string ErrorOf(const std::vector<std::byte>& bytes) {
  const auto model = Load(bytes);
  return model.ok() ? "loaded" : model.status().ToString();
}

const kernels::OperatorDef& Softmax() { return *kernels::FindOperator("SOFTMAX"); }

// Two operators, constants, quantized and string tensors, a variable, a signature, metadata.
std::vector<std::byte> SmallModel() {
  ModelWriter writer;
  writer.set_description("small");
  const int in = writer.AddTensor("in", DataType::kFloat32, {1, 4});
  const int weights = writer.AddConstant<int8_t>(
      "weights", DataType::kInt8, {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}, {{0.5f, 0.25f}, {0, 0}, 0});
  const int middle = writer.AddTensor("middle", DataType::kFloat32, {1, 4});
  const int out = writer.AddTensor("out", DataType::kUInt8, {1, 2}, {{0.1f}, {128}, 0});
  TensorSpec state;
  state.name = "state";
  state.shape = {3};
  state.is_variable = true;
  writer.AddTensor(state);
  writer.AddConstant<int32_t>("text", DataType::kString, {2}, {2, 16, 17, 20, 0x64636261});
  writer.AddOperator(Softmax(), {in}, {middle});
  writer.AddOperator(tflite::kTfLiteBuiltinHashtableLookup, {middle, weights, -1}, {out});
  writer.SetInputs({in});
  writer.SetOutputs({out});
  writer.AddSignature("serve", {{"x", in}}, {{"y", out}});
  writer.AddMetadata("note", {std::byte{1}, std::byte{2}});
  return writer.Finish();
}

TEST(LoaderTest, ReadsWhatWasWritten) {
  const auto result = Load(SmallModel());
  ASSERT_TRUE(result.ok()) << result.status().ToString();
  const Model& model = **result;
  EXPECT_EQ(model.description, "small");
  ASSERT_EQ(model.subgraphs.size(), 1u);
  const ModelSubgraph& graph = model.subgraphs[0];
  ASSERT_EQ(graph.tensors.size(), 6u);
  EXPECT_EQ(graph.inputs, std::vector<int>{0});
  EXPECT_EQ(graph.outputs, std::vector<int>{3});
  EXPECT_EQ(graph.tensors[0].name, "in");
  EXPECT_FALSE(graph.tensors[0].constant);
  EXPECT_EQ(graph.tensors[0].shape, (Shape{1, 4}));
  EXPECT_TRUE(graph.tensors[1].constant);
  EXPECT_EQ(graph.tensors[1].data.size(), 8u);
  EXPECT_EQ(graph.tensors[1].quantization.scales, (std::vector<float>{0.5f, 0.25f}));
  EXPECT_EQ(graph.tensors[3].quantization.zero_point(), 128);
  EXPECT_TRUE(graph.tensors[4].is_variable);
  ASSERT_EQ(graph.operators.size(), 2u);
  EXPECT_EQ(graph.operators[0].def, &Softmax());
  EXPECT_EQ(graph.operators[1].inputs, (std::vector<int>{2, 1, -1}));
  EXPECT_EQ(Model::OperatorName(graph.operators[1]), "HASHTABLE_LOOKUP");
  ASSERT_EQ(model.signatures.size(), 1u);
  EXPECT_EQ(model.signatures[0].inputs[0].name, "x");
  EXPECT_EQ(model.signatures[0].outputs[0].tensor, 3);
  ASSERT_EQ(model.metadata.size(), 1u);
  EXPECT_EQ(model.metadata[0].data.size(), 2u);
}

TEST(LoaderTest, CopiesBytesThatAreNotAligned) {
  std::vector<std::byte> bytes = SmallModel();
  bytes.insert(bytes.begin(), std::byte{0});
  const auto model = LoadModelFromMemory(std::span(bytes).subspan(1), nullptr);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const std::byte* data = (*model)->subgraphs[0].tensors[1].data.data();
  EXPECT_TRUE(data < bytes.data() || data >= bytes.data() + bytes.size());
}

TEST(LoaderTest, NamesTheFileInErrors) {
  EXPECT_EQ(LoadModelFromFile("/no/such/file.tflite").status().ToString(),
            "not found: /no/such/file.tflite: no such file");
  EXPECT_THAT(LoadModelFromFile("/dev/null/file.tflite").status().message(),
              HasSubstr("Not a directory"));
  EXPECT_EQ(LoadModelFromFile("/").status().message(), "/: is a folder, not a regular file");
  const auto path = std::filesystem::temp_directory_path() /
                    ("fuselite_loader_test_" + std::to_string(getpid()) + ".tflite");
  std::ofstream(path) << "";
  EXPECT_THAT(LoadModelFromFile(path).status().message(), HasSubstr("the file is empty"));
  std::ofstream(path) << "hello, this is no model";
  EXPECT_THAT(LoadModelFromFile(path).status().message(),
              HasSubstr(path.string() + ": not a .tflite file"));
  const std::vector<std::byte> bytes = SmallModel();
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  EXPECT_TRUE(LoadModelFromFile(path).ok());
  std::filesystem::remove(path);
}

// What a single wrong value causes. The model has the tensors 0 "in" and 1 "out", both
// float32[1,4].
struct Broken {
  const char* error;
  void (*write)(ModelWriter& writer);
};

std::ostream& operator<<(std::ostream& out, const Broken& broken) { return out << broken.error; }

const Broken kBroken[] = {
    {"input 0 is tensor 7, of 2", [](ModelWriter& w) { w.SetInputs({7}); }},
    {"output 0 is tensor -1, of 2", [](ModelWriter& w) { w.SetOutputs({-1}); }},
    {"operator 0: SOFTMAX: input 0 is tensor 9, of 2",
     [](ModelWriter& w) { w.AddOperator(Softmax(), {9}, {1}); }},
    {"operator 0: SOFTMAX: output 0 is tensor -1, of 2",
     [](ModelWriter& w) { w.AddOperator(Softmax(), {0}, {-1}); }},
    {"operator 0: SOFTMAX: tensor 1 is both its input and its output",
     [](ModelWriter& w) { w.AddOperator(Softmax(), {1}, {1}); }},
    {"operator 0 \"SOFTMAX\": reads tensor 1 \"out\" before anything writes it",
     [](ModelWriter& w) {
       w.AddTensor("late", DataType::kFloat32, {1});
       w.AddOperator(Softmax(), {1}, {2});
     }},
    {"writes tensor 0 \"in\", which is not its to write",
     [](ModelWriter& w) { w.AddOperator(Softmax(), {}, {0}); }},
    {"writes tensor 1 \"out\", which has a writer already",
     [](ModelWriter& w) {
       w.AddOperator(Softmax(), {0}, {1});
       w.AddOperator(Softmax(), {0}, {1});
     }},
    {"output tensor 1 \"out\": nothing writes it", [](ModelWriter&) {}},
    {"input tensor 2 \"c\": has constant data",
     [](ModelWriter& w) {
       w.AddConstant<float>("c", DataType::kFloat32, {1}, {1.0f});
       w.SetInputs({2});
     }},
    {"tensor 2 \"c\": dimension 0 is -3",
     [](ModelWriter& w) { w.AddTensor("c", DataType::kFloat32, {-3}); }},
    {"the number of elements overflows",
     [](ModelWriter& w) {
       w.AddTensor("c", DataType::kFloat32, {2147483647, 2147483647, 2147483647});
     }},
    {"is too large for any machine",
     [](ModelWriter& w) {
       w.AddTensor("c", DataType::kFloat32, {2147483647, 2147483647});
     }},
    {"has 4 bytes of data, but float32[2] takes 8",
     [](ModelWriter& w) { w.AddConstant<float>("c", DataType::kFloat32, {2}, {1.0f}); }},
    {"has 2 scales, but 1 zero points",
     [](ModelWriter& w) {
       w.AddTensor("c", DataType::kInt8, {2}, {{1.0f, 1.0f}, {0}, 0});
     }},
    {"has 2 scales for dimension 0 of size 3",
     [](ModelWriter& w) {
       w.AddTensor("c", DataType::kInt8, {3}, {{1.0f, 1.0f}, {0, 0}, 0});
     }},
    {"quantized dimension 4 of rank 1",
     [](ModelWriter& w) {
       w.AddTensor("c", DataType::kInt8, {2}, {{1.0f, 1.0f}, {0, 0}, 4});
     }},
    {"scale 0 is -1, expected no negative number",
     [](ModelWriter& w) {
       w.AddTensor("c", DataType::kInt8, {2}, {{-1.0f}, {0}, 0});
     }},
    {"scale 0 is nan",
     [](ModelWriter& w) {
       w.AddTensor("c", DataType::kInt8, {2}, {{NAN}, {0}, 0});
     }},
    {"zero point 300 is out of range for uint8",
     [](ModelWriter& w) {
       w.AddTensor("c", DataType::kUInt8, {2}, {{1.0f}, {300}, 0});
     }},
    {"its shape signature has 2 dimensions, its shape 1",
     [](ModelWriter& w) {
       w.AddTensor({"c", DataType::kFloat32, {2}, {}, {}, false, {-1, 2}});
     }},
    {"is a variable, but has constant data",
     [](ModelWriter& w) {
       w.AddTensor({"c", DataType::kInt8, {1}, {}, {std::byte{1}}, true, {}});
     }},
    {"its string table does not have 3 entries",
     [](ModelWriter& w) {
       w.AddConstant<int32_t>("c", DataType::kString, {3}, {2, 12, 12, 12});
     }},
    {"its string table is cut off",
     [](ModelWriter& w) {
       w.AddConstant<int32_t>("c", DataType::kString, {3}, {3, 20, 20});
     }},
    {"its string table has the offset 99 out of order",
     [](ModelWriter& w) {
       w.AddConstant<int32_t>("c", DataType::kString, {1}, {1, 12, 99});
     }},
    {"constants of type resource are not taken",
     [](ModelWriter& w) { w.AddConstant<int32_t>("c", DataType::kResource, {1}, {0}); }},
    {"signature 0: \"x\" is tensor 8, of 2",
     [](ModelWriter& w) {
       w.SetOutputs({0});
       w.AddSignature("s", {{"x", 8}}, {});
     }},
    {"operator 0: IF: names subgraph 5, of 1",
     [](ModelWriter& w) {
       w.AddControlFlow(tflite::kTfLiteBuiltinIf, {0, 5}, {0}, {1});
     }},
    {"operator 0: WHILE: does not name its subgraphs",
     [](ModelWriter& w) { w.AddOperator(tflite::kTfLiteBuiltinWhile, {0}, {1}); }},
    {"operator 0: IF: does not name its subgraphs",
     [](ModelWriter& w) { w.AddOperator(tflite::kTfLiteBuiltinIf, {0}, {1}); }},
    {"subgraph 0 runs itself",
     [](ModelWriter& w) {
       w.AddControlFlow(tflite::kTfLiteBuiltinIf, {0, 0}, {0}, {1});
     }},
    {"operator code -3", [](ModelWriter& w) { w.AddOperator(-3, {0}, {1}); }},
    {"subgraph 1: input 0 is tensor 7, of 0",
     [](ModelWriter& w) {
       w.SetOutputs({0});
       w.AddSubgraph("other");
       w.SetInputs({7});
     }},
    {"operator 0: operator version 0",
     [](ModelWriter& w) { w.AddOperator(Softmax(), {0}, {1}, 0); }},
};

class BrokenModelTest : public testing::TestWithParam<Broken> {};

TEST_P(BrokenModelTest, IsRefusedWithTheReason) {
  ModelWriter writer;
  writer.AddTensor("in", DataType::kFloat32, {1, 4});
  writer.AddTensor("out", DataType::kFloat32, {1, 4});
  writer.SetInputs({0});
  writer.SetOutputs({1});
  GetParam().write(writer);
  const std::string error = ErrorOf(writer.Finish());
  EXPECT_THAT(error, HasSubstr(GetParam().error));
  EXPECT_EQ(error.find('\n'), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(LoaderTest, BrokenModelTest, testing::ValuesIn(kBroken));

// A file with one tensor, made by FlatBuffers' own code, for what ModelWriter does not write.
std::vector<std::byte> OneTensor(const std::vector<int32_t>& shape, uint64_t offset,
                                 uint64_t size) {
  flatbuffers::FlatBufferBuilder builder;
  const std::vector<flatbuffers::Offset<schema::Buffer>> buffers = {
      schema::CreateBuffer(builder), schema::CreateBuffer(builder, 0, offset, size)};
  const std::vector<flatbuffers::Offset<schema::Tensor>> tensors = {
      schema::CreateTensorDirect(builder, &shape, schema::TensorType::UINT8, 1)};
  const std::vector<flatbuffers::Offset<schema::SubGraph>> graphs = {
      schema::CreateSubGraphDirect(builder, &tensors)};
  schema::FinishModelBuffer(
      builder, schema::CreateModelDirect(builder, 3, nullptr, &graphs, nullptr, &buffers));
  const auto* data = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  return {data, data + builder.GetSize()};
}

TEST(LoaderTest, RefusesRanksThatShapesDoNotHold) {
  EXPECT_EQ(ErrorOf(OneTensor(std::vector<int32_t>(17, 1), 0, 0)),
            "unsupported: tensor 0: rank 17 is more than 16");
}

TEST(LoaderTest, ReadsConstantsBehindTheFlatBuffer) {
  const auto write = [](uint64_t offset, uint64_t size) {
    std::vector<std::byte> bytes = OneTensor({4}, offset, size);
    bytes.insert(bytes.end(), {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}});
    return bytes;
  };
  const uint64_t end = write(1 << 20, 4).size();
  const auto bytes = write(end - 4, 4);
  const auto model = Load(bytes);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  EXPECT_EQ((*model)->subgraphs[0].tensors[0].data[2], std::byte{3});
  EXPECT_THAT(ErrorOf(write(end - 3, 4)), HasSubstr("buffer 1 lies past the end of the file"));
  EXPECT_THAT(ErrorOf(write(~uint64_t{0} - 2, 4)), HasSubstr("past the end of the file"));
}

TEST(LoaderTest, KeepsErrorsToOneLine) {
  ModelWriter writer;
  writer.AddTensor("bad\nname\x1b[31m" + std::string(200, 'x'), DataType::kFloat32, {-1});
  EXPECT_EQ(ErrorOf(writer.Finish()), "invalid argument: tensor 0 \"bad?name?[31m" +
                                          std::string(87, 'x') + "...\": dimension 0 is -1");
}

TEST(LoaderTest, SurvivesTruncationAtEveryLength) {
  const std::vector<std::byte> bytes = SmallModel();
  ASSERT_TRUE(Load(bytes).ok());
  size_t refused = 0;
  for (size_t length = 0; length < bytes.size(); ++length) {
    // An allocation of exactly this length, so that sanitizers see a read past the end.
    const std::vector<std::byte> cut(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(length));
    refused += !Load(cut).ok();
  }
  // The last bytes may be padding.
  EXPECT_GE(refused, bytes.size() - 16);
}

TEST(LoaderTest, SurvivesRandomDamage) {
  const std::vector<std::byte> bytes = SmallModel();
  const auto seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  int refused = 0;
  constexpr int kRounds = 20000;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::byte> damaged = bytes;
    const int flips = 1 + static_cast<int>(random() % 4);
    for (int i = 0; i < flips; ++i) damaged[random() % damaged.size()] = std::byte(random() % 256);
    const auto model = Load(damaged);
    if (model.ok()) continue;
    ++refused;
    ASSERT_FALSE(model.status().message().empty());
    ASSERT_EQ(model.status().message().find('\n'), std::string::npos);
  }
  EXPECT_GT(refused, kRounds / 10);
}

// Some writers of files give constants without elements no data.
TEST(LoaderTest, ValuesWithoutElementsThatNobodyWritesAreConstants) {
  ModelWriter writer;
  const int x = writer.AddTensor("x", DataType::kFloat32, {1});
  const int shape = writer.AddTensor("shape", DataType::kInt32, {0});
  const int out = writer.AddTensor("out", DataType::kFloat32, Shape());
  writer.AddOperator(*kernels::FindOperator("RESHAPE"), {x, shape}, {out});
  writer.SetInputs({x});
  writer.SetOutputs({out});
  const auto bytes = writer.Finish();
  const auto model = Load(bytes);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const std::vector<ModelTensor>& tensors = (*model)->subgraphs[0].tensors;
  EXPECT_TRUE(tensors[shape].constant);
  EXPECT_NE(tensors[shape].data.data(), nullptr);
  EXPECT_FALSE(tensors[x].constant || tensors[out].constant);
}

void ExpectLoads(const Result<std::shared_ptr<const Model>>& model) {
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  EXPECT_FALSE((*model)->subgraphs[0].operators.empty());
}

void ExpectLoadsFolder(const char* folder) {
  int loaded = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".tflite") continue;
    const auto model = LoadModelFromFile(entry.path());
    if (entry.path().stem() == "blockwise_quantized") {
      // Its weights are nowhere in the file; LiteRT finds out when it runs.
      EXPECT_THAT(model.status().message(), HasSubstr("before anything writes it"));
      continue;
    }
    ExpectLoads(model);
    ++loaded;
  }
  EXPECT_GT(loaded, 0);
}

void ExpectLoadsZoo() {
  for (const tools::ZooModel& model : tools::Zoo()) {
    SCOPED_TRACE(model.name);
    if (model.in_demo) ExpectLoads(Load(model.build(1)));
  }
}

TEST(LoaderTest, LoadsNetworks) {
  const char* folder = std::getenv("FUSELITE_MODELS");
  folder != nullptr ? ExpectLoadsFolder(folder) : ExpectLoadsZoo();
}

}  // namespace
}  // namespace fuselite::interpreter
