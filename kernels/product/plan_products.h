// The products of a kernel, planned: a problem for each part of its description, and the tiling
// that the micro-kernel is fastest with.
#pragma once

#include <vector>

#include "kernels/product/product_kernel.h"

namespace fuselite::kernels {

// A product for each part, in their order, not built yet. Refuses empty products, and what the
// micro-kernel refuses.
Result<std::vector<Product>> PlanProducts(const OpDescription& op,
                                          const ProductDescription& description,
                                          const ProductKernelSpec& spec,
                                          const PlanContext& context);

}  // namespace fuselite::kernels
