// Convolutions of many images, a few of them at a time.
//
// Kernels bring their input into another form before they compute: with padding around it, as bytes
// of another sign, transformed. For a batch of small images that form lies in memory, whence it is
// read again; that of a few images stays in a core's own cache, and threads have images of their
// own, which need no barrier.
#pragma once

#include "kernels/candidate.h"
#include "kernels/operator.h"

namespace fuselite::kernels {

// `whole`, which `candidate` planned for `op`, or in its place a plan that runs the candidate's
// kernel over slices of the batch. The same bits: images do not depend on each other. Kept as it is
// are what is no convolution with constant weights, kernels of one phase or with less than 1 MiB of
// shared memory, batches that the threads cannot share evenly enough, and tails whose operands do
// not advance from image to image by one distance.
KernelPlan InSlices(const Candidate& candidate, const OpDescription& op, KernelPlan whole,
                    const PlanContext& context);

}  // namespace fuselite::kernels
