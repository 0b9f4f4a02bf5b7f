#include "interpreter/file/writer.h"

#include <algorithm>

#include "interpreter/file/options.h"
#include "interpreter/schema/tflite_generated.h"
#include "runtime/tflite/builtin_codes.h"

namespace fuselite::interpreter {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

struct OperatorSpec {
  int code_index = 0;
  std::vector<int> inputs, outputs;
  const kernels::OperatorDef* def = nullptr;
  kernels::Params params;
  std::vector<std::byte> custom_options;
  int builtin_code = 0;
  std::vector<int> subgraphs;
  std::string composite_name;
  std::string variable_name;
};

struct CodeSpec {
  int builtin_code = 0;
  std::string custom_name;
  int version = 1;
  friend bool operator==(const CodeSpec&, const CodeSpec&) = default;
};

struct SubgraphSpec {
  std::string name;
  std::vector<std::pair<TensorSpec, uint32_t>> tensors;  // with the index of its buffer
  std::vector<OperatorSpec> operators;
  std::vector<int> inputs, outputs;
};

struct SignatureSpec {
  std::string key;
  ModelWriter::NamedTensors inputs, outputs;
  uint32_t subgraph = 0;
};

const uint8_t* AsUint8(const std::vector<std::byte>& bytes) {
  return reinterpret_cast<const uint8_t*>(bytes.data());
}

Offset<schema::QuantizationParameters> WriteBlockwise(FlatBufferBuilder& builder,
                                                      const BlockwiseQuantization& blocks) {
  const auto details = schema::CreateBlockwiseQuantization(builder, blocks.scales,
                                                           blocks.zero_points, blocks.block_size);
  schema::QuantizationParametersBuilder table(builder);
  table.add_details_type(schema::QuantizationDetails::BlockwiseQuantization);
  table.add_details(details.Union());
  table.add_quantized_dimension(blocks.axis);
  return table.Finish();
}

Offset<schema::QuantizationParameters> WriteQuantization(FlatBufferBuilder& builder,
                                                         const TensorSpec& tensor) {
  if (tensor.blockwise.block_size != 0) return WriteBlockwise(builder, tensor.blockwise);
  const Quantization& quantization = tensor.quantization;
  if (quantization.empty()) return 0;
  const auto scales = builder.CreateVector(quantization.scales.data(), quantization.scales.size());
  const auto zero_points = builder.CreateVector<int64_t>(
      std::vector<int64_t>(quantization.zero_points.begin(), quantization.zero_points.end()));
  schema::QuantizationParametersBuilder table(builder);
  table.add_scale(scales);
  table.add_zero_point(zero_points);
  table.add_quantized_dimension(quantization.axis);
  return table.Finish();
}

Offset<schema::Tensor> WriteTensor(FlatBufferBuilder& builder, const TensorSpec& tensor,
                                   uint32_t buffer) {
  const auto name = builder.CreateString(tensor.name);
  const auto shape = builder.CreateVector(tensor.shape.dims().data(), tensor.shape.dims().size());
  const auto quantization = WriteQuantization(builder, tensor);
  Offset<flatbuffers::Vector<int32_t>> signature;
  if (!tensor.shape_signature.empty()) signature = builder.CreateVector(tensor.shape_signature);
  schema::TensorBuilder table(builder);
  table.add_shape(shape);
  table.add_type(static_cast<schema::TensorType>(DataTypeToSchema(tensor.type)));
  table.add_buffer(buffer);
  table.add_name(name);
  table.add_quantization(quantization);
  table.add_is_variable(tensor.is_variable);
  table.add_shape_signature(signature);
  table.add_has_rank(true);
  return table.Finish();
}

// Options as OperatorDef::options_type names their kind; 0: none.
struct WrittenOptions {
  int kind = 0;
  Offset<void> table = 0;
};

WrittenOptions First(schema::BuiltinOptions kind, Offset<void> table) {
  return {static_cast<int>(kind), table};
}

WrittenOptions Second(schema::BuiltinOptions2 kind, Offset<void> table) {
  return {kernels::kSecondUnion + static_cast<int>(kind), table};
}

// Too few subgraphs are written as none at all.
WrittenOptions WriteOptionsOf(FlatBufferBuilder& builder, const OperatorSpec& op) {
  const std::vector<int>& run = op.subgraphs;
  switch (op.builtin_code) {
    case tflite::kTfLiteBuiltinIf:
      if (run.size() != 2) return {};
      return First(schema::BuiltinOptions::IfOptions,
                   schema::CreateIfOptions(builder, run[0], run[1]).Union());
    case tflite::kTfLiteBuiltinWhile:
      if (run.size() != 2) return {};
      return First(schema::BuiltinOptions::WhileOptions,
                   schema::CreateWhileOptions(builder, run[0], run[1]).Union());
    case tflite::kTfLiteBuiltinCallOnce:
      if (run.size() != 1) return {};
      return First(schema::BuiltinOptions::CallOnceOptions,
                   schema::CreateCallOnceOptions(builder, run[0]).Union());
    case tflite::kTfLiteBuiltinVarHandle:
      if (op.variable_name.empty()) return {};
      return First(
          schema::BuiltinOptions::VarHandleOptions,
          schema::CreateVarHandleOptions(builder, 0, builder.CreateString(op.variable_name))
              .Union());
    case tflite::kTfLiteBuiltinStablehloComposite: {
      if (run.size() != 1) return {};
      const auto name = builder.CreateString(op.composite_name);
      const auto attributes =
          builder.CreateVector(AsUint8(op.custom_options), op.custom_options.size());
      return Second(
          schema::BuiltinOptions2::StableHLOCompositeOptions,
          schema::CreateStableHLOCompositeOptions(builder, name, run[0], attributes).Union());
    }
    case tflite::kTfLiteBuiltinStablehloCase:
      return Second(schema::BuiltinOptions2::StablehloCaseOptions,
                    schema::CreateStablehloCaseOptions(builder, builder.CreateVector(run)).Union());
    default: break;
  }
  if (op.def == nullptr || op.def->options_type == 0) return {};
  return {op.def->options_type, WriteOptions(op.def->fields, op.params.data(), builder)};
}

Offset<schema::Operator> WriteOperator(FlatBufferBuilder& builder, const OperatorSpec& op) {
  const auto inputs = builder.CreateVector(op.inputs);
  const auto outputs = builder.CreateVector(op.outputs);
  const WrittenOptions options = WriteOptionsOf(builder, op);
  Offset<flatbuffers::Vector<uint8_t>> custom;
  if (op.builtin_code == tflite::kTfLiteBuiltinCustom && !op.custom_options.empty()) {
    custom = builder.CreateVector(AsUint8(op.custom_options), op.custom_options.size());
  }
  schema::OperatorBuilder table(builder);
  table.add_opcode_index(op.code_index);
  table.add_inputs(inputs);
  table.add_outputs(outputs);
  if (options.kind < kernels::kSecondUnion) {
    table.add_builtin_options_type(static_cast<schema::BuiltinOptions>(options.kind));
    table.add_builtin_options(options.table);
  } else {
    table.add_builtin_options_2_type(
        static_cast<schema::BuiltinOptions2>(options.kind - kernels::kSecondUnion));
    table.add_builtin_options_2(options.table);
  }
  table.add_custom_options(custom);
  return table.Finish();
}

Offset<schema::SubGraph> WriteSubgraph(FlatBufferBuilder& builder, const SubgraphSpec& graph) {
  std::vector<Offset<schema::Tensor>> tensors;
  for (const auto& [tensor, buffer] : graph.tensors) {
    tensors.push_back(WriteTensor(builder, tensor, buffer));
  }
  std::vector<Offset<schema::Operator>> operators;
  for (const OperatorSpec& op : graph.operators) operators.push_back(WriteOperator(builder, op));
  return schema::CreateSubGraphDirect(builder, &tensors, &graph.inputs, &graph.outputs, &operators,
                                      graph.name.c_str());
}

Offset<schema::OperatorCode> WriteCode(FlatBufferBuilder& builder, const CodeSpec& code) {
  const int old_code =
      std::min<int>(code.builtin_code, tflite::kTfLiteBuiltinPlaceholderForGreaterOpCodes);
  return schema::CreateOperatorCodeDirect(
      builder, static_cast<int8_t>(old_code),
      code.custom_name.empty() ? nullptr : code.custom_name.c_str(), code.version,
      static_cast<schema::BuiltinOperator>(code.builtin_code));
}

std::vector<Offset<schema::TensorMap>> WriteTensorMaps(FlatBufferBuilder& builder,
                                                       const ModelWriter::NamedTensors& tensors) {
  std::vector<Offset<schema::TensorMap>> maps;
  for (const auto& [name, tensor] : tensors) {
    maps.push_back(schema::CreateTensorMapDirect(builder, name.c_str(), tensor));
  }
  return maps;
}

Offset<schema::SignatureDef> WriteSignature(FlatBufferBuilder& builder,
                                            const SignatureSpec& signature) {
  const auto inputs = WriteTensorMaps(builder, signature.inputs);
  const auto outputs = WriteTensorMaps(builder, signature.outputs);
  return schema::CreateSignatureDefDirect(builder, &inputs, &outputs, signature.key.c_str(),
                                          signature.subgraph);
}

}  // namespace

