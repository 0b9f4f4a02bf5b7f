// STABLEHLO_PAD: (input, value): along each dimension `interior` elements of the value between
// neighbours, `low` before the first and `high` behind the last; negative ones cut elements off.
#include "kernels/stablehlo/pad.h"

#include <algorithm>

#include "kernels/movement/movement.h"
#include "kernels/shape_rules.h"
#include "runtime/support/ceil_div.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

using tflite::TfLiteStablehloPadParams;
constexpr Field kFields[] = {
    {"edge_padding_low", FieldKind::kLongList, 0, offsetof(StablehloPadParams, low),
     offsetof(TfLiteStablehloPadParams, edge_padding_low)},
    {"edge_padding_high", FieldKind::kLongList, 1, offsetof(StablehloPadParams, high),
     offsetof(TfLiteStablehloPadParams, edge_padding_high)},
    {"interior_padding", FieldKind::kLongList, 2, offsetof(StablehloPadParams, interior),
     offsetof(TfLiteStablehloPadParams, interior_padding)},
};

Status InferStablehloPad(OpDescription& op) {
  const TensorInfo& in = op.inputs[0];
  const auto& params = op.params.as<StablehloPadParams>();
  if (op.inputs[1].type != in.type || op.inputs[1].elements() < 1) {
    return InvalidArgument("the padding's value must be one ", DataTypeName(in.type));
  }
  FUSELITE_RETURN_IF_ERROR(ElementBytes(in.type).status());
  std::vector<int64_t> dims;
  for (int d = 0; d < in.shape.rank(); ++d) {
    for (const IntList* list : {&params.low, &params.high, &params.interior}) {
      if (d >= list->count) return InvalidArgument("no padding of dimension ", d);
    }
    const int64_t interior = params.interior.values[d];
    if (interior < 0) return InvalidArgument("an interior padding of ", interior);
    const int64_t inside = in.shape[d] == 0 ? 0 : (in.shape[d] - 1) * (interior + 1) + 1;
    dims.push_back(std::max<int64_t>(0, inside + params.low.values[d] + params.high.values[d]));
  }
  // LiteRT gives an output without elements no extent along any dimension.
  if (std::ranges::find(dims, 0) != dims.end()) std::ranges::fill(dims, 0);
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape, MakeShape(dims));
  return SetOutput(op, 0, in.type, shape);
}

// What one dimension of the output has: elements [first, first + count) of the input, `step` apart
// from `begin` on; what lies around them and between them is padding.
struct Placed {
  int64_t first, count, begin, step;
  // From the first element to the last.
  int64_t span() const { return count == 0 ? 0 : (count - 1) * step + 1; }
};

Placed PlaceOf(const OpDescription& op, int d) {
  const auto& params = op.params.as<StablehloPadParams>();
  const int64_t low = params.low.values[d], step = int64_t{params.interior.values[d]} + 1;
  const int64_t first = low < 0 ? CeilDiv(-low, step) : 0, begin = low + first * step;
  const int64_t room = op.outputs[0].shape[d] - begin;
  const int64_t fit = room > 0 ? CeilDiv(room, step) : 0;
  return {first, std::clamp<int64_t>(op.inputs[0].shape[d] - first, 0, fit), begin, step};
}

// The elements with their steps; then, dimension by dimension, what lies between them: of the outer
// dimensions only those positions that hold elements, of the inner ones all from the first to the
// last. Then what lies around.
Result<Movement> PlanStablehloPad(const OpDescription& op) {
  const Shape &in = op.inputs[0].shape, &out = op.outputs[0].shape;
  const auto from = ByteStrides(op.inputs[0]), to = ByteStrides(op.outputs[0]);
  CopyPart elements = MakePart(op, 0, 0), fill = MakePart(op, 1, 0), corner = fill;
  std::vector<Placed> placed;
  std::vector<Extent> extents;
  for (int d = 0; d < in.rank(); ++d) {
    const Placed& place = placed.emplace_back(PlaceOf(op, d));
    extents.push_back({out[d], place.count == 0 ? 0 : place.begin, place.span()});
    corner.copy.out_offset += place.begin * to[d];
    elements.copy.in_offset += place.first * from[d];
    elements.copy.Add(place.count, from[d], to[d] * place.step);
  }
  const bool empty = std::ranges::any_of(placed, [](const Placed& p) { return p.count == 0; });
  Movement movement;
  if (empty) {
    for (int d = 0; d < in.rank(); ++d) fill.copy.Add(out[d], 0, to[d]);
    movement.parts.push_back(fill);
    return movement;
  }
  elements.copy.out_offset = corner.copy.out_offset;
  movement.parts.push_back(elements);
  for (int gap = 0; gap < in.rank(); ++gap) {
    if (placed[gap].step == 1 || placed[gap].count == 1) continue;
    CopyPart between = corner;
    for (int d = 0; d < gap; ++d) {
      between.copy.Add(placed[d].count, 0, to[d] * placed[d].step);
    }
    between.copy.out_offset += to[gap];
    between.copy.Add(placed[gap].count - 1, 0, to[gap] * placed[gap].step);
    between.copy.Add(placed[gap].step - 1, 0, to[gap]);
    for (int d = gap + 1; d < in.rank(); ++d) between.copy.Add(placed[d].span(), 0, to[d]);
    movement.parts.push_back(between);
  }
  FillAround(fill, extents, {to.begin(), to.begin() + in.rank()}, &movement);
  return movement;
}

}  // namespace

const OperatorDef& StablehloPadOperator() {
  static constexpr OperatorDef kDef = {
      .name = "STABLEHLO_PAD",
      .builtin_code = tflite::kTfLiteBuiltinStablehloPad,
      .options_type = kSecondUnion + 10,
      .fields = kFields,
      .params_bytes = sizeof(StablehloPadParams),
      .struct_bytes = sizeof(TfLiteStablehloPadParams),
      .min_inputs = 2,
      .max_inputs = 2,
      .limits = "elements of 1, 2, 4 or 8 bytes",
      .infer = InferStablehloPad,
      .candidates = kMovementCandidates<PlanStablehloPad>,
      .cost = MovementCost,
  };
  return kDef;
}

}  // namespace fuselite::kernels
