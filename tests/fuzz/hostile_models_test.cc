// Files that mean harm.
#include <cmath>

#include "fuselite_fuzz/tflite_objects_generated.h"
#include "runtime/tflite/builtin_codes.h"
#include "tests/fuzz/hostile.h"

namespace fuselite::fuzz {
namespace {

using flatbuffers::FlatBufferBuilder;
using interpreter::ModelWriter;

// --- A right file with one thing wrong ---

// y = relu(x * w), of which then comes IF: relu or the value itself. With a composite, a signature,
// a loop that is never begun, and metadata.
Bytes Right() {
  constexpr DataType kFloat = DataType::kFloat32;
  ModelWriter writer;
  const int x = writer.AddTensor("x", kFloat, {1, 4});
  const int w = writer.AddConstant<int8_t>("w", DataType::kInt8, {4, 4}, std::vector<int8_t>(16, 1),
                                           {{0.5f, 0.5f, 0.5f, 0.5f}, {0, 0, 0, 0}, 0});
  const int y = writer.AddTensor("y", kFloat, {1, 4});
  const int yes = writer.AddConstant<uint8_t>("yes", DataType::kBool, {}, {1});
  const int z = writer.AddTensor("z", kFloat, {1, 4});
  const int end = writer.AddTensor("end", kFloat, {1, 4});
  writer.AddOperator(Op("FULLY_CONNECTED"), {x, w, -1}, {y});
  writer.AddControlFlow(tflite::kTfLiteBuiltinIf, {1, 1}, {yes, y}, {z});
  writer.AddComposite("stranger", {}, 1, {z}, {end});
  writer.SetInputs({x});
  writer.SetOutputs({end});
  writer.AddSignature("serve", {{"in", x}}, {{"out", end}});
  writer.AddMetadata("note", {std::byte{1}});
  writer.AddSubgraph("relu");
  writer.AddTensor("in", kFloat, {1, 4});
  writer.AddTensor("out", kFloat, {1, 4});
  writer.AddOperator(Op("RELU"), {0}, {1});
  writer.SetInputs({0});
  writer.SetOutputs({1});
  return writer.Finish();
}

Bytes Pack(const schema::ModelT& model) {
  FlatBufferBuilder builder;
  schema::FinishModelBuffer(builder, schema::Model::Pack(builder, &model));
  const auto* bytes = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  return {bytes, bytes + builder.GetSize()};
}

struct Wrong {
  const char* error;
  void (*change)(schema::ModelT& model);
};
std::ostream& operator<<(std::ostream& out, const Wrong& wrong) { return out << wrong.error; }

schema::SubGraphT& Main(schema::ModelT& model) { return *model.subgraphs[0]; }
schema::TensorT& Tensor(schema::ModelT& model, int i) { return *Main(model).tensors[i]; }
schema::OperatorT& Operator(schema::ModelT& model, int i) { return *Main(model).operators[i]; }

void ToSparse(schema::ModelT& model, std::vector<int32_t> shape, std::vector<int32_t> order,
              const std::vector<schema::DimensionMetadataT>& levels) {
  schema::TensorT& w = Tensor(model, 1);
  w.shape = std::move(shape);
  w.quantization.reset();
  w.sparsity = std::make_unique<schema::SparsityParametersT>();
  w.sparsity->traversal_order = std::move(order);
  for (const auto& level : levels) {
    w.sparsity->dim_metadata.push_back(std::make_unique<schema::DimensionMetadataT>(level));
  }
}

schema::DimensionMetadataT Dense(int32_t size) {
  schema::DimensionMetadataT level;
  level.dense_size = size;
  return level;
}

schema::DimensionMetadataT Compressed(std::vector<int32_t> segments, std::vector<int32_t> indices) {
  schema::DimensionMetadataT level;
  level.format = schema::DimensionType::SPARSE_CSR;
  schema::Int32VectorT begins, places;
  begins.values = std::move(segments);
  places.values = std::move(indices);
  level.array_segments.Set(std::move(begins));
  level.array_indices.Set(std::move(places));
  return level;
}

const Wrong kWrong[] = {
    // Indices of every kind.
    {"operator code is 99, of 4", [](auto& m) { Operator(m, 0).opcode_index = 99; }},
    {"input 1 is tensor 77, of 6", [](auto& m) { Operator(m, 0).inputs[1] = 77; }},
    {"input 0 is tensor -2, of 6", [](auto& m) { Operator(m, 0).inputs[0] = -2; }},
    {"output 0 is tensor 2147483647", [](auto& m) { Operator(m, 0).outputs[0] = INT32_MAX; }},
    {"intermediate 0 is tensor 6, of 6", [](auto& m) { Operator(m, 0).intermediates = {6}; }},
    {"input 0 is tensor 6, of 6", [](auto& m) { Main(m).inputs = {6}; }},
    {"output 0 is tensor -1, of 6", [](auto& m) { Main(m).outputs = {-1}; }},
    {"its data is buffer 4000000000", [](auto& m) { Tensor(m, 1).buffer = 4000000000u; }},
    {"metadata \"note\": its data is buffer 99", [](auto& m) { m.metadata[0]->buffer = 99; }},
    {"names subgraph 2, of 2", [](auto& m) { m.signature_defs[0]->subgraph_index = 2; }},
    {"\"in\" is tensor 4294967295, of 6",
     [](auto& m) { m.signature_defs[0]->inputs[0]->tensor_index = UINT32_MAX; }},
    {"IF: names subgraph -1, of 2",
     [](auto& m) { Operator(m, 1).builtin_options.AsIfOptions()->else_subgraph_index = -1; }},
    {"STABLEHLO_COMPOSITE: names subgraph 9, of 2",
     [](auto& m) {
       auto& options = *Operator(m, 2).builtin_options_2.AsStableHLOCompositeOptions();
       options.decomposition_subgraph_index = 9;
     }},
    {"its scales are no tensor of the subgraph",
     [](auto& m) {
       schema::BlockwiseQuantizationT blocks;
       blocks.scales = 6;
       blocks.block_size = 2;
       Tensor(m, 1).quantization->details.Set(blocks);
     }},
    {"its options lie past the end of the file",
     [](auto& m) { Operator(m, 0).large_custom_options_offset = uint64_t{1} << 40; }},
    {"its options lie past the end of the file",
     [](auto& m) {
       Operator(m, 0).large_custom_options_offset = 8;
       Operator(m, 0).large_custom_options_size = UINT64_MAX;
     }},
    {"quantized dimension 2 of rank 2",
     [](auto& m) { Tensor(m, 1).quantization->quantized_dimension = 2; }},
    // Nodes.
    {"before anything writes it",
     [](auto& m) { std::swap(Main(m).operators[0], Main(m).operators[1]); }},
    {"before anything writes it",
     [](auto& m) {
       Operator(m, 0).inputs[0] = 4;  // a cycle of the first two
     }},
    {"which has a writer already", [](auto& m) { Operator(m, 2).outputs = {2}; }},
    {"is both its input and its output", [](auto& m) { Operator(m, 0).outputs = {0}; }},
    {"which is not its to write", [](auto& m) { Operator(m, 2).outputs = {1}; }},
    {"no subgraph", [](auto& m) { m.subgraphs.clear(); }},
    // Recursion.
    {"subgraph 0 runs itself",
     [](auto& m) { Operator(m, 1).builtin_options.AsIfOptions()->then_subgraph_index = 0; }},
    {"runs itself",
     [](auto& m) {
       // The recursion goes through another subgraph.
       auto& relu = *m.subgraphs[1];
       relu.operators[0] = std::make_unique<schema::OperatorT>(Operator(m, 2));
       relu.operators[0]->inputs = {0};
       relu.operators[0]->outputs = {1};
       relu.operators[0]
           ->builtin_options_2.AsStableHLOCompositeOptions()
           ->decomposition_subgraph_index = 0;
     }},
    // Shapes.
    {"rank 100000 is more than 16", [](auto& m) { Tensor(m, 0).shape.assign(100000, 1); }},
    {"the number of elements overflows", [](auto& m) { Tensor(m, 0).shape.assign(4, INT32_MAX); }},
    {"is too large for any machine",
     [](auto& m) {
       Tensor(m, 0).shape = {1 << 30, 1 << 30};
     }},
    {"dimension 1 is -4",
     [](auto& m) {
       Tensor(m, 0).shape = {1, -4};
     }},
    {"max_memory allows",
     [](auto& m) {
       Tensor(m, 0).shape = {1 << 27, 4};
     }},  // 2 GiB
    {"dimension -2 in its shape signature",
     [](auto& m) {
       Tensor(m, 0).shape_signature = {-2, 4};
     }},
    // Buffers.
    {"w\" before anything writes it", [](auto& m) { Tensor(m, 1).buffer = 0; }},
    {"has 16 bytes of data, but int8[2147483647] takes 2147483647",
     [](auto& m) { Tensor(m, 1).shape = {INT32_MAX}; }},
    {"lies past the end of the file",
     [](auto& m) {
       auto& buffer = *m.buffers[Tensor(m, 1).buffer];
       buffer.data.clear();
       buffer.offset = 16;
       buffer.size = uint64_t{2} << 30;
     }},
    {"lies past the end of the file",
     [](auto& m) {
       auto& buffer = *m.buffers[Tensor(m, 1).buffer];
       buffer.data.clear();
       buffer.offset = UINT64_MAX;
       buffer.size = 16;
     }},
    {"options lie past the end of the file",
     [](auto& m) {
       Operator(m, 0).large_custom_options_offset = 64;
       Operator(m, 0).large_custom_options_size = UINT64_MAX;
     }},
    // Quantization.
    {"scale 2 is -0.5, expected", [](auto& m) { Tensor(m, 1).quantization->scale[2] = -0.5F; }},
    {"scale 1 is nan, expected", [](auto& m) { Tensor(m, 1).quantization->scale[1] = NAN; }},
    {"scale 0 is -1, expected", [](auto& m) { Tensor(m, 1).quantization->scale[0] = -1; }},
    {"scale 3 is inf, expected", [](auto& m) { Tensor(m, 1).quantization->scale[3] = INFINITY; }},
    {"is out of range for int8",
     [](auto& m) { Tensor(m, 1).quantization->zero_point[0] = INT64_MIN; }},
    {"has 4 scales, but 0 zero points",
     [](auto& m) { Tensor(m, 1).quantization->zero_point.clear(); }},
    {"block size",
     [](auto& m) {
       schema::BlockwiseQuantizationT blocks;
       blocks.block_size = 0;
       Tensor(m, 1).quantization->details.Set(blocks);
     }},
    // Sparse constants: little in the file, much in memory.
    {"more than 256 times as many",
     [](auto& m) {
       ToSparse(m, {1, INT32_MAX}, {0, 1}, {Dense(1), Compressed({0, 1}, {7})});
     }},
    {"with blocks in 99998 dimensions of 2",
     [](auto& m) {
       // 100,000 levels of blocks of one element: as many calls deep.
       constexpr int kLevels = 100000;
       std::vector<int32_t> order(kLevels);
       for (int i = 0; i < kLevels; ++i) order[i] = i;
       ToSparse(m, {4, 4}, std::move(order), std::vector(kLevels, Dense(1)));
       Tensor(m, 1).sparsity->block_map.assign(kLevels - 2, 0);
     }},
    {"FULLY_CONNECTED",
     [](auto& m) {
       // No element, and 2^60 empty rows to look for them in.
       ToSparse(m, {1 << 30, 1 << 30, 0}, {0, 1, 2}, {Dense(1 << 30), Dense(1 << 30), Dense(0)});
     }},
};

class WrongModel : public ::testing::TestWithParam<Wrong> {};

TEST_P(WrongModel, IsRefusedInOneLine) {
  const Bytes right = Right();
  const auto model = std::unique_ptr<schema::ModelT>(schema::UnPackModel(right.data()));
  GetParam().change(*model);
  ExpectRefused(Pack(*model), GetParam().error);
}

INSTANTIATE_TEST_SUITE_P(HostileModels, WrongModel, ::testing::ValuesIn(kWrong));

// Options of gigabytes lie behind the tables.
TEST(HostileModels, OptionsBehindTheTablesAreFound) {
  const Bytes right = Right();
  const auto model = std::unique_ptr<schema::ModelT>(schema::UnPackModel(right.data()));
  Operator(*model, 0).large_custom_options_offset = 2;  // a place for the number
  Operator(*model, 0).large_custom_options_size = 3;
  const uint64_t offset = Pack(*model).size();
  Operator(*model, 0).large_custom_options_offset = offset;
  Bytes file = Pack(*model);
  ASSERT_EQ(file.size(), offset);
  for (const int byte : {1, 2, 3}) file.push_back(std::byte(byte));
  const auto loaded = interpreter::LoadModelFromMemory(file, nullptr);
  ASSERT_TRUE(loaded.ok()) << loaded.status().ToString();
  EXPECT_THAT((*loaded)->subgraphs[0].operators[0].custom_options,
              ::testing::ElementsAre(std::byte{1}, std::byte{2}, std::byte{3}));
  // One byte less, and they are cut off.
  file.pop_back();
  EXPECT_FALSE(interpreter::LoadModelFromMemory(file, nullptr).ok());
}

TEST(HostileModels, TheRightOneRuns) {
  EXPECT_EQ(Outcome(Right(), false), "ok");
  EXPECT_EQ(Outcome(Right(), true), "ok");
}

// --- Much from little ---

// Subgraphs that each run the next one twice, with different shapes.
Bytes Doubling(int levels) {
  constexpr DataType kFloat = DataType::kFloat32;
  ModelWriter writer;
  for (int level = 0; level < levels; ++level) {
    if (level > 0) writer.AddSubgraph("level");
    const int x = writer.AddTensor("x", kFloat, {1});
    const int yes = writer.AddConstant<uint8_t>("yes", DataType::kBool, {}, {1});
    const int two = writer.AddConstant<int32_t>("two", DataType::kInt32, {1}, {2});
    const int wide = writer.AddTensor("wide", kFloat, {2});
    const int a = writer.AddTensor("a", kFloat, {1}), b = writer.AddTensor("b", kFloat, {2});
    writer.SetInputs({x});
    writer.AddOperator(Op("TILE"), {x, two}, {wide});
    if (level + 1 < levels) {
      writer.AddControlFlow(tflite::kTfLiteBuiltinIf, {level + 1, level + 1}, {yes, x}, {a});
      writer.AddControlFlow(tflite::kTfLiteBuiltinIf, {level + 1, level + 1}, {yes, wide}, {b});
      writer.SetOutputs({a});
    } else {
      writer.SetOutputs({wide});
    }
  }
  return writer.Finish();
}

TEST(HostileModels, SubgraphsThatDouble) {
  ExpectRefused(Doubling(30), "more than 262144 operators");
  // More than the delegate puts in the place of one node, which stays the interpreter's.
  for (const bool delegated : {false, true}) EXPECT_EQ(Outcome(Doubling(8), delegated), "ok");
}

TEST(HostileModels, SubgraphsThatNest) {
  ModelWriter writer;
  constexpr int kLevels = 20000;
  for (int level = 0; level < kLevels; ++level) {
    if (level > 0) writer.AddSubgraph("level");
    writer.AddTensor("x", DataType::kFloat32, {1});
    writer.AddTensor("y", DataType::kFloat32, {1});
    writer.AddComposite("next", {}, std::min(level + 1, kLevels - 1), {0}, {1});
    writer.SetInputs({0});
    writer.SetOutputs({1});
  }
  ExpectRefused(writer.Finish(), "nested more than 32 deep");
}

// One table that the file names over and over: as a tensor, an operator, a subgraph.
TEST(HostileModels, TablesThatAreNamedManyTimes) {
  constexpr int kTimes = 20000;
  const std::string name(kTimes, 'n');
  const std::vector<int32_t> indices(kTimes, -1), shape = {1};
  for (const char* kind : {"tensor", "operator", "name", "subgraph", "signature"}) {
    SCOPED_TRACE(kind);
    const auto times = [&](std::string_view what) { return what == kind ? kTimes : 1; };
    FlatBufferBuilder builder;
    const std::vector buffers = {schema::CreateBuffer(builder)};
    const auto long_name = builder.CreateString(name);
    const auto custom = schema::CreateOperatorCode(builder, tflite::kTfLiteBuiltinCustom, long_name,
                                                   1, schema::BuiltinOperator::CUSTOM);
    const std::vector codes = {custom};
    const auto tensor = schema::CreateTensor(builder, builder.CreateVector(shape),
                                             schema::TensorType::FLOAT32, 0, long_name);
    const std::vector tensors(times("tensor"), tensor);
    const auto op = schema::CreateOperatorDirect(builder, 0, &indices);
    std::vector operators(times("operator"), op);
    for (int i = 1; i < times("name"); ++i) {
      operators.push_back(schema::CreateOperatorDirect(builder, 0));
    }
    const auto graph =
        schema::CreateSubGraphDirect(builder, &tensors, nullptr, nullptr, &operators);
    const std::vector graphs(times("subgraph"), graph);
    const auto map = schema::CreateTensorMap(builder, long_name, 0);
    const std::vector maps(times("signature"), map);
    const std::vector signatures = {schema::CreateSignatureDefDirect(builder, &maps)};
    schema::FinishModelBuffer(
        builder, schema::CreateModelDirect(builder, 3, &codes, &graphs, nullptr, &buffers, nullptr,
                                           nullptr, &signatures));
    const auto* bytes = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
    ExpectRefused({bytes, bytes + builder.GetSize()}, "far more than its file has bytes");
  }
}

// Each with each other would be billions of steps.
TEST(HostileModels, OperatorsOfManyOperands) {
  constexpr int kOperands = 30000;
  ModelWriter writer;
  std::vector<int> outputs;
  const int x = writer.AddTensor("x", DataType::kFloat32, {1});
  for (int i = 0; i < kOperands; ++i) {
    outputs.push_back(writer.AddTensor("", DataType::kFloat32, {1}));
  }
  writer.AddCustomOperator("Stranger", {}, std::vector<int>(kOperands, x), outputs);
  writer.SetInputs({x});
  writer.SetOutputs({outputs[0]});
  ExpectRefused(writer.Finish(), "not implemented in this interpreter: custom operator Stranger");
}

}  // namespace
}  // namespace fuselite::fuzz