struct ModelWriter::Impl {
  std::string description;
  std::vector<SubgraphSpec> subgraphs = {SubgraphSpec{"main", {}, {}, {}, {}}};
  std::vector<CodeSpec> codes;
  std::vector<SignatureSpec> signatures;
  std::vector<std::pair<std::string, uint32_t>> metadata;
  std::vector<std::vector<std::byte>> buffers = {{}};  // buffer 0 is empty by convention

  int CodeIndex(CodeSpec code) {
    const auto found = std::ranges::find(codes, code);
    if (found != codes.end()) return static_cast<int>(found - codes.begin());
    codes.push_back(std::move(code));
    return static_cast<int>(codes.size()) - 1;
  }

  OperatorSpec& Add(CodeSpec code, std::vector<int> inputs, std::vector<int> outputs) {
    OperatorSpec op;
    op.builtin_code = code.builtin_code;
    op.code_index = CodeIndex(std::move(code));
    op.inputs = std::move(inputs);
    op.outputs = std::move(outputs);
    return subgraphs.back().operators.emplace_back(std::move(op));
  }
};

ModelWriter::ModelWriter() : impl_(std::make_unique<Impl>()) {}
ModelWriter::~ModelWriter() = default;

void ModelWriter::set_description(std::string description) {
  impl_->description = std::move(description);
}

