#include "interpreter/file/loader.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "interpreter/file/loader_internal.h"
#include "runtime/memory/aligned_buffer.h"
#include "runtime/memory/mapped_file.h"
#include "runtime/support/is_index.h"
#include "runtime/support/printable.h"

namespace fuselite::interpreter {
namespace {

using loader::Source;

// A scalar's worth of nothing, for constants without elements: their pointer must not be null.
alignas(16) constexpr std::array<std::byte, 16> kNoBytes{};

std::string At(std::string_view what, size_t index, const std::string& name) {
  std::string text = std::string(what) + " " + std::to_string(index);
  if (!name.empty()) text += " \"" + Printable(name) + "\"";
  return text;
}

Result<const schema::Model*> Verify(std::span<const std::byte> bytes) {
  // "TFL3" stands behind the offset of the root.
  if (bytes.size() < 8 || std::memcmp(bytes.data() + 4, schema::ModelIdentifier(), 4) != 0) {
    return InvalidArgument("not a .tflite file: the identifier TFL3 is missing");
  }
  // A FlatBuffer ends before 2 GiB; constants may follow it in larger files.
  const size_t size = std::min<size_t>(bytes.size(), FLATBUFFERS_MAX_BUFFER_SIZE - 1);
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  flatbuffers::Verifier verifier(data, size);
  if (!schema::VerifyModelBuffer(verifier)) {
    return InvalidArgument("the file is damaged or cut off: its FlatBuffers structure is broken");
  }
  return schema::GetModel(data);
}

size_t SizeOf(const std::vector<int>& indices) { return indices.size() * sizeof(int); }

size_t SizeOf(const ModelTensor& tensor) {
  constexpr size_t kScale = sizeof(float) + sizeof(int32_t);
  return sizeof(tensor) + tensor.name.size() + tensor.quantization.scales.size() * kScale;
}

size_t SizeOf(const ModelOperator& op) {
  return sizeof(op) + op.custom_name.size() + op.composite_name.size() + op.container.size() +
         op.shared_name.size() + SizeOf(op.inputs) + SizeOf(op.outputs) + SizeOf(op.intermediates);
}

Status ReadTensors(const Source& source, const schema::SubGraph& from, ModelSubgraph& to) {
  if (from.tensors() == nullptr) return Status();
  for (uint32_t i = 0; i < from.tensors()->size(); ++i) {
    auto tensor = loader::ReadTensor(source, *from.tensors()->Get(i));
    if (!tensor.ok()) {
      const auto* name = from.tensors()->Get(i)->name();
      return tensor.status().In(At("tensor", i, name ? name->str() : ""));
    }
    FUSELITE_RETURN_IF_ERROR(source.allowance->Take(SizeOf(*tensor)));
    to.tensors.push_back(std::move(*tensor));
  }
  const int count = static_cast<int>(to.tensors.size());
  for (int i = 0; i < count; ++i) {
    const BlockwiseQuantization& blocks = to.tensors[i].blockwise;
    if (blocks.block_size == 0) continue;
    if (blocks.scales < 0 || blocks.scales >= count || blocks.zero_points >= count) {
      return InvalidArgument(At("tensor", i, to.tensors[i].name),
                             ": its scales are no tensor of the subgraph");
    }
  }
  return Status();
}

Status ReadOperators(const Source& source, const schema::SubGraph& from, ModelSubgraph& to) {
  if (from.operators() == nullptr) return Status();
  for (uint32_t i = 0; i < from.operators()->size(); ++i) {
    auto op = loader::ReadOperator(source, *from.operators()->Get(i), to);
    if (!op.ok()) return op.status().In(At("operator", i, ""));
    FUSELITE_RETURN_IF_ERROR(source.allowance->Take(SizeOf(*op)));
    to.operators.push_back(std::move(*op));
  }
  return Status();
}

// Every value is there before it is read, and is written once, by one operator.
Status CheckFlow(const ModelSubgraph& graph) {
  enum class State : uint8_t { kNone, kGiven, kWritten };
  std::vector<State> states(graph.tensors.size(), State::kNone);
  for (size_t i = 0; i < states.size(); ++i) {
    const ModelTensor& tensor = graph.tensors[i];
    if (tensor.constant || tensor.is_variable) states[i] = State::kGiven;
  }
  for (int input : graph.inputs) states[input] = State::kGiven;
  for (size_t i = 0; i < graph.operators.size(); ++i) {
    const ModelOperator& op = graph.operators[i];
    const std::string where = At("operator", i, Model::OperatorName(op));
    for (int input : op.inputs) {
      if (input >= 0 && states[input] == State::kNone) {
        return InvalidArgument(where, ": reads ", At("tensor", input, graph.tensors[input].name),
                               " before anything writes it");
      }
    }
    for (int output : op.outputs) {
      if (states[output] != State::kNone) {
        return InvalidArgument(where, ": writes ", At("tensor", output, graph.tensors[output].name),
                               states[output] == State::kWritten ? ", which has a writer already"
                                                                 : ", which is not its to write");
      }
      states[output] = State::kWritten;
    }
  }
  for (int output : graph.outputs) {
    if (states[output] == State::kNone) {
      return InvalidArgument(At("output tensor", output, graph.tensors[output].name),
                             ": nothing writes it");
    }
  }
  return Status();
}

// What nobody writes and has no elements is a constant: some writers of files give such no data.
void MarkEmptyConstants(const Source& source, ModelSubgraph& graph) {
  std::vector<bool> written(graph.tensors.size());
  for (const int input : graph.inputs) written[input] = true;
  for (const ModelOperator& op : graph.operators) {
    for (const int output : op.outputs) written[output] = true;
  }
  for (size_t i = 0; i < written.size(); ++i) {
    ModelTensor& tensor = graph.tensors[i];
    if (written[i] || tensor.constant || tensor.is_variable || BitWidth(tensor.type) == 0 ||
        tensor.shape.elements() > 0) {
      continue;
    }
    tensor.data = source.bytes.first(0);
    tensor.constant = true;
  }
}

Result<ModelSubgraph> ReadSubgraph(const Source& source, const schema::SubGraph& from) {
  ModelSubgraph graph;
  if (from.name() != nullptr) graph.name = from.name()->str();
  FUSELITE_RETURN_IF_ERROR(ReadTensors(source, from, graph));
  FUSELITE_RETURN_IF_ERROR(
      loader::ReadIndices("input", from.inputs(), graph.tensors.size(), false, graph.inputs));
  for (int input : graph.inputs) {
    if (graph.tensors[input].constant) {
      return InvalidArgument(At("input tensor", input, graph.tensors[input].name),
                             ": has constant data");
    }
  }
  FUSELITE_RETURN_IF_ERROR(
      loader::ReadIndices("output", from.outputs(), graph.tensors.size(), false, graph.outputs));
  FUSELITE_RETURN_IF_ERROR(ReadOperators(source, from, graph));
  MarkEmptyConstants(source, graph);
  FUSELITE_RETURN_IF_ERROR(CheckFlow(graph));
  FUSELITE_RETURN_IF_ERROR(source.allowance->Take(sizeof(graph) + graph.name.size() +
                                                  SizeOf(graph.inputs) + SizeOf(graph.outputs)));
  return graph;
}

using TensorMaps = flatbuffers::Vector<flatbuffers::Offset<schema::TensorMap>>;

Status ReadSignatureTensors(const Source& source, const TensorMaps* from,
                            const ModelSubgraph& graph, std::vector<SignatureTensor>& to) {
  if (from == nullptr) return Status();
  for (const schema::TensorMap* map : *from) {
    if (map->name() == nullptr) return InvalidArgument("a tensor without a name");
    if (map->tensor_index() >= graph.tensors.size()) {
      return InvalidArgument("\"", Printable(map->name()->string_view()), "\" is tensor ",
                             map->tensor_index(), ", of ", graph.tensors.size());
    }
    FUSELITE_RETURN_IF_ERROR(source.allowance->Take(sizeof(SignatureTensor) + map->name()->size()));
    to.push_back({map->name()->str(), static_cast<int>(map->tensor_index())});
  }
  return Status();
}

Result<Signature> ReadSignature(const Source& source, const schema::SignatureDef& from,
                                const Model& model) {
  Signature signature;
  if (from.signature_key() != nullptr) signature.key = from.signature_key()->str();
  if (from.subgraph_index() >= model.subgraphs.size()) {
    return InvalidArgument("names subgraph ", from.subgraph_index(), ", of ",
                           model.subgraphs.size());
  }
  signature.subgraph = static_cast<int>(from.subgraph_index());
  const ModelSubgraph& graph = model.subgraphs[signature.subgraph];
  FUSELITE_RETURN_IF_ERROR(ReadSignatureTensors(source, from.inputs(), graph, signature.inputs));
  FUSELITE_RETURN_IF_ERROR(ReadSignatureTensors(source, from.outputs(), graph, signature.outputs));
  return signature;
}

Status ReadMetadata(const Source& source, Model& model) {
  if (source.model->metadata() == nullptr) return Status();
  for (const schema::Metadata* from : *source.model->metadata()) {
    Metadata metadata;
    if (from->name() != nullptr) metadata.name = from->name()->str();
    auto data = loader::BufferBytes(source, from->buffer());
    if (!data.ok()) return data.status().In("metadata \"" + Printable(metadata.name) + "\"");
    metadata.data = *data;
    FUSELITE_RETURN_IF_ERROR(source.allowance->Take(sizeof(metadata) + metadata.name.size()));
    model.metadata.push_back(std::move(metadata));
  }
  return Status();
}

constexpr int kMaxNesting = 32;
// A subgraph is prepared once for each operator that runs it with other shapes: thirty that run the
// next one twice would take a day. The largest real models come to some thousand.
constexpr int64_t kMaxCalled = 1 << 18;
constexpr int kUnknown = -1;
constexpr int kVisiting = -2;

// What a subgraph runs.
struct Calls {
  int depth = kUnknown;  // how deep subgraphs are nested below it
  int64_t called = 0;    // operators of these, each as often as its subgraph is named
};

Status TooDeep() { return Unsupported("subgraphs are nested more than ", kMaxNesting, " deep"); }

// Fills calls[index]. Subgraphs that run themselves would never end.
Status CheckCalls(const Model& model, int index, int level, std::vector<Calls>& calls) {
  if (calls[index].depth == kVisiting) return InvalidArgument("subgraph ", index, " runs itself");
  if (calls[index].depth != kUnknown) return Status();
  calls[index].depth = kVisiting;
  Calls all{.depth = 0};
  for (const ModelOperator& op : model.subgraphs[index].operators) {
    for (int callee : op.subgraphs) {
      // Ahead of the recursion, which is as deep as the file says.
      if (level >= kMaxNesting) return TooDeep();
      FUSELITE_RETURN_IF_ERROR(CheckCalls(model, callee, level + 1, calls));
      all.depth = std::max(all.depth, calls[callee].depth + 1);
      all.called += std::ssize(model.subgraphs[callee].operators) + calls[callee].called;
      if (all.called > kMaxCalled) {
        return Unsupported("its subgraphs, each as often as it is run, have more than ", kMaxCalled,
                           " operators");
      }
    }
  }
  if (all.depth > kMaxNesting) return TooDeep();
  calls[index] = all;
  return Status();
}

Status ReadModel(const Source& source, Model& model) {
  if (source.model->description() != nullptr)
    model.description = source.model->description()->str();
  if (source.model->version() != 3) {
    return Unsupported("version ", source.model->version(), " of the format, expected 3");
  }
  const auto* subgraphs = source.model->subgraphs();
  if (subgraphs == nullptr || subgraphs->size() == 0) return InvalidArgument("has no subgraph");
  for (uint32_t i = 0; i < subgraphs->size(); ++i) {
    auto graph = ReadSubgraph(source, *subgraphs->Get(i));
    if (!graph.ok()) return i == 0 ? graph.status() : graph.status().In(At("subgraph", i, ""));
    model.subgraphs.push_back(std::move(*graph));
  }
  std::vector<Calls> calls(model.subgraphs.size());
  for (int i = 0; i < static_cast<int>(model.subgraphs.size()); ++i) {
    FUSELITE_RETURN_IF_ERROR(CheckCalls(model, i, 0, calls));
  }
  if (source.model->signature_defs() != nullptr) {
    for (const schema::SignatureDef* from : *source.model->signature_defs()) {
      auto signature = ReadSignature(source, *from, model);
      if (!signature.ok())
        return signature.status().In(At("signature", model.signatures.size(), ""));
      FUSELITE_RETURN_IF_ERROR(source.allowance->Take(sizeof(*signature) + signature->key.size()));
      model.signatures.push_back(std::move(*signature));
    }
  }
  return ReadMetadata(source, model);
}

}  // namespace

namespace loader {

Status Allowance::Take(double bytes) {
  left_ -= bytes;
  if (left_ >= 0) return Status();
  return InvalidArgument("its tables come to far more than its file has bytes");
}

Result<std::span<const std::byte>> BufferBytes(const Source& source, uint32_t index) {
  const auto* buffers = source.model->buffers();
  const uint32_t count = buffers ? buffers->size() : 0;
  if (index >= count) return InvalidArgument("its data is buffer ", index, ", of ", count);
  const schema::Buffer& buffer = *buffers->Get(index);
  if (buffer.offset() > 1) {
    if (buffer.offset() > source.bytes.size() ||
        buffer.size() > source.bytes.size() - buffer.offset()) {
      return InvalidArgument("buffer ", index, " lies past the end of the file");
    }
    return source.bytes.subspan(buffer.offset(), buffer.size());
  }
  if (buffer.data() == nullptr) return std::span<const std::byte>();
  if (buffer.data()->size() == 0) return std::span<const std::byte>(kNoBytes.data(), 0);
  return std::as_bytes(std::span(buffer.data()->data(), buffer.data()->size()));
}

}  // namespace loader

std::string Model::OperatorName(const ModelOperator& op) {
  if (!op.custom_name.empty()) return "custom operator " + Printable(op.custom_name);
  if (op.def != nullptr) return std::string(op.def->name);
  const auto code = static_cast<schema::BuiltinOperator>(op.builtin_code);
  const char* name = schema::EnumNameBuiltinOperator(code);
  return *name ? name : "operator " + std::to_string(op.builtin_code);
}

Result<std::shared_ptr<const Model>> LoadModelFromMemory(std::span<const std::byte> bytes,
                                                         std::shared_ptr<const void> keep_alive) {
  constexpr uintptr_t kFileAlignment = 16;
  if (reinterpret_cast<uintptr_t>(bytes.data()) % kFileAlignment != 0) {
    auto copy = std::make_shared<AlignedBuffer>(bytes.size());
    if (copy->data() == nullptr) return OutOfMemory("no memory for ", bytes.size(), " bytes");
    std::memcpy(copy->data(), bytes.data(), bytes.size());
    bytes = std::span(copy->data(), bytes.size());
    keep_alive = std::move(copy);
  }
  FUSELITE_ASSIGN_OR_RETURN(const schema::Model* root, Verify(bytes));
  auto model = std::make_shared<Model>();
  model->file_bytes = bytes.size();
  model->backing = std::move(keep_alive);
  loader::Allowance allowance(bytes.size());
  FUSELITE_RETURN_IF_ERROR(ReadModel({bytes, root, &allowance}, *model));
  return std::shared_ptr<const Model>(std::move(model));
}

Result<std::shared_ptr<const Model>> LoadModelFromFile(const std::string& path) {
  FUSELITE_ASSIGN_OR_RETURN(auto file, MappedFile::Open(path));
  const std::span<const std::byte> bytes = file->bytes();
  auto model = LoadModelFromMemory(bytes, std::move(file));
  if (!model.ok()) return model.status().In(path);
  return model;
}

}  // namespace fuselite::interpreter
