// GATHER, GATHER_ND, SCATTER_ND, EMBEDDING_LOOKUP: elements chosen by run-time indices.
//
// Indices are checked when the kernel runs: one out of range fails the run, also where the slice
// that it names has no element. Dense operands only.
#pragma once

#include "kernels/operator.h"

namespace fuselite::kernels {

// (input, indices): output[batch.., before.., i.., after..] =
// input[batch.., before.., indices[batch.., i..], after..], where `axis` is the dimension that
// is gone and the first `batch_dims` dimensions belong to both operands. A negative `batch_dims`
// counts from the indices' rank.
struct GatherParams {
  int32_t axis;
  int32_t batch_dims;
};
Result<std::unique_ptr<Kernel>> BuildGather(const OpDescription&, const BuildContext&);

// (input, indices [.., k]): the slices at the k outermost coordinates.
Result<std::unique_ptr<Kernel>> BuildGatherNd(const OpDescription&, const BuildContext&);
// GATHER_ND by constant indices.
Result<KernelPlan> PlanGatherNdKnownPlaces(const OpDescription&, const PlanContext&);

// (indices [.., k], updates, shape): zeros of `shape`, to which the updates are added in order.
Result<std::unique_ptr<Kernel>> BuildScatterNd(const OpDescription&, const BuildContext&);

// (ids, rows): the rows of the ids; of integer rows with float results, multiplied by their scale
// (one for all or one per row). Each row starts at a byte of its own. uint8 rows hold int8 then, as
// TFLite's hybrid models do.
Result<std::unique_ptr<Kernel>> BuildEmbeddingLookup(const OpDescription&, const BuildContext&);

}  // namespace fuselite::kernels
