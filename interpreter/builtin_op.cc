#include "interpreter/builtin_op.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "interpreter/host_memory.h"
#include "interpreter/operators/string_numbers.h"
#include "interpreter/subgraph.h"
#include "kernels/evaluation.h"
#include "kernels/import.h"
#include "kernels/legacy_weights.h"
#include "kernels/stablehlo/region.h"
#include "runtime/support/caught.h"
#include "runtime/tflite/arrays.h"

namespace fuselite::interpreter {
namespace {

using kernels::OpDescription;
using tflite::Elements;
using tflite::TfLiteContext;
using tflite::TfLiteNode;
using tflite::TfLiteStatus;
using tflite::TfLiteTensor;

class BuiltinOp {
 public:
  BuiltinOp(const kernels::OperatorDef& def, int version) : def_(def), version_(version) {}

  Status Prepare(Subgraph& graph, const TfLiteNode& node) {
    kernel_.reset();
    known_ = false;
    FUSELITE_RETURN_IF_ERROR(Describe(graph, node));
    FUSELITE_RETURN_IF_ERROR(CheckStrings(graph));
    const Status status = kernels::Infer(op_);
    dynamic_ = status.code() == StatusCode::kDynamicShape;
    if (dynamic_) {
      for (int output : Elements(node.outputs)) graph.SetDynamic(graph.tensor(output));
      return Status();
    }
    FUSELITE_RETURN_IF_ERROR(status);
    FUSELITE_RETURN_IF_ERROR(graph.CountWork(kernels::Cost(op_)));
    FUSELITE_RETURN_IF_ERROR(graph.host().budget.CheckMemory(op_.outputs));
    known_ = IsKnown();
    if (known_) {
      for (int output : Elements(node.outputs)) graph.SetPersistent(graph.tensor(output));
    }
    FUSELITE_RETURN_IF_ERROR(ResizeOutputs(graph, node));
    FUSELITE_RETURN_IF_ERROR(Build());
    return known_ ? Run(graph, node) : Status();
  }

  Status Invoke(Subgraph& graph, const TfLiteNode& node) {
    if (known_) return Status();
    if (dynamic_) {
      // Every value is there by this time; what is built with them serves this run alone.
      FUSELITE_RETURN_IF_ERROR(Describe(graph, node));
      for (size_t i = 0; i < op_.inputs.size(); ++i) {
        const int input = operands_[i];
        if (input >= 0 && !IsString(graph, input))
          op_.inputs[i].data = graph.tensor(input).data.raw;
      }
      FUSELITE_RETURN_IF_ERROR(kernels::Infer(op_));
      const Budget& budget = graph.host().budget;
      FUSELITE_RETURN_IF_ERROR(budget.CheckMultiplyAdds(kernels::Cost(op_)));
      FUSELITE_RETURN_IF_ERROR(budget.CheckMemory(op_.outputs));
      FUSELITE_RETURN_IF_ERROR(ResizeOutputs(graph, node));
      FUSELITE_RETURN_IF_ERROR(Build());
    }
    return Run(graph, node);
  }

 private:
  // Whether what it gives depends on constants and shapes alone: then it is computed when
  // preparing, and whoever prepares later reads it as a constant.
  bool IsKnown() const {
    const auto known = [&](const TensorInfo& info) {
      return info.absent() || info.constant() || kernels::ReadsShapesOnly(def_);
    };
    return kernels::GivesConstants(def_) && std::ranges::all_of(op_.inputs, known);
  }

  Status Describe(Subgraph& graph, const TfLiteNode& node) {
    op_ = OpDescription();
    op_.op = &def_;
    op_.version = version_;
    // The struct is this room's own and whole, and files use fields that the operator's version
    // does not have yet: such a field counts, as it does in LiteRT.
    constexpr int kEveryField = std::numeric_limits<int>::max();
    if (def_.custom()) {
      const std::span options(static_cast<const std::byte*>(node.custom_initial_data),
                              static_cast<size_t>(node.custom_initial_data_size));
      FUSELITE_RETURN_IF_ERROR(def_.read_custom(options, op_.params.data()));
    } else {
      FUSELITE_RETURN_IF_ERROR(
          kernels::ImportParams(def_.fields, node.builtin_data, kEveryField, op_.params.data()));
      FUSELITE_RETURN_IF_ERROR(ReadRegion(graph));
    }
    FUSELITE_RETURN_IF_ERROR(FindOperands(graph, node));
    for (int input : operands_) {
      TensorInfo info;
      if (input >= 0) {
        FUSELITE_ASSIGN_OR_RETURN(info, Import(graph, "input", input));
      }
      op_.inputs.push_back(std::move(info));
    }
    kernels::ReadLegacyWeights(op_);
    for (int output : Elements(node.outputs)) {
      FUSELITE_ASSIGN_OR_RETURN(TensorInfo info, Import(graph, "output", output));
      op_.outputs.push_back(std::move(info));
    }
    FUSELITE_ASSIGN_OR_RETURN(
        op_.intermediates,
        kernels::ImportIntermediates(graph.context(), Elements(node.intermediates)));
    return kernels::CheckState(*op_.op, Elements(node.inputs), graph.context());
  }

