#include "fuselite/interpreter.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstring>

#include "interpreter/interpreter.h"
#include "runtime/memory/aligned_buffer.h"
#include "runtime/support/caught.h"
#include "runtime/tflite/operator.h"

struct FuseliteModel {
  std::shared_ptr<const fuselite::interpreter::Model> model;
};

struct FuseliteInterpreter {
  std::unique_ptr<fuselite::interpreter::Interpreter> interpreter;
  fuselite::Quantization quantization;                         // of the tensor asked for last
  std::vector<fuselite::interpreter::NodeEvent> events;        // not taken yet
  std::vector<fuselite::interpreter::NodeEvent> taken_events;  // by the last call
};

namespace fuselite::interpreter {
namespace {

thread_local Status last_status;
thread_local bool out_of_memory = false;  // what came behind last_status

FuseliteStatus Code(StatusCode code) { return static_cast<FuseliteStatus>(code); }
static_assert(static_cast<int>(StatusCode::kInvalidArgument) == kFuseliteInvalidArgument);
static_assert(static_cast<int>(StatusCode::kUnsupported) == kFuseliteUnsupported);
static_assert(static_cast<int>(StatusCode::kNotFound) == kFuseliteNotFound);
static_assert(static_cast<int>(StatusCode::kCancelled) == kFuseliteCancelled);
static_assert(static_cast<int>(StatusCode::kInternal) == kFuseliteInternal);
static_assert(static_cast<int>(StatusCode::kOverBudget) == kFuseliteOverBudget);
static_assert(static_cast<int>(DataType::kUInt4) == kFuseliteUInt4);

FuseliteStatus Report(Status status) {
  const FuseliteStatus code = Code(status.code());
  if (!status.ok()) {
    last_status = std::move(status);
    out_of_memory = false;
  }
  return code;
}

// Runs a body that returns Status; nothing is thrown into C.
template <class Body>
FuseliteStatus Try(Body body) {
  try {
    return Report(body());
  } catch (...) {
    const CaughtError error = DescribeCaught();
    if (error.code != StatusCode::kOutOfMemory) return Report(Status(error.code, error.text));
    out_of_memory = true;  // a message would take memory
    return kFuseliteOutOfMemory;
  }
}

// The argument of a function of the C interface, such as "the interpreter or the memory", is null.
Status IsNull(const char* function, const char* argument) {
  return InvalidArgument(function, ": ", argument, " is null");
}

// Bytes that may be none, at addresses that are null then.
void CopyBytes(const void* from, size_t size, void* to) {
  std::copy_n(static_cast<const std::byte*>(from), size, static_cast<std::byte*>(to));
}

template <class Load>
FuseliteModel* LoadWith(Load load) {
  FuseliteModel* model = nullptr;
  Try([&]() -> Status {
    FUSELITE_ASSIGN_OR_RETURN(auto loaded, load());
    model = new FuseliteModel{std::move(loaded)};
    return Status();
  });
  return model;
}

const Signature* FindSignature(const FuseliteInterpreter* interpreter, const char* key) {
  if (interpreter == nullptr) return nullptr;
  const Interpreter& runs = *interpreter->interpreter;
  const Signature* signature = key != nullptr ? runs.FindSignature(key) : runs.main_signature();
  return signature != nullptr && signature->subgraph == runs.main_subgraph() ? signature : nullptr;
}

const char* SignatureTensorName(const FuseliteModel* model, size_t signature,
                                std::vector<SignatureTensor> Signature::*ends, size_t i) {
  if (signature >= FuseliteModelSignatureCount(model)) return nullptr;
  const std::vector<SignatureTensor>& tensors = model->model->signatures[signature].*ends;
  return i < tensors.size() ? tensors[i].name.c_str() : nullptr;
}

int32_t At(std::span<const int> indices, size_t i) { return i < indices.size() ? indices[i] : -1; }

// The i-th of `ends`, each an `end`, if it has memory of `size` bytes.
Result<TensorView> WithMemory(const Interpreter& interpreter, std::span<const int> ends,
                              const char* end, size_t i, size_t size) {
  if (i >= ends.size()) {
    return InvalidArgument("there is no ", end, " ", i, ", the model has ", ends.size());
  }
  TensorView view = interpreter.tensor(ends[i]);
  if (view.bytes != size) {
    return InvalidArgument("\"", view.name, "\" has ", view.bytes, " bytes, not ", size);
  }
  if (view.data == nullptr && size > 0) {
    return InvalidArgument("\"", view.name, "\" has no memory yet: allocate first");
  }
  return view;
}

// A caller that was built with an older header has fewer members.
// `resolver` gets the application's operators, and must outlive the creation.
Result<InterpreterOptions> ReadOptions(const FuseliteInterpreterOptions& given,
                                       OpResolver& resolver) {
  if (given.struct_size < offsetof(FuseliteInterpreterOptions, signature)) {
    return InvalidArgument("struct_size of the options is ", given.struct_size,
                           "; begin with FuseliteInterpreterOptionsDefault()");
  }
  FuseliteInterpreterOptions all = FuseliteInterpreterOptionsDefault();
  std::memcpy(&all, &given, std::min(given.struct_size, sizeof all));
  InterpreterOptions options;
  options.num_threads = all.num_threads > 0 ? all.num_threads : -1;
  options.preserve_all_tensors = all.preserve_tensors != 0;
  options.budget = {all.max_memory, all.max_multiply_adds};
  if (std::isnan(all.max_memory) || std::isnan(all.max_multiply_adds)) {
    return InvalidArgument("max_memory and max_multiply_adds of the options must be numbers");
  }
  if (all.signature != nullptr) options.signature = all.signature;
  if (all.operator_count == 0) return options;
  if (all.operators == nullptr) {
    return InvalidArgument("the options have ", all.operator_count,
                           " operators, but their list is null");
  }
  resolver = OpResolver::WithBuiltins();
  for (const TfLiteOperator* op : std::span(all.operators, all.operator_count)) {
    if (op == nullptr) return InvalidArgument("an operator of the options is null");
    FUSELITE_RETURN_IF_ERROR(
        resolver.AddOperator(*reinterpret_cast<const tflite::TfLiteOperator*>(op)));
  }
  options.resolver = &resolver;
  return options;
}

}  // namespace
}  // namespace fuselite::interpreter

