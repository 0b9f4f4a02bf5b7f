#include "jit/tail/integer_tail.h"

#include <utility>

#include "runtime/weights/hash.h"

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
Status TakeRequantization(const SumBounds& bounds, Isa isa, IntegerTail* divided) {
  const auto& stages = divided->rest.tail.stages;
  if (stages.empty()) return Unsupported("sums are stored as they are");
  if (stages[0].kind != Kind::kRequantize && stages[0].kind != Kind::kRescale) {
    return Unsupported("does not take the tail stage ", stages[0].ToString(), " of integer sums");
  }
  for (size_t i = 1; i < stages.size(); ++i) {
    if (stages[i].kind == Kind::kQuantizedAdd || stages[i].kind == Kind::kLookup) continue;
    return Unsupported("does not take the tail stage ", stages[i].ToString(), " of bytes");
  }
  FUSELITE_ASSIGN_OR_RETURN(divided->emitted.requantization,
                            PlanRequantization(stages[0], divided->rest.output));
  divided->constants = RequantizationConstants(TakeFirst(&divided->rest.tail),
                                               *divided->emitted.requantization, bounds, isa);
  return Status();
}

void TakeResiduals(int64_t rows_of_call, IntegerTail* divided) {
  std::vector<Residual>& residuals = divided->emitted.residuals;
  while (residuals.size() < kMostResiduals) {
    auto residual =
        TakeResidual(&divided->rest.tail, rows_of_call, &*divided->emitted.requantization);
    if (!residual) return;
    residuals.push_back(*residual);
  }
}

Status TakeLookup(const VectorIsa& isa, IntegerTail* divided) {
  const auto& stages = divided->rest.tail.stages;
  if (stages.empty()) return Status();
  if (stages[0].kind != Kind::kLookup) {
    return Unsupported("does not take the tail stage ", stages[0].ToString(),
                       " with these operands");
  }
  divided->emitted.requantization->lookup = BestLookup(isa);
  divided->table = TakeFirst(&divided->rest.tail).table;
  if (divided->rest.tail.empty()) return Status();
  return Unsupported("tail stage ", divided->rest.tail.stages[0].ToString(), " behind a table");
}

}  // namespace

IntegerTail DivideIntegerTail(Tail tail, DataType output, const VectorIsa& isa,
                              const SumBounds& bounds, int64_t rows_of_call) {
  IntegerTail divided;
  divided.rest.tail = std::move(tail);
  divided.rest.output = output;
  Status taken = TakeRequantization(bounds, isa.features, &divided);
  if (taken.ok()) {
    TakeResiduals(rows_of_call, &divided);
    taken = TakeLookup(isa, &divided);
  }
  if (taken.ok()) return divided;
  divided.rest.apply = kernels::ApplyTail(isa.features);
  if (!divided.emitted.requantization) divided.rest.in_scratch = DataType::kInt32;
  if (!divided.rest.tail.empty()) divided.rest.why = taken.message();
  return divided;
}

Status PrepareTail(IntegerTail* tail, const VectorIsa& isa) {
  auto& [requantization, dequantization, residuals] = tail->emitted;
  if (!requantization) return Status();
  tail->constants.Prepare();
  LayerConstants constants(residuals.size());
  for (size_t r = 0; r < residuals.size(); ++r) {
    FindFloats(&residuals[r], &*requantization, isa.features);
    residuals[r].Encode(r, &constants);
  }
  requantization->Encode(&constants);
  AlignedBuffer table;
  if (const auto lookup = requantization->lookup) {
    table = EncodeLookup(std::exchange(tail->table, {}), *lookup);
    if (table.data() == nullptr) return OutOfMemory("no memory for a table");
  }
  AlignedBuffer layer = constants.Encode(isa, {table.data(), table.size()});
  if (layer.data() == nullptr) return OutOfMemory("no memory for a tail's numbers");
  tail->layer = std::make_shared<const AlignedBuffer>(std::move(layer));
  return Status();
}

IntegerTail FloatTail(FloatOutput floats, DataType output, Isa isa) {
  IntegerTail tail;
  tail.emitted.dequantization = std::move(floats.dequantization);
  tail.scales = std::move(floats.scales);
  tail.rest.output = output;
  if (floats.rest.empty()) return tail;
  tail.rest.apply = kernels::ApplyTail(isa);
  tail.rest.tail = std::move(floats.rest);
  tail.rest.why = std::move(floats.why_rest);
  return tail;
}

void IntegerTail::PackConstants(std::span<const int64_t> channels, const int32_t* bias,
                                int32_t* first_sums, std::byte* to) const {
  if (emitted.dequantization) PackScales(scales, channels, reinterpret_cast<float*>(to));
  if (!emitted.requantization) return;
  constants.Pack(channels, bias, first_sums, reinterpret_cast<int32_t*>(to));
}

std::string IntegerTail::constants_key() const {
  if (emitted.stores_sums()) return " sums";
  if (emitted.requantization) return constants.key();
  return internal::Join(" floats", HashBytes(scales.data(), scales.size() * sizeof(float)).low);
}

}  // namespace fuselite::jit
