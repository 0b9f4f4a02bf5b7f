#include "runtime/arena.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>

namespace fuselite {
namespace {

bool LiveTogether(const ArenaValue& a, const ArenaValue& b) {
  return a.first_step <= b.last_step && b.first_step <= a.last_step;
}

// The lowest offset of the smallest gap that holds the value, among those already placed that are
// alive with it; above them all where no gap does. `placed` is in the order of offsets.
size_t BestFit(std::span<const ArenaValue> values, const std::vector<int>& placed,
               const std::vector<size_t>& offsets, const ArenaValue& value) {
  size_t best = SIZE_MAX, best_gap = SIZE_MAX, end = 0;
  for (int other : placed) {
    if (!LiveTogether(values[other], value)) continue;
    const size_t at = AlignUp(end, value.alignment);
    if (at + value.bytes <= offsets[other] && offsets[other] - end < best_gap) {
      best = at;
      best_gap = offsets[other] - end;
    }
    end = std::max(end, offsets[other] + values[other].bytes);
  }
  return best != SIZE_MAX ? best : AlignUp(end, value.alignment);
}

ArenaPlan PlanInOrder(std::span<const ArenaValue> values, const std::vector<int>& order) {
  ArenaPlan plan;
  plan.offsets.assign(values.size(), 0);
  std::vector<int> placed;
  placed.reserve(order.size());
  for (int i : order) {
    const size_t offset = BestFit(values, placed, plan.offsets, values[i]);
    plan.offsets[i] = offset;
    plan.bytes = std::max(plan.bytes, offset + values[i].bytes);
    const auto at = std::upper_bound(placed.begin(), placed.end(), offset,
                                     [&](size_t o, int p) { return o < plan.offsets[p]; });
    placed.insert(at, i);
  }
  return plan;
}

}  // namespace

ArenaPlan PlanArena(std::span<const ArenaValue> values) {
  std::vector<int> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::erase_if(order, [&](int i) { return values[i].bytes == 0; });

  // Largest first is best on most networks; longest-lived first wins where small values live long
  // (states, skip connections), and first-needed first on plain chains.
  const auto size = [&](int i) { return values[i].bytes; };
  const auto life = [&](int i) { return values[i].last_step - values[i].first_step; };
  const auto sorted_plan = [&](auto before) {
    std::stable_sort(order.begin(), order.end(), before);
    return PlanInOrder(values, order);
  };
  ArenaPlan best =
      sorted_plan([&](int a, int b) { return values[a].first_step < values[b].first_step; });
  const auto keep_better = [&](ArenaPlan plan) {
    if (plan.bytes < best.bytes) best = std::move(plan);
  };
  keep_better(sorted_plan([&](int a, int b) { return size(a) > size(b); }));
  keep_better(sorted_plan(
      [&](int a, int b) { return life(a) != life(b) ? life(a) > life(b) : size(a) > size(b); }));
  return best;
}

size_t ArenaLowerBound(std::span<const ArenaValue> values) {
  std::map<int, ptrdiff_t> changes;
  for (const ArenaValue& value : values) {
    changes[value.first_step] += static_cast<ptrdiff_t>(value.bytes);
    changes[value.last_step + 1] -= static_cast<ptrdiff_t>(value.bytes);
  }
  ptrdiff_t live = 0, most = 0;
  for (const auto& [step, change] : changes) most = std::max(most, live += change);
  return static_cast<size_t>(most);
}

}  // namespace fuselite
