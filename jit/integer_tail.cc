#include "jit/integer_tail.h"

#include <algorithm>

#include "runtime/hash.h"

namespace fuselite::jit {

using kernels::Tail;
using kernels::TailStage;
using Kind = TailStage::Kind;

namespace {

TailStage TakeFirst(Tail* tail) {
  TailStage first = std::move(tail->stages.front());
  tail->stages.erase(tail->stages.begin());
  return first;
}

// The requantization at the front, where all stages behind it work on bytes.
Status TakeRequantization(const SumBounds& bounds, IntegerTail* divided) {
  const auto& stages = divided->rest.stages;
  if (stages.empty()) return Unsupported("sums are stored as they are");
  if (stages[0].kind != Kind::kRequantize && stages[0].kind != Kind::kRescale) {
    return Unsupported("tail stage ", stages[0].ToString(), " has no emitter for integer sums");
  }
  for (size_t i = 1; i < stages.size(); ++i) {
    if (stages[i].kind == Kind::kQuantizedAdd || stages[i].kind == Kind::kLookup) continue;
    return Unsupported("tail stage ", stages[i].ToString(), " has no emitter for bytes");
  }
  FUSELITE_ASSIGN_OR_RETURN(divided->requantization,
                            PlanRequantization(stages[0], divided->output));
  divided->constants = RequantizationConstants(TakeFirst(&divided->rest), *divided->requantization,
                                               bounds.products, bounds.bias);
  return Status();
}

Status TakeLookup(const VectorIsa& isa, IntegerTail* divided) {
  const auto& stages = divided->rest.stages;
  if (stages.empty()) return Status();
  if (stages[0].kind != Kind::kLookup) {
    return Unsupported("tail stage ", stages[0].ToString(), " has no emitter with these operands");
  }
  const LookupMethod method = BestLookup(isa);
  divided->table = EncodeLookup(stages[0].table, method);
  if (divided->table.data() == nullptr) return OutOfMemory("no memory for a table");
  divided->requantization->lookup = method;
  TakeFirst(&divided->rest);
  if (divided->rest.empty()) return Status();
  return Unsupported("tail stage ", divided->rest.stages[0].ToString(), " behind a table");
}

}  // namespace

IntegerTail DivideTail(Tail tail, DataType output, const VectorIsa& isa, const SumBounds& bounds,
                       bool whole_vectors) {
  IntegerTail divided;
  divided.rest = std::move(tail);
  divided.output = output;
  Status taken = TakeRequantization(bounds, &divided);
  if (taken.ok()) {
    divided.residual = TakeResidual(&divided.rest, isa, whole_vectors, &*divided.requantization);
    taken = TakeLookup(isa, &divided);
  }
  if (taken.ok()) return divided;
  divided.apply_rest = kernels::ApplyTail(isa.level);
  if (!divided.rest.empty()) divided.why_rest = taken.message();
  return divided;
}

IntegerTail FloatTail(const FloatOutput& floats, DataType output, Isa isa) {
  IntegerTail tail;
  tail.rest = floats.rest;
  tail.output = output;
  if (tail.rest.empty()) return tail;
  tail.apply_rest = kernels::ApplyTail(isa);
  tail.why_rest = floats.why_rest;
  return tail;
}

std::string ConstantsKey(const FloatOutput* floats, const IntegerTail& tail) {
  if (floats != nullptr) {
    const uint64_t hash =
        HashBytes(floats->scales.data(), floats->scales.size() * sizeof(float)).low;
    return internal::Join(" floats", hash);
  }
  if (!tail.requantization) return " sums";
  return tail.constants.key();
}

void IntegerTail::ApplyRest(const KernelArgs& args, const Tile& tile) const {
  const bool in_place = tile.sums == nullptr;
  apply_rest(rest, args.inputs,
             {.source = in_place ? tile.out : tile.sums,
              .source_pitch = in_place ? tile.out_pitch : tile.sums_pitch,
              .source_type = in_place ? output : DataType::kInt32,
              .destination = tile.out,
              .destination_pitch = tile.out_pitch,
              .destination_type = output,
              .row = tile.row,
              .rows = tile.rows,
              .channel = tile.channel,
              .channels = tile.channels});
}

}  // namespace fuselite::jit