using fuselite::Status;
using namespace fuselite::interpreter;  // NOLINT(google-build-using-namespace): C functions only

const char* FuseliteTypeName(FuseliteType type) {
  const bool known = fuselite::IsKnownDataType(static_cast<int>(type));
  return fuselite::DataTypeName(known ? static_cast<fuselite::DataType>(type)
                                      : fuselite::DataType::kNone)
      .data();
}

const char* FuseliteLastError() {
  return out_of_memory ? "no memory left" : last_status.message().c_str();
}

FuseliteStatus FuseliteLastStatus() {
  return out_of_memory ? kFuseliteOutOfMemory : Code(last_status.code());
}

FuseliteModel* FuseliteModelLoadFile(const char* path) {
  return LoadWith([&]() -> fuselite::Result<std::shared_ptr<const Model>> {
    if (path == nullptr) return IsNull("FuseliteModelLoadFile", "the path");
    if (*path == '\0') return fuselite::InvalidArgument("the path of the model is empty");
    return LoadModelFromFile(path);
  });
}

FuseliteModel* FuseliteModelLoadMemory(const void* data, size_t size) {
  return LoadWith([&]() -> fuselite::Result<std::shared_ptr<const Model>> {
    if (data == nullptr) return IsNull("FuseliteModelLoadMemory", "the memory");
    auto copy = std::make_shared<fuselite::AlignedBuffer>(size);
    if (copy->data() == nullptr) return fuselite::OutOfMemory("no memory for the model");
    CopyBytes(data, size, copy->data());
    const std::span<const std::byte> bytes(copy->data(), size);
    return LoadModelFromMemory(bytes, std::move(copy));
  });
}

void FuseliteModelDelete(FuseliteModel* model) { delete model; }

size_t FuseliteModelSignatureCount(const FuseliteModel* model) {
  return model ? model->model->signatures.size() : 0;
}

const char* FuseliteModelSignatureKey(const FuseliteModel* model, size_t index) {
  if (index >= FuseliteModelSignatureCount(model)) return nullptr;
  return model->model->signatures[index].key.c_str();
}

const char* FuseliteModelSignatureInputName(const FuseliteModel* model, size_t signature,
                                            size_t i) {
  return SignatureTensorName(model, signature, &Signature::inputs, i);
}

const char* FuseliteModelSignatureOutputName(const FuseliteModel* model, size_t signature,
                                             size_t i) {
  return SignatureTensorName(model, signature, &Signature::outputs, i);
}

FuseliteInterpreterOptions FuseliteInterpreterOptionsDefault() {
  return {sizeof(FuseliteInterpreterOptions), 0, 0, nullptr, nullptr, 0, 0, 0};
}

