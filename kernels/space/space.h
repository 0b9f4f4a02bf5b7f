// DEPTH_TO_SPACE, SPACE_TO_DEPTH, SPACE_TO_BATCH_ND, BATCH_TO_SPACE_ND: blocks of pixels to and
// from channels or batch.
#pragma once

#include "kernels/movement/movement.h"

namespace fuselite::kernels {

struct BlockSizeParams {
  int32_t block_size;
};

// output[n, h b + i, w b + j, c] = input[n, h, w, (i b + j) C + c], C the output's channels.
Result<Movement> PlanDepthToSpace(const OpDescription& op);
// The inverse.
Result<Movement> PlanSpaceToDepth(const OpDescription& op);

// (input, block [M], paddings [M, 2]): the M dimensions behind the batch are padded with zeros (the
// output's zero point) and cut into blocks; output batch ((i0 block1 + i1) .. ) N + n holds
// position (i0, i1, ..) of each block of image n.
Result<Movement> PlanSpaceToBatchNd(const OpDescription& op);
// (input, block [M], crops [M, 2]): the inverse, with the crops cut off.
Result<Movement> PlanBatchToSpaceNd(const OpDescription& op);

}  // namespace fuselite::kernels
