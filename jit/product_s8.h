// Kernels around quantized matrix products: convolutions and fully connected layers with 8-bit
// activations and constant 8-bit weights.
#pragma once

#include <optional>

#include "jit/converted_image.h"
#include "jit/gemm_s8.h"
#include "kernels/depthwise_conv2d/depthwise_conv2d.h"
#include "kernels/operator.h"

namespace fuselite::jit {

// CONV_2D and FULLY_CONNECTED: int8 or uint8 with weights of the same type. To the
// bit of the reference.
Result<std::unique_ptr<Kernel>> BuildConv2DInt8(const kernels::OpDescription&,
                                                const kernels::BuildContext&);
Result<std::unique_ptr<Kernel>> BuildFullyConnectedInt8(const kernels::OpDescription&,
                                                        const kernels::BuildContext&);

// DEPTHWISE_CONV_2D of one channel, which is a convolution with the filters in another order.
// `op` passes CheckInt8Operands.
Result<std::unique_ptr<Kernel>> BuildOneChannelDepthwiseInt8(
    const kernels::OpDescription& op, const kernels::BuildContext& context,
    const kernels::DepthwiseConv2DShape& shape);

// BATCH_MATMUL: int8 with int8, the right matrices known only at run time. To the bit of the
// reference.
Result<std::unique_ptr<Kernel>> BuildBatchMatMulInt8(const kernels::OpDescription&,
                                                     const kernels::BuildContext&);

// TRANSPOSE_CONV: int8 or uint8 with constant weights of the same type, without a tail. To the bit
// of the reference.
Result<std::unique_ptr<Kernel>> BuildTransposeConvInt8(const kernels::OpDescription&,
                                                       const kernels::BuildContext&);

// Whether the operands are what these kernels take: 8-bit activations, constant weights of the same
// type, a constant int32 bias or none.
Status CheckInt8Operands(const kernels::OpDescription& op,
                         const kernels::ProductInputs& inputs = {});

// The largest magnitude in a constant bias of int32; 0 of an absent one.
int64_t LargestBias(const TensorInfo& bias);

// The operands' part of a problem. `op` passes CheckInt8Operands.
GemmS8Problem ProblemOf(const kernels::OpDescription& op, int64_t channels,
                        kernels::QuantizedTail tail, const kernels::ProductInputs& inputs = {});

// The image that a product with `window` reads; nullopt: the input `in` itself. Its values are read
// in groups of 4 bytes, which must not reach behind the input's end: `run` values follow each
// other.
std::optional<ConvertedImage> ImageFor(const TensorInfo& in, const kernels::Window& window,
                                       int64_t batch, int64_t channels, int64_t run, Isa isa);

// Where the pixels are that windows read, in bytes.
struct WindowMemory {
  int64_t pixel, row, image;  // from one to the next
  bool dense;                 // no gaps between the pixels of a row
};

// A problem's depth and lines: the windows as rows of a matrix, in the order of the output.
void SetWindows(const kernels::Window& window, int64_t images, int64_t channels,
                const WindowMemory& memory, GemmS8Problem* problem);

}  // namespace fuselite::jit
