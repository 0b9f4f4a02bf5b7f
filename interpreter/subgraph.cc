#include "interpreter/subgraph.h"

#include <algorithm>
#include <cstdlib>
#include <set>

#include "interpreter/builtin_op.h"
#include "interpreter/host_memory.h"
#include "interpreter/operator_calls.h"

namespace fuselite::interpreter {
namespace {

using tflite::Elements;
using tflite::TfLiteTensor;

// Tensors that a prepare or init may add without moving the array that its caller holds a pointer
// to.
constexpr size_t kSpareTensors = 16;

// The interface knows one scale and zero point of a tensor, and all of them behind a pointer.
void SetQuantization(const Quantization& from, TfLiteTensor& to) {
  if (from.empty()) return;
  if (!from.per_channel()) to.params = {from.scale(), from.zero_point()};
  auto* const affine = NewStruct<tflite::TfLiteAffineQuantization>();
  to.quantization = {tflite::kTfLiteAffineQuantization, affine};
  affine->scale = NewFloatArray(from.scales);
  affine->zero_point = NewIntArray(from.zero_points);
  affine->quantized_dimension = from.axis;
}

void SetBlockwise(const BlockwiseQuantization& from, TfLiteTensor& to) {
  if (from.block_size == 0) return;
  auto* const blocks = NewStruct<tflite::TfLiteBlockwiseQuantization>();
  *blocks = {from.scales, from.zero_points, from.block_size, from.axis};
  to.quantization = {tflite::kTfLiteBlockwiseQuantization, blocks};
}

// `to` is a tensor already, so that what it has by then goes with it where memory ends.
void Fill(const ModelTensor& from, TfLiteTensor& to) {
  to.type = static_cast<tflite::TfLiteType>(from.type);
  to.name = from.name.c_str();
  to.dims = NewIntArray(from.shape.dims());
  to.buffer_handle = tflite::kTfLiteNullBufferHandle;
  to.is_variable = from.is_variable;
  SetQuantization(from.quantization, to);
  SetBlockwise(from.blockwise, to);
  if (!from.shape_signature.empty()) {
    to.dims_signature = NewIntArray(from.shape_signature);
  }
  if (from.constant) {
    to.allocation_type = tflite::kTfLiteMmapRo;
    to.data.raw_const = reinterpret_cast<const char*>(from.data.data());
    to.bytes = from.data.size();
  } else {
    to.allocation_type =
        from.is_variable ? tflite::kTfLiteArenaRwPersistent : tflite::kTfLiteArenaRw;
    TensorInfo info;
    info.type = from.type;
    info.shape = from.shape;
    to.bytes = HostBytes(info);
  }
}

// Stands for an operator that nobody implements in a graph that does not run.
tflite::TfLiteRegistration NeverPrepared() {
  tflite::TfLiteRegistration registration{};
  registration.prepare = [](tflite::TfLiteContext*, tflite::TfLiteNode*) {
    return tflite::kTfLiteError;
  };
  registration.invoke = registration.prepare;
  return registration;
}

}  // namespace

Subgraph::Subgraph(SubgraphHost& host, int index)
    : host_(host), index_(index), model_(host.model->subgraphs[index]) {
  InitContext();
}

Subgraph::~Subgraph() {
  // Kernels may look at tensors while they are freed.
  while (!nodes_.empty()) nodes_.pop_back();
  for (TfLiteTensor& tensor : tensors_) FreeTensor(tensor);
  ClearPreview();
}

Result<std::unique_ptr<Subgraph>> Subgraph::Build(SubgraphHost& host, int index,
                                                  const OpResolver& resolver, bool runs) {
  std::unique_ptr<Subgraph> graph(new Subgraph(host, index));
  FUSELITE_RETURN_IF_ERROR(graph->AddModelTensors());
  FUSELITE_RETURN_IF_ERROR(graph->AddModelNodes(resolver, runs));
  return graph;
}

Status Subgraph::AddModelTensors() {
  tensors_.reserve(model_.tensors.size() + kSpareTensors);
  for (const ModelTensor& tensor : model_.tensors) Fill(tensor, tensors_.emplace_back());
  SetTensorsSize(tensors_.size());
  return Status();
}

Status Subgraph::AddModelNodes(const OpResolver& resolver, bool runs) {
  static const OpImplementation kNobody{.def = nullptr, .registration = NeverPrepared()};
  std::set<std::string> missing;
  for (const ModelOperator& op : model_.operators) {
    const bool custom = op.builtin_code == tflite::kTfLiteBuiltinCustom;
    const OpImplementation* found = custom ? resolver.FindCustom(op.custom_name, op.version)
                                           : resolver.FindBuiltin(op.builtin_code, op.version);
    if (found == nullptr && !runs) found = &kNobody;
    if (found == nullptr) {
      const std::string version = op.version == 1 ? "" : " version " + std::to_string(op.version);
      missing.insert(Model::OperatorName(op) + version);
      continue;
    }
    auto node = std::make_unique<Node>();
    node->name = Model::OperatorName(op);
    node->node.inputs = NewIntArray(op.inputs);
    node->node.outputs = NewIntArray(op.outputs);
    node->node.intermediates = NewIntArray(op.intermediates);
    node->node.temporaries = NewIntArray({});
    node->node.builtin_data = MakeBuiltinData(op);
    node->node.custom_initial_data = op.custom_options.data();
    node->node.custom_initial_data_size = static_cast<int>(op.custom_options.size());
    node->registration =
        found->def ? BuiltinRegistration(*found->def, op.version) : found->registration;
    if (found == &kNobody) node->registration.builtin_code = op.builtin_code;
    node->registration.version = op.version;
    // The resolver, whose own copy of the name this was, may be gone after this.
    if (custom) node->registration.custom_name = op.custom_name.c_str();
    node->node.might_have_side_effect = HasSideEffect(*node);
    if (found->def != nullptr) node->node.user_data = NewBuiltinOp(*found->def, op.version);
    plan_.push_back(AddNode(std::move(node)));
  }
  original_nodes_ = nodes_.size();
  if (missing.empty()) return Status();
  std::string names;
  for (const std::string& name : missing) names += (names.empty() ? "" : ", ") + name;
  const bool custom = names.find("custom operator") != std::string::npos;
  return Unsupported("operators not implemented in this interpreter: ", names,
                     custom ? "; docs/custom-operators.md says how to add custom operators" : "");
}

int Subgraph::AddNode(std::unique_ptr<Node> node) {
  const int index = static_cast<int>(nodes_.size());
  node->index = index;
  node->context = &context_;
  Node& added = *nodes_.emplace_back(std::move(node));
  // A builtin operator of kernels/ has its object already.
  if (added.node.user_data != nullptr) return index;
  ReserveTensors();
  const bool custom = added.registration.builtin_code == tflite::kTfLiteBuiltinCustom;
  const void* const buffer = custom ? added.node.custom_initial_data : added.node.builtin_data;
  const int length = custom ? added.node.custom_initial_data_size : 0;
  added.node.user_data = CallInit(added.registration, &context_, static_cast<const char*>(buffer),
                                  static_cast<size_t>(length));
  added.remembers = added.node.user_data != nullptr && added.node.delegate == nullptr;
  return index;
}

bool Subgraph::HasSideEffect(const Node& node) const {
  const auto is_resource = [&](int index) {
    return index >= 0 && tensors_[index].type == tflite::kTfLiteResource;
  };
  switch (node.registration.builtin_code) {
    case tflite::kTfLiteBuiltinIf:
    case tflite::kTfLiteBuiltinStablehloCase:
    case tflite::kTfLiteBuiltinWhile:
    case tflite::kTfLiteBuiltinCallOnce: return true;
    default: break;
  }
  return std::ranges::any_of(Elements(node.node.inputs), is_resource) ||
         std::ranges::any_of(Elements(node.node.outputs), is_resource);
}

void Subgraph::SetTensorsSize(size_t size) {
  tensors_.resize(size);
  persistent_.resize(size);
  context_.tensors = tensors_.data();
  context_.tensors_size = size;
}

void Subgraph::ReserveTensors() {
  if (tensors_.capacity() - tensors_.size() >= kSpareTensors) return;
  tensors_.reserve(tensors_.size() * 2 + kSpareTensors);
  context_.tensors = tensors_.data();
}

void Subgraph::ReleaseHeap(TfLiteTensor& tensor) {
  if (IsOnHeap(tensor)) std::free(tensor.data.raw);
  tensor.data.raw = nullptr;
}

void Subgraph::FreeTensor(TfLiteTensor& tensor) {
  ReleaseHeap(tensor);
  std::free(tensor.dims);
  std::free(const_cast<tflite::TfLiteIntArray*>(tensor.dims_signature));
  if (tensor.quantization.type == tflite::kTfLiteAffineQuantization) {
    auto* affine = static_cast<tflite::TfLiteAffineQuantization*>(tensor.quantization.params);
    std::free(affine->scale);
    std::free(affine->zero_point);
  }
  std::free(tensor.quantization.params);
}

std::string Subgraph::Where(const Node& node) const {
  std::string where = "node " + std::to_string(node.index) + " " + node.name;
  return index_ == 0 ? where : "subgraph " + std::to_string(index_) + ": " + where;
}

Status Subgraph::StatusOf(tflite::TfLiteStatus code, const std::string& where) {
  const std::string errors = std::exchange(errors_, {});
  Status failure = std::exchange(failure_, {});
  const StatusCode told = std::exchange(told_, StatusCode::kInternal);
  if (code == tflite::kTfLiteOk) return Status();
  if (code == tflite::kTfLiteCancelled)
    return Status(StatusCode::kCancelled, where + ": cancelled");
  if (!failure.ok()) return failure.In(where);
  if (code == tflite::kTfLiteUnresolvedOps) return Unsupported(where, ": ", errors);
  return Status(told, where + ": " +
                          (errors.empty() ? "failed with status " + std::to_string(code) : errors));
}

Status Subgraph::StatusOf(tflite::TfLiteStatus code, const Node& node) {
  if (code != tflite::kTfLiteOk) return StatusOf(code, Where(node));
  errors_.clear();
  failure_ = Status();
  told_ = StatusCode::kInternal;
  return Status();
}

tflite::TfLiteStatus Subgraph::Fail(Status status) {
  const bool cancelled = status.code() == StatusCode::kCancelled;
  failure_ = std::move(status);
  return cancelled ? tflite::kTfLiteCancelled : tflite::kTfLiteError;
}

Result<std::byte*> Subgraph::Scratch(size_t bytes) {
  if (scratch_.size() >= bytes) return scratch_.data();
  FUSELITE_RETURN_IF_ERROR(CheckMemory(static_cast<double>(bytes)));
  scratch_ = AlignedBuffer(bytes);
  if (scratch_.data() == nullptr) return OutOfMemory("no memory for ", bytes, " bytes of scratch");
  return scratch_.data();
}

}  // namespace fuselite::interpreter
