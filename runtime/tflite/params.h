#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/tflite/types.h"

// What `TfLiteNode::builtin_data` points to, for each builtin operator that has options; others
// have none that a host materializes (null, or one unused byte). One list, though long: it is read
// beside the interface's own, in whose order it is, and tflite_abi_test.cc checks every layout.
//
// The host allocates these with the size of its own version. A field marked "op version N" was
// appended later: where the node's `registration->version` is below N, a host that old has no such
// bytes, and they must not be read. (A host that has them honours the field at any version: there
// are files that state version 1 for a TRANSPOSE_CONV with an activation, or a RESIZE with
// half-pixel centers.)

namespace fuselite::tflite {

inline constexpr int kTfLiteReshapeMaxDimensions = 8;
inline constexpr int kTfLiteSqueezeMaxDimensions = 8;
inline constexpr int kTfLiteStablehloMaxDimensions = 8;
inline constexpr int kTfLiteStablehloCaseMaxBranches = 20;

// Numbered one higher than in the file format, which has no "unknown".
enum TfLitePadding : int32_t {
  kTfLitePaddingUnknown = 0,
  kTfLitePaddingSame,
  kTfLitePaddingValid,
};

enum TfLiteMirrorPaddingMode : int32_t {
  kTfLiteMirrorPaddingUnknown = 0,
  kTfLiteMirrorPaddingReflect,
  kTfLiteMirrorPaddingSymmetric,
};

enum TfLiteFusedActivation : int32_t {
  kTfLiteActNone = 0,
  kTfLiteActRelu,
  kTfLiteActReluN1To1,
  kTfLiteActRelu6,
  kTfLiteActTanh,
  kTfLiteActSignBit,
  kTfLiteActSigmoid,
};

struct TfLitePaddingValues {
  int width;
  int height;
  int width_offset;
  int height_offset;
};

struct TfLiteMirrorPaddingParams {
  TfLiteMirrorPaddingMode mode;
};

struct TfLiteConvParams {
  TfLitePadding padding;
  int stride_width;
  int stride_height;
  TfLiteFusedActivation activation;
  int dilation_width_factor;
  int dilation_height_factor;
  TfLiteType quantized_bias_type;  // Op version 8.
};

// CONV_3D_TRANSPOSE has these, too.
struct TfLiteConv3DParams {
  TfLitePadding padding;
  int stride_width;
  int stride_height;
  int stride_depth;
  int dilation_width_factor;
  int dilation_height_factor;
  int dilation_depth_factor;
  TfLiteFusedActivation activation;
};

struct TfLitePoolParams {
  TfLitePadding padding;
  int stride_width;
  int stride_height;
  int filter_width;
  int filter_height;
  TfLiteFusedActivation activation;
  struct {
    TfLitePaddingValues padding;  // Scratch of the host's own kernel.
  } computed;
};

struct TfLiteDepthwiseConvParams {
  TfLitePadding padding;
  int stride_width;
  int stride_height;
  int depth_multiplier;
  TfLiteFusedActivation activation;
  int dilation_width_factor;   // Op version 2.
  int dilation_height_factor;  // Op version 2.
};

struct TfLiteSVDFParams {
  int rank;
  TfLiteFusedActivation activation;
  bool asymmetric_quantize_inputs;  // Op version 4.
};

struct TfLiteRNNParams {
  TfLiteFusedActivation activation;
  bool asymmetric_quantize_inputs;  // Op version 3.
};

struct TfLiteSequenceRNNParams {
  bool time_major;
  TfLiteFusedActivation activation;
  bool asymmetric_quantize_inputs;  // Op version 3.
};

struct TfLiteBidirectionalSequenceRNNParams {
  bool time_major;
  TfLiteFusedActivation activation;
  bool merge_outputs;
  bool asymmetric_quantize_inputs;  // Op version 3.
};

enum TfLiteFullyConnectedWeightsFormat : int32_t {
  kTfLiteFullyConnectedWeightsFormatDefault = 0,
  kTfLiteFullyConnectedWeightsFormatShuffled4x16Int8 = 1,
};

struct TfLiteFullyConnectedParams {
  TfLiteFusedActivation activation;
  TfLiteFullyConnectedWeightsFormat weights_format;
  bool keep_num_dims;
  bool asymmetric_quantize_inputs;  // Op version 9; in what was padding before.
  TfLiteType quantized_bias_type;   // Op version 11.
};

enum TfLiteLSHProjectionType : int32_t {
  kTfLiteLshProjectionUnknown = 0,
  kTfLiteLshProjectionSparse = 1,
  kTfLiteLshProjectionDense = 2,
};

struct TfLiteLSHProjectionParams {
  TfLiteLSHProjectionType type;
};

struct TfLiteSoftmaxParams {
  float beta;
};

struct TfLiteConcatenationParams {
  int axis;
  TfLiteFusedActivation activation;
};

struct TfLiteAddParams {
  TfLiteFusedActivation activation;
  bool pot_scale_int16;  // Op version 3.
};

struct TfLiteBatchMatMulParams {
  bool adj_x;
  bool adj_y;
  bool asymmetric_quantize_inputs;  // Op version 4.
};

struct TfLiteMulParams {
  TfLiteFusedActivation activation;
};

struct TfLiteSubParams {
  TfLiteFusedActivation activation;
  bool pot_scale_int16;  // Op version 5.
};

struct TfLiteDivParams {
  TfLiteFusedActivation activation;
};

struct TfLiteL2NormParams {
  TfLiteFusedActivation activation;
};

struct TfLiteLocalResponseNormParams {
  int radius;
  float bias;
  float alpha;
  float beta;
};

enum TfLiteLSTMKernelType : int32_t {
  kTfLiteLSTMFullKernel = 0,
  kTfLiteLSTMBasicKernel,
};

struct TfLiteLSTMParams {
  TfLiteFusedActivation activation;
  float cell_clip;
  float proj_clip;
  TfLiteLSTMKernelType kernel_type;
  bool asymmetric_quantize_inputs;  // Op version 4.
};

struct TfLiteUnidirectionalSequenceLSTMParams {
  TfLiteFusedActivation activation;
  float cell_clip;
  float proj_clip;
  bool time_major;
  bool asymmetric_quantize_inputs;  // Op version 3; in what was padding before.
  bool diagonal_recurrent_tensors;  // Op version 4; in what was padding before.
};

struct TfLiteBidirectionalSequenceLSTMParams {
  TfLiteFusedActivation activation;
  float cell_clip;
  float proj_clip;
  bool merge_outputs;
  bool time_major;
  bool asymmetric_quantize_inputs;  // Op version 3; in what was padding before.
};

struct TfLiteResizeBilinearParams {
  bool align_corners;
  bool half_pixel_centers;  // Op version 3.
};

struct TfLiteResizeNearestNeighborParams {
  bool align_corners;
  bool half_pixel_centers;  // Op version 3.
};

struct TfLiteReshapeParams {
  int32_t shape[kTfLiteReshapeMaxDimensions];
  int num_dimensions;
};

struct TfLiteSkipGramParams {
  int ngram_size;
  int max_skip_size;
  bool include_all_ngrams;
};

struct TfLiteSpaceToDepthParams {
  int block_size;
};

struct TfLiteDepthToSpaceParams {
  int block_size;
};

struct TfLiteCastParams {
  TfLiteType in_data_type;
  TfLiteType out_data_type;
};

enum TfLiteCombinerType : int32_t {
  kTfLiteCombinerTypeSum = 0,
  kTfLiteCombinerTypeMean = 1,
  kTfLiteCombinerTypeSqrtn = 2,
};

struct TfLiteEmbeddingLookupSparseParams {
  TfLiteCombinerType combiner;
};

struct TfLiteGatherParams {
  int axis;
  int batch_dims;  // Op version 5.
};

struct TfLiteReducerParams {
  bool keep_dims;
};

struct TfLiteSplitParams {
  int num_splits;
};

struct TfLiteSplitVParams {
  int num_splits;
};

struct TfLiteSqueezeParams {
  int32_t squeeze_dims[kTfLiteSqueezeMaxDimensions];
  int num_squeeze_dims;
};

struct TfLiteStridedSliceParams {
  int begin_mask;
  int end_mask;
  int ellipsis_mask;
  int new_axis_mask;
  int shrink_axis_mask;
  bool offset;  // Op version 8.
};

struct TfLiteArgMaxParams {
  TfLiteType output_type;
};

struct TfLiteArgMinParams {
  TfLiteType output_type;
};

struct TfLiteTransposeConvParams {
  TfLitePadding padding;
  int stride_width;
  int stride_height;
  TfLiteFusedActivation activation;  // Op version 4.
  TfLiteType quantized_bias_type;    // Op version 5.
};

struct TfLiteSparseToDenseParams {
  bool validate_indices;
};

struct TfLiteShapeParams {
  TfLiteType out_type;
};

struct TfLiteFakeQuantParams {
  float min;
  float max;
  int num_bits;
  bool narrow_range;  // Op version 2.
};

struct TfLitePackParams {
  int values_count;
  int axis;
};

struct TfLiteOneHotParams {
  int axis;
};

struct TfLiteUnpackParams {
  int num;
  int axis;
};

struct TfLiteLeakyReluParams {
  float alpha;
};

struct TfLiteUniqueParams {
  TfLiteType index_out_type;
};

struct TfLiteReverseSequenceParams {
  int seq_dim;
  int batch_dim;
};

struct TfLiteIfParams {
  int then_subgraph_index;
  int else_subgraph_index;
};

struct TfLiteWhileParams {
  int cond_subgraph_index;
  int body_subgraph_index;
};

struct TfLiteCumsumParams {
  bool exclusive;
  bool reverse;
};

struct TfLiteCallOnceParams {
  int init_subgraph_index;
};

struct TfLiteHashtableParams {
  int table_id;
  TfLiteType key_dtype;
  TfLiteType value_dtype;
};

struct TfLiteVarHandleParams {
  const char* container;
  const char* shared_name;
};

struct TfLiteRandomParams {
  int seed;
  int seed2;
};

struct TfLiteBucketizeParams {
  int num_boundaries;
  const float* boundaries;  // The model's bytes.
};

struct TfLiteGeluParams {
  bool approximate;
};

struct TfLiteStablehloConcatenateParams {
  int64_t dimension;
};

struct TfLiteStablehloScatterParams {
  bool indices_are_sorted;
  int64_t update_window_dims[kTfLiteStablehloMaxDimensions];
  int num_update_window_dims;
  int64_t inserted_window_dims[kTfLiteStablehloMaxDimensions];
  int num_inserted_window_dims;
  int64_t scatter_dims_to_operand_dims[kTfLiteStablehloMaxDimensions];
  int num_scatter_dims_to_operand_dims;
  int64_t index_vector_dim;
  bool unique_indices;
  int update_computation_subgraph_index;
};

enum TfLiteRngAlgorithm : int32_t {
  kTfLiteRngAlgorithmUnknown = 0,
  kTfLiteRngAlgorithmDefault,
  kTfLiteRngAlgorithmPhilox,
  kTfLiteRngAlgorithmThreefry,
};

struct TfLiteStablehloRngBitGeneratorParams {
  TfLiteRngAlgorithm algorithm;
};

struct TfLiteStablehloGatherParams {
  int64_t offset_dims[kTfLiteStablehloMaxDimensions];
  int num_offset_dims;
  int64_t collapsed_slice_dims[kTfLiteStablehloMaxDimensions];
  int num_collapsed_slice_dims;
  int64_t start_index_map[kTfLiteStablehloMaxDimensions];
  int num_start_index_map;
  int64_t index_vector_dim;
  int64_t slice_sizes[kTfLiteStablehloMaxDimensions];
  int num_slice_sizes;
  bool indices_are_sorted;
};

struct TfLiteStablehloReduceWindowParams {
  int64_t window_dimensions[kTfLiteStablehloMaxDimensions];
  int64_t window_strides[kTfLiteStablehloMaxDimensions];
  int64_t base_dilations[kTfLiteStablehloMaxDimensions];
  int64_t window_dilations[kTfLiteStablehloMaxDimensions];
  int64_t padding[2 * kTfLiteStablehloMaxDimensions];
  int body_subgraph_index;
};

// NOLINTBEGIN(readability-identifier-naming): the names are the interface's
enum TfLiteReduceWindowFunction : int32_t {
  TfLiteReduceWindowFunctionUnsupported,
  TfLiteReduceWindowFunctionAdd,
  TfLiteReduceWindowFunctionMul,
  TfLiteReduceWindowFunctionMin,
  TfLiteReduceWindowFunctionMax,
  TfLiteReduceWindowFunctionAll,
  TfLiteReduceWindowFunctionAny,
};
// NOLINTEND(readability-identifier-naming)

struct TfLiteReduceWindowParams {
  TfLiteReduceWindowFunction reduce_function;
};

struct TfLiteStablehloPadParams {
  int64_t edge_padding_low[kTfLiteStablehloMaxDimensions];
  int64_t edge_padding_high[kTfLiteStablehloMaxDimensions];
  int64_t interior_padding[kTfLiteStablehloMaxDimensions];
};

struct TfLiteStablehloCompositeParams {
  const char* name;
  int32_t subgraph_index;
  int32_t version;
  const uint8_t* attributes;
  size_t attributes_size;
};

struct TfLiteStablehloCaseParams {
  int32_t branch_subgraph_indices[kTfLiteStablehloCaseMaxBranches];
  uint32_t num_branches;
};

}  // namespace fuselite::tflite