  Status ReadRegion(Subgraph& graph) {
    const std::optional<int> region = kernels::RegionOf(def_, op_.params);
    if (!region) return Status();
    std::vector<int> codes;
    for (const ModelOperator& inner : graph.host().model->subgraphs[*region].operators) {
      codes.push_back(inner.builtin_code);
    }
    return kernels::ReadRegion(def_, codes, op_.params);
  }

  // The inputs, and scales that one of them has beside it.
  Status FindOperands(const Subgraph& graph, const TfLiteNode& node) {
    const std::span<const int> inputs = Elements(node.inputs);
    operands_.assign(inputs.begin(), inputs.end());
    kernels::TakeForm(operands_, op_.params, graph.context(), &op_.op);
    return kernels::TakeBlockScales(graph.context(), &op_.op, &operands_);
  }

  // Strings as the numbers that stand for them, where the operator takes them.
  Result<TensorInfo> Import(const Subgraph& graph, std::string_view what, int tensor) const {
    Result<TensorInfo> info =
        kernels::ImportTensor(graph.context(), graph.tensor(tensor), kernels::Constants::kPrepared);
    if (!info.ok()) return info.status().In(internal::Join(what, " tensor ", tensor));
    if (IsString(graph, tensor) && TakesStrings(def_.builtin_code)) {
      info->type = DataType::kInt32;
      info->data = nullptr;
    }
    return info;
  }
  static bool IsString(const Subgraph& graph, int tensor) {
    return tensor >= 0 && graph.tensor(tensor).type == tflite::kTfLiteString;
  }
  // TFLite gathers strings out of vectors only.
  Status CheckStrings(const Subgraph& graph) const {
    if (def_.builtin_code != tflite::kTfLiteBuiltinGather || operands_.empty() ||
        !IsString(graph, operands_[0]) || op_.inputs[0].shape.rank() == 1) {
      return Status();
    }
    return InvalidArgument("gathers strings of shape ", op_.inputs[0].shape,
                           ", which are no vector");
  }
  bool ReadsStrings(const Subgraph& graph) const {
    return std::ranges::any_of(operands_, [&](int tensor) { return IsString(graph, tensor); });
  }

  Status ResizeOutputs(Subgraph& graph, const TfLiteNode& node) {
    for (size_t i = 0; i < op_.outputs.size(); ++i) {
      TfLiteTensor& tensor = graph.tensor(node.outputs->data[i]);
      const TensorInfo& info = op_.outputs[i];
      const bool numbers = info.type == DataType::kInt32 && ReadsStrings(graph);
      if (numbers && tensor.type == tflite::kTfLiteString) {
        graph.SetDynamic(tensor);
      } else if (numbers || static_cast<int>(info.type) != tensor.type) {
        return InvalidArgument("output ", i, " is declared as ",
                               DataTypeName(static_cast<DataType>(tensor.type)), ", but is ",
                               DataTypeName(numbers ? DataType::kString : info.type));
      }
      FUSELITE_RETURN_IF_ERROR(graph.ResizeTensor(tensor, info.shape.dims()));
    }
    return Status();
  }

  Status Build() {
    FUSELITE_ASSIGN_OR_RETURN(kernel_, kernels::BuildReference(op_));
    return Status();
  }

  Status Run(Subgraph& graph, const TfLiteNode& node) {
    StringNumbers strings;
    FUSELITE_RETURN_IF_ERROR(FindMemory(graph, node, strings));
    FUSELITE_RETURN_IF_ERROR(RunKernel(graph));
    for (size_t i = 0; i < op_.outputs.size(); ++i) {
      const int output = node.outputs->data[i];
      if (!IsString(graph, output)) continue;
      const Shape& shape = op_.outputs[i].shape;
      const std::span numbers(static_cast<const int32_t*>(output_pointers_[i]),
                              static_cast<size_t>(shape.elements()));
      FUSELITE_RETURN_IF_ERROR(strings.Write(numbers, shape.dims(), graph, graph.tensor(output)));
    }
    return Status();
  }

  Status FindMemory(Subgraph& graph, const TfLiteNode& node, StringNumbers& strings) {
    input_pointers_.clear();
    output_pointers_.clear();
    for (int input : operands_) {
      const void* memory = input < 0 ? nullptr : graph.tensor(input).data.raw;
      if (IsString(graph, input)) {
        FUSELITE_ASSIGN_OR_RETURN(memory, strings.Read(graph.tensor(input)));
      }
      input_pointers_.push_back(memory);
    }
    for (size_t i = 0; i < op_.outputs.size(); ++i) {
      const int output = node.outputs->data[i];
      void* memory = graph.tensor(output).data.raw;
      if (IsString(graph, output)) memory = strings.Reserve(op_.outputs[i].shape.elements());
      output_pointers_.push_back(memory);
    }
    return Status();
  }

