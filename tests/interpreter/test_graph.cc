#include "tests/interpreter/test_graph.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>

namespace fuselite::interpreter {
namespace {

using tflite::Elements;
using tflite::TfLiteContext;
using tflite::TfLiteNode;
using tflite::TfLiteStatus;
using tflite::TfLiteTensor;

TfLiteTensor& Input(TfLiteContext* context, const TfLiteNode* node, int i) {
  return context->tensors[node->inputs->data[i]];
}

TfLiteTensor& Result(TfLiteContext* context, const TfLiteNode* node) {
  return context->tensors[node->outputs->data[0]];
}

TfLiteStatus LikeInput(TfLiteContext* context, TfLiteNode* node) {
  return context->ResizeTensor(
      context, &Result(context, node),
      tflite::MakeIntArray(Elements(Input(context, node, 0).dims)).release());
}

void AddOne(const TfLiteTensor& from, const TfLiteTensor& to) {
  for (size_t i = 0; i < to.bytes / sizeof(float); ++i) to.data.f[i] = from.data.f[i] + 1;
}

void Sum(const TfLiteTensor& a, const TfLiteTensor& b, const TfLiteTensor& to) {
  for (size_t i = 0; i < to.bytes / sizeof(float); ++i) to.data.f[i] = a.data.f[i] + b.data.f[i];
}

TfLiteStatus PrepareCount(TfLiteContext* context, TfLiteNode* node) {
  Result(context, node).allocation_type = tflite::kTfLiteDynamic;
  Result(context, node).data.raw = nullptr;
  return tflite::kTfLiteOk;
}

TfLiteStatus InvokeCount(TfLiteContext* context, TfLiteNode* node) {
  const int count = static_cast<int>(Input(context, node, 0).data.f[0]);
  const TfLiteStatus status =
      context->ResizeTensorExplicit(context, &Result(context, node), 1, &count);
  if (status == tflite::kTfLiteOk) std::memset(Result(context, node).data.raw, 0, count * 4u);
  return status;
}

OpResolver MakeOperators() {
  OpResolver resolver = OpResolver::WithBuiltins();
  tflite::TfLiteRegistration op{};
  op.prepare = LikeInput;
  op.invoke = [](TfLiteContext* context, TfLiteNode* node) {
    AddOne(Input(context, node, 0), Result(context, node));
    return tflite::kTfLiteOk;
  };
  resolver.AddCustom("AddOne", op);
  op.invoke = [](TfLiteContext* context, TfLiteNode* node) {
    Sum(Input(context, node, 0), Input(context, node, 1), Result(context, node));
    return tflite::kTfLiteOk;
  };
  resolver.AddCustom("Sum", op);
  op.invoke = [](TfLiteContext* context, TfLiteNode*) {
    context->ReportError(context, "failed as %s\n", "asked");
    return tflite::kTfLiteError;
  };
  resolver.AddCustom("Fails", op);
  op.prepare = PrepareCount;
  op.invoke = InvokeCount;
  resolver.AddCustom("Count", op);
  return resolver;
}

// The delegate's kernel: its nodes one after the other, over the host's tensors where they have
// memory, else over its own.
struct DelegateKernel {
  TestDelegate* owner;
  std::vector<std::pair<std::vector<int>, int>> nodes;  // inputs, output
  std::map<int, std::vector<float>> values;
};

void* InitKernel(TfLiteContext* context, const char* buffer, size_t) {
  const auto* params = reinterpret_cast<const tflite::TfLiteDelegateParams*>(buffer);
  auto* kernel = new DelegateKernel{static_cast<TestDelegate*>(params->delegate->data_), {}, {}};
  TestDelegate::Partition partition;
  for (int index : Elements(params->nodes_to_replace)) {
    TfLiteNode* node = nullptr;
    tflite::TfLiteRegistration* registration = nullptr;
    EXPECT_EQ(context->GetNodeAndRegistration(context, index, &node, &registration),
              tflite::kTfLiteOk);
    const auto inputs = Elements(node->inputs);
    kernel->nodes.push_back({{inputs.begin(), inputs.end()}, node->outputs->data[0]});
    partition.nodes.push_back(index);
  }
  std::ranges::copy(Elements(params->input_tensors), std::back_inserter(partition.inputs));
  std::ranges::copy(Elements(params->output_tensors), std::back_inserter(partition.outputs));
  kernel->owner->partitions.push_back(std::move(partition));
  ++kernel->owner->kernels_alive;
  return kernel;
}

void FreeKernel(TfLiteContext*, void* data) {
  auto* kernel = static_cast<DelegateKernel*>(data);
  --kernel->owner->kernels_alive;
  delete kernel;
}

TfLiteStatus PrepareKernel(TfLiteContext* context, TfLiteNode* node) {
  auto* kernel = static_cast<DelegateKernel*>(node->user_data);
  ++kernel->owner->kernel_prepares;
  if (kernel->owner->fail_kernel_prepare) {
    context->ReportError(context, "the kernel does not want to");
    return tflite::kTfLiteError;
  }
  kernel->owner->shapes_inside.clear();
  for (const auto& [inputs, output] : kernel->nodes) {
    if (std::ranges::count(Elements(node->outputs), output) > 0) continue;
    const auto inside = Elements(context->tensors[output].dims);
    kernel->owner->shapes_inside.emplace_back(inside.begin(), inside.end());
  }
  const auto dims = Elements(context->tensors[node->inputs->data[0]].dims);
  for (int output : Elements(node->outputs)) {
    const TfLiteStatus status = context->ResizeTensor(context, &context->tensors[output],
                                                      tflite::MakeIntArray(dims).release());
    if (status != tflite::kTfLiteOk) return status;
  }
  return tflite::kTfLiteOk;
}

// Takes the values of a tensor away, which the host then finds to be stale.
void Keep(TestDelegate& owner, TfLiteTensor& tensor, int index) {
  const std::span<float> values(tensor.data.f, tensor.bytes / sizeof(float));
  owner.kept[index].assign(values.begin(), values.end());
  std::ranges::fill(values, -1.0f);
  tensor.data_is_stale = true;
  tensor.buffer_handle = index;
}

TfLiteStatus InvokeKernel(TfLiteContext* context, TfLiteNode* node) {
  auto* kernel = static_cast<DelegateKernel*>(node->user_data);
  ++kernel->owner->invokes;
  const auto inside = [&](int tensor) {
    return std::ranges::count(Elements(node->inputs), tensor) == 0 &&
           std::ranges::count(Elements(node->outputs), tensor) == 0;
  };
  TestDelegate& owner = *kernel->owner;
  const auto view = [&](int index) {
    TfLiteTensor tensor = context->tensors[index];
    const auto kept = owner.kept.find(index);
    if (tensor.data_is_stale && kept != owner.kept.end()) tensor.data.f = kept->second.data();
    if (!inside(index)) return tensor;
    // Values inside a partition have the shape of its first input.
    tensor.bytes = context->tensors[node->inputs->data[0]].bytes;
    auto& memory = kernel->values[index];
    memory.resize(tensor.bytes / sizeof(float));
    tensor.data.f = memory.data();
    return tensor;
  };
  for (const auto& [inputs, output] : kernel->nodes) {
    if (inputs.size() == 1) {
      AddOne(view(inputs[0]), view(output));
    } else {
      Sum(view(inputs[0]), view(inputs[1]), view(output));
    }
  }
  for (int output : Elements(node->outputs)) {
    if (owner.keeps) Keep(owner, context->tensors[output], output);
  }
  return tflite::kTfLiteOk;
}

TfLiteStatus CopyKept(TfLiteContext* context, tflite::TfLiteDelegate* delegate,
                      tflite::TfLiteBufferHandle handle, TfLiteTensor* tensor) {
  auto& owner = *static_cast<TestDelegate*>(delegate->data_);
  ++owner.copies;
  if (owner.fail_copy) {
    context->ReportError(context, "its memory is gone");
    return tflite::kTfLiteError;
  }
  std::ranges::copy(owner.kept.at(handle), tensor->data.f);
  return tflite::kTfLiteOk;
}

void FreeKept(TfLiteContext*, tflite::TfLiteDelegate* delegate,
              tflite::TfLiteBufferHandle* handle) {
  static_cast<TestDelegate*>(delegate->data_)->kept.erase(*handle);
}

TfLiteStatus PrepareDelegate(TfLiteContext* context, tflite::TfLiteDelegate* delegate) {
  auto& test = *static_cast<TestDelegate*>(delegate->data_);
  ++test.prepares;
  tflite::TfLiteIntArray* plan = nullptr;
  EXPECT_EQ(context->GetExecutionPlan(context, &plan), tflite::kTfLiteOk);
  std::vector<int> claimed;
  for (int index : Elements(plan)) {
    if (std::ranges::count(test.claims, index)) claimed.push_back(index);
  }
  const auto nodes = tflite::MakeIntArray(claimed);
  tflite::TfLiteDelegateParams* partitions = nullptr;
  int count = 0;
  EXPECT_EQ(context->PreviewDelegatePartitioning(context, nodes.get(), &partitions, &count),
            tflite::kTfLiteOk);
  test.preview.clear();
  for (int i = 0; i < count; ++i) {
    const auto copy = [](const tflite::TfLiteIntArray* array) {
      const auto elements = Elements(array);
      return std::vector<int>(elements.begin(), elements.end());
    };
    test.preview.push_back({copy(partitions[i].nodes_to_replace), copy(partitions[i].input_tensors),
                            copy(partitions[i].output_tensors)});
  }
  tflite::TfLiteRegistration kernel{};
  kernel.init = InitKernel;
  kernel.free = FreeKernel;
  kernel.prepare = PrepareKernel;
  kernel.invoke = InvokeKernel;
  kernel.custom_name = "Test";
  kernel.version = 1;
  const TfLiteStatus status =
      context->ReplaceNodeSubsetsWithDelegateKernels(context, kernel, nodes.get(), delegate);
  if (!test.fail_prepare) return status;
  context->ReportError(context, "the delegate changed its mind");
  return tflite::kTfLiteDelegateError;
}

}  // namespace

const OpResolver& TestOperators() {
  static const OpResolver kOperators = MakeOperators();
  return kOperators;
}

std::shared_ptr<const Model> Load(const ModelWriter& writer) {
  auto bytes = std::make_shared<const std::vector<std::byte>>(writer.Finish());
  const std::span<const std::byte> view(*bytes);
  auto model = LoadModelFromMemory(view, std::move(bytes));
  EXPECT_TRUE(model.ok()) << model.status().ToString();
  return model.ok() ? *model : nullptr;
}

std::unique_ptr<Interpreter> Open(const ModelWriter& writer, InterpreterOptions options) {
  const auto model = Load(writer);
  if (model == nullptr) return nullptr;
  if (options.resolver == nullptr) options.resolver = &TestOperators();
  auto interpreter = Interpreter::Create(model, options);
  EXPECT_TRUE(interpreter.ok()) << interpreter.status().ToString();
  return interpreter.ok() ? std::move(*interpreter) : nullptr;
}

std::unique_ptr<Interpreter> OpenBuiltin(const ModelWriter& writer) {
  static const OpResolver kBuiltins = OpResolver::WithBuiltins();
  InterpreterOptions options;
  options.resolver = &kBuiltins;
  return Open(writer, options);
}

void WriteChain(ModelWriter& writer, int length) {
  for (int i = 0; i <= length; ++i) {
    writer.AddTensor("t" + std::to_string(i), DataType::kFloat32, {2});
    if (i > 0) writer.AddCustomOperator("AddOne", {}, {i - 1}, {i});
  }
  writer.SetInputs({0});
  writer.SetOutputs({length});
}

std::vector<float> Output(const Interpreter& interpreter, int i) {
  const TensorView view = interpreter.output(i);
  const auto* values = static_cast<const float*>(view.data);
  return {values, values + view.bytes / sizeof(float)};
}

std::vector<float> RunOn(Interpreter& interpreter, const std::vector<float>& input) {
  const TensorView view = interpreter.input(0);
  EXPECT_EQ(view.bytes, input.size() * sizeof(float));
  std::ranges::copy(input, static_cast<float*>(view.data));
  const Status status = interpreter.Invoke();
  EXPECT_TRUE(status.ok()) << status.ToString();
  return Output(interpreter);
}

TestDelegate::TestDelegate() {
  delegate.data_ = this;
  delegate.Prepare = PrepareDelegate;
  delegate.CopyFromBufferHandle = CopyKept;
  delegate.FreeBufferHandle = FreeKept;
}

}  // namespace fuselite::interpreter
