// The functions of TfLiteContext: how delegates and custom operators reach the graph. They are
// called by other people's code, so each checks what it is given, and lets no exception out.

#include <cstdarg>
#include <cstdio>

#include "interpreter/host_memory.h"
#include "interpreter/subgraph.h"
#include "runtime/support/caught.h"
#include "runtime/support/is_index.h"
#include "runtime/support/printable.h"
#include "runtime/tflite/failure_context.h"

namespace fuselite::interpreter {
namespace {

using tflite::Elements;
using tflite::TfLiteContext;
using tflite::TfLiteIntArray;
using tflite::TfLiteStatus;
using tflite::TfLiteTensor;

template <class Body>
TfLiteStatus Guarded(TfLiteContext* context, Body body) {
  try {
    return body();
  } catch (...) {
    const CaughtError error = DescribeCaught();
    context->ReportError(context, "%s", error.text);
    TellFailure(context, error.code);
    return tflite::kTfLiteError;
  }
}

bool IsContextType(tflite::TfLiteExternalContextType type) {
  return IsIndex(type, tflite::kTfLiteMaxExternalContexts);
}

TfLiteStatus Refuse(TfLiteContext* context, const char* function) {
  context->ReportError(context, "%s is only for a delegate's Prepare", function);
  return tflite::kTfLiteError;
}

}  // namespace

struct Subgraph::ContextFunctions {
  static bool ValidNodes(const Subgraph& graph, const TfLiteIntArray* nodes) {
    if (nodes == nullptr) return false;
    for (int index : Elements(nodes)) {
      if (!IsIndex(index, graph.nodes_.size())) return false;
    }
    return true;
  }

  static void ReportError(TfLiteContext* context, const char* format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    std::string& errors = From(context).errors_;
    constexpr size_t kMaxErrors = 2000;
    if (errors.size() > kMaxErrors) return;
    for (const char* c = text; *c; ++c) {
      if (c == text && !errors.empty()) errors += "; ";
      errors += static_cast<unsigned char>(*c) < 0x20 ? ' ' : *c;
    }
    errors.erase(errors.find_last_not_of(' ') + 1);
  }

  static TfLiteStatus GetExecutionPlan(TfLiteContext* context, TfLiteIntArray** plan) {
    return Guarded(context, [&] {
      Subgraph& graph = From(context);
      graph.plan_array_ = tflite::MakeIntArray(graph.plan_);
      *plan = graph.plan_array_.get();
      return *plan ? tflite::kTfLiteOk : tflite::kTfLiteError;
    });
  }

  static TfLiteStatus GetNodeAndRegistration(TfLiteContext* context, int index,
                                             tflite::TfLiteNode** node,
                                             tflite::TfLiteRegistration** registration) {
    Subgraph& graph = From(context);
    if (!IsIndex(index, graph.nodes_.size())) {
      context->ReportError(context, "there is no node %d", index);
      return tflite::kTfLiteError;
    }
    *node = &graph.nodes_[index]->node;
    *registration = &graph.nodes_[index]->registration;
    return tflite::kTfLiteOk;
  }

  static TfLiteStatus ResizeTensor(TfLiteContext* context, TfLiteTensor* tensor,
                                   TfLiteIntArray* new_size) {
    const tflite::IntArrayPtr owned(new_size);
    return Resize(context, tensor, Elements(owned.get()));
  }

  static TfLiteStatus ResizeTensorExplicit(TfLiteContext* context, TfLiteTensor* tensor, int dims,
                                           const int* shape) {
    return Resize(context, tensor, std::span(shape, static_cast<size_t>(dims)));
  }

  static TfLiteStatus Resize(TfLiteContext* context, TfLiteTensor* tensor,
                             std::span<const int> dims) {
    return Guarded(context, [&] {
      Status status = From(context).ResizeTensor(*tensor, dims);
      return status.ok() ? tflite::kTfLiteOk : From(context).Fail(std::move(status));
    });
  }

  static TfLiteStatus AddTensors(TfLiteContext* context, int count, int* first) {
    return Guarded(context, [&] {
      Subgraph& graph = From(context);
      if (count < 0) return tflite::kTfLiteError;
      const size_t size = graph.tensors_.size();
      if (first != nullptr) *first = static_cast<int>(size);
      graph.SetTensorsSize(size + static_cast<size_t>(count));
      for (size_t i = size; i < graph.tensors_.size(); ++i) {
        graph.tensors_[i].buffer_handle = tflite::kTfLiteNullBufferHandle;
      }
      return tflite::kTfLiteOk;
    });
  }

  static TfLiteStatus ReplaceNodeSubsets(TfLiteContext* context,
                                         tflite::TfLiteRegistration registration,
                                         const TfLiteIntArray* nodes,
                                         tflite::TfLiteDelegate* delegate) {
    return Guarded(context, [&] {
      Subgraph& graph = From(context);
      if (!ValidNodes(graph, nodes)) {
        context->ReportError(context, "nodes to replace that the graph does not have");
        return tflite::kTfLiteError;
      }
      graph.ReplaceNodes(registration, Elements(nodes), delegate);
      return tflite::kTfLiteOk;
    });
  }

