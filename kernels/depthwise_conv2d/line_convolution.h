// The innermost part of convolutions whose outputs sum over few channels each, depthwise ones and
// those in small groups: a line of outputs, blocks of channels. Whoever emits one implements this
// interface; kernels/depthwise_conv2d/line_kernel.h does everything around it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "kernels/product/source.h"
#include "kernels/tail/rest.h"
#include "runtime/support/status.h"

namespace fuselite::kernels {

// Blocks [first_block, last_block) of `lines` lines of an image that follow each other: each of
// rows() rows of outputs, or fewer at the image's end.
struct LineRun {
  const std::byte* image = nullptr;  // as the source leaves it
  int32_t y = 0;      // the first line's first row among those of the image's outputs
  int64_t pixel = 0;  // its first among all outputs, as the tail's operands count
  int64_t lines = 1;  // one where rest() is not empty, and where lines have parts
  int64_t part = 0;   // of the line, whose first output is meant by `pixel` and `out`
  int64_t first_block = 0, last_block = 0;
  int64_t channel = 0;  // the first block's first
  const std::byte* packed = nullptr;
  const RowScale* scale = nullptr;  // of an image that was quantized at run time
  // Where the first pixel's first channel is stored: in the output, or in scratch where
  // rest().waits().
  std::byte* out = nullptr;
  const void* const* inputs = nullptr;  // of KernelArgs, for the tail's operands
};

class LineConvolution {
 public:
  virtual ~LineConvolution() = default;

  virtual std::string name() const = 0;  // "depthwise f32 3x3 6x16 avx512 jit"

  virtual int64_t rows() const { return 1; }  // of a line
  // The parts of a line's columns, each of which is run by itself; several of lines of one row
  // only.
  virtual int64_t parts() const { return 1; }
  // The first output of a part among the line's, where it has several; for parts(), their number.
  virtual int64_t first_column(int64_t /*part*/) const { return 0; }
  virtual int64_t blocks() const = 0;
  // The first channel of `block`; for blocks(), the number of channels.
  virtual int64_t first_channel(int64_t block) const = 0;
  // What a block of a line takes, and what takes 2 microseconds (LineUnits::Grain).
  struct Work {
    double block, in_time;
  };
  virtual Work work() const = 0;

  // What is left to do on what Run stores.
  virtual const TailRest& rest() const = 0;
  // Elements between the pixels of what waits in scratch.
  virtual int64_t waiting_pitch() const { return 0; }

  // `to` is aligned to kAlignment. What decides the bytes, beside filters and bias, is in `layout`.
  virtual size_t packed_bytes() const = 0;
  virtual std::string layout() const = 0;
  virtual bool packs_bias() const { return true; }
  // Filter and bias are as the operator has them, but in whole bytes and aligned
  // (ReadableConstant). A null bias is zeros.
  virtual void Pack(const void* filter, const void* bias, std::byte* to) const = 0;

  // This convolution with the code that Run calls. What was not emitted packs nothing and does not
  // run.
  virtual Result<std::shared_ptr<const LineConvolution>> Emit(const std::string& name) const = 0;
  virtual void Run(const LineRun& run) const = 0;
};

}  // namespace fuselite::kernels
