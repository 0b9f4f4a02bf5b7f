// The loader of models: any bytes give a model or one line that says what is wrong. Where they give
// a model whose tensors are small, it is also planned and run, since everything behind the loader
// relies on what the loader checked.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "interpreter/file/options.h"
#include "interpreter/interpreter.h"
#include "interpreter/op_resolver.h"
#include "tests/fuzz/stranger.h"
#include "tests/fuzz/target.h"

namespace fuselite::fuzz {
namespace {

using namespace interpreter;

bool Small(const Model& model) {
  constexpr int64_t kMaxElements = 1 << 12;
  for (const ModelSubgraph& graph : model.subgraphs) {
    for (const ModelTensor& tensor : graph.tensors) {
      if (tensor.shape.elements() > kMaxElements) return false;
    }
    for (const ModelOperator& op : graph.operators) {
      if (!op.subgraphs.empty()) return false;  // a loop may be meant to be endless
    }
  }
  return true;
}

bool HasCustomOperators(const Model& model) {
  return std::ranges::any_of(model.subgraphs, [](const ModelSubgraph& graph) {
    return std::ranges::any_of(graph.operators,
                               [](const ModelOperator& op) { return !op.custom_name.empty(); });
  });
}

// What was read of an operator's options can be written, and is read again as it was.
void CheckOptions(const ModelOperator& op) {
  if (op.def == nullptr || op.def->fields.empty()) return;
  flatbuffers::FlatBufferBuilder builder;
  builder.ForceDefaults(true);  // of 0 and -0 one would be left out for the other
  builder.Finish(WriteOptions(op.def->fields, op.params.data(), builder));
  const auto* table = flatbuffers::GetRoot<flatbuffers::Table>(builder.GetBufferPointer());
  kernels::Params again;
  const Status read = ReadOptions(op.def->fields, table, again.data());
  ASSERT_TRUE(read.ok()) << read.message();
  for (const kernels::Field& field : op.def->fields) {
    std::byte* const there = static_cast<std::byte*>(again.data()) + field.offset;
    const std::byte* const here = static_cast<const std::byte*>(op.params.data()) + field.offset;
    if (field.kind == kernels::FieldKind::kFloatList) {
      // A view of its file, here and there.
      auto& written = *reinterpret_cast<kernels::FloatList*>(there);
      const auto& given = *reinterpret_cast<const kernels::FloatList*>(here);
      ASSERT_EQ(written.count, given.count);
      const size_t bytes = sizeof(float) * static_cast<size_t>(given.count);
      EXPECT_TRUE(bytes == 0 || std::memcmp(written.values, given.values, bytes) == 0);
      written = given;
    }
    // Without options there is no type; options without one mean float32.
    const auto* type = reinterpret_cast<const DataType*>(here);
    if (field.kind == kernels::FieldKind::kDataType && *type == DataType::kNone) {
      std::memcpy(there, here, sizeof(DataType));
    }
  }
  EXPECT_EQ(std::memcmp(again.data(), op.params.data(), op.def->params_bytes), 0) << op.def->name;
}

}  // namespace

void FuzzOne(std::span<const uint8_t> bytes) {
  const auto model = LoadModelFromMemory(std::as_bytes(bytes), nullptr);
  if (!model.ok()) {
    EXPECT_FALSE(model.status().message().empty());
    EXPECT_EQ(model.status().message().find('\n'), std::string::npos);
    return;
  }
  for (const ModelSubgraph& graph : (*model)->subgraphs) {
    for (const ModelOperator& op : graph.operators) CheckOptions(op);
  }
  if (!Small(**model)) return;
  InterpreterOptions options;
  kernels::testing::Random random(bytes.size());
  Stranger stranger(random);
  OpResolver resolver;
  if (HasCustomOperators(**model)) {
    resolver = OpResolver::WithBuiltins();
    EXPECT_TRUE(resolver.AddOperator(stranger.op()).ok());
    options.resolver = &resolver;
  }
  options.budget = {.max_memory = 64 << 20, .max_multiply_adds = 1'000'000};
  const auto interpreter = Interpreter::Create(*model, options);
  if (!interpreter.ok()) return;
  if (!(*interpreter)->AllocateTensors().ok()) return;
  if (!(*interpreter)->Invoke().ok()) return;
}

}  // namespace fuselite::fuzz