int ModelWriter::AddSubgraph(std::string name) {
  impl_->subgraphs.push_back({std::move(name), {}, {}, {}, {}});
  return static_cast<int>(impl_->subgraphs.size()) - 1;
}

int ModelWriter::AddTensor(TensorSpec spec) {
  uint32_t buffer = 0;
  if (!spec.data.empty()) {
    buffer = static_cast<uint32_t>(impl_->buffers.size());
    impl_->buffers.push_back(std::move(spec.data));
  }
  auto& tensors = impl_->subgraphs.back().tensors;
  tensors.emplace_back(std::move(spec), buffer);
  return static_cast<int>(tensors.size()) - 1;
}

int ModelWriter::AddTensor(std::string name, DataType type, const Shape& shape,
                           Quantization quantization) {
  return AddTensor({.name = std::move(name),
                    .type = type,
                    .shape = shape,
                    .quantization = std::move(quantization)});
}

int ModelWriter::ShareConstant(int subgraph, int tensor, int block_scales) {
  auto& tensors = impl_->subgraphs.back().tensors;
  tensors.push_back(impl_->subgraphs[subgraph].tensors[tensor]);
  tensors.back().first.blockwise.scales = block_scales;
  return static_cast<int>(tensors.size()) - 1;
}

void ModelWriter::AddOperator(const kernels::OperatorDef& op, const kernels::Params& params,
                              std::vector<int> inputs, std::vector<int> outputs, int version) {
  OperatorSpec& added =
      impl_->Add({op.builtin_code, "", version}, std::move(inputs), std::move(outputs));
  added.def = &op;
  added.params = params;
}

void ModelWriter::AddOperator(const kernels::OperatorDef& op, std::vector<int> inputs,
                              std::vector<int> outputs, int version) {
  kernels::Params params;
  kernels::SetDefaults(op.fields, params.data());
  AddOperator(op, params, std::move(inputs), std::move(outputs), version);
}

