// Sizes and offsets of the C structs shared with hosts, as the x86-64 and aarch64 calling
// conventions lay out the fields that tflite/core/c/common.h and tflite/core/c/builtin_op_data.h of
// LiteRT list (int, enum and float 4 bytes, bool 1, pointers, size_t and 64-bit integers 8, each
// aligned to its size). Computed by hand from the fields' order, so that a field lost or swapped
// here shows.

#include "runtime/tflite/abi.h"

#include <gtest/gtest.h>

#include "runtime/tflite/arrays.h"

namespace fuselite::tflite {
namespace {

#define EXPECT_AT(offset, type, field) EXPECT_EQ(offset, static_cast<int>(offsetof(type, field)))
#define EXPECT_BYTES(bytes, type) EXPECT_EQ(bytes, static_cast<int>(sizeof(type)))

TEST(TfliteAbiTest, Tensor) {
  EXPECT_AT(0, TfLiteTensor, type);
  EXPECT_AT(8, TfLiteTensor, data);
  EXPECT_AT(16, TfLiteTensor, dims);
  EXPECT_AT(24, TfLiteTensor, params);
  EXPECT_AT(32, TfLiteTensor, allocation_type);
  EXPECT_AT(40, TfLiteTensor, bytes);
  EXPECT_AT(48, TfLiteTensor, allocation);
  EXPECT_AT(56, TfLiteTensor, name);
  EXPECT_AT(64, TfLiteTensor, delegate);
  EXPECT_AT(72, TfLiteTensor, buffer_handle);
  EXPECT_AT(76, TfLiteTensor, data_is_stale);
  EXPECT_AT(77, TfLiteTensor, is_variable);
  EXPECT_AT(80, TfLiteTensor, quantization);
  EXPECT_AT(96, TfLiteTensor, sparsity);
  EXPECT_AT(104, TfLiteTensor, dims_signature);
  EXPECT_BYTES(112, TfLiteTensor);
}

TEST(TfliteAbiTest, Node) {
  EXPECT_AT(0, TfLiteNode, inputs);
  EXPECT_AT(8, TfLiteNode, outputs);
  EXPECT_AT(16, TfLiteNode, intermediates);
  EXPECT_AT(24, TfLiteNode, temporaries);
  EXPECT_AT(32, TfLiteNode, user_data);
  EXPECT_AT(40, TfLiteNode, builtin_data);
  EXPECT_AT(48, TfLiteNode, custom_initial_data);
  EXPECT_AT(56, TfLiteNode, custom_initial_data_size);
  EXPECT_AT(64, TfLiteNode, delegate);
  EXPECT_AT(72, TfLiteNode, might_have_side_effect);
  EXPECT_BYTES(80, TfLiteNode);
}

TEST(TfliteAbiTest, Registration) {
  EXPECT_AT(0, TfLiteRegistration, init);
  EXPECT_AT(8, TfLiteRegistration, free);
  EXPECT_AT(16, TfLiteRegistration, prepare);
  EXPECT_AT(24, TfLiteRegistration, invoke);
  EXPECT_AT(32, TfLiteRegistration, profiling_string);
  EXPECT_AT(40, TfLiteRegistration, builtin_code);
  EXPECT_AT(48, TfLiteRegistration, custom_name);
  EXPECT_AT(56, TfLiteRegistration, version);
  EXPECT_AT(64, TfLiteRegistration, registration_external);
  EXPECT_AT(72, TfLiteRegistration, async_kernel);
  EXPECT_AT(80, TfLiteRegistration, inplace_operator);
  EXPECT_BYTES(88, TfLiteRegistration);
}

TEST(TfliteAbiTest, Context) {
  EXPECT_AT(0, TfLiteContext, tensors_size);
  EXPECT_AT(8, TfLiteContext, GetExecutionPlan);
  EXPECT_AT(16, TfLiteContext, tensors);
  EXPECT_AT(24, TfLiteContext, impl_);
  EXPECT_AT(32, TfLiteContext, ResizeTensor);
  EXPECT_AT(40, TfLiteContext, ReportError);
  EXPECT_AT(48, TfLiteContext, AddTensors);
  EXPECT_AT(56, TfLiteContext, GetNodeAndRegistration);
  EXPECT_AT(64, TfLiteContext, ReplaceNodeSubsetsWithDelegateKernels);
  EXPECT_AT(72, TfLiteContext, recommended_num_threads);
  EXPECT_AT(80, TfLiteContext, GetExternalContext);
  EXPECT_AT(88, TfLiteContext, SetExternalContext);
  EXPECT_AT(96, TfLiteContext, allow_fp32_relax_to_fp16);
  EXPECT_AT(104, TfLiteContext, profiler);
  EXPECT_AT(112, TfLiteContext, AllocatePersistentBuffer);
  EXPECT_AT(120, TfLiteContext, AllocateBufferForEval);
  EXPECT_AT(128, TfLiteContext, RequestScratchBufferInArena);
  EXPECT_AT(136, TfLiteContext, GetScratchBuffer);
  EXPECT_AT(144, TfLiteContext, ResizeTensorExplicit);
  EXPECT_AT(152, TfLiteContext, PreviewDelegatePartitioning);
  EXPECT_AT(160, TfLiteContext, GetTensor);
  EXPECT_AT(168, TfLiteContext, GetEvalTensor);
  EXPECT_AT(176, TfLiteContext, GetModelMetadata);
  EXPECT_AT(184, TfLiteContext, AcquireSubgraphContext);
  EXPECT_AT(192, TfLiteContext, ReleaseSubgraphContext);
  EXPECT_BYTES(200, TfLiteContext);
}

TEST(TfliteAbiTest, Delegate) {
  EXPECT_AT(0, TfLiteDelegate, data_);
  EXPECT_AT(8, TfLiteDelegate, Prepare);
  EXPECT_AT(16, TfLiteDelegate, CopyFromBufferHandle);
  EXPECT_AT(24, TfLiteDelegate, CopyToBufferHandle);
  EXPECT_AT(32, TfLiteDelegate, FreeBufferHandle);
  EXPECT_AT(40, TfLiteDelegate, flags);
  EXPECT_AT(48, TfLiteDelegate, opaque_delegate_builder);
  EXPECT_BYTES(56, TfLiteDelegate);

  EXPECT_AT(0, TfLiteDelegateParams, delegate);
  EXPECT_AT(8, TfLiteDelegateParams, nodes_to_replace);
  EXPECT_AT(16, TfLiteDelegateParams, input_tensors);
  EXPECT_AT(24, TfLiteDelegateParams, output_tensors);
  EXPECT_BYTES(32, TfLiteDelegateParams);
}

TEST(TfliteAbiTest, SmallTypes) {
  EXPECT_BYTES(4, TfLiteType);
  EXPECT_BYTES(4, TfLiteStatus);
  EXPECT_BYTES(4, TfLiteIntArray);
  EXPECT_AT(4, TfLiteIntArray, data);
  EXPECT_BYTES(4, TfLiteFloatArray);
  EXPECT_BYTES(8, TfLitePtrUnion);
  EXPECT_BYTES(8, TfLiteQuantizationParams);
  EXPECT_AT(8, TfLiteQuantization, params);
  EXPECT_BYTES(16, TfLiteQuantization);
  EXPECT_AT(8, TfLiteAffineQuantization, zero_point);
  EXPECT_AT(16, TfLiteAffineQuantization, quantized_dimension);
  EXPECT_BYTES(24, TfLiteAffineQuantization);
  EXPECT_BYTES(16, TfLiteBlockwiseQuantization);
  EXPECT_AT(16, TfLiteMultiAxisQuantization, quantized_dimensions);
  EXPECT_BYTES(24, TfLiteDimensionMetadata);
  EXPECT_BYTES(32, TfLiteSparsity);
  EXPECT_BYTES(16, TfLiteExternalContext);
  EXPECT_BYTES(24, TfLiteEvalTensor);
}

// Each operator's options: the size, and the offsets of what comes after a change of alignment
// or was appended.
TEST(TfliteAbiTest, Params) {
  EXPECT_BYTES(28, TfLiteConvParams);
  EXPECT_AT(24, TfLiteConvParams, quantized_bias_type);
  EXPECT_BYTES(32, TfLiteConv3DParams);
  EXPECT_BYTES(40, TfLitePoolParams);
  EXPECT_AT(20, TfLitePoolParams, activation);
  EXPECT_BYTES(28, TfLiteDepthwiseConvParams);
  EXPECT_AT(16, TfLiteDepthwiseConvParams, activation);
  EXPECT_BYTES(12, TfLiteSVDFParams);
  EXPECT_BYTES(8, TfLiteRNNParams);
  EXPECT_BYTES(12, TfLiteSequenceRNNParams);
  EXPECT_AT(4, TfLiteSequenceRNNParams, activation);
  EXPECT_BYTES(12, TfLiteBidirectionalSequenceRNNParams);
  EXPECT_AT(8, TfLiteFullyConnectedParams, keep_num_dims);
  EXPECT_AT(9, TfLiteFullyConnectedParams, asymmetric_quantize_inputs);
  EXPECT_AT(12, TfLiteFullyConnectedParams, quantized_bias_type);
  EXPECT_BYTES(16, TfLiteFullyConnectedParams);
  EXPECT_BYTES(4, TfLiteSoftmaxParams);
  EXPECT_BYTES(8, TfLiteConcatenationParams);
  EXPECT_BYTES(8, TfLiteAddParams);
  EXPECT_BYTES(3, TfLiteBatchMatMulParams);
  EXPECT_BYTES(4, TfLiteMulParams);
  EXPECT_BYTES(8, TfLiteSubParams);
  EXPECT_BYTES(16, TfLiteLocalResponseNormParams);
  EXPECT_BYTES(20, TfLiteLSTMParams);
  EXPECT_AT(12, TfLiteUnidirectionalSequenceLSTMParams, time_major);
  EXPECT_AT(14, TfLiteUnidirectionalSequenceLSTMParams, diagonal_recurrent_tensors);
  EXPECT_BYTES(16, TfLiteUnidirectionalSequenceLSTMParams);
  EXPECT_BYTES(16, TfLiteBidirectionalSequenceLSTMParams);
  EXPECT_BYTES(2, TfLiteResizeBilinearParams);
  EXPECT_BYTES(36, TfLiteReshapeParams);
  EXPECT_AT(32, TfLiteReshapeParams, num_dimensions);
  EXPECT_BYTES(8, TfLiteCastParams);
  EXPECT_BYTES(8, TfLiteGatherParams);
  EXPECT_BYTES(1, TfLiteReducerParams);
  EXPECT_BYTES(36, TfLiteSqueezeParams);
  EXPECT_AT(20, TfLiteStridedSliceParams, offset);
  EXPECT_BYTES(24, TfLiteStridedSliceParams);
  EXPECT_AT(12, TfLiteTransposeConvParams, activation);
  EXPECT_BYTES(20, TfLiteTransposeConvParams);
  EXPECT_BYTES(16, TfLiteFakeQuantParams);
  EXPECT_BYTES(8, TfLitePackParams);
  EXPECT_BYTES(8, TfLiteReverseSequenceParams);
  EXPECT_BYTES(2, TfLiteCumsumParams);
  EXPECT_BYTES(16, TfLiteVarHandleParams);
  EXPECT_AT(8, TfLiteBucketizeParams, boundaries);
  EXPECT_AT(72, TfLiteStablehloScatterParams, num_update_window_dims);
  EXPECT_BYTES(32, TfLiteStablehloCompositeParams);
  EXPECT_BYTES(84, TfLiteStablehloCaseParams);
}

TEST(TfliteAbiTest, Arrays) {
  EXPECT_TRUE(Elements(static_cast<TfLiteIntArray*>(nullptr)).empty());
  const int values[] = {3, -1, 7};
  const IntArrayPtr array = MakeIntArray(values);
  ASSERT_EQ(array->size, 3);
  EXPECT_EQ(Elements(array.get())[2], 7);
  EXPECT_EQ(MakeIntArray({})->size, 0);
}

}  // namespace
}  // namespace fuselite::tflite