FuseliteInterpreter* FuseliteInterpreterCreate(const FuseliteModel* model,
                                               const FuseliteInterpreterOptions* options) {
  FuseliteInterpreter* interpreter = nullptr;
  Try([&]() -> Status {
    if (model == nullptr) return IsNull("FuseliteInterpreterCreate", "the model");
    InterpreterOptions to;
    OpResolver resolver;
    if (options != nullptr) {
      FUSELITE_ASSIGN_OR_RETURN(to, ReadOptions(*options, resolver));
    }
    FUSELITE_ASSIGN_OR_RETURN(auto created, Interpreter::Create(model->model, to));
    interpreter = new FuseliteInterpreter{std::move(created), {}, {}, {}};
    return Status();
  });
  return interpreter;
}

void FuseliteInterpreterDelete(FuseliteInterpreter* interpreter) { delete interpreter; }

FuseliteStatus FuseliteInterpreterApplyDelegate(FuseliteInterpreter* interpreter, void* delegate) {
  return Try([&]() -> Status {
    if (interpreter == nullptr || delegate == nullptr) {
      return IsNull("FuseliteInterpreterApplyDelegate", "the interpreter or the delegate");
    }
    return interpreter->interpreter->ApplyDelegate(
        static_cast<fuselite::tflite::TfLiteDelegate*>(delegate));
  });
}

size_t FuseliteInterpreterInputCount(const FuseliteInterpreter* interpreter) {
  return interpreter ? interpreter->interpreter->inputs().size() : 0;
}

size_t FuseliteInterpreterOutputCount(const FuseliteInterpreter* interpreter) {
  return interpreter ? interpreter->interpreter->outputs().size() : 0;
}

size_t FuseliteInterpreterTensorCount(const FuseliteInterpreter* interpreter) {
  return interpreter ? static_cast<size_t>(interpreter->interpreter->tensor_count()) : 0;
}

int32_t FuseliteInterpreterInput(const FuseliteInterpreter* interpreter, size_t i) {
  return interpreter ? At(interpreter->interpreter->inputs(), i) : -1;
}

int32_t FuseliteInterpreterOutput(const FuseliteInterpreter* interpreter, size_t i) {
  return interpreter ? At(interpreter->interpreter->outputs(), i) : -1;
}

int32_t FuseliteInterpreterFindTensor(const FuseliteInterpreter* interpreter, const char* name) {
  return interpreter && name ? interpreter->interpreter->FindTensor(name) : -1;
}

int32_t FuseliteInterpreterSignatureInput(const FuseliteInterpreter* interpreter,
                                          const char* signature, const char* name) {
  const Signature* found = FindSignature(interpreter, signature);
  return found && name ? Interpreter::FindInput(*found, name) : -1;
}

int32_t FuseliteInterpreterSignatureOutput(const FuseliteInterpreter* interpreter,
                                           const char* signature, const char* name) {
  const Signature* found = FindSignature(interpreter, signature);
  return found && name ? Interpreter::FindOutput(*found, name) : -1;
}

static_assert(kFuseliteMaxRank == fuselite::Shape::kMaxRank);

FuseliteStatus FuseliteInterpreterTensor(FuseliteInterpreter* interpreter, int32_t tensor,
                                         FuseliteTensor* out) {
  return Try([&]() -> Status {
    if (interpreter == nullptr || out == nullptr) {
      return IsNull("FuseliteInterpreterTensor", "the interpreter or the result");
    }
    if (tensor < 0 || tensor >= interpreter->interpreter->tensor_count()) {
      return fuselite::InvalidArgument("there is no tensor ", tensor, ", the model has ",
                                       interpreter->interpreter->tensor_count());
    }
    TensorView view = interpreter->interpreter->tensor(tensor);
    *out = FuseliteTensor{};
    out->type = static_cast<FuseliteType>(view.type);
    out->rank = view.shape.rank();
    std::ranges::copy(view.shape.dims(), out->dims);
    out->name = view.name.data();
    out->data = view.data;
    out->bytes = view.bytes;
    interpreter->quantization = std::move(view.quantization);
    const fuselite::Quantization& quantization = interpreter->quantization;
    if (quantization.scales.size() == 1) {
      out->scale = quantization.scale();
      out->zero_point = quantization.zero_point();
    }
    out->scale_count = quantization.scales.size();
    out->scales = quantization.scales.data();
    out->zero_points = quantization.zero_points.data();
    out->quantized_dimension = quantization.axis;
    std::ranges::copy(view.shape.dims(), out->dims_signature);
    std::ranges::copy(view.shape_signature, out->dims_signature);
    out->is_variable = view.is_variable;
    out->is_constant = view.constant;
    return Status();
  });
}

