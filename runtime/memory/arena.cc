#include "runtime/memory/arena.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>
#include <numeric>

namespace fuselite {
namespace {

// Intervals of steps, kept so that those that meet another interval are found without looking at
// the rest: a segment tree over the steps that know every interval in log(steps) places.
class Lifetimes {
 public:
  explicit Lifetimes(int steps)
      : leaves_(std::bit_ceil(static_cast<size_t>(steps))),
        covering_(2 * leaves_, kEnd),
        beginning_(2 * leaves_, kEnd) {}

  void Add(int index, const ArenaValue& value) {
    Cover(value.first_step, value.last_step, [&](size_t node) { Add(index, covering_[node]); });
    Climb(value.first_step, [&](size_t node) { Add(index, beginning_[node]); });
  }

  // The added ones that share a step with `value`: those alive at its first step, and those that
  // begin later while it lives.
  void FindMeeting(const ArenaValue& value, std::vector<int>* found) const {
    found->clear();
    const auto append = [&](int first) {
      for (int at = first; at != kEnd; at = links_[at].next) found->push_back(links_[at].index);
    };
    Climb(value.first_step, [&](size_t node) { append(covering_[node]); });
    Cover(value.first_step + 1, value.last_step, [&](size_t node) { append(beginning_[node]); });
  }

 private:
  static constexpr int kEnd = -1;
  struct Link {
    int index, next;
  };
  void Add(int index, int& first) {
    links_.push_back({index, first});
    first = static_cast<int>(links_.size()) - 1;
  }
  // The nodes from a step's leaf to the root.
  template <class Visit>
  void Climb(int step, Visit visit) const {
    for (size_t node = leaves_ + static_cast<size_t>(step); node > 0; node /= 2) visit(node);
  }
  // The fewest nodes whose leaves are the steps [first, last].
  template <class Visit>
  void Cover(int first, int last, Visit visit) const {
    size_t low = leaves_ + static_cast<size_t>(first),
           high = leaves_ + static_cast<size_t>(last) + 1;
    for (; low < high; low /= 2, high /= 2) {
      if (low % 2 == 1) visit(low++);
      if (high % 2 == 1) visit(--high);
    }
  }

  size_t leaves_;
  // Each node has intervals that last over all of its steps, and those that begin at one of them:
  // where the list of their links begins.
  std::vector<int> covering_, beginning_;
  std::vector<Link> links_;
};

// The lowest offset of the smallest gap that holds the value, among those already placed that are
// alive with it; above them all where no gap does. `placed` is in the order of offsets.
size_t BestFit(std::span<const ArenaValue> values, const std::vector<int>& placed,
               const std::vector<size_t>& offsets, const ArenaValue& value) {
  size_t best = SIZE_MAX, best_gap = SIZE_MAX, end = 0;
  for (int other : placed) {
    const size_t at = AlignUp(end, value.alignment);
    if (at + value.bytes <= offsets[other] && offsets[other] - end < best_gap) {
      best = at;
      best_gap = offsets[other] - end;
    }
    end = std::max(end, offsets[other] + values[other].bytes);
  }
  return best != SIZE_MAX ? best : AlignUp(end, value.alignment);
}

// Placed values in the order of their offsets.
class Placed {
 public:
  explicit Placed(size_t values) : asked_(values, kNever) {}

  void Add(int index, std::span<const size_t> offsets) {
    const auto at = std::ranges::upper_bound(order_, offsets[index], {},
                                             [&](int other) { return offsets[other]; });
    order_.insert(at, index);
  }

  // Puts `some` of them in this order. They are sorted where they are few, else found among all: a
  // graph of 16,000 values that live together took 17 s, of which sorting had most.
  void Sort(std::span<const size_t> offsets, int question, std::vector<int>* some) {
    if (some->size() * std::bit_width(some->size()) < order_.size()) {
      std::ranges::sort(*some, {}, [&](int other) { return offsets[other]; });
      return;
    }
    for (int index : *some) asked_[index] = question;
    some->clear();
    std::ranges::copy_if(order_, std::back_inserter(*some),
                         [&](int index) { return asked_[index] == question; });
  }

 private:
  static constexpr int kNever = -1;
  std::vector<int> order_;
  std::vector<int> asked_;  // the last question about each value
};

ArenaPlan PlanInOrder(std::span<const ArenaValue> values, const std::vector<int>& order,
                      int steps) {
  ArenaPlan plan;
  plan.offsets.assign(values.size(), 0);
  Lifetimes lifetimes(steps);
  Placed placed(values.size());
  std::vector<int> others;
  for (int i : order) {
    lifetimes.FindMeeting(values[i], &others);
    placed.Sort(plan.offsets, i, &others);
    plan.offsets[i] = BestFit(values, others, plan.offsets, values[i]);
    plan.bytes = std::max(plan.bytes, plan.offsets[i] + values[i].bytes);
    lifetimes.Add(i, values[i]);
    placed.Add(i, plan.offsets);
  }
  return plan;
}

}  // namespace

ArenaPlan PlanArena(std::span<const ArenaValue> values) {
  std::vector<int> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::erase_if(order, [&](int i) { return values[i].bytes == 0; });
  int steps = 1;
  for (int i : order) steps = std::max(steps, values[i].last_step + 1);

  // Largest first is best on most networks; longest-lived first wins where small values live long
  // (states, skip connections), and first-needed first on plain chains.
  const auto size = [&](int i) { return values[i].bytes; };
  const auto life = [&](int i) { return values[i].last_step - values[i].first_step; };
  const auto sorted_plan = [&](auto before) {
    std::stable_sort(order.begin(), order.end(), before);
    return PlanInOrder(values, order, steps);
  };
  ArenaPlan best =
      sorted_plan([&](int a, int b) { return values[a].first_step < values[b].first_step; });
  // None can do with less than what is alive at once, each to the next one's alignment; most chains
  // need no more.
  std::vector<ArenaValue> padded(values.begin(), values.end());
  for (ArenaValue& value : padded) value.bytes = AlignUp(value.bytes, value.alignment);
  const size_t least = ArenaLowerBound(padded);
  const auto keep_better = [&](auto before) {
    if (best.bytes < least + kAlignment) return;
    ArenaPlan plan = sorted_plan(before);
    if (plan.bytes < best.bytes) best = std::move(plan);
  };
  keep_better([&](int a, int b) { return size(a) > size(b); });
  // The sort is stable: among values that live equally long, the larger ones stay in front.
  keep_better([&](int a, int b) { return life(a) > life(b); });
  return best;
}

size_t ArenaLowerBound(std::span<const ArenaValue> values) {
  int last = 0;
  for (const ArenaValue& value : values) last = std::max(last, value.last_step);
  std::vector<ptrdiff_t> changes(static_cast<size_t>(last) + 2);  // from the step before
  for (const ArenaValue& value : values) {
    changes[value.first_step] += static_cast<ptrdiff_t>(value.bytes);
    changes[value.last_step + 1] -= static_cast<ptrdiff_t>(value.bytes);
  }
  ptrdiff_t live = 0, most = 0;
  for (const ptrdiff_t change : changes) most = std::max(most, live += change);
  return static_cast<size_t>(most);
}

}  // namespace fuselite
