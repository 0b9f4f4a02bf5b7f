#include "tests/fuzz/change_model.h"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>

#include "fuselite_fuzz/tflite_objects_generated.h"

namespace fuselite::fuzz {
namespace {

using flatbuffers::FlatBufferBuilder;

template <class T>
using Owned = std::vector<std::unique_ptr<T>>;

// Any place of a list; or, now and then, none of its: just behind, far behind, before it.
int32_t AnyIndex(size_t count, Random& random) {
  const auto end = static_cast<int32_t>(count);
  if (end == 0 || random.Chance(0.05)) {
    return random.Pick({-1, -2, end, end + 1, std::numeric_limits<int32_t>::max()});
  }
  return static_cast<int32_t>(random.Int(0, end - 1));
}

template <class T>
T* AnyOf(const Owned<T>& list, Random& random) {
  if (list.empty()) return nullptr;
  return list[random.Int(0, static_cast<int64_t>(list.size()) - 1)].get();
}

// Changes, removes or doubles an element, or adds one; `draw` gives a new one.
template <class T, class Draw>
void ChangeList(std::vector<T>& list, Random& random, Draw draw) {
  const int64_t kind = list.empty() ? 3 : random.Int(0, 3);
  const int64_t at = list.empty() ? 0 : random.Int(0, static_cast<int64_t>(list.size()) - 1);
  if (kind == 0) list[at] = draw();
  if (kind == 1) list.erase(list.begin() + at);
  if (kind == 2) list.insert(list.begin() + at, T(list[at]));
  if (kind == 3) list.push_back(draw());
}

void ChangeShape(schema::TensorT& tensor, Random& random) {
  const auto dim = [&] {
    if (!random.Chance(0.05)) return static_cast<int32_t>(random.Int(0, 9));
    return random.Pick({-1, 1 << 16, 1 << 24, std::numeric_limits<int32_t>::max()});
  };
  if (random.Chance(0.2)) {
    // A batch that is known later.
    tensor.shape_signature = tensor.shape;
    ChangeList(tensor.shape_signature, random, [] { return -1; });
  } else {
    ChangeList(tensor.shape, random, dim);
  }
}

void ChangeQuantization(schema::TensorT& tensor, Random& random) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (tensor.quantization == nullptr) {
    tensor.quantization = std::make_unique<schema::QuantizationParametersT>();
    tensor.quantization->scale = {0.5f};
    tensor.quantization->zero_point = {0};
    return;
  }
  schema::QuantizationParametersT& q = *tensor.quantization;
  switch (random.Int(0, 4)) {
    case 0:
      ChangeList(q.scale, random, [&] {
        return random.Chance(0.7)
                   ? random.Pick({1.0f, 0.5f, 0.0078125f, 1e-5f, 3.0f})
                   : random.Pick({0.0f, -1.0f, 1e-42f, 3e38f, kInfinity, kInfinity - kInfinity});
      });
      break;
    case 1: {
      ChangeList(q.zero_point, random, [&] {
        return random.Chance(0.8) ? random.Int(-128, 255)
                                  : random.Pick<int64_t>({-129, 256, int64_t{1} << 40, INT64_MIN});
      });
      break;
    }
    case 2: {
      schema::BlockwiseQuantizationT blocks;
      blocks.scales = static_cast<int32_t>(random.Int(-1, 6));
      blocks.zero_points = static_cast<int32_t>(random.Int(-1, 6));
      blocks.block_size = random.Pick({-1, 0, 2, 16, 32, 64});
      q.details.Set(blocks);
      break;
    }
    case 3: q.quantized_dimension = static_cast<int32_t>(random.Int(-1, 4)); break;
    default: tensor.quantization.reset(); break;
  }
}

// A layout of a sparse constant, which seldom fits its bytes.
void ChangeSparsity(schema::TensorT& tensor, Random& random) {
  tensor.sparsity = std::make_unique<schema::SparsityParametersT>();
  const auto rank = static_cast<int32_t>(tensor.shape.size());
  const auto set = [&](schema::SparseIndexVectorUnion& to, std::initializer_list<uint8_t> values) {
    schema::Uint8VectorT bytes;
    schema::Uint16VectorT shorts;
    schema::Int32VectorT words;
    bytes.values = values;
    shorts.values.assign(values.begin(), values.end());
    words.values.assign(values.begin(), values.end());
    const int64_t kind = random.Int(0, 2);
    if (kind == 0) to.Set(std::move(bytes));
    if (kind == 1) to.Set(std::move(shorts));
    if (kind == 2) to.Set(std::move(words));
  };
  for (int32_t d = 0; d < rank + random.Int(0, 1); ++d) {
    tensor.sparsity->traversal_order.push_back(random.Chance(0.95) ? d : AnyIndex(rank, random));
    auto level = std::make_unique<schema::DimensionMetadataT>();
    level->dense_size = d < rank && random.Chance(0.9) ? tensor.shape[d] : AnyIndex(rank, random);
    if (random.Chance(0.4)) {
      level->format = schema::DimensionType::SPARSE_CSR;
      const auto count = static_cast<uint8_t>(random.Int(0, 3));
      set(level->array_segments, {0, count});
      set(level->array_indices, {0, static_cast<uint8_t>(random.Int(0, 4)), count});
    }
    tensor.sparsity->dim_metadata.push_back(std::move(level));
  }
  if (random.Chance(0.3)) tensor.sparsity->block_map.push_back(AnyIndex(rank, random));
}

void ChangeTensor(schema::ModelT& model, schema::TensorT& tensor, Random& random) {
  using Types = std::underlying_type_t<schema::TensorType>;
  switch (random.Int(0, 5)) {
    case 0: tensor.type = static_cast<schema::TensorType>(random.Int(0, Types{22})); break;
    case 1: return ChangeShape(tensor, random);
    case 2: return ChangeQuantization(tensor, random);
    case 3: tensor.buffer = static_cast<uint32_t>(AnyIndex(model.buffers.size(), random)); break;
    case 4: tensor.is_variable = !tensor.is_variable; break;
    case 5: return ChangeSparsity(tensor, random);
    default: tensor.shape.clear(); break;
  }
}

void ChangeBuffer(schema::BufferT& buffer, Random& random) {
  std::vector<uint8_t>& data = buffer.data;
  const auto size = static_cast<int64_t>(data.size());
  switch (size == 0 ? 3 : random.Int(0, 4)) {
    case 0: data.resize(random.Int(0, size)); break;
    case 1: data[random.Int(0, size - 1)] = static_cast<uint8_t>(random.Int(0, 255)); break;
    case 2: data.clear(); break;
    case 3: data.resize(size + random.Int(1, 64), static_cast<uint8_t>(random.Int(0, 255))); break;
    default:
      // Data behind the FlatBuffer, as large files have it.
      buffer.offset = static_cast<uint64_t>(random.Int(0, 1 << 14));
      buffer.size = static_cast<uint64_t>(size);
      break;
  }
}

void ChangeCode(schema::OperatorCodeT& code, Random& random) {
  if (random.Chance(0.2)) {
    code.version = static_cast<int32_t>(random.Int(-1, 12));
    return;
  }
  const int64_t builtin = random.Int(0, 210);
  code.builtin_code = static_cast<schema::BuiltinOperator>(builtin);
  code.deprecated_builtin_code = static_cast<int8_t>(std::min<int64_t>(builtin, 127));
}

// What an operator reads, writes and is.
void ChangeOperator(schema::ModelT& model, const schema::SubGraphT& graph, schema::OperatorT& op,
                    Random& random) {
  const auto tensor = [&] { return AnyIndex(graph.tensors.size(), random); };
  switch (random.Int(0, 6)) {
    case 0:
    case 1: ChangeList(op.inputs, random, tensor); break;
    case 2: ChangeList(op.outputs, random, tensor); break;
    case 3:
      op.opcode_index = static_cast<uint32_t>(AnyIndex(model.operator_codes.size(), random));
      break;
    case 4:
      if (auto* code = AnyOf(model.operator_codes, random)) ChangeCode(*code, random);
      break;
    case 5:
      if (const auto* other = AnyOf(graph.operators, random); other != &op) {
        op.builtin_options = other->builtin_options;
      }
      break;
    default: op.builtin_options.Reset(); break;
  }
}

// Which operators there are, and in which order; what a caller gives and gets.
void ChangeGraph(schema::SubGraphT& graph, Random& random) {
  Owned<schema::OperatorT>& list = graph.operators;
  const auto tensor = [&] { return AnyIndex(graph.tensors.size(), random); };
  const int64_t last = static_cast<int64_t>(list.size()) - 1;
  switch (last < 0 ? random.Int(3, 4) : random.Int(0, 4)) {
    case 0: list.erase(list.begin() + random.Int(0, last)); break;
    case 1: {
      // A double with a value of its own, so that nothing is written twice.
      auto twin = std::make_unique<schema::OperatorT>(*AnyOf(list, random));
      for (int32_t& output : twin->outputs) {
        if (output < 0 || static_cast<size_t>(output) >= graph.tensors.size()) continue;
        graph.tensors.push_back(std::make_unique<schema::TensorT>(*graph.tensors[output]));
        output = static_cast<int32_t>(graph.tensors.size()) - 1;
        graph.outputs.push_back(output);
      }
      list.push_back(std::move(twin));
      break;
    }
    case 2: std::swap(list[random.Int(0, last)], list[random.Int(0, last)]); break;
    case 3: ChangeList(graph.inputs, random, tensor); break;
    default: ChangeList(graph.outputs, random, tensor); break;
  }
}

void ChangeOnce(schema::ModelT& model, Random& random) {
  schema::SubGraphT* const graph = AnyOf(model.subgraphs, random);
  if (graph == nullptr) return;
  switch (random.Int(0, 7)) {
    case 0:
    case 1:
    case 2:
      if (auto* tensor = AnyOf(graph->tensors, random)) ChangeTensor(model, *tensor, random);
      break;
    case 3:
    case 4:
      if (auto* op = AnyOf(graph->operators, random)) ChangeOperator(model, *graph, *op, random);
      break;
    case 5: return ChangeGraph(*graph, random);
    case 6:
      if (auto* buffer = AnyOf(model.buffers, random)) ChangeBuffer(*buffer, random);
      break;
    default:
      if (auto* signature = AnyOf(model.signature_defs, random)) {
        signature->subgraph_index = static_cast<uint32_t>(AnyIndex(model.subgraphs.size(), random));
        if (auto* end = AnyOf(signature->inputs, random)) {
          end->tensor_index = static_cast<uint32_t>(AnyIndex(graph->tensors.size(), random));
        }
      }
      break;
  }
}

// A file may name a kind of options and hold none; Pack() follows the pointer.
template <class Union>
void ResetEmpty(Union& options) {
  if (options.value == nullptr) options.type = {};
}

void ResetEmptyOptions(schema::ModelT& model) {
  for (auto& graph : model.subgraphs) {
    for (auto& tensor : graph->tensors) {
      if (tensor->quantization != nullptr) ResetEmpty(tensor->quantization->details);
      if (tensor->sparsity == nullptr) continue;
      for (auto& dim : tensor->sparsity->dim_metadata) {
        ResetEmpty(dim->array_segments);
        ResetEmpty(dim->array_indices);
      }
    }
    for (auto& op : graph->operators) {
      ResetEmpty(op->builtin_options);
      ResetEmpty(op->builtin_options_2);
    }
  }
}

std::unique_ptr<schema::ModelT> Unpack(std::span<const std::byte> file) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(file.data());
  if (file.size() < 8) return nullptr;
  // Few tables: references to one table many times over would unpack to many of it.
  flatbuffers::Verifier verifier(bytes, file.size(), 64, 4096);
  if (!schema::VerifyModelBuffer(verifier)) return nullptr;
  auto model = std::unique_ptr<schema::ModelT>(schema::UnPackModel(bytes));
  ResetEmptyOptions(*model);
  return model;
}

