#include "tests/fuzz/stranger.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "runtime/tflite/arrays.h"

namespace fuselite::fuzz {
namespace {

using namespace tflite;
using kernels::testing::Random;

// The opaque structs are the plain ones.
TfLiteContext* Plain(TfLiteOpaqueContext* context) {
  return reinterpret_cast<TfLiteContext*>(context);
}
TfLiteNode* Plain(TfLiteOpaqueNode* node) { return reinterpret_cast<TfLiteNode*>(node); }

TfLiteStatus Anything(Random& random) {
  return random.Pick({kTfLiteError, kTfLiteUnresolvedOps, kTfLiteCancelled, kTfLiteDelegateError});
}

// The first tensor of a list; null where there is none.
TfLiteTensor* First(TfLiteContext* context, const TfLiteIntArray* list) {
  const bool any = list != nullptr && list->size > 0 && list->data[0] >= 0;
  return any ? &context->tensors[list->data[0]] : nullptr;
}

// A shape for a tensor: that of another one, or any.
TfLiteStatus Resize(TfLiteContext* context, TfLiteTensor* tensor, const TfLiteIntArray* like,
                    Random& random) {
  std::vector<int> dims(like->data, like->data + like->size);
  if (random.Chance(0.1)) dims.push_back(static_cast<int>(random.Int(-1, 3)));
  if (random.Chance(0.02)) dims.assign(17, 1);
  if (random.Chance(0.02)) dims.assign(4, 1 << 20);
  if (random.Chance(0.5)) {
    return context->ResizeTensorExplicit(context, tensor, static_cast<int>(dims.size()),
                                         dims.data());
  }
  return context->ResizeTensor(context, tensor, MakeIntArray(dims).release());
}

// What anybody may ask of a context.
void LookAround(TfLiteContext* context, Random& random) {
  const auto index = static_cast<int>(random.Int(-1, 5));
  switch (random.Int(0, 6)) {
    case 0: {
      const char* data = nullptr;
      size_t bytes = 0;
      context->GetModelMetadata(context, random.Pick({"notes", "none"}), &data, &bytes);
      break;
    }
    case 1: {
      const auto type = static_cast<TfLiteExternalContextType>(index);
      context->SetExternalContext(context, type, context->GetExternalContext(context, type));
      break;
    }
    case 2: {
      TfLiteContext* other = nullptr;
      if (context->AcquireSubgraphContext(context, index, &other) != kTfLiteOk) break;
      TfLiteIntArray* plan = nullptr;
      other->GetExecutionPlan(other, &plan);
      context->ReleaseSubgraphContext(context, random.Chance(0.9) ? index : -1);
      break;
    }
    case 3: {
      // Refused where it is no delegate that asks.
      TfLiteIntArray* plan = nullptr;
      context->GetExecutionPlan(context, &plan);
      break;
    }
    case 4: {
      TfLiteNode* node = nullptr;
      TfLiteRegistration* registration = nullptr;
      context->GetNodeAndRegistration(context, index, &node, &registration);
      break;
    }
    case 5: context->ReportError(context, "%d\n\tlines %s", index, "of a stranger\n"); break;
    default: {
      int first = 0;
      context->AddTensors(context, index, random.Chance(0.5) ? &first : nullptr);
      break;
    }
  }
}

// The values of `from`, each `more` larger, as far as both go.
void Copy(const TfLiteTensor* from, TfLiteTensor* to, float more) {
  if (to == nullptr || to->type != kTfLiteFloat32 || to->data.raw == nullptr) return;
  std::memset(to->data.raw, 0, to->bytes);
  if (from == nullptr || from->type != kTfLiteFloat32 || from->data.raw == nullptr) return;
  const size_t count = std::min(from->bytes, to->bytes) / sizeof(float);
  std::transform(from->data.f, from->data.f + count, to->data.f,
                 [&](float value) { return value + more; });
}

}  // namespace

struct Stranger::Calls {
  static Random& Draws(void* user_data) { return static_cast<Stranger*>(user_data)->random_; }

