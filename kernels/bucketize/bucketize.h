// BUCKETIZE: how many of the boundaries, which are sorted, are not above each element.
#pragma once

#include <span>

#include "kernels/fields.h"
#include "kernels/operator.h"

namespace fuselite::kernels {

struct BucketizeParams {
  FloatList boundaries;
};
std::span<const float> Boundaries(const OpDescription& op);

// Any type; a binary search for each element. All boundaries count for a NaN.
Result<std::unique_ptr<Kernel>> BuildBucketizeReference(const OpDescription&, const BuildContext&);
// float32 and not too many boundaries, none of them NaN: vectors are compared with all of them.
Result<std::unique_ptr<Kernel>> BuildBucketizeHighway(const OpDescription&, const BuildContext&);

}  // namespace fuselite::kernels