  Status RunKernel(Subgraph& graph) {
    const size_t scratch_bytes = AlignUp(kernel_->scratch_bytes());
    FUSELITE_ASSIGN_OR_RETURN(std::byte* const memory,
                              graph.Scratch(scratch_bytes + AlignUp(kernel_->shared_bytes())));
    const KernelArgs args = {input_pointers_.data(), output_pointers_.data(), memory,
                             memory + scratch_bytes};
    for (int phase = 0; phase < kernel_->phases(); ++phase) {
      const int64_t units = kernel_->units(phase);
      if (units > 0) FUSELITE_RETURN_IF_ERROR(kernel_->Run(args, phase, 0, units));
    }
    return Status();
  }

  const kernels::OperatorDef& def_;
  const int version_;
  OpDescription op_;
  std::shared_ptr<const Kernel> kernel_;
  bool dynamic_ = false;
  bool known_ = false;
  std::vector<int> operands_;  // tensors
  std::vector<const void*> input_pointers_;
  std::vector<void*> output_pointers_;
};

template <class Body>
TfLiteStatus Call(TfLiteContext* context, TfLiteNode* node, Body body) {
  Subgraph& graph = Subgraph::From(context);
  Status status =
      Guarded("its kernel", [&] { return body(*static_cast<BuiltinOp*>(node->user_data), graph); });
  return status.ok() ? tflite::kTfLiteOk : graph.Fail(std::move(status));
}

}  // namespace

tflite::TfLiteRegistration BuiltinRegistration(const kernels::OperatorDef& def, int version) {
  tflite::TfLiteRegistration registration{};
  registration.builtin_code = def.builtin_code;
  if (def.custom()) {
    registration.builtin_code = tflite::kTfLiteBuiltinCustom;
    registration.custom_name = def.name.data();
  }
  registration.version = version;
  registration.free = [](TfLiteContext*, void* op) { delete static_cast<BuiltinOp*>(op); };
  registration.prepare = [](TfLiteContext* context, TfLiteNode* node) {
    return Call(context, node,
                [&](BuiltinOp& op, Subgraph& graph) { return op.Prepare(graph, *node); });
  };
  registration.invoke = [](TfLiteContext* context, TfLiteNode* node) {
    return Call(context, node,
                [&](BuiltinOp& op, Subgraph& graph) { return op.Invoke(graph, *node); });
  };
  return registration;
}

void* NewBuiltinOp(const kernels::OperatorDef& def, int version) {
  return new BuiltinOp(def, version);
}

void* MakeBuiltinData(const ModelOperator& op) {
  if (op.builtin_code == tflite::kTfLiteBuiltinStablehloComposite) {
    auto* const composite = NewStruct<tflite::TfLiteStablehloCompositeParams>();
    // The model's bytes live as long as the nodes.
    *composite = {.name = op.composite_name.c_str(),
                  .subgraph_index = op.subgraphs[0],
                  .version = op.version,
                  .attributes = reinterpret_cast<const uint8_t*>(op.attributes.data()),
                  .attributes_size = op.attributes.size()};
    return composite;
  }
  if (op.builtin_code == tflite::kTfLiteBuiltinStablehloCase) {
    auto* const cases = NewStruct<tflite::TfLiteStablehloCaseParams>();
    cases->num_branches = static_cast<uint32_t>(op.subgraphs.size());
    std::ranges::copy(op.subgraphs, cases->branch_subgraph_indices);
    return cases;
  }
  if (!op.subgraphs.empty() && op.def == nullptr) {
    // IF, WHILE and CALL_ONCE: the indices, one after the other, are their whole struct.
    auto* const indices = static_cast<int*>(AllocateZeros(op.subgraphs.size() * sizeof(int)));
    std::ranges::copy(op.subgraphs, indices);
    return indices;
  }
  if (op.builtin_code == tflite::kTfLiteBuiltinVarHandle) {
    auto* const handle = NewStruct<tflite::TfLiteVarHandleParams>();
    // The model's strings live as long as the nodes.
    *handle = {op.container.c_str(), op.shared_name.c_str()};
    return handle;
  }
  if (op.def != nullptr && op.def->candidates.empty()) {
    // This room's own operators read the parameters as they are.
    void* const params = AllocateZeros(op.def->params_bytes);
    std::memcpy(params, op.params.data(), op.def->params_bytes);
    return params;
  }
  if (op.def == nullptr || op.def->struct_bytes == 0) return nullptr;
  void* const data = AllocateZeros(op.def->struct_bytes);
  kernels::ExportParams(op.def->fields, op.params.data(), data);
  return data;
}

}  // namespace fuselite::interpreter