void ModelWriter::AddOperator(int builtin_code, std::vector<int> inputs, std::vector<int> outputs,
                              int version) {
  impl_->Add({builtin_code, "", version}, std::move(inputs), std::move(outputs));
}

void ModelWriter::AddCustomOperator(std::string name, std::vector<std::byte> options,
                                    std::vector<int> inputs, std::vector<int> outputs,
                                    int version) {
  OperatorSpec& op = impl_->Add({tflite::kTfLiteBuiltinCustom, std::move(name), version},
                                std::move(inputs), std::move(outputs));
  op.custom_options = std::move(options);
}

void ModelWriter::AddControlFlow(int builtin_code, std::vector<int> subgraphs,
                                 std::vector<int> inputs, std::vector<int> outputs) {
  impl_->Add({builtin_code, "", 1}, std::move(inputs), std::move(outputs)).subgraphs =
      std::move(subgraphs);
}

void ModelWriter::AddVariableHandle(std::string name, int handle) {
  impl_->Add({tflite::kTfLiteBuiltinVarHandle, "", 1}, {}, {handle}).variable_name =
      std::move(name);
}

void ModelWriter::AddComposite(std::string name, std::vector<std::byte> attributes,
                               int decomposition, std::vector<int> inputs,
                               std::vector<int> outputs) {
  OperatorSpec& op = impl_->Add({tflite::kTfLiteBuiltinStablehloComposite, "", 1},
                                std::move(inputs), std::move(outputs));
  op.composite_name = std::move(name);
  op.custom_options = std::move(attributes);
  op.subgraphs = {decomposition};
}

void ModelWriter::SetInputs(std::vector<int> inputs) {
  impl_->subgraphs.back().inputs = std::move(inputs);
}

void ModelWriter::SetOutputs(std::vector<int> outputs) {
  impl_->subgraphs.back().outputs = std::move(outputs);
}

void ModelWriter::AddSignature(std::string key, NamedTensors inputs, NamedTensors outputs) {
  impl_->signatures.push_back({std::move(key), std::move(inputs), std::move(outputs),
                               static_cast<uint32_t>(impl_->subgraphs.size() - 1)});
}

void ModelWriter::AddMetadata(std::string name, std::vector<std::byte> data) {
  impl_->metadata.emplace_back(std::move(name), static_cast<uint32_t>(impl_->buffers.size()));
  impl_->buffers.push_back(std::move(data));
}

std::vector<std::byte> ModelWriter::Finish() const {
  FlatBufferBuilder builder;
  std::vector<Offset<schema::Buffer>> buffers;
  for (const auto& bytes : impl_->buffers) {
    Offset<flatbuffers::Vector<uint8_t>> data;
    if (!bytes.empty()) {
      builder.ForceVectorAlignment(bytes.size(), 1, 16);
      data = builder.CreateVector(AsUint8(bytes), bytes.size());
    }
    buffers.push_back(schema::CreateBuffer(builder, data));
  }
  std::vector<Offset<schema::SubGraph>> subgraphs;
  for (const SubgraphSpec& graph : impl_->subgraphs) {
    subgraphs.push_back(WriteSubgraph(builder, graph));
  }
  std::vector<Offset<schema::OperatorCode>> codes;
  for (const CodeSpec& code : impl_->codes) codes.push_back(WriteCode(builder, code));
  std::vector<Offset<schema::SignatureDef>> signatures;
  for (const auto& each : impl_->signatures) signatures.push_back(WriteSignature(builder, each));
  std::vector<Offset<schema::Metadata>> metadata;
  for (const auto& [name, buffer] : impl_->metadata) {
    metadata.push_back(schema::CreateMetadataDirect(builder, name.c_str(), buffer));
  }
  schema::FinishModelBuffer(
      builder, schema::CreateModelDirect(builder, 3, &codes, &subgraphs, impl_->description.c_str(),
                                         &buffers, nullptr, &metadata,
                                         signatures.empty() ? nullptr : &signatures));
  const auto* bytes = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  return {bytes, bytes + builder.GetSize()};
}

}  // namespace fuselite::interpreter
