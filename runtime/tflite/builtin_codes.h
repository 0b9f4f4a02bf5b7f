#pragma once

#include <cstdint>

// The codes of TensorFlow Lite's builtin operators: what an operator code of a model holds in
// `builtin_code`, and what a host puts into `TfLiteRegistration::builtin_code`. The numbers are
// fixed by the file format and only ever grow. Up to 209: LiteRT 2.3.
//
// Up to 126 the code is also in the one-byte field that older files hold alone; from 127 on that
// field says kTfLiteBuiltinPlaceholderForGreaterOpCodes (the code is the larger of the two).

// What code calls an operator, its code, what people call it.
// clang-format off
#define FUSELITE_BUILTIN_OPERATORS(X) \
  X(Add, 0, "ADD") \
  X(AveragePool2d, 1, "AVERAGE_POOL_2D") \
  X(Concatenation, 2, "CONCATENATION") \
  X(Conv2d, 3, "CONV_2D") \
  X(DepthwiseConv2d, 4, "DEPTHWISE_CONV_2D") \
  X(DepthToSpace, 5, "DEPTH_TO_SPACE") \
  X(Dequantize, 6, "DEQUANTIZE") \
  X(EmbeddingLookup, 7, "EMBEDDING_LOOKUP") \
  X(Floor, 8, "FLOOR") \
  X(FullyConnected, 9, "FULLY_CONNECTED") \
  X(HashtableLookup, 10, "HASHTABLE_LOOKUP") \
  X(L2Normalization, 11, "L2_NORMALIZATION") \
  X(L2Pool2d, 12, "L2_POOL_2D") \
  X(LocalResponseNormalization, 13, "LOCAL_RESPONSE_NORMALIZATION") \
  X(Logistic, 14, "LOGISTIC") \
  X(LshProjection, 15, "LSH_PROJECTION") \
  X(Lstm, 16, "LSTM") \
  X(MaxPool2d, 17, "MAX_POOL_2D") \
  X(Mul, 18, "MUL") \
  X(Relu, 19, "RELU") \
  X(ReluN1To1, 20, "RELU_N1_TO_1") \
  X(Relu6, 21, "RELU6") \
  X(Reshape, 22, "RESHAPE") \
  X(ResizeBilinear, 23, "RESIZE_BILINEAR") \
  X(Rnn, 24, "RNN") \
  X(Softmax, 25, "SOFTMAX") \
  X(SpaceToDepth, 26, "SPACE_TO_DEPTH") \
  X(Svdf, 27, "SVDF") \
  X(Tanh, 28, "TANH") \
  X(ConcatEmbeddings, 29, "CONCAT_EMBEDDINGS") \
  X(SkipGram, 30, "SKIP_GRAM") \
  X(Call, 31, "CALL") \
  X(Custom, 32, "CUSTOM") \
  X(EmbeddingLookupSparse, 33, "EMBEDDING_LOOKUP_SPARSE") \
  X(Pad, 34, "PAD") \
  X(UnidirectionalSequenceRnn, 35, "UNIDIRECTIONAL_SEQUENCE_RNN") \
  X(Gather, 36, "GATHER") \
  X(BatchToSpaceNd, 37, "BATCH_TO_SPACE_ND") \
  X(SpaceToBatchNd, 38, "SPACE_TO_BATCH_ND") \
  X(Transpose, 39, "TRANSPOSE") \
  X(Mean, 40, "MEAN") \
  X(Sub, 41, "SUB") \
  X(Div, 42, "DIV") \
  X(Squeeze, 43, "SQUEEZE") \
  X(UnidirectionalSequenceLstm, 44, "UNIDIRECTIONAL_SEQUENCE_LSTM") \
  X(StridedSlice, 45, "STRIDED_SLICE") \
  X(BidirectionalSequenceRnn, 46, "BIDIRECTIONAL_SEQUENCE_RNN") \
  X(Exp, 47, "EXP") \
  X(TopkV2, 48, "TOPK_V2") \
  X(Split, 49, "SPLIT") \
  X(LogSoftmax, 50, "LOG_SOFTMAX") \
  X(Delegate, 51, "DELEGATE") \
  X(BidirectionalSequenceLstm, 52, "BIDIRECTIONAL_SEQUENCE_LSTM") \
  X(Cast, 53, "CAST") \
  X(Prelu, 54, "PRELU") \
  X(Maximum, 55, "MAXIMUM") \
  X(ArgMax, 56, "ARG_MAX") \
  X(Minimum, 57, "MINIMUM") \
  X(Less, 58, "LESS") \
  X(Neg, 59, "NEG") \
  X(Padv2, 60, "PADV2") \
  X(Greater, 61, "GREATER") \
  X(GreaterEqual, 62, "GREATER_EQUAL") \
  X(LessEqual, 63, "LESS_EQUAL") \
  X(Select, 64, "SELECT") \
  X(Slice, 65, "SLICE") \
  X(Sin, 66, "SIN") \
  X(TransposeConv, 67, "TRANSPOSE_CONV") \
  X(SparseToDense, 68, "SPARSE_TO_DENSE") \
  X(Tile, 69, "TILE") \
  X(ExpandDims, 70, "EXPAND_DIMS") \
  X(Equal, 71, "EQUAL") \
  X(NotEqual, 72, "NOT_EQUAL") \
  X(Log, 73, "LOG") \
  X(Sum, 74, "SUM") \
  X(Sqrt, 75, "SQRT") \
  X(Rsqrt, 76, "RSQRT") \
  X(Shape, 77, "SHAPE") \
  X(Pow, 78, "POW") \
  X(ArgMin, 79, "ARG_MIN") \
  X(FakeQuant, 80, "FAKE_QUANT") \
  X(ReduceProd, 81, "REDUCE_PROD") \
  X(ReduceMax, 82, "REDUCE_MAX") \
  X(Pack, 83, "PACK") \
  X(LogicalOr, 84, "LOGICAL_OR") \
  X(OneHot, 85, "ONE_HOT") \
  X(LogicalAnd, 86, "LOGICAL_AND") \
  X(LogicalNot, 87, "LOGICAL_NOT") \
  X(Unpack, 88, "UNPACK") \
  X(ReduceMin, 89, "REDUCE_MIN") \
  X(FloorDiv, 90, "FLOOR_DIV") \
  X(ReduceAny, 91, "REDUCE_ANY") \
  X(Square, 92, "SQUARE") \
  X(ZerosLike, 93, "ZEROS_LIKE") \
  X(Fill, 94, "FILL") \
  X(FloorMod, 95, "FLOOR_MOD") \
  X(Range, 96, "RANGE") \
  X(ResizeNearestNeighbor, 97, "RESIZE_NEAREST_NEIGHBOR") \
  X(LeakyRelu, 98, "LEAKY_RELU") \
  X(SquaredDifference, 99, "SQUARED_DIFFERENCE") \
  X(MirrorPad, 100, "MIRROR_PAD") \
  X(Abs, 101, "ABS") \
  X(SplitV, 102, "SPLIT_V") \
  X(Unique, 103, "UNIQUE") \
  X(Ceil, 104, "CEIL") \
  X(ReverseV2, 105, "REVERSE_V2") \
  X(AddN, 106, "ADD_N") \
  X(GatherNd, 107, "GATHER_ND") \
  X(Cos, 108, "COS") \
  X(Where, 109, "WHERE") \
  X(Rank, 110, "RANK") \
  X(Elu, 111, "ELU") \
  X(ReverseSequence, 112, "REVERSE_SEQUENCE") \
  X(MatrixDiag, 113, "MATRIX_DIAG") \
  X(Quantize, 114, "QUANTIZE") \
  X(MatrixSetDiag, 115, "MATRIX_SET_DIAG") \
  X(Round, 116, "ROUND") \
  X(HardSwish, 117, "HARD_SWISH") \
  X(If, 118, "IF") \
  X(While, 119, "WHILE") \
  X(NonMaxSuppressionV4, 120, "NON_MAX_SUPPRESSION_V4") \
  X(NonMaxSuppressionV5, 121, "NON_MAX_SUPPRESSION_V5") \
  X(ScatterNd, 122, "SCATTER_ND") \
  X(SelectV2, 123, "SELECT_V2") \
  X(Densify, 124, "DENSIFY") \
  X(SegmentSum, 125, "SEGMENT_SUM") \
  X(BatchMatmul, 126, "BATCH_MATMUL") \
  X(PlaceholderForGreaterOpCodes, 127, "PLACEHOLDER_FOR_GREATER_OP_CODES") \
  X(Cumsum, 128, "CUMSUM") \
  X(CallOnce, 129, "CALL_ONCE") \
  X(BroadcastTo, 130, "BROADCAST_TO") \
  X(Rfft2d, 131, "RFFT2D") \
  X(Conv3d, 132, "CONV_3D") \
  X(Imag, 133, "IMAG") \
  X(Real, 134, "REAL") \
  X(ComplexAbs, 135, "COMPLEX_ABS") \
  X(Hashtable, 136, "HASHTABLE") \
  X(HashtableFind, 137, "HASHTABLE_FIND") \
  X(HashtableImport, 138, "HASHTABLE_IMPORT") \
  X(HashtableSize, 139, "HASHTABLE_SIZE") \
  X(ReduceAll, 140, "REDUCE_ALL") \
  X(Conv3dTranspose, 141, "CONV_3D_TRANSPOSE") \
  X(VarHandle, 142, "VAR_HANDLE") \
  X(ReadVariable, 143, "READ_VARIABLE") \
  X(AssignVariable, 144, "ASSIGN_VARIABLE") \
  X(BroadcastArgs, 145, "BROADCAST_ARGS") \
  X(RandomStandardNormal, 146, "RANDOM_STANDARD_NORMAL") \
  X(Bucketize, 147, "BUCKETIZE") \
  X(RandomUniform, 148, "RANDOM_UNIFORM") \
  X(Multinomial, 149, "MULTINOMIAL") \
  X(Gelu, 150, "GELU") \
  X(DynamicUpdateSlice, 151, "DYNAMIC_UPDATE_SLICE") \
  X(Relu0To1, 152, "RELU_0_TO_1") \
  X(UnsortedSegmentProd, 153, "UNSORTED_SEGMENT_PROD") \
  X(UnsortedSegmentMax, 154, "UNSORTED_SEGMENT_MAX") \
  X(UnsortedSegmentSum, 155, "UNSORTED_SEGMENT_SUM") \
  X(Atan2, 156, "ATAN2") \
  X(UnsortedSegmentMin, 157, "UNSORTED_SEGMENT_MIN") \
  X(Sign, 158, "SIGN") \
  X(Bitcast, 159, "BITCAST") \
  X(BitwiseXor, 160, "BITWISE_XOR") \
  X(RightShift, 161, "RIGHT_SHIFT") \
  X(StablehloLogistic, 162, "STABLEHLO_LOGISTIC") \
  X(StablehloAdd, 163, "STABLEHLO_ADD") \
  X(StablehloDivide, 164, "STABLEHLO_DIVIDE") \
  X(StablehloMultiply, 165, "STABLEHLO_MULTIPLY") \
  X(StablehloMaximum, 166, "STABLEHLO_MAXIMUM") \
  X(StablehloReshape, 167, "STABLEHLO_RESHAPE") \
  X(StablehloClamp, 168, "STABLEHLO_CLAMP") \
  X(StablehloConcatenate, 169, "STABLEHLO_CONCATENATE") \
  X(StablehloBroadcastInDim, 170, "STABLEHLO_BROADCAST_IN_DIM") \
  X(StablehloConvolution, 171, "STABLEHLO_CONVOLUTION") \
  X(StablehloSlice, 172, "STABLEHLO_SLICE") \
  X(StablehloCustomCall, 173, "STABLEHLO_CUSTOM_CALL") \
  X(StablehloReduce, 174, "STABLEHLO_REDUCE") \
  X(StablehloAbs, 175, "STABLEHLO_ABS") \
  X(StablehloAnd, 176, "STABLEHLO_AND") \
  X(StablehloCosine, 177, "STABLEHLO_COSINE") \
  X(StablehloExponential, 178, "STABLEHLO_EXPONENTIAL") \
  X(StablehloFloor, 179, "STABLEHLO_FLOOR") \
  X(StablehloLog, 180, "STABLEHLO_LOG") \
  X(StablehloMinimum, 181, "STABLEHLO_MINIMUM") \
  X(StablehloNegate, 182, "STABLEHLO_NEGATE") \
  X(StablehloOr, 183, "STABLEHLO_OR") \
  X(StablehloPower, 184, "STABLEHLO_POWER") \
  X(StablehloRemainder, 185, "STABLEHLO_REMAINDER") \
  X(StablehloRsqrt, 186, "STABLEHLO_RSQRT") \
  X(StablehloSelect, 187, "STABLEHLO_SELECT") \
  X(StablehloSubtract, 188, "STABLEHLO_SUBTRACT") \
  X(StablehloTanh, 189, "STABLEHLO_TANH") \
  X(StablehloScatter, 190, "STABLEHLO_SCATTER") \
  X(StablehloCompare, 191, "STABLEHLO_COMPARE") \
  X(StablehloConvert, 192, "STABLEHLO_CONVERT") \
  X(StablehloDynamicSlice, 193, "STABLEHLO_DYNAMIC_SLICE") \
  X(StablehloDynamicUpdateSlice, 194, "STABLEHLO_DYNAMIC_UPDATE_SLICE") \
  X(StablehloPad, 195, "STABLEHLO_PAD") \
  X(StablehloIota, 196, "STABLEHLO_IOTA") \
  X(StablehloDotGeneral, 197, "STABLEHLO_DOT_GENERAL") \
  X(StablehloReduceWindow, 198, "STABLEHLO_REDUCE_WINDOW") \
  X(StablehloSort, 199, "STABLEHLO_SORT") \
  X(StablehloWhile, 200, "STABLEHLO_WHILE") \
  X(StablehloGather, 201, "STABLEHLO_GATHER") \
  X(StablehloTranspose, 202, "STABLEHLO_TRANSPOSE") \
  X(Dilate, 203, "DILATE") \
  X(StablehloRngBitGenerator, 204, "STABLEHLO_RNG_BIT_GENERATOR") \
  X(ReduceWindow, 205, "REDUCE_WINDOW") \
  X(StablehloComposite, 206, "STABLEHLO_COMPOSITE") \
  X(StablehloShiftLeft, 207, "STABLEHLO_SHIFT_LEFT") \
  X(StablehloCbrt, 208, "STABLEHLO_CBRT") \
  X(StablehloCase, 209, "STABLEHLO_CASE")
// clang-format on

namespace fuselite::tflite {

enum TfLiteBuiltinOperator : int32_t {
#define FUSELITE_CODE(Name, code, NAME) kTfLiteBuiltin##Name = code,
  FUSELITE_BUILTIN_OPERATORS(FUSELITE_CODE)
#undef FUSELITE_CODE
};

// One more than the largest code this header knows; hosts may send larger ones.
inline constexpr int kTfLiteBuiltinOperatorCount = 210;

}  // namespace fuselite::tflite
