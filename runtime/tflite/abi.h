#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/tflite/builtin_codes.h"
#include "runtime/tflite/params.h"
#include "runtime/tflite/types.h"

// The C structs through which a delegate and its host (TensorFlow Lite, LiteRT, or fuselite's own
// interpreter) talk.
//
// They are declared here, from their documented layout, so that the delegate needs neither the
// headers nor a symbol of its host. The names are TensorFlow Lite's; the namespace keeps them apart
// from the originals when a program includes both. Layouts have no version field: a host fills what
// its own version has, and later versions only append. The layout here is that of LiteRT 2.3. What
// follows from that:
//
//  * A struct that fuselite hands over by value (TfLiteRegistration) has every field, or a new host
//  reads past its end.
//  * A struct that a host hands over by pointer may end earlier. Tail fields say below since which
//  version
//    they are there; everything without such a word has been there since TensorFlow 2.3 (2020), the
//    oldest host supported.
//  * Params structs end earlier too: see tflite_params.h.
//
// tests/runtime/tflite_abi_test.cc pins sizes and offsets, tests/python/test_abi.py compares what
// this header makes of a real LiteRT's structs with what LiteRT's own Python interface says of
// them.

namespace fuselite::tflite {

struct TfLiteContext;
struct TfLiteDelegate;
struct TfLiteNode;
struct TfLiteRegistration;

// The opaque counterparts of the structs above, which newer hosts also offer. Never dereferenced
// here.
struct TfLiteOperator;
struct TfLiteAsyncKernel;
struct TfLiteOpaqueContext;
struct TfLiteOpaqueNode;
struct TfLiteOpaqueTensor;
struct TfLiteOpaqueDelegateBuilder;

// Objects that one process' subgraphs share with their host. Only the first member is known to all
// kinds.
enum TfLiteExternalContextType : int32_t {
  kTfLiteEigenContext = 0,
  kTfLiteGemmLowpContext = 1,
  kTfLiteEdgeTpuContext = 2,
  kTfLiteCpuBackendContext = 3,
  kTfLiteLiteRtBufferContext = 4,  // LiteRT 2.
  kTfLiteMaxExternalContexts = 5,
};

struct TfLiteExternalContext {
  TfLiteExternalContextType type;
  TfLiteStatus (*Refresh)(TfLiteContext* context);  // Called when the number of threads changed.
};

// A tensor as the host keeps it. `dims` and the data pointer may change between invokes; `dims` is
// owned by the host. For strings `bytes` and `data` describe the packed string table.
struct TfLiteTensor {
  TfLiteType type;
  TfLitePtrUnion data;
  TfLiteIntArray* dims;
  TfLiteQuantizationParams
      params;  // The per-tensor scale and zero point; see `quantization` for all.
  TfLiteAllocationType allocation_type;
  size_t bytes;
  const void* allocation;  // The host's own: a C++ object that keeps the model's bytes.
  const char* name;        // May be null.
  TfLiteDelegate* delegate;
  TfLiteBufferHandle buffer_handle;  // Meaningful where `delegate` is not null.
  bool data_is_stale;
  bool is_variable;
  TfLiteQuantization quantization;
  TfLiteSparsity* sparsity;  // Null: dense.
  const TfLiteIntArray*
      dims_signature;  // -1 where a dimension is unknown; null or empty where none is.
};

// One operator of the graph. Arrays hold tensor indices, kOptionalTensor for an input left
// out.
struct TfLiteNode {
  TfLiteIntArray* inputs;
  TfLiteIntArray* outputs;
  TfLiteIntArray* intermediates;
  TfLiteIntArray* temporaries;
  void* user_data;     // What the registration's `init` returned.
  void* builtin_data;  // The TfLite*Params of a builtin operator, malloc'ed by the host.
  const void* custom_initial_data;  // The options of a custom operator,
  int custom_initial_data_size;     // and their length in bytes.
  TfLiteDelegate* delegate;         // The delegate that this node stands for, or null.
  bool might_have_side_effect;      // Since 2021.
};

// How an operator is computed. Passed by value to ReplaceNodeSubsetsWithDelegateKernels.
//
// A host may hold an operator only in its newer form, `registration_external`; then the function
// pointers of this struct are null. `builtin_code` and `custom_name` are set either way.
struct TfLiteRegistration {
  // For a delegate kernel `buffer` is a TfLiteDelegateParams*, `length` 0.
  void* (*init)(TfLiteContext* context, const char* buffer, size_t length);
  void (*free)(TfLiteContext* context, void* buffer);
  TfLiteStatus (*prepare)(TfLiteContext* context, TfLiteNode* node);
  TfLiteStatus (*invoke)(TfLiteContext* context, TfLiteNode* node);
  const char* (*profiling_string)(const TfLiteContext* context, const TfLiteNode* node);
  int32_t builtin_code;
  const char* custom_name;
  int version;
  TfLiteOperator* registration_external;                                         // Since 2022.
  TfLiteAsyncKernel* (*async_kernel)(TfLiteContext* context, TfLiteNode* node);  // Since 2023.
  uint64_t inplace_operator;  // TfLiteInPlaceOp bits. Since 2023.
};

enum TfLiteInPlaceOp : uint64_t {
  kTfLiteInplaceOpNone = 0,
  kTfLiteInplaceOpDataUnmodified = 1,
  kTfLiteInplaceInputCanBeSharedWithCorrespondingOutput = 2,
  kTfLiteInplaceOpInput0Shared = 4,
  kTfLiteInplaceOpInput1Shared = 8,
  kTfLiteInplaceOpInput2Shared = 16,
};

// One partition that a delegate kernel is to compute. The host owns the arrays and frees them with
// the node.
struct TfLiteDelegateParams {
  TfLiteDelegate* delegate;
  TfLiteIntArray* nodes_to_replace;
  TfLiteIntArray* input_tensors;
  TfLiteIntArray* output_tensors;
};

struct TfLiteOpaqueDelegateParams {
  TfLiteDelegate* delegate;
  void* delegate_data;
  TfLiteIntArray* nodes_to_replace;
  TfLiteIntArray* input_tensors;
  TfLiteIntArray* output_tensors;
};

// The host of one subgraph. While a delegate's Prepare runs, the functions that look at and change
// the graph work; during a kernel's prepare and invoke those report an error instead.
struct TfLiteContext {
  size_t tensors_size;
  // The plan belongs to the host; the next call overwrites it.
  TfLiteStatus (*GetExecutionPlan)(TfLiteContext* context, TfLiteIntArray** execution_plan);
  TfLiteTensor* tensors;  // Moves when tensors are added.
  void* impl_;            // The host's own.
  // Takes ownership of `new_size`, also on failure.
  TfLiteStatus (*ResizeTensor)(TfLiteContext* context, TfLiteTensor* tensor,
                               TfLiteIntArray* new_size);
  void (*ReportError)(TfLiteContext* context, const char* msg, ...);
  TfLiteStatus (*AddTensors)(TfLiteContext* context, int tensors_to_add,
                             int* first_new_tensor_index);
  TfLiteStatus (*GetNodeAndRegistration)(TfLiteContext* context, int node_index, TfLiteNode** node,
                                         TfLiteRegistration** registration);
  TfLiteStatus (*ReplaceNodeSubsetsWithDelegateKernels)(TfLiteContext* context,
                                                        TfLiteRegistration registration,
                                                        const TfLiteIntArray* nodes_to_replace,
                                                        TfLiteDelegate* delegate);
  int recommended_num_threads;  // -1: the host has no wish.
  TfLiteExternalContext* (*GetExternalContext)(TfLiteContext* context,
                                               TfLiteExternalContextType type);
  void (*SetExternalContext)(TfLiteContext* context, TfLiteExternalContextType type,
                             TfLiteExternalContext* external_context);
  bool allow_fp32_relax_to_fp16;
  void* profiler;  // A C++ object whose layout only its own host knows.
  // Freed with the interpreter; init and prepare only.
  void* (*AllocatePersistentBuffer)(TfLiteContext* context, size_t bytes);
  TfLiteStatus (*AllocateBufferForEval)(TfLiteContext* context, size_t bytes, void** ptr);
  TfLiteStatus (*RequestScratchBufferInArena)(TfLiteContext* context, size_t bytes,
                                              int* buffer_idx);
  void* (*GetScratchBuffer)(TfLiteContext* context, int buffer_idx);
  TfLiteStatus (*ResizeTensorExplicit)(TfLiteContext* context, TfLiteTensor* tensor, int dims,
                                       const int* shape);
  // The result belongs to the host until the next call or the end of the delegate's Prepare.
  TfLiteStatus (*PreviewDelegatePartitioning)(TfLiteContext* context,
                                              const TfLiteIntArray* nodes_to_replace,
                                              TfLiteDelegateParams** partition_params_array,
                                              int* num_partitions);
  TfLiteTensor* (*GetTensor)(const TfLiteContext* context, int tensor_idx);  // Since 2020.
  TfLiteEvalTensor* (*GetEvalTensor)(const TfLiteContext* context,
                                     int tensor_idx);  // Since 2020.
  TfLiteStatus (*GetModelMetadata)(const TfLiteContext* context,
                                   const char* name,  // Since 2021.
                                   const char** ptr, size_t* bytes);
  TfLiteStatus (*AcquireSubgraphContext)(TfLiteContext* context,
                                         int subgraph_index,  // Since 2023.
                                         TfLiteContext** acquired_context);
  TfLiteStatus (*ReleaseSubgraphContext)(TfLiteContext* context,
                                         int subgraph_index);  // Since 2023.
};

enum TfLiteDelegateFlags : int64_t {
  kTfLiteDelegateFlagsNone = 0,
  // The delegate copes with tensors whose shape is only known at invoke.
  kTfLiteDelegateFlagsAllowDynamicTensors = 1,
  // The host propagates shapes with its own operators before the delegate's kernels are prepared.
  kTfLiteDelegateFlagsRequirePropagatedShapes = 2,
  kTfLiteDelegateFlagsPerOperatorProfiling = 4,
  kTfLiteDelegateFlagsHintFullyDelegatedToSingleDelegate = 8,
};

// A delegate. Hosts copy `flags` when the delegate is created or first used.
struct TfLiteDelegate {
  void* data_;
  TfLiteStatus (*Prepare)(TfLiteContext* context, TfLiteDelegate* delegate);
  // The three below serve delegates with memory of their own; null otherwise.
  TfLiteStatus (*CopyFromBufferHandle)(TfLiteContext* context, TfLiteDelegate* delegate,
                                       TfLiteBufferHandle buffer_handle, TfLiteTensor* tensor);
  TfLiteStatus (*CopyToBufferHandle)(TfLiteContext* context, TfLiteDelegate* delegate,
                                     TfLiteBufferHandle buffer_handle, TfLiteTensor* tensor);
  void (*FreeBufferHandle)(TfLiteContext* context, TfLiteDelegate* delegate,
                           TfLiteBufferHandle* handle);
  int64_t flags;
  TfLiteOpaqueDelegateBuilder* opaque_delegate_builder;  // Since 2022. Null for fuselite.
};

}  // namespace fuselite::tflite
