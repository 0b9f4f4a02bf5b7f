// The kernel of one product whose rows are one tile, over constant weights: a fully connected layer
// of one row.
#pragma once

#include <memory>
#include <span>

#include "kernels/product/product.h"
#include "kernels/product/product_kernel.h"
#include "kernels/product/right_side.h"

namespace fuselite::kernels {

bool IsOneTile(const ProductDescription& description, std::span<const Product> products,
               const RightSide& right);

// Precondition: IsOneTile(). A draft where the weights of `right` are not packed.
std::unique_ptr<Kernel> MakeOneTileKernel(std::shared_ptr<const Source> source, Product product,
                                          RightSide right);

}  // namespace fuselite::kernels
