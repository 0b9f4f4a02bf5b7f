#include "tests/partitioner/fake_host.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "runtime/tflite/builtin_codes.h"

namespace fuselite::partitioner::testing {

using namespace tflite;

namespace {

size_t BytesOf(DataType type, const Shape& shape) {
  TensorInfo info;
  info.type = type;
  info.shape = shape;
  return info.bytes();
}

std::shared_ptr<void> Allocate(size_t bytes) {
  return {std::calloc(1, std::max<size_t>(bytes, 1)), std::free};
}

}  // namespace

FakeHost::FakeHost() {
  table_.reserve(256);  // tests keep references
  context.tensors = table_.data();
  context.impl_ = this;
  context.recommended_num_threads = 1;
  context.ReportError = ReportError;
  context.GetExecutionPlan = GetPlan;
  context.GetNodeAndRegistration = GetNode;
  context.PreviewDelegatePartitioning = Preview;
  context.ReplaceNodeSubsetsWithDelegateKernels = Replace;
  context.ResizeTensor = ResizeTensor;
}

FakeHost::~FakeHost() { DropKernels(); }

int FakeHost::AddTensorOf(const Shape& shape, DataType type, std::shared_ptr<void> memory,
                          bool constant) {
  TfLiteTensor tensor{};
  tensor.type = static_cast<TfLiteType>(type);
  tensor.bytes = BytesOf(type, shape);
  tensor.data.data = memory.get();
  tensor.allocation_type = constant ? kTfLiteMmapRo : kTfLiteArenaRw;
  tensor.name = "t";
  tensor.dims = Own({shape.dims().begin(), shape.dims().end()});
  table_.push_back(tensor);
  memory_.push_back(std::move(memory));
  context.tensors = table_.data();
  context.tensors_size = table_.size();
  return static_cast<int>(table_.size()) - 1;
}

int FakeHost::AddTensor(const Shape& shape, DataType type) {
  return AddTensorOf(shape, type, Allocate(BytesOf(type, shape)), false);
}

int FakeHost::AddConstant(const Shape& shape, std::vector<float> values) {
  auto memory = std::make_shared<std::vector<float>>(std::move(values));
  return AddTensorOf(shape, DataType::kFloat32, {memory, memory->data()}, true);
}

int FakeHost::AddConstant(const Shape& shape, std::vector<int32_t> values) {
  auto memory = std::make_shared<std::vector<int32_t>>(std::move(values));
  return AddTensorOf(shape, DataType::kInt32, {memory, memory->data()}, true);
}

TfLiteIntArray* FakeHost::Own(const std::vector<int>& values) {
  TfLiteIntArray* array = MakeIntArray(values).release();
  owned_.emplace_back(array, std::free);
  return array;
}

int FakeHost::Add(TfLiteRegistration registration, std::vector<int> inputs,
                  std::vector<int> outputs) {
  TfLiteNode node{};
  node.inputs = Own(inputs);
  node.outputs = Own(outputs);
  nodes.push_back(node);
  registrations.push_back(registration);
  return static_cast<int>(nodes.size()) - 1;
}

int FakeHost::AddNode(std::string_view op, std::vector<int> inputs, std::vector<int> outputs,
                      const kernels::Params* params, int version) {
  const kernels::OperatorDef* def = kernels::FindOperator(op);
  if (def == nullptr) std::abort();
  TfLiteRegistration registration{};
  registration.builtin_code = def->builtin_code;
  registration.version = version;
  const int index = Add(registration, std::move(inputs), std::move(outputs));
  if (def->struct_bytes > 0) {
    kernels::Params all;
    kernels::SetDefaults(def->fields, all.data());
    std::shared_ptr<void> options = Allocate(def->struct_bytes);
    kernels::ExportParams(def->fields, params != nullptr ? params->data() : all.data(),
                          options.get());
    nodes.back().builtin_data = options.get();
    owned_.push_back(std::move(options));
  }
  return index;
}

int FakeHost::AddControlFlow(int builtin_code, std::vector<int> inputs, std::vector<int> outputs,
                             void* options) {
  TfLiteRegistration registration{};
  registration.builtin_code = builtin_code;
  registration.version = 1;
  const int index = Add(registration, std::move(inputs), std::move(outputs));
  nodes.back().builtin_data = options;
  return index;
}

int FakeHost::AddCustomNode(const char* name, std::vector<int> inputs, std::vector<int> outputs) {
  TfLiteRegistration registration{};
  registration.builtin_code = kTfLiteBuiltinCustom;
  registration.custom_name = name;
  registration.version = 1;
  return Add(registration, std::move(inputs), std::move(outputs));
}

TfLiteStatus FakeHost::Apply(TfLiteDelegate* delegate) {
  DropKernels();
  return delegate->Prepare(&context, delegate);
}

void FakeHost::DropKernels() {
  for (Kernel& kernel : running_) {
    kernel.registration.free(&context, kernel.node.user_data);
    const IntArrayPtr temporaries(kernel.node.temporaries);  // the kernel's, for the host to free
  }
  running_.clear();
  kernels.clear();
}

TfLiteStatus FakeHost::Prepare() {
  for (Kernel& kernel : running_) {
    const TfLiteStatus status = kernel.registration.prepare(&context, &kernel.node);
    if (status != kTfLiteOk) return status;
  }
  return kTfLiteOk;
}

TfLiteStatus FakeHost::Invoke() {
  for (Kernel& kernel : running_) {
    const TfLiteStatus status = kernel.registration.invoke(&context, &kernel.node);
    if (status != kTfLiteOk) return status;
  }
  return kTfLiteOk;
}

void FakeHost::Resize(int tensor, const Shape& shape) {
  TfLiteTensor& t = table_[tensor];
  t.dims = Own({shape.dims().begin(), shape.dims().end()});
  t.bytes = BytesOf(static_cast<DataType>(t.type), shape);
  if (t.allocation_type == kTfLiteCustom) return;  // the user's, who sees to its size
  // Always another address: nobody may keep the old one. What the arena holds gets memory when all
  // is planned, what has no elements none.
  const bool none = t.bytes == 0 && t.allocation_type == kTfLiteArenaRw;
  std::shared_ptr<void> memory = none ? nullptr : Allocate(t.bytes);
  t.data.data = memory.get();
  memory_[tensor] = std::move(memory);
}

Shape FakeHost::ShapeOf(int tensor) const { return Shape(Elements(table_[tensor].dims)); }

void FakeHost::ReportError(TfLiteContext* context, const char* format, ...) {
  char text[1024];
  va_list args;
  va_start(args, format);
  std::vsnprintf(text, sizeof text, format, args);
  va_end(args);
  Self(context).errors.emplace_back(text);
}

TfLiteStatus FakeHost::GetPlan(TfLiteContext* context, TfLiteIntArray** plan) {
  FakeHost& self = Self(context);
  if (self.fail_plan) return kTfLiteError;
  std::vector<int> all(self.nodes.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
  *plan = self.Own(all);
  return kTfLiteOk;
}

TfLiteStatus FakeHost::GetNode(TfLiteContext* context, int index, TfLiteNode** node,
                               TfLiteRegistration** registration) {
  FakeHost& self = Self(context);
  ++self.nodes_shown;
  const auto shown = self.shows.find(index);
  const Shows shows = shown == self.shows.end() ? Shows::kAll : shown->second;
  if (shows == Shows::kError) return kTfLiteError;
  *node = shows == Shows::kNoNode ? nullptr : &self.nodes[index];
  *registration = shows == Shows::kNoRegistration ? nullptr : &self.registrations[index];
  return kTfLiteOk;
}

// Runs of neighbours, as a host does that does not cluster.
std::vector<TfLiteDelegateParams> FakeHost::Partitions(const TfLiteIntArray* taken, bool splits) {
  std::vector<std::vector<int>> runs;
  for (int node : Elements(taken)) {
    if (splits || runs.empty() || runs.back().back() + 1 != node) runs.emplace_back();
    runs.back().push_back(node);
  }
  std::vector<TfLiteDelegateParams> partitions;
  for (const std::vector<int>& run : runs) {
    std::vector<int> made, inputs, outputs;
    const auto inside = [&](int node) { return std::ranges::count(run, node) > 0; };
    for (int node : run) {
      for (int tensor : Elements(nodes[node].inputs)) {
        if (tensor >= 0 &&
            std::ranges::count(made, tensor) + std::ranges::count(inputs, tensor) == 0) {
          inputs.push_back(tensor);
        }
      }
      for (int tensor : Elements(nodes[node].outputs)) made.push_back(tensor);
    }
    for (int tensor : made) {
      bool read_outside = std::ranges::count(graph_outputs_, tensor) > 0;
      for (size_t n = 0; n < nodes.size(); ++n) {
        const std::span<const int> reads = Elements(nodes[n].inputs);
        read_outside |= !inside(static_cast<int>(n)) && std::ranges::count(reads, tensor) > 0;
      }
      if (read_outside) outputs.push_back(tensor);
    }
    partitions.push_back({nullptr, Own(run), Own(inputs), Own(outputs)});
  }
  return partitions;
}

TfLiteStatus FakeHost::Preview(TfLiteContext* context, const TfLiteIntArray* taken,
                               TfLiteDelegateParams** params, int* count) {
  FakeHost& self = Self(context);
  if (self.fail_preview) return kTfLiteError;
  self.preview_ = self.Partitions(taken, false);
  *params = self.preview_.data();
  *count = static_cast<int>(self.preview_.size());
  return kTfLiteOk;
}

TfLiteStatus FakeHost::Replace(TfLiteContext* context, TfLiteRegistration registration,
                               const TfLiteIntArray* taken, TfLiteDelegate* delegate) {
  FakeHost& self = Self(context);
  self.nodes_shown = 0;
  if (self.fail_replace) return kTfLiteError;
  for (TfLiteDelegateParams params : self.Partitions(taken, self.splits_later)) {
    params.delegate = delegate;
    self.running_.push_back({registration, {}, params});
    Kernel& kernel = self.running_.back();
    kernel.node.inputs = params.input_tensors;
    kernel.node.outputs = params.output_tensors;
    kernel.node.delegate = delegate;
    kernel.node.user_data =
        registration.init(context, reinterpret_cast<const char*>(&kernel.params), 0);
    const std::span<const int> nodes = Elements(params.nodes_to_replace);
    self.kernels.emplace_back(nodes.begin(), nodes.end());
  }
  return kTfLiteOk;
}

TfLiteStatus FakeHost::ResizeTensor(TfLiteContext* context, TfLiteTensor* tensor,
                                    TfLiteIntArray* dims) {
  FakeHost& self = Self(context);
  const IntArrayPtr owned(dims);
  if (self.fail_resize) return kTfLiteError;
  const auto index = static_cast<int>(tensor - context->tensors);
  const bool grows = tensor->allocation_type == kTfLitePersistentRo;
  if (grows && self.grown_.contains(index) != (tensor->data.data != nullptr)) {
    context->ReportError(context, "memory is grown that is no tensor's own, or is lost");
    return kTfLiteError;
  }
  if (grows || tensor->allocation_type == kTfLiteDynamic) self.grown_.insert(index);
  self.Resize(index, Shape(Elements(dims)));
  return kTfLiteOk;
}

}  // namespace fuselite::partitioner::testing
