// Operators that only move data, as lists of strided copies.
//
// Such an operator is a function from its description to a Movement. From that come its kernels,
// which differ in the inner loops only (kernels/movement/copy_loops.h), and, where a copy amounts
// to an address, its placement (kernels/movement/placement.h).
#pragma once

#include <memory>
#include <vector>

#include "kernels/movement/strided_copy.h"
#include "kernels/operator.h"
#include "kernels/packed_integers.h"

namespace fuselite::kernels {

// Serves the tables of types: values of `kType` are moved as they are.
template <DataType kType>
inline constexpr TypeRow kAlike = {{kType}, kType};
template <DataType... kTypes>
inline constexpr TypeRow kAlikeRows[] = {kAlike<kTypes>...};

// One box that goes from an input to an output, or is filled with a constant.
struct CopyPart {
  int input = 0;  // kConstant: the copy reads `constant`, with strides of 0
  int output = 0;
  StridedCopy copy;
  std::array<std::byte, 16> constant{};

  static constexpr int kConstant = -1;
};

struct Movement {
  std::vector<CopyPart> parts;  // together they write every output element once
};

using PlanMovement = Result<Movement> (*)(const OpDescription&);

// Strides in bytes of a tensor, its row pitch included.
std::array<int64_t, Shape::kMaxRank> ByteStrides(const TensorInfo& info);

// A copy with element size and no dimensions yet.
CopyPart MakePart(const OpDescription& op, int input, int output);

// A box within a larger one: [begin, begin + size) along a dimension of `total` elements.
struct Extent {
  int64_t total, begin, size;
};
// Appends the parts that fill `whole` outside of the box given by one Extent per dimension, reading
// the element that `fill` reads. `out_strides` are bytes, `fill.copy.out_offset` the start.
void FillAround(const CopyPart& fill, const std::vector<Extent>& extents,
                const std::vector<int64_t>& out_strides, Movement* movement);

// The kernel that runs a movement with scalar loops. Refuses tails.
Result<std::unique_ptr<Kernel>> MakeMovementKernel(const OpDescription& op,
                                                   const Movement& movement);
// As MakeMovementKernel(), with vectors; refuses where the ISA has none.
Result<std::unique_ptr<Kernel>> MakeVectorMovementKernel(const OpDescription& op,
                                                         const Movement& movement, Isa isa);

// The candidates of an operator that is a movement and nothing else.
template <PlanMovement plan>
Result<std::unique_ptr<Kernel>> BuildMovement(const OpDescription& op,
                                              const BuildContext& context) {
  if (IsPacked(op.outputs[0].type)) return BuildOnBytes(op, context, BuildMovement<plan>);
  FUSELITE_ASSIGN_OR_RETURN(const Movement movement, plan(op));
  return MakeMovementKernel(op, movement);
}
template <PlanMovement plan>
Result<std::unique_ptr<Kernel>> BuildVectorMovement(const OpDescription& op,
                                                    const BuildContext& context) {
  if (IsPacked(op.outputs[0].type)) return BuildOnBytes(op, context, BuildVectorMovement<plan>);
  FUSELITE_ASSIGN_OR_RETURN(const Movement movement, plan(op));
  return MakeVectorMovementKernel(op, movement, context.isa);
}
template <PlanMovement plan>
inline constexpr Candidate kMovementCandidates[] = {{"highway", BuildVectorMovement<plan>},
                                                    {"reference", BuildMovement<plan>}};

// Elements written: the cost of moving them.
double MovementCost(const OpDescription& op);

}  // namespace fuselite::kernels