  // --- The operator: each function in both of its forms ---

  static void* Init(TfLiteOpaqueContext* /*context*/, const char* buffer, size_t length) {
    return new std::vector<char>(buffer, buffer + length);
  }
  static void* InitWithData(void* user_data, TfLiteOpaqueContext* context, const char* buffer,
                            size_t length) {
    if (Draws(user_data).Chance(0.2)) LookAround(Plain(context), Draws(user_data));
    return Init(context, buffer, length);
  }
  static void Free(TfLiteOpaqueContext* /*context*/, void* options) {
    delete static_cast<std::vector<char>*>(options);
  }
  static void FreeWithData(void* /*user_data*/, TfLiteOpaqueContext* context, void* options) {
    Free(context, options);
  }
  static TfLiteStatus Prepare(TfLiteOpaqueContext* opaque, TfLiteOpaqueNode* node) {
    TfLiteContext* const context = Plain(opaque);
    const TfLiteTensor* in = First(context, Plain(node)->inputs);
    TfLiteTensor* out = First(context, Plain(node)->outputs);
    if (in == nullptr || out == nullptr) return kTfLiteError;
    return context->ResizeTensor(context, out, MakeIntArray(Elements(in->dims)).release());
  }
  static TfLiteStatus PrepareWithData(void* user_data, TfLiteOpaqueContext* opaque,
                                      TfLiteOpaqueNode* node) {
    Random& random = Draws(user_data);
    TfLiteContext* const context = Plain(opaque);
    if (random.Chance(0.3)) LookAround(context, random);
    if (random.Chance(0.1)) return Anything(random);
    const TfLiteTensor* in = First(context, Plain(node)->inputs);
    TfLiteTensor* out = First(context, Plain(node)->outputs);
    if (in == nullptr || out == nullptr) return kTfLiteError;
    // Its shape is then known when it has run.
    if (random.Chance(0.2) && out->allocation_type == kTfLiteArenaRw) {
      out->allocation_type = kTfLiteDynamic;
      out->data.raw = nullptr;
      return kTfLiteOk;
    }
    return Resize(context, out, in->dims, random);
  }
  static TfLiteStatus Invoke(TfLiteOpaqueContext* opaque, TfLiteOpaqueNode* node) {
    TfLiteContext* const context = Plain(opaque);
    Copy(First(context, Plain(node)->inputs), First(context, Plain(node)->outputs), 1);
    return kTfLiteOk;
  }
  static TfLiteStatus InvokeWithData(void* user_data, TfLiteOpaqueContext* opaque,
                                     TfLiteOpaqueNode* node) {
    Random& random = Draws(user_data);
    TfLiteContext* const context = Plain(opaque);
    if (random.Chance(0.2)) LookAround(context, random);
    if (random.Chance(0.05)) return Anything(random);
    const TfLiteTensor* in = First(context, Plain(node)->inputs);
    TfLiteTensor* out = First(context, Plain(node)->outputs);
    if (out != nullptr && out->allocation_type == kTfLiteDynamic) {
      const TfLiteStatus resized = Resize(context, out, in->dims, random);
      if (resized != kTfLiteOk) return resized;
    }
    return Invoke(opaque, node);
  }

  // --- The delegate ---