// One byte of a field of an operator's options, in place. Each kind of options is a table of its
// own; a table says where its fields are, and that suffices.
void ChangeOption(std::span<uint8_t> file, Random& random) {
  const schema::Model* model = schema::GetModel(file.data());
  const auto* graph =
      model->subgraphs() && model->subgraphs()->size() > 0 ? model->subgraphs()->Get(0) : nullptr;
  if (graph == nullptr || graph->operators() == nullptr || graph->operators()->size() == 0) return;
  const auto* op =
      graph->operators()->Get(static_cast<uint32_t>(random.Int(0, graph->operators()->size() - 1)));
  const auto* options = static_cast<const uint8_t*>(op->builtin_options());
  if (options == nullptr) return;
  const uint8_t* const fields = options - flatbuffers::ReadScalar<flatbuffers::soffset_t>(options);
  const auto field = [&](int64_t i) {
    return flatbuffers::ReadScalar<flatbuffers::voffset_t>(fields + 2 * i);
  };
  const int64_t count = field(0) / 2;  // the table's own two sizes among them
  if (count <= 2) return;
  const int64_t offset = field(random.Int(2, count - 1));
  if (offset == 0) return;
  const int64_t place = options - file.data() + offset + (random.Chance(0.9) ? 0 : 3);
  if (place < std::ssize(file))
    file[place] = static_cast<uint8_t>(random.Chance(0.8) ? random.Int(0, 6) : random.Int(0, 255));
}

