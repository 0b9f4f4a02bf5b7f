// The volumes of float32 that three-dimensional convolutions read.
#pragma once

#include <memory>

#include "kernels/product/description.h"
#include "kernels/product/source.h"

namespace fuselite::kernels {

// The input itself where no window reaches into padding, else a copy with zeros around it, planes
// of them before the first and behind the last. Precondition: description.volume.
std::unique_ptr<Source> VolumeSource(int input, const ProductDescription& description);

}  // namespace fuselite::kernels