  static TfLiteStatus PrepareDelegate(TfLiteContext* context, TfLiteDelegate* delegate) {
    Random& random = Draws(delegate->data_);
    if (random.Chance(0.3)) LookAround(context, random);
    TfLiteIntArray* plan = nullptr;
    if (context->GetExecutionPlan(context, &plan) != kTfLiteOk) return kTfLiteError;
    std::vector<int> claimed;
    for (const int node : Elements(plan)) {
      TfLiteNode* found = nullptr;
      TfLiteRegistration* registration = nullptr;
      if (context->GetNodeAndRegistration(context, node, &found, &registration) != kTfLiteOk) {
        return kTfLiteError;
      }
      // Strings are more than bytes.
      const TfLiteTensor* out = First(context, found->outputs);
      if (out != nullptr && out->type == kTfLiteFloat32 && random.Chance(0.6)) {
        claimed.push_back(node);
      }
    }
    if (random.Chance(0.05)) claimed.push_back(static_cast<int>(random.Int(-1, 20)));
    const auto nodes = MakeIntArray(claimed);
    if (random.Chance(0.5)) {
      TfLiteDelegateParams* parts = nullptr;
      int count = 0;
      context->PreviewDelegatePartitioning(context, nodes.get(), &parts, &count);
    }
    if (random.Chance(0.05)) return Anything(random);
    return context->ReplaceNodeSubsetsWithDelegateKernels(
        context, Kernel(), random.Chance(0.97) ? nodes.get() : nullptr, delegate);
  }

  static TfLiteRegistration Kernel() {
    TfLiteRegistration kernel{};
    kernel.init = [](TfLiteContext*, const char* buffer, size_t) -> void* {
      return reinterpret_cast<const TfLiteDelegateParams*>(buffer)->delegate->data_;
    };
    kernel.prepare = [](TfLiteContext* context, TfLiteNode* node) {
      Random& random = Draws(node->user_data);
      if (random.Chance(0.2)) LookAround(context, random);
      return random.Chance(0.05) ? Anything(random) : kTfLiteOk;
    };
    kernel.invoke = [](TfLiteContext* context, TfLiteNode* node) {
      Random& random = Draws(node->user_data);
      if (random.Chance(0.05)) return Anything(random);
      for (const int index : Elements(node->outputs)) {
        TfLiteTensor& out = context->tensors[index];
        Copy(nullptr, &out, 0);
        // Its value lies where the delegate alone can read it.
        if (!random.Chance(0.2)) continue;
        out.buffer_handle = 1;
        out.data_is_stale = true;
      }
      return kTfLiteOk;
    };
    kernel.custom_name = "Stranger";
    kernel.version = 1;
    return kernel;
  }
  static TfLiteStatus CopyBack(TfLiteContext* /*context*/, TfLiteDelegate* delegate,
                               TfLiteBufferHandle /*handle*/, TfLiteTensor* tensor) {
    Copy(nullptr, tensor, 0);
    Random& random = Draws(delegate->data_);
    return random.Chance(0.1) ? Anything(random) : kTfLiteOk;
  }
};

Stranger::Stranger(Random& random) : random_(random) {
  op_.magic = TfLiteOperator::kMagic;
  op_.builtin_code = kTfLiteBuiltinCustom;
  op_.version = 1;
  op_.custom_name = name_;
  op_.user_data = this;
  if (random.Chance(0.3)) {
    op_.init = Calls::Init;
    op_.free = Calls::Free;
    op_.prepare = Calls::Prepare;
    op_.invoke = Calls::Invoke;
  } else {
    op_.init_with_data = Calls::InitWithData;
    op_.free_with_data = Calls::FreeWithData;
    if (random.Chance(0.95)) op_.prepare_with_data = Calls::PrepareWithData;
    if (random.Chance(0.95)) op_.invoke_with_data = Calls::InvokeWithData;
  }
  delegate_.data_ = this;
  if (random.Chance(0.95)) delegate_.Prepare = Calls::PrepareDelegate;
  delegate_.CopyFromBufferHandle = Calls::CopyBack;
  if (random.Chance(0.5)) {
    delegate_.FreeBufferHandle = [](TfLiteContext*, TfLiteDelegate*, TfLiteBufferHandle* handle) {
      *handle = kTfLiteNullBufferHandle;
    };
  }
  if (random.Chance(0.7)) delegate_.flags |= kTfLiteDelegateFlagsAllowDynamicTensors;
  if (random.Chance(0.2)) delegate_.flags |= kTfLiteDelegateFlagsRequirePropagatedShapes;
}

}  // namespace fuselite::fuzz