  static TfLiteStatus PreviewPartitioning(TfLiteContext* context, const TfLiteIntArray* nodes,
                                          tflite::TfLiteDelegateParams** params, int* count) {
    return Guarded(context, [&] {
      Subgraph& graph = From(context);
      graph.ClearPreview();
      *params = nullptr;
      *count = 0;
      if (!ValidNodes(graph, nodes)) return tflite::kTfLiteError;
      for (const NodeSubset& subset : graph.Partition(Elements(nodes))) {
        if (!subset.claimed) continue;
        tflite::TfLiteDelegateParams& shown = graph.preview_.emplace_back();
        shown.nodes_to_replace = NewIntArray(subset.nodes);
        shown.input_tensors = NewIntArray(subset.inputs);
        shown.output_tensors = NewIntArray(subset.outputs);
      }
      *params = graph.preview_.data();
      *count = static_cast<int>(graph.preview_.size());
      return tflite::kTfLiteOk;
    });
  }

  // Codes that this version does not know come from a delegate of a newer one. That an error is
  // internal says nothing where a function of the context has told before what led to it.
  static void TellFailureOf(TfLiteContext* context, int code) {
    const auto last = static_cast<int>(StatusCode::kOverBudget);
    if (code <= static_cast<int>(StatusCode::kOk) || code > last) return;
    const auto told = static_cast<StatusCode>(code);
    if (told != StatusCode::kInternal) From(context).told_ = told;
  }

  static tflite::TfLiteExternalContext* GetExternalContext(TfLiteContext* context,
                                                           tflite::TfLiteExternalContextType type) {
    // The caller may write to what it gets; nobody writes to this.
    static FailureContext failures{.Tell = TellFailureOf};
    if (type == FailureContext::kAsked) return &failures.base;
    if (!IsContextType(type)) return nullptr;
    return From(context).host_.external_contexts[type];
  }

  static void SetExternalContext(TfLiteContext* context, tflite::TfLiteExternalContextType type,
                                 tflite::TfLiteExternalContext* external_context) {
    if (!IsContextType(type)) return;
    From(context).host_.external_contexts[type] = external_context;
  }

  static TfLiteStatus GetModelMetadata(const TfLiteContext* context, const char* name,
                                       const char** data, size_t* bytes) {
    const auto& graph = *static_cast<const Subgraph*>(context->impl_);
    for (const Metadata& metadata : graph.host_.model->metadata) {
      if (metadata.name != name) continue;
      *data = reinterpret_cast<const char*>(metadata.data.data());
      *bytes = metadata.data.size();
      return tflite::kTfLiteOk;
    }
    return tflite::kTfLiteError;
  }

  static TfLiteStatus AcquireSubgraph(TfLiteContext* context, int index, TfLiteContext** acquired) {
    auto& subgraphs = From(context).host_.subgraphs;
    if (!IsIndex(index, subgraphs.size())) return tflite::kTfLiteError;
    subgraphs[index]->SetDelegateFunctions(true);
    *acquired = &subgraphs[index]->context_;
    return tflite::kTfLiteOk;
  }

  static TfLiteStatus ReleaseSubgraph(TfLiteContext* context, int index) {
    auto& subgraphs = From(context).host_.subgraphs;
    if (!IsIndex(index, subgraphs.size())) return tflite::kTfLiteError;
    subgraphs[index]->SetDelegateFunctions(false);
    return tflite::kTfLiteOk;
  }
};

void Subgraph::InitContext() {
  using Functions = ContextFunctions;
  context_.impl_ = this;
  context_.recommended_num_threads = host_.num_threads;
  context_.ResizeTensor = Functions::ResizeTensor;
  context_.ResizeTensorExplicit = Functions::ResizeTensorExplicit;
  context_.ReportError = Functions::ReportError;
  context_.AddTensors = Functions::AddTensors;
  context_.GetExternalContext = Functions::GetExternalContext;
  context_.SetExternalContext = Functions::SetExternalContext;
  context_.GetModelMetadata = Functions::GetModelMetadata;
  context_.AcquireSubgraphContext = Functions::AcquireSubgraph;
  context_.ReleaseSubgraphContext = Functions::ReleaseSubgraph;
  SetDelegateFunctions(false);
}

void Subgraph::SetDelegateFunctions(bool allowed) {
  if (allowed) {
    context_.GetExecutionPlan = ContextFunctions::GetExecutionPlan;
    context_.GetNodeAndRegistration = ContextFunctions::GetNodeAndRegistration;
    context_.ReplaceNodeSubsetsWithDelegateKernels = ContextFunctions::ReplaceNodeSubsets;
    context_.PreviewDelegatePartitioning = ContextFunctions::PreviewPartitioning;
    return;
  }
  context_.GetExecutionPlan = [](TfLiteContext* context, TfLiteIntArray**) {
    return Refuse(context, "GetExecutionPlan");
  };
  context_.GetNodeAndRegistration = [](TfLiteContext* context, int, tflite::TfLiteNode**,
                                       tflite::TfLiteRegistration**) {
    return Refuse(context, "GetNodeAndRegistration");
  };
  context_.ReplaceNodeSubsetsWithDelegateKernels =
      [](TfLiteContext* context, tflite::TfLiteRegistration, const TfLiteIntArray*,
         tflite::TfLiteDelegate*) {
        return Refuse(context, "ReplaceNodeSubsetsWithDelegateKernels");
      };
  context_.PreviewDelegatePartitioning = [](TfLiteContext* context, const TfLiteIntArray*,
                                            tflite::TfLiteDelegateParams**, int*) {
    return Refuse(context, "PreviewDelegatePartitioning");
  };
}

}  // namespace fuselite::interpreter