std::vector<std::byte> Pack(const schema::ModelT& model) {
  FlatBufferBuilder builder;
  schema::FinishModelBuffer(builder, schema::Model::Pack(builder, &model));
  const auto* bytes = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  return {bytes, bytes + builder.GetSize()};
}

}  // namespace

std::vector<std::byte> ChangeModel(std::span<const std::byte> file, int count, Random& random) {
  const auto model = Unpack(file);
  if (model == nullptr) return {};
  int options = 0;
  for (int i = 0; i < count; ++i) {
    random.Chance(0.2) ? static_cast<void>(++options) : ChangeOnce(*model, random);
  }
  std::vector<std::byte> changed = Pack(*model);
  for (int i = 0; i < options; ++i) {
    ChangeOption({reinterpret_cast<uint8_t*>(changed.data()), changed.size()}, random);
  }
  return changed;
}

std::vector<std::byte> JoinModels(std::span<const std::byte> first,
                                  std::span<const std::byte> second, Random& random) {
  const auto to = Unpack(first), from = Unpack(second);
  if (to == nullptr || from == nullptr || to->subgraphs.empty() || from->subgraphs.empty())
    return {};
  schema::SubGraphT& graph = *to->subgraphs[0];
  schema::SubGraphT& added = *from->subgraphs[0];
  const auto tensors = static_cast<int32_t>(graph.tensors.size());
  const auto buffers = static_cast<uint32_t>(to->buffers.size());
  const auto codes = static_cast<uint32_t>(to->operator_codes.size());
  const std::vector<int32_t> made = graph.outputs;
  const auto moved = [&](int32_t index) { return index < 0 ? index : index + tensors; };
  const auto joined = [&](int32_t index) {
    const bool given = std::ranges::find(added.inputs, index) != added.inputs.end();
    if (!given || made.empty() || random.Chance(0.5)) return moved(index);
    return made[random.Int(0, static_cast<int64_t>(made.size()) - 1)];
  };
  for (auto& tensor : added.tensors) {
    if (tensor->buffer > 0) tensor->buffer += buffers;
    graph.tensors.push_back(std::move(tensor));
  }
  for (auto& op : added.operators) {
    op->opcode_index += codes;
    std::ranges::transform(op->inputs, op->inputs.begin(), joined);
    std::ranges::transform(op->outputs, op->outputs.begin(), moved);
    graph.operators.push_back(std::move(op));
  }
  std::ranges::transform(added.inputs, std::back_inserter(graph.inputs), moved);
  std::ranges::transform(added.outputs, std::back_inserter(graph.outputs), moved);
  std::ranges::move(from->buffers, std::back_inserter(to->buffers));
  std::ranges::move(from->operator_codes, std::back_inserter(to->operator_codes));
  return Pack(*to);
}

}  // namespace fuselite::fuzz
