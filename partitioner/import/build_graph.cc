#include "partitioner/import/build_graph.h"

#include <algorithm>
#include <map>

#include "fusion/graph/splice.h"
#include "partitioner/import/composites.h"
#include "partitioner/import/tensor_indices.h"
#include "runtime/tflite/arrays.h"

namespace fuselite::partitioner {
namespace {

class Builder {
 public:
  Builder(const Partition& partition, const tflite::TfLiteContext* context, TensorTable& table)
      : partition_(partition), context_(context), table_(table) {}

  Result<BuiltGraph> Build(int begin, int* failed_node) && {
    Reserve(begin);
    const int count = static_cast<int>(partition_.nodes.size());
    for (built_.end = begin; built_.end < count; ++built_.end) {
      *failed_node = built_.end;
      const ImportedNode& node = *partition_.nodes[built_.end];
      if (node.op == nullptr) continue;
      const Status status = AddNode(node);
      if (status.code() == StatusCode::kDynamicShape) break;
      FUSELITE_RETURN_IF_ERROR(status);
    }
    for (int tensor : partition_.outputs) AddOutput(tensor, made_);
    for (int i = built_.end; i < count; ++i) {
      // What is known of them is known to those behind, too.
      for (int tensor : partition_.nodes[i]->inputs) AddOutput(tensor, read_);
    }
    return std::move(built_);
  }

 private:
  // For all nodes, and as many that rewrites put between them: of room that nobody uses no page is
  // touched. What several nodes read counts several times.
  void Reserve(int begin) {
    const std::span nodes = std::span(partition_.nodes).subspan(begin);
    size_t values = partition_.inputs.size();
    for (const SharedNode& node : nodes) values += node->inputs.size() + node->outputs.size();
    built_.graph.Reserve(values, 2 * nodes.size());
  }

  // Unless the tensor is made elsewhere, or an output already. `ids`: made_ or read_.
  void AddOutput(int tensor, const TensorIndices& ids) {
    if (!made_.contains(tensor) || built_.graph.value(made_[tensor]).observed) return;
    const fusion::ValueId id = ids[tensor];
    fusion::Value& value = built_.graph.value(id);
    if (value.observed) return;
    value.observed = true;
    built_.graph.outputs.push_back(id);
    built_.outputs.push_back({tensor, value.info, value.info.bytes()});
  }

  fusion::Value ValueOf(int tensor, TensorInfo info) const {
    fusion::Value value;
    value.info = std::move(info);
    const char* name = context_->tensors[tensor].name;
    if (name != nullptr) value.name = name;
    value.host_tensor = tensor;
    return value;
  }

  Status AddInput(int tensor) {
    if (read_.contains(tensor)) return Status();
    // The node that reads it was described with it.
    FUSELITE_ASSIGN_OR_RETURN(TensorInfo info, table_.Get(tensor));
    const bool constant = info.constant();
    fusion::Value value = ValueOf(tensor, std::move(info));
    value.storage = table_.StorageOf(tensor);
    value.variable = context_->tensors[tensor].is_variable || table_.IsVariable(tensor);
    value.input = !constant && !value.variable;
    if (!constant) {
      (value.input ? built_.inputs : built_.variables)
          .push_back({tensor, value.info, value.info.bytes()});
      built_.graph.inputs.push_back(built_.graph.value_count());
    }
    read_.Set(tensor, built_.graph.AddValue(std::move(value)));
    return Status();
  }

  // A constant of which the node takes the bytes for another type.
  void ReadAs(const TensorInfo& info, fusion::ValueId id) {
    TensorInfo& known = built_.graph.value(id).info;
    if (!known.constant()) return;
    known.type = info.type;
    known.quantization = info.quantization;
  }

