#include "kernels/product/part_depth.h"

#include <vector>

namespace fuselite::kernels {

DepthRuns DepthOf(const ProductDescription& d, const ProductPart& part, const ImageMemory& memory) {
  const auto& [y, x] = part.window;
  DepthRuns depth;
  if (x.dilation == 1 && memory.dense && d.groups == 1) {
    depth.runs = {{0, x.filter * d.channels_in}};
  } else {
    for (int32_t kx = 0; kx < x.filter; ++kx) {
      depth.runs.push_back({kx * x.dilation * memory.pixel, d.group_in()});
    }
  }
  if (!d.volume || part.z.filter == 1) {
    depth.outer = y.filter;
    depth.outer_step = y.filter > 1 ? y.dilation * memory.row : 0;
    return depth;
  }
  // The rows of a plane, then those of the next.
  std::vector<DepthRuns::Run> row;
  row.swap(depth.runs);
  for (int32_t ky = 0; ky < y.filter; ++ky) {
    for (const DepthRuns::Run& run : row) {
      depth.runs.push_back({run.offset + ky * y.dilation * memory.row, run.length});
    }
  }
  depth.outer = part.z.filter;
  depth.outer_step = part.z.dilation * memory.image;
  return depth;
}

}  // namespace fuselite::kernels
