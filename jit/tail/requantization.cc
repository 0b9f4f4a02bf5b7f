#include "jit/tail/requantization.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

#include "kernels/numbers/quantization.h"
#include "runtime/cpu/float_state.h"
#include "runtime/support/status.h"
#include "runtime/weights/hash.h"

namespace fuselite::jit {

using kernels::TailStage;

namespace {

constexpr int kMaxNarrowRight = 21, kMaxNarrowLeft = 24;
constexpr int64_t kMaxNarrowSum = int64_t{1} << 28;  // after the left shift
constexpr int kMaxVectorLanes = 16;
constexpr int64_t kFewRows = 4;

// With so few sums of a channel in a run floats are worth no long search: an unrolled LSTM of one
// row opens in 6 ms less of 30, and runs 2 of 130 microseconds longer (Zen 3). With AVX-512 it
// would run 6% longer without pairs that move sums, so the first ones are taken.
kernels::FloatScaleEffort EffortFor(int64_t rows, Isa isa) {
  using Effort = kernels::FloatScaleEffort;
  if (rows > kFewRows) return Effort::kFewestMoves;
  return isa.has(Feature::kAvx512) ? Effort::kFirstPair : Effort::kPlain;
}

template <class Values>
auto OfChannel(const Values& values, int64_t channel) {
  return values[values.size() > 1 ? static_cast<size_t>(channel) : 0];
}

}  // namespace

std::string Requantization::key() const {
  // One number: asked for with each list of constants, and a bool takes a stream to write.
  const bool flags[] = {is_unsigned,      real, clamps_below(), clamps_above(), addend_has_sign,
                        store_offset != 0};
  unsigned bits = 0;
  for (const bool flag : flags) bits = 2 * bits + (flag ? 1 : 0);
  return internal::Join(" requantize", bits, " l", lookup ? static_cast<int>(*lookup) + 1 : 0);
}

void Requantization::Encode(LayerConstants* constants) const {
  const auto bytes = [](int32_t x) {
    return static_cast<int32_t>(0x01010101u * static_cast<uint8_t>(x));
  };
  constants->Set(LayerConstant::kStoreOffset, store_offset);
  constants->Set(LayerConstant::kStoreOffsetWords,
                 static_cast<int32_t>(0x10001u * static_cast<uint16_t>(store_offset)));
  constants->Set(LayerConstant::kLeast, bytes(min));
  constants->Set(LayerConstant::kMost, bytes(max));
  constants->Set(LayerConstant::kOffset, offset());
}

Result<Requantization> PlanRequantization(const TailStage& stage, DataType output) {
  if (output != DataType::kInt8 && output != DataType::kUInt8) {
    return Unsupported("does not requantize to ", DataTypeName(output));
  }
  const kernels::Requantize& r = stage.requantize;
  Requantization plan;
  plan.is_unsigned = output == DataType::kUInt8;
  plan.real = stage.kind == TailStage::Kind::kRescale;
  plan.min = plan.real ? stage.min : r.min;
  plan.max = plan.real ? stage.max : r.max;
  plan.zero_point = plan.real ? stage.zero_point : r.zero_point;
  int32_t type_min, type_max;
  kernels::QuantizedTypeRange(output, &type_min, &type_max);
  if (plan.min < type_min || plan.max > type_max || plan.min > plan.max) {
    return Unsupported("does not take an output range from ", plan.min, " to ", plan.max);
  }
  if (plan.zero_point < type_min || plan.zero_point > type_max) {
    return Unsupported("does not take an output zero point of ", plan.zero_point);
  }
  // Where the clamp takes what is below zero, no sign counts.
  plan.addend_has_sign = !plan.real && plan.min < plan.zero_point;
  plan.store_offset = plan.zero_point - plan.offset();
  return plan;
}

RequantizationConstants::RequantizationConstants(TailStage stage, const Requantization& plan,
                                                 const SumBounds& bounds, Isa isa)
    : stage_(std::move(stage)), plan_(plan), bounds_(bounds), isa_(isa) {}

void RequantizationConstants::Prepare() {
  const size_t scales =
      plan_.real ? stage_.real_scales.size() : stage_.requantize.multipliers.size();
  if (scales == 1) {
    PrepareUniform();
  } else if (bounds_.at_run_time) {
    PrepareEach(static_cast<int64_t>(scales));
  }
}

// Each channel by itself: which ones share a vector is not known here, and one without floats must
// not cost the others theirs.
void RequantizationConstants::PrepareEach(int64_t channels) {
  const int64_t largest = bounds_.products + bounds_.bias;
  const DefaultFloatState state;
  each_floats_ = PreparedFloats(static_cast<size_t>(channels));
  for (int64_t c = 0; c < channels; ++c) {
    kernels::FloatScaleQuery query;
    Channel& channel = each_.emplace_back(Of(c, -largest, largest, &query));
    if (channel.fits) channel.floats = kernels::FindFloatScale(query, isa_);
    if (channel.floats) each_floats_.Set(static_cast<size_t>(c), *channel.floats);
  }
}

void RequantizationConstants::PrepareUniform() {
  const int64_t largest = bounds_.products + bounds_.bias;
  const DefaultFloatState state;
  kernels::FloatScaleQuery query;
  uniform_ = Of(0, -largest, largest, &query);
  if (uniform_->fits) uniform_->floats = kernels::FindFloatScale(query, isa_);
  std::array<Channel, kMaxVectorLanes> lanes;
  lanes.fill(*uniform_);
  const auto all = std::span(lanes).first(VectorIsa(isa_).lanes());
  std::array<int32_t, kMaxVectorLanes> first_sums{};
  uniform_constants_.resize(all.size() * plan_.constants());
  PackLanes(all, first_sums.data(), uniform_constants_.data());
  uniform_shift_ = first_sums[0];
  const std::optional<kernels::FloatScale>& floats = uniform_->floats;
  const bool plain = floats && !floats->moves_down() && !floats->moves_up();
  uniform_slots_ = bounds_.at_run_time && plain ? kAddendSlot + 1 : plan_.constants();
}

RequantizationConstants::Channel RequantizationConstants::Of(
    int64_t channel, int64_t least, int64_t largest, kernels::FloatScaleQuery* query) const {
  if (least < INT32_MIN || largest > INT32_MAX) {  // sums wrap around
    least = INT32_MIN;
    largest = INT32_MAX;
  }
  Channel c{};
  if (plan_.real) {
    c.real = OfChannel(stage_.real_scales, channel);
    c.fits = true;
  } else {
    c.multiplier = OfChannel(stage_.requantize.multipliers, channel);
    c.shift = OfChannel(stage_.requantize.shifts, channel);
    const int left = std::max(c.shift, 0);
    const int64_t farthest = std::max(largest, -least);
    c.narrow =
        c.shift >= -kMaxNarrowRight && left <= kMaxNarrowLeft && farthest << left < kMaxNarrowSum;
    c.fits = farthest << left <= INT32_MAX;
    if (c.fits && !c.narrow) SetConstant(least, largest, &c);
  }
  const auto& r = stage_.requantize;
  query->scale.multiplier = c.multiplier;
  query->scale.shift = c.shift;
  query->scale.real = c.real;
  query->least = least;
  query->largest = largest;
  query->zero_point = plan_.zero_point;
  query->min = plan_.real ? stage_.min : r.min;
  query->max = plan_.real ? stage_.max : r.max;
  query->addend_has_sign = plan_.addend_has_sign;
  return c;
}

// What is monotone and the same at both ends is the same between them.
void RequantizationConstants::SetConstant(int64_t least, int64_t largest, Channel* c) const {
  const kernels::Requantize& r = stage_.requantize;
  const kernels::SumScale scale{.multiplier = c->multiplier, .shift = c->shift};
  const auto result = [&](int64_t sum) {
    const int64_t x = int64_t{scale.Apply(static_cast<int32_t>(sum))} + r.zero_point;
    return static_cast<int32_t>(std::clamp<int64_t>(x, r.min, r.max));
  };
  const int32_t first = result(least);
  if (first != result(largest)) return;
  c->constant = first - r.zero_point;
  c->narrow = true;
}

// One channel without floats decides for its vector: they are sought only where all can have some.
void RequantizationConstants::Find(std::span<const int64_t> channels, const int32_t* bias,
                                   std::span<Channel> lanes) const {
  const int64_t largest = bounds_.products;
  std::array<kernels::FloatScaleQuery, kMaxVectorLanes> queries;
  std::array<std::optional<kernels::FloatScale>, kMaxVectorLanes> found;
  size_t count = 0;
  bool fits = true;
  for (size_t i = 0; i < channels.size(); ++i) {
    const int64_t c = channels[i];
    if (c < 0) {
      lanes[i] = Nothing();
    } else {
      const int64_t b = bias != nullptr ? bias[c] : 0;
      // In its place: who copies what was just written field by field waits for it.
      ::new (&lanes[i]) Channel(Of(c, b - largest, b + largest, &queries[count++]));
    }
    fits &= lanes[i].fits;
  }
  if (!fits) return;
  kernels::FindFloatScales(std::span(queries).first(count), isa_, EffortFor(bounds_.rows, isa_),
                           std::span(found).first(count));
  for (size_t i = 0, at = 0; i < channels.size(); ++i) {
    if (channels[i] >= 0) lanes[i].floats = found[at++];
  }
}

bool RequantizationConstants::WithinBounds(std::span<const int64_t> channels,
                                           const int32_t* bias) const {
  return bias == nullptr || std::ranges::all_of(channels, [&](int64_t c) {
           return c < 0 || std::abs(int64_t{bias[c]}) <= bounds_.bias;
         });
}

void RequantizationConstants::FillWide(std::span<const int64_t> channels,
                                       std::span<Channel> lanes) const {
  kernels::FloatScaleQuery unused;
  for (size_t i = 0; i < channels.size(); ++i) {
    lanes[i] = channels[i] < 0 ? Nothing() : Of(channels[i], INT32_MIN, INT32_MAX, &unused);
  }
}

void RequantizationConstants::Pack(std::span<const int64_t> channels, const int32_t* bias,
                                   int32_t* first_sums, int32_t* to) const {
  const bool within = !bounds_.at_run_time || WithinBounds(channels, bias);
  if (within && uniform_ && uniform_constants_.size() == channels.size() * plan_.constants()) {
    std::copy_n(uniform_constants_.data(), channels.size() * uniform_slots_, to);
    for (size_t i = 0; i < channels.size(); ++i) first_sums[i] += uniform_shift_;
    return;
  }
  if (within && !each_.empty() && each_floats_.Pack(channels, first_sums, to)) return;
  std::array<Channel, kMaxVectorLanes> lanes;
  if (!within) {
    FillWide(channels, lanes);
  } else if (uniform_) {  // in a vector that is not the widest
    lanes.fill(*uniform_);
  } else if (bounds_.at_run_time) {
    for (size_t i = 0; i < channels.size(); ++i) {
      lanes[i] = channels[i] < 0 ? Nothing() : each_[static_cast<size_t>(channels[i])];
    }
  } else {
    const DefaultFloatState state;
    Find(channels, bias, lanes);
  }
  PackLanes(std::span(lanes).first(channels.size()), first_sums, to);
}

void RequantizationConstants::PackLanes(std::span<const Channel> lanes, int32_t* first_sums,
                                        int32_t* to) const {
  const auto all = [&](auto of) { return std::ranges::all_of(lanes, of); };
  std::fill_n(to, lanes.size() * plan_.constants(), 0);
  if (all([](const Channel& c) { return c.floats.has_value(); })) {
    return PackFloats(lanes, first_sums, to);
  }
  const bool narrow = all([](const Channel& c) { return c.narrow; });
  std::fill_n(to, lanes.size(), !plan_.real && narrow ? kNarrowForm : kWideForm);
  if (plan_.real) return PackReal(lanes, to);
  narrow ? PackNarrow(lanes, to) : PackWide(lanes, to);
}

void RequantizationConstants::PackFloats(std::span<const Channel> lanes, int32_t* first_sums,
                                         int32_t* to) const {
  bool down = false, up = false;
  for (const Channel& lane : lanes) {
    down |= lane.floats->moves_down();
    up |= lane.floats->moves_up();
  }
  const bool moved = down || up;
  if (moved) std::fill_n(to, lanes.size(), up ? kUpForm : kDownForm);
  for (size_t i = 0; i < lanes.size(); ++i) {
    const auto set = [&](RequantizationSlot slot, int32_t x) { to[slot * lanes.size() + i] = x; };
    const kernels::FloatScale& floats = *lanes[i].floats;
    set(moved ? kMovedScaleSlot : kScaleSlot, std::bit_cast<int32_t>(floats.scale));
    set(kAddendSlot, std::bit_cast<int32_t>(floats.addend));
    first_sums[i] += floats.shift;
    if (!moved) continue;
    set(kDownSlot, floats.down);
    set(kUpSlot, floats.up);
  }
}

void RequantizationConstants::PackNarrow(std::span<const Channel> lanes, int32_t* to) const {
  for (size_t i = 0; i < lanes.size(); ++i) {
    const auto set = [&](RequantizationSlot slot, int32_t x) { to[slot * lanes.size() + i] = x; };
    if (lanes[i].constant) {
      set(kNudgeSlot, 1 + 2 * (*lanes[i].constant + plan_.offset()));
      set(kRightSlot, 1);
      continue;
    }
    const int right = std::max(-lanes[i].shift, 0);
    set(kMultiplierSlot, lanes[i].multiplier);
    set(kNudgeSlot, 1 + (right > 0 ? 1 << right : 0) + plan_.offset() * (1 << (right + 1)));
    set(kRightSlot, right + 1);
    set(kLeftSlot, 2 + std::max(lanes[i].shift, 0));
    set(kSignSlot, right > 0 ? 2 : 0);
  }
}

// With p = x m the result is (p + 2^30 + 2^(30+e) - (x < 0 ? 2^31 : 0)) >> (31 + e) where e >= 1,
// and (2 p + 2^31) >> 32 where e = 0. What is added beyond the product's low half, 2^(e-2), the
// code makes of the shift.
void RequantizationConstants::PackWide(std::span<const Channel> lanes, int32_t* to) const {
  for (size_t i = 0; i < lanes.size(); ++i) {
    const auto set = [&](RequantizationSlot slot, int32_t x) { to[slot * lanes.size() + i] = x; };
    const int right = std::max(-lanes[i].shift, 0);
    const uint32_t low = right == 0 ? 0x80000000u : right == 1 ? 0xC0000000u : 0x40000000u;
    set(kMultiplierSlot, lanes[i].multiplier);
    set(kNudgeSlot, static_cast<int32_t>(low));
    set(kRightSlot, std::max(right - 1, 0));
    set(kLeftSlot, std::max(lanes[i].shift, 0));
    set(kSignSlot, right == 0 ? 1 : 0);
  }
}

void RequantizationConstants::PackReal(std::span<const Channel> lanes, int32_t* to) const {
  auto* scales = reinterpret_cast<std::byte*>(to + kRealSlot * lanes.size());
  for (size_t i = 0; i < lanes.size(); ++i) std::memcpy(scales + i * 8, &lanes[i].real, 8);
}

std::string RequantizationConstants::key() const {
  const kernels::Requantize& r = stage_.requantize;
  const auto hash = [](const auto& values) {
    return HashBytes(values.data(), values.size() * sizeof(values[0])).low;
  };
  const auto& [min, max] = plan_.real ? std::pair(stage_.min, stage_.max) : std::pair(r.min, r.max);
  return plan_.key() + internal::Join(" shifted z", plan_.zero_point, " range", min, '.', max, " m",
                                      hash(r.multipliers), " s", hash(r.shifts), " r",
                                      hash(stage_.real_scales), " sums", bounds_.products, '.',
                                      bounds_.bias);
}

}  // namespace fuselite::jit
