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
void TakeRequantization(int64_t largest_sum, IntegerTail* divided) {
  const auto& stages = divided->rest.stages;
  if (stages.empty()) return;
  if (stages[0].kind != Kind::kRequantize && stages[0].kind != Kind::kRescale) return;
  const bool on_bytes = std::all_of(stages.begin() + 1, stages.end(), [](const auto& stage) {
    return stage.kind == Kind::kQuantizedAdd || stage.kind == Kind::kLookup;
  });
  if (!on_bytes) return;
  const auto plan = PlanRequantization(stages[0], divided->output, largest_sum);
  if (!plan.ok()) return;
  divided->requantization = *plan;
  divided->requantize = TakeFirst(&divided->rest);
}

void TakeLookup(const VectorIsa& isa, IntegerTail* divided) {
  const auto& stages = divided->rest.stages;
  if (stages.empty() || stages[0].kind != Kind::kLookup) return;
  const LookupMethod method = BestLookup(isa);
  divided->table = EncodeLookup(stages[0].table, method);
  if (divided->table.data() == nullptr) return;
  divided->requantization->lookup = method;
  TakeFirst(&divided->rest);
}

}  // namespace

IntegerTail DivideTail(Tail tail, DataType output, const VectorIsa& isa, int64_t largest_sum,
                       bool whole_vectors) {
  IntegerTail divided;
  divided.rest = std::move(tail);
  divided.output = output;
  TakeRequantization(largest_sum, &divided);
  if (divided.requantization) {
    divided.residual = TakeResidual(&divided.rest, isa, whole_vectors, &*divided.requantization);
    TakeLookup(isa, &divided);
  }
  if (!divided.requantization || !divided.rest.empty()) {
    divided.apply_rest = kernels::ApplyTail(isa.level);
  }
  return divided;
}

IntegerTail FloatTail(const FloatOutput& floats, DataType output, Isa isa) {
  IntegerTail tail;
  tail.rest = floats.rest;
  tail.output = output;
  if (!tail.rest.empty()) tail.apply_rest = kernels::ApplyTail(isa);
  return tail;
}

std::string ConstantsKey(const FloatOutput* floats, const IntegerTail& tail) {
  if (floats != nullptr) {
    const uint64_t hash =
        HashBytes(floats->scales.data(), floats->scales.size() * sizeof(float)).low;
    return internal::Join(" floats", hash);
  }
  if (!tail.requantization) return " sums";
  return tail.requantization->key() + ConstantsKey(tail.requantize);
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
