#include "jit/tail/layer_constants.h"

#include <algorithm>
#include <cstring>

namespace fuselite::jit {
namespace {

// AVX-512 broadcasts what it reads; AVX2 reads a whole vector.
int Copies(const VectorIsa& isa) { return isa.avx512 ? 1 : isa.lanes(); }

// Tables are read by aligned loads.
size_t NumberBytes(const VectorIsa& isa, size_t numbers) {
  return AlignUp(sizeof(int32_t) * numbers * Copies(isa));
}

}  // namespace

AlignedBuffer LayerConstants::Encode(const VectorIsa& isa, std::span<const std::byte> table) const {
  const size_t number_bytes = NumberBytes(isa, values_.size());
  AlignedBuffer memory(number_bytes + table.size());
  if (memory.data() == nullptr) return memory;
  auto* to = memory.as<int32_t>();
  for (const int32_t value : values_) to = std::fill_n(to, Copies(isa), value);
  if (!table.empty()) std::memcpy(memory.data() + number_bytes, table.data(), table.size());
  return memory;
}

Place LayerReader::At(LayerConstant constant) const {
  const size_t index = LayerLayout::IndexOf(constant, residual_);
  return Place(layer_) + static_cast<int64_t>(index * Copies(a_.isa()) * sizeof(int32_t));
}

Memory LayerReader::Operand(LayerConstant constant) const {
  return a_.isa().avx512 ? a_.ptr_b[At(constant)] : a_.ptr[At(constant)];
}

void LayerReader::Load(int vector, LayerConstant constant) const {
  a_.vbroadcastss(a_.Vec(vector), a_.ptr[At(constant)]);
}

Place LayerReader::table() const {
  return Place(layer_) + static_cast<int64_t>(NumberBytes(a_.isa(), layout_.numbers()));
}

}  // namespace fuselite::jit
