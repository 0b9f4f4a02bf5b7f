#include "jit/depthwise/folded_pixels.h"

#include <algorithm>

#include "runtime/support/ceil_div.h"

namespace fuselite::jit {
namespace {

using kernels::TailStage;

// The part of a vector that may be filled for folding to pay. Half full ones are as fast, as they
// share a column between windows: folded, 32 channels take 1.07 to 1.13 times as long with AVX-512.
// With AVX2, fewer than 16 channels are loaded in pieces, and 6 and 8 take 0.7 of it.
int64_t OneIn(const DepthwiseS8Problem& problem, const VectorIsa& isa) {
  return isa.avx512 || problem.channels >= 16 ? 4 : 2;
}

// Whether four rows of outputs fill vectors (JoinRows), in 0.94 to 0.97 of the time.
bool FillsByRows(const DepthwiseS8Problem& problem, const DepthwiseS8Spec& spec,
                 const VectorIsa& isa) {
  return isa.avx512 && spec.dot && problem.channels * 4 == isa.bytes &&
         problem.window.y.output >= 4;
}

// Whether no stage depends on a pixel's place.
bool RepeatsByPixel(const kernels::Tail& tail) {
  return std::ranges::all_of(tail.stages, [](const TailStage& stage) {
    return stage.kind == TailStage::Kind::kRequantize || stage.kind == TailStage::Kind::kRescale ||
           stage.kind == TailStage::Kind::kLookup;
  });
}

template <class T>
void RepeatChannels(int32_t pixels, ChannelValues<T>* values) {
  if (values->size() <= 1) return;
  *values = RepeatRows(values->data(), 1, static_cast<int64_t>(values->size()), pixels);
}

}  // namespace

int32_t FoldedPixels(const DepthwiseS8Problem& problem, Isa isa) {
  if (!VectorIsa::Supported(isa)) return 1;
  DepthwiseS8Spec spec;
  spec.dot = problem.TakesDotProducts(isa);
  const VectorIsa vectors(isa);
  const int64_t whole = spec.whole_channels(vectors.bytes);
  const kernels::WindowAxis& x = problem.window.x;
  if (x.stride != 1 || problem.group_channels != 1 ||
      problem.channels * OneIn(problem, vectors) > whole || problem.out_pitch != problem.channels ||
      !RepeatsByPixel(problem.tail.tail) || FillsByRows(problem, spec, vectors)) {
    return 1;
  }
  const auto most = static_cast<int32_t>(std::min<int64_t>(whole / problem.channels, x.output));
  // The fewest outputs that divide the row into the same number of parts.
  return most < 2 ? 1 : static_cast<int32_t>(CeilDiv(x.output, CeilDiv(x.output, most)));
}

void FoldPixels(int32_t pixels, DepthwiseS8Problem* problem) {
  kernels::WindowAxis& x = problem->window.x;
  const int32_t output = x.output;
  problem->folded_pixels = pixels;
  x.stride = pixels;
  x.output = static_cast<int32_t>(CeilDiv(output, pixels));
  problem->folded_overlap = x.output * pixels - output;
  problem->channels *= pixels;
  problem->out_pitch *= pixels;
  problem->tail.channels *= pixels;
  for (TailStage& stage : problem->tail.tail.stages) {
    RepeatChannels(pixels, &stage.requantize.multipliers);
    RepeatChannels(pixels, &stage.requantize.shifts);
    RepeatChannels(pixels, &stage.real_scales);
  }
}

}  // namespace fuselite::jit