  Status AddNode(const ImportedNode& imported) {
    const Result<kernels::OpDescription> inferred = table_.Infer(imported);
    const bool waits = inferred.status().code() == StatusCode::kDynamicShape;
    if (!inferred.ok() && !waits && imported.body != nullptr) return AddBody(imported);
    if (!inferred.ok()) return inferred.status();
    const kernels::OpDescription& op = *inferred;
    fusion::Node node;
    node.op = imported.op;
    node.params = op.params;
    node.version = imported.version;
    node.intermediates = imported.intermediates;
    node.host_nodes = {imported.host_node};
    node.host_op = imported.host_op;
    node.inputs.reserve(imported.inputs.size());
    node.outputs.reserve(imported.outputs.size());
    for (int tensor : imported.inputs) {
      if (tensor >= 0) FUSELITE_RETURN_IF_ERROR(AddInput(tensor));
      node.inputs.push_back(read_[tensor]);
      if (tensor >= 0) ReadAs(op.inputs[node.inputs.size() - 1], read_[tensor]);
    }
    bool needed = false;
    for (size_t i = 0; i < imported.outputs.size(); ++i) {
      const int tensor = imported.outputs[i];
      if (table_.IsVariable(tensor)) {
        FUSELITE_RETURN_IF_ERROR(AddInput(tensor));
        node.outputs.push_back(read_[tensor]);
        needed = true;
        continue;
      }
      const fusion::ValueId id = built_.graph.AddValue(ValueOf(tensor, op.outputs[i]));
      node.outputs.push_back(id);
      made_.Set(tensor, id);
      read_.Set(tensor, id);
      FUSELITE_ASSIGN_OR_RETURN(const TensorInfo recorded, table_.Get(tensor));
      if (recorded.constant()) {
        // Computed already: those inside read the constant.
        const std::span bytes(static_cast<const std::byte*>(recorded.data), recorded.bytes());
        read_.Set(tensor, built_.graph.AddConstant(recorded, bytes, built_.graph.value(id).name));
      }
      needed |= !recorded.constant() || std::ranges::count(partition_.outputs, tensor) > 0;
    }
    if (needed) built_.graph.AddNode(std::move(node));
    return Status();
  }

  // The nodes of a composite's decomposition in its place.
  Status AddBody(const ImportedNode& imported) {
    FUSELITE_ASSIGN_OR_RETURN(const BuiltGraph body, BuildBody(imported, table_));
    std::map<fusion::ValueId, fusion::ValueId> places;
    for (fusion::ValueId v = 0; v < body.graph.value_count(); ++v) {
      const std::vector<int>& arguments = imported.body->nodes.inputs;
      const auto argument = std::ranges::find(arguments, body.graph.value(v).host_tensor);
      if (argument == arguments.end()) continue;
      const int tensor = imported.inputs[argument - arguments.begin()];
      FUSELITE_RETURN_IF_ERROR(AddInput(tensor));
      places[v] = read_[tensor];
    }
    for (size_t i = 0; i < imported.outputs.size(); ++i) {
      const int tensor = imported.outputs[i];
      FUSELITE_ASSIGN_OR_RETURN(TensorInfo info, table_.Get(tensor));
      const fusion::ValueId id = built_.graph.AddValue(ValueOf(tensor, std::move(info)));
      places[body.graph.outputs[i]] = id;
      made_.Set(tensor, id);
      read_.Set(tensor, id);
    }
    fusion::Splice(body.graph, std::move(places), {imported.host_node}, built_.graph);
    return Status();
  }

  const Partition& partition_;
  const tflite::TfLiteContext* context_;
  TensorTable& table_;
  BuiltGraph built_;
  TensorIndices read_;  // the values that readers of tensors read
  TensorIndices made_;  // those that nodes write
};

}  // namespace

InputKey KeyOf(const tflite::TfLiteTensor& tensor) {
  InputKey key;
  if (IsKnownDataType(tensor.type)) key.type = static_cast<DataType>(tensor.type);
  key.shape = Shape::FromDims(tflite::Elements(tensor.dims)).value_or(Shape());
  if (tensor.allocation_type == tflite::kTfLiteMmapRo) key.constant = tensor.data.data;
  return key;
}

Result<BuiltGraph> BuildGraph(const Partition& partition, int begin,
                              const tflite::TfLiteContext* context, TensorTable& table,
                              int* failed_node) {
  return Builder(partition, context, table).Build(begin, failed_node);
}

}  // namespace fuselite::partitioner
