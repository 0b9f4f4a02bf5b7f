// What a model's file may leave out, and tables of it that name what is not there: files that
// ModelWriter does not write, made by FlatBuffers' own code.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "interpreter/file/loader.h"
#include "interpreter/file/writer.h"
#include "interpreter/schema/tflite_generated.h"
#include "runtime/tflite/builtin_codes.h"

namespace fuselite::interpreter {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using Builder = flatbuffers::FlatBufferBuilder;
template <class T>
using Offset = flatbuffers::Offset<T>;

using Graphs = std::vector<Offset<schema::SubGraph>>;

// A file; functions make the tables, those that are not given are left out of it.
struct File {
  uint32_t version = 3;
  std::function<Graphs(Builder&)> graphs = [](Builder& b) {
    return Graphs{schema::CreateSubGraph(b)};
  };
  std::function<std::vector<Offset<schema::Operator>>(Builder&)> operators = {};
  std::function<Offset<schema::OperatorCode>(Builder&)> code = {};
  std::function<Offset<schema::SignatureDef>(Builder&)> signature = {};
  std::function<Offset<schema::Metadata>(Builder&)> metadata = {};
  bool buffers = true;
  std::vector<std::byte> behind = {};  // the FlatBuffer
};

// Subgraph 0 has the tensors 0 and 1 without names, float32[2], of which 0 is given; what
// `operators` makes writes 1.
Graphs WithOperators(Builder& b, const File& file) {
  const std::vector<int32_t> shape = {2}, in = {0};
  const std::vector tensors = {schema::CreateTensorDirect(b, &shape, schema::TensorType::FLOAT32),
                               schema::CreateTensorDirect(b, &shape, schema::TensorType::FLOAT32)};
  const auto operators = file.operators(b);
  return {schema::CreateSubGraphDirect(b, &tensors, &in, nullptr, &operators)};
}

struct Loaded {
  std::vector<std::byte> bytes;
  Result<std::shared_ptr<const Model>> model = Internal("not loaded");
  std::string error() const { return model.ok() ? "loaded" : model.status().message(); }
};

Loaded Load(const File& file) {
  Builder b;
  const Graphs graphs = file.operators ? WithOperators(b, file) : file.graphs(b);
  std::vector<Offset<schema::OperatorCode>> codes;
  if (file.code) codes.push_back(file.code(b));
  std::vector<Offset<schema::SignatureDef>> signatures;
  if (file.signature) signatures.push_back(file.signature(b));
  std::vector<Offset<schema::Metadata>> metadata;
  if (file.metadata) metadata.push_back(file.metadata(b));
  const std::vector<uint8_t> data = {1, 2, 3};
  std::vector<Offset<schema::Buffer>> buffers = {schema::CreateBuffer(b),
                                                 schema::CreateBufferDirect(b, &data)};
  schema::FinishModelBuffer(
      b, schema::CreateModelDirect(
             b, file.version, codes.empty() ? nullptr : &codes, graphs.empty() ? nullptr : &graphs,
             nullptr, file.buffers ? &buffers : nullptr, nullptr,
             metadata.empty() ? nullptr : &metadata, signatures.empty() ? nullptr : &signatures));
  Loaded loaded;
  const auto* begin = reinterpret_cast<const std::byte*>(b.GetBufferPointer());
  loaded.bytes.assign(begin, begin + b.GetSize());
  loaded.bytes.insert(loaded.bytes.end(), file.behind.begin(), file.behind.end());
  loaded.model = LoadModelFromMemory(loaded.bytes, nullptr);
  return loaded;
}

std::string ErrorOf(const File& file) { return Load(file).error(); }

TEST(ModelFile, HasTheIdentifierAndAtLeastOneSubgraphOfTheThirdVersion) {
  EXPECT_EQ(ErrorOf({}), "loaded");
  EXPECT_THAT(ErrorOf({.version = 2}), HasSubstr("version 2 of the format, expected 3"));
  EXPECT_EQ(ErrorOf({.graphs = [](Builder&) { return Graphs(); }}), "has no subgraph");
  for (const size_t size : {0, 7, 8}) {
    const std::vector<std::byte> zeros(size);
    EXPECT_THAT(LoadModelFromMemory(zeros, nullptr).status().message(),
                HasSubstr("the identifier TFL3 is missing"));
  }
}

TEST(ModelFile, MayLackAllThatItsSubgraphsHave) {
  const Loaded loaded = Load({.buffers = false});
  ASSERT_TRUE(loaded.model.ok()) << loaded.error();
  const Model& model = **loaded.model;
  EXPECT_THAT(model.description, IsEmpty());
  EXPECT_THAT(model.signatures, IsEmpty());
  EXPECT_THAT(model.metadata, IsEmpty());
  ASSERT_THAT(model.subgraphs, SizeIs(1));
  EXPECT_THAT(model.subgraphs[0].name, IsEmpty());
  EXPECT_THAT(model.subgraphs[0].tensors, IsEmpty());
  EXPECT_THAT(model.subgraphs[0].operators, IsEmpty());
}

// Whatever it holds, the first buffer is that of tensors without data.
TEST(ModelFile, HasNoConstantsInItsFirstBuffer) {
  Builder b;
  const std::vector<uint8_t> data(8, 1), none;
  const std::vector buffers = {schema::CreateBufferDirect(b, &data),
                               schema::CreateBufferDirect(b, &none), schema::CreateBuffer(b)};
  const std::vector<int32_t> shape = {2};
  std::vector<Offset<schema::Tensor>> tensors;
  for (const uint32_t buffer : {0, 1, 2}) {
    tensors.push_back(schema::CreateTensorDirect(b, &shape, schema::TensorType::FLOAT32, buffer));
  }
  const Graphs graphs = {
      schema::CreateSubGraphDirect(b, &tensors, nullptr, nullptr, nullptr, "named")};
  schema::FinishModelBuffer(b,
                            schema::CreateModelDirect(b, 3, nullptr, &graphs, nullptr, &buffers));
  const auto* begin = reinterpret_cast<const std::byte*>(b.GetBufferPointer());
  const auto model = LoadModelFromMemory({begin, b.GetSize()}, nullptr);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  for (const ModelTensor& tensor : (*model)->subgraphs[0].tensors) EXPECT_FALSE(tensor.constant);
  EXPECT_EQ((*model)->subgraphs[0].name, "named");
}

// An empty list of subgraphs is none either.
TEST(ModelFile, HasASubgraphInItsList) {
  Builder b;
  const Graphs none;
  schema::FinishModelBuffer(b, schema::CreateModelDirect(b, 3, nullptr, &none));
  const auto* begin = reinterpret_cast<const std::byte*>(b.GetBufferPointer());
  EXPECT_EQ(LoadModelFromMemory({begin, b.GetSize()}, nullptr).status().message(),
            "has no subgraph");
}

TEST(ModelFile, NamesInErrorsWhatHasAName) {
  const auto bad = [](const char* name) {
    return ErrorOf({.graphs = [=](Builder& b) {
      const std::vector<int32_t> shape = {-1};
      const std::vector tensors = {
          schema::CreateTensorDirect(b, &shape, schema::TensorType::FLOAT32, 0, name)};
      return Graphs{schema::CreateSubGraphDirect(b, &tensors)};
    }});
  };
  EXPECT_THAT(bad(nullptr), HasSubstr("tensor 0: dimension 0 is -1"));
  EXPECT_THAT(bad(""), HasSubstr("tensor 0: dimension 0 is -1"));
  EXPECT_THAT(bad("x"), HasSubstr("tensor 0 \"x\": dimension 0 is -1"));
}

// The operator of code `index`, from tensor 0 to 1.
auto Operator(uint32_t index, std::vector<int32_t> intermediates = {}, uint64_t options_offset = 0,
              uint64_t options_size = 0) {
  return [=](Builder& b) {
    const std::vector<int32_t> in = {0}, out = {1};
    const auto inputs = b.CreateVector(in), outputs = b.CreateVector(out);
    const auto inside = b.CreateVector(intermediates);
    schema::OperatorBuilder op(b);
    op.add_opcode_index(index);
    op.add_inputs(inputs);
    op.add_outputs(outputs);
    op.add_intermediates(inside);
    op.add_large_custom_options_offset(options_offset);
    op.add_large_custom_options_size(options_size);
    return std::vector{op.Finish()};
  };
}

auto Code(int old_code, int code, const char* name = nullptr, int version = 1) {
  return [=](Builder& b) {
    return schema::CreateOperatorCodeDirect(b, static_cast<int8_t>(old_code), name, version,
                                            static_cast<schema::BuiltinOperator>(code));
  };
}

TEST(OperatorOfAFile, HasACodeOfTheList) {
  EXPECT_EQ(ErrorOf({.operators = Operator(0), .code = Code(25, 25)}), "loaded");
  EXPECT_THAT(ErrorOf({.operators = Operator(1), .code = Code(25, 25)}),
              HasSubstr("operator 0: its operator code is 1, of 1"));
  EXPECT_THAT(ErrorOf({.operators = Operator(0)}), HasSubstr("its operator code is 0, of 0"));
  EXPECT_THAT(ErrorOf({.operators = Operator(0), .code = Code(25, 25, nullptr, 0)}),
              HasSubstr("operator version 0"));
}

// Files of either age: one of two fields has the code, the other none or 127.
TEST(OperatorOfAFile, HasItsCodeInOneOfTwoFields) {
  const auto name = [](int old_code, int code) {
    const Loaded loaded = Load({.operators = Operator(0), .code = Code(old_code, code)});
    return loaded.model.ok() ? Model::OperatorName((*loaded.model)->subgraphs[0].operators[0])
                             : loaded.error();
  };
  EXPECT_EQ(name(25, 0), "SOFTMAX");
  EXPECT_EQ(name(25, 25), "SOFTMAX");
  EXPECT_EQ(name(127, 150), "GELU");
  EXPECT_EQ(name(127, 1000), "operator 1000") << "of a younger schema";
}

TEST(OperatorOfAFile, HasANameWhereItIsACustomOne) {
  constexpr int kCustom = tflite::kTfLiteBuiltinCustom;
  EXPECT_THAT(ErrorOf({.operators = Operator(0), .code = Code(kCustom, kCustom)}),
              HasSubstr("a custom operator without a name"));
  const Loaded loaded = Load({.operators = Operator(0), .code = Code(kCustom, kCustom, "Foo\n")});
  ASSERT_TRUE(loaded.model.ok()) << loaded.error();
  EXPECT_EQ(Model::OperatorName((*loaded.model)->subgraphs[0].operators[0]),
            "custom operator Foo?");
}

TEST(OperatorOfAFile, HasIntermediatesOfItsSubgraphOrLeavesThemOut) {
  const auto error = [](std::vector<int32_t> intermediates) {
    return ErrorOf({.operators = Operator(0, std::move(intermediates)), .code = Code(25, 25)});
  };
  EXPECT_EQ(error({1, -1, 0}), "loaded");
  EXPECT_THAT(error({0, 2}), HasSubstr("intermediate 1 is tensor 2, of 2"));
  EXPECT_THAT(error({-2}), HasSubstr("intermediate 0 is tensor -2, of 2"));
}

// Options of a custom operator may lie behind the FlatBuffer, as far as the file goes.
TEST(OperatorOfAFile, HasOptionsWithinTheFile) {
  constexpr int kCustom = tflite::kTfLiteBuiltinCustom;
  const auto load = [](uint64_t offset, uint64_t size) {
    return Load({.operators = Operator(0, {}, offset, size),
                 .code = Code(kCustom, kCustom, "Foo"),
                 .behind = {std::byte{7}, std::byte{8}, std::byte{9}}});
  };
  const uint64_t end = load(1 << 20, 3).bytes.size();
  const Loaded loaded = load(end - 2, 2);
  ASSERT_TRUE(loaded.model.ok()) << loaded.error();
  const auto options = (*loaded.model)->subgraphs[0].operators[0].custom_options;
  ASSERT_THAT(options, SizeIs(2));
  EXPECT_EQ(options[1], std::byte{9});
  EXPECT_EQ(load(end, 0).error(), "loaded");
  for (const auto& [offset, size] :
       {std::pair{end - 2, uint64_t{3}}, {end + 1, uint64_t{0}}, {end - 2, ~uint64_t{0}}}) {
    EXPECT_THAT(load(offset, size).error(), HasSubstr("its options lie past the end of the file"));
  }
}

using Tensors = std::vector<std::pair<const char*, uint32_t>>;

// A signature of subgraph `graph`, whose lists are left out where they are empty.
auto Signature(const char* key, uint32_t graph, Tensors inputs, Tensors outputs) {
  return [=](Builder& b) {
    const auto list = [&](const Tensors& from) {
      std::vector<Offset<schema::TensorMap>> maps;
      for (const auto& [name, tensor] : from) {
        maps.push_back(schema::CreateTensorMapDirect(b, name, tensor));
      }
      return maps;
    };
    const auto in = list(inputs), out = list(outputs);
    return schema::CreateSignatureDefDirect(b, in.empty() ? nullptr : &in,
                                            out.empty() ? nullptr : &out, key, graph);
  };
}

TEST(SignatureOfAFile, NamesTensorsOfASubgraph) {
  const auto error = [](const char* key, uint32_t graph, Tensors inputs, Tensors outputs) {
    return ErrorOf({.operators = Operator(0),
                    .code = Code(25, 25),
                    .signature = Signature(key, graph, std::move(inputs), std::move(outputs))});
  };
  EXPECT_EQ(error("s", 0, {{"x", 0}}, {{"y", 1}}), "loaded");
  EXPECT_EQ(error(nullptr, 0, {}, {}), "loaded");
  EXPECT_THAT(error("s", 1, {}, {}), HasSubstr("signature 0: names subgraph 1, of 1"));
  EXPECT_THAT(error("s", 0, {{"x", 2}}, {}), HasSubstr("signature 0: \"x\" is tensor 2, of 2"));
  EXPECT_THAT(error("s", 0, {}, {{"y", 2}}), HasSubstr("signature 0: \"y\" is tensor 2, of 2"));
  EXPECT_THAT(error("s", 0, {{nullptr, 0}}, {}), HasSubstr("a tensor without a name"));
  EXPECT_THAT(error("s", 0, {}, {{nullptr, 0}}), HasSubstr("a tensor without a name"));
}

TEST(MetadataOfAFile, IsABufferThatIsThere) {
  const auto load = [](const char* name, uint32_t buffer, bool buffers = true) {
    return Load(
        {.metadata = [=](Builder& b) { return schema::CreateMetadataDirect(b, name, buffer); },
         .buffers = buffers});
  };
  const Loaded loaded = load("note", 1);
  ASSERT_TRUE(loaded.model.ok()) << loaded.error();
  EXPECT_EQ((*loaded.model)->metadata[0].name, "note");
  EXPECT_THAT((*loaded.model)->metadata[0].data, SizeIs(3));
  const Loaded nameless = load(nullptr, 0);
  ASSERT_TRUE(nameless.model.ok()) << nameless.error();
  EXPECT_THAT((*nameless.model)->metadata[0].name, IsEmpty());
  EXPECT_THAT((*nameless.model)->metadata[0].data, IsEmpty());
  EXPECT_EQ(load("a\tb", 2).error(), "metadata \"a?b\": its data is buffer 2, of 2");
  EXPECT_EQ(load("x", 0, false).error(), "metadata \"x\": its data is buffer 0, of 0");
}

// What lies at the address that is given, and is read there.
TEST(ModelFile, IsReadWhereItLies) {
  ModelWriter writer;
  writer.AddConstant("c", DataType::kFloat32, {4}, std::vector(4, 1.0f));
  std::vector<std::byte> bytes = writer.Finish();
  const auto model = LoadModelFromMemory(bytes, nullptr);
  ASSERT_TRUE(model.ok()) << model.status().ToString();
  const std::byte* const data = (*model)->subgraphs[0].tensors[0].data.data();
  EXPECT_TRUE(data >= bytes.data() && data < bytes.data() + bytes.size());
}

// Subgraph i runs i + 1, `times` as often, the last one none.
std::string ErrorOfChain(int depth, int times) {
  ModelWriter writer;
  for (int i = 0; i <= depth; ++i) {
    if (i > 0) writer.AddSubgraph("g" + std::to_string(i));
    int value = writer.AddTensor("in", DataType::kBool, {});
    writer.SetInputs({value});
    for (int t = 0; i < depth && t < times; ++t) {
      const int next = writer.AddTensor("out", DataType::kBool, {});
      writer.AddComposite("next", {}, i + 1, {value}, {next});
      value = next;
    }
    writer.SetOutputs({value});
  }
  const auto model = LoadModelFromMemory(writer.Finish(), nullptr);
  return model.ok() ? "loaded" : model.status().message();
}

TEST(SubgraphsOfAFile, AreNestedAsDeepAsIsPrepared) {
  EXPECT_EQ(ErrorOfChain(32, 1), "loaded");
  EXPECT_THAT(ErrorOfChain(33, 1), HasSubstr("nested more than 32 deep"));
}

// Subgraph i runs the one before it: each is looked at before what runs it.
TEST(SubgraphsOfAFile, AreNestedAsDeepWhicheverComesFirst) {
  for (const int depth : {32, 33}) {
    ModelWriter writer;
    for (int i = 0; i <= depth; ++i) {
      if (i > 0) writer.AddSubgraph("g" + std::to_string(i));
      const int in = writer.AddTensor("in", DataType::kBool, {});
      const int out = i > 0 ? writer.AddTensor("out", DataType::kBool, {}) : in;
      if (i > 0) writer.AddComposite("next", {}, i - 1, {in}, {out});
      writer.SetInputs({in});
      writer.SetOutputs({out});
    }
    EXPECT_EQ(LoadModelFromMemory(writer.Finish(), nullptr).ok(), depth == 32);
  }
}

// Each names the next one 16 times: 69,904 operators where they are four deep, then 1,118,480.
TEST(SubgraphsOfAFile, AreRunAsOftenAsIsPrepared) {
  EXPECT_EQ(ErrorOfChain(4, 16), "loaded");
  EXPECT_THAT(ErrorOfChain(5, 16), HasSubstr("have more than 262144 operators"));
}

}  // namespace
}  // namespace fuselite::interpreter