FuseliteStatus FuseliteInterpreterResizeInput(FuseliteInterpreter* interpreter, size_t i,
                                              const int32_t* dims, size_t rank) {
  return Try([&]() -> Status {
    if (interpreter == nullptr || (dims == nullptr && rank > 0)) {
      return IsNull("FuseliteInterpreterResizeInput", "the interpreter or the list of dimensions");
    }
    if (rank > kFuseliteMaxRank) {
      return fuselite::InvalidArgument("rank ", rank, " is more than ", kFuseliteMaxRank);
    }
    const int input = static_cast<int>(std::min<size_t>(i, INT_MAX));
    return interpreter->interpreter->ResizeInput(input, std::span(dims, rank));
  });
}

FuseliteStatus FuseliteInterpreterAllocate(FuseliteInterpreter* interpreter) {
  return Try([&]() -> Status {
    if (interpreter == nullptr) return IsNull("FuseliteInterpreterAllocate", "the interpreter");
    return interpreter->interpreter->AllocateTensors();
  });
}

FuseliteStatus FuseliteInterpreterInvoke(FuseliteInterpreter* interpreter) {
  return Try([&]() -> Status {
    if (interpreter == nullptr) return IsNull("FuseliteInterpreterInvoke", "the interpreter");
    return interpreter->interpreter->Invoke();
  });
}

void FuseliteInterpreterCancel(FuseliteInterpreter* interpreter) {
  if (interpreter != nullptr) interpreter->interpreter->Cancel();
}

void FuseliteInterpreterResetVariables(FuseliteInterpreter* interpreter) {
  if (interpreter != nullptr) interpreter->interpreter->ResetVariables();
}

FuseliteStatus FuseliteInterpreterCopyIn(FuseliteInterpreter* interpreter, size_t i,
                                         const void* data, size_t size) {
  return Try([&]() -> Status {
    if (interpreter == nullptr || (data == nullptr && size > 0)) {
      return IsNull("FuseliteInterpreterCopyIn", "the interpreter or the memory");
    }
    Interpreter& runs = *interpreter->interpreter;
    if (i < runs.inputs().size() &&
        runs.input(static_cast<int>(i)).type == fuselite::DataType::kString) {
      const std::span table(static_cast<const std::byte*>(data), size);
      return runs.SetStrings(static_cast<int>(i), table);
    }
    FUSELITE_ASSIGN_OR_RETURN(const TensorView view,
                              WithMemory(runs, runs.inputs(), "input", i, size));
    if (view.constant) {
      return fuselite::InvalidArgument("\"", view.name, "\" is a constant of the file");
    }
    CopyBytes(data, size, view.data);
    return Status();
  });
}

FuseliteStatus FuseliteInterpreterCopyOut(FuseliteInterpreter* interpreter, size_t i, void* data,
                                          size_t size) {
  return Try([&]() -> Status {
    if (interpreter == nullptr || (data == nullptr && size > 0)) {
      return IsNull("FuseliteInterpreterCopyOut", "the interpreter or the memory");
    }
    const Interpreter& runs = *interpreter->interpreter;
    FUSELITE_ASSIGN_OR_RETURN(const TensorView view,
                              WithMemory(runs, runs.outputs(), "output", i, size));
    CopyBytes(view.data, size, data);
    return Status();
  });
}

void FuseliteInterpreterSetProfiling(FuseliteInterpreter* interpreter, int32_t on) {
  if (interpreter == nullptr) return;
  Try([&] {
    interpreter->interpreter->SetProfiling(on != 0);
    return Status();
  });
}

size_t FuseliteInterpreterTakeEvents(FuseliteInterpreter* interpreter, FuseliteProfileEvent* events,
                                     size_t capacity) {
  if (interpreter == nullptr || events == nullptr) return 0;
  size_t count = 0;
  Try([&]() -> Status {
    auto& waiting = interpreter->events;
    auto fresh = interpreter->interpreter->TakeEvents();
    waiting.insert(waiting.end(), std::make_move_iterator(fresh.begin()),
                   std::make_move_iterator(fresh.end()));
    const auto end = waiting.begin() + static_cast<ptrdiff_t>(std::min(capacity, waiting.size()));
    interpreter->taken_events.assign(std::make_move_iterator(waiting.begin()),
                                     std::make_move_iterator(end));
    waiting.erase(waiting.begin(), end);
    for (const NodeEvent& event : interpreter->taken_events) {
      events[count++] = {event.subgraph, event.node, event.name.c_str(), event.start_ns,
                         event.duration_ns};
    }
    return Status();
  });
  return count;
}
