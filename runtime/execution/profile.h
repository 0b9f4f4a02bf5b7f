// What a run's time went to: one event per step and thread, kept for those who print tables, JSON
// or traces.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace fuselite {

class Executable;

// One thread's work on one step (all its phases and ranges within one stage).
struct ProfileEvent {
  uint32_t run = 0;  // of the execution, from 1
  int32_t step = 0;
  int32_t thread = 0;
  int64_t start_ns = 0;  // of the monotonic clock
  int64_t duration_ns = 0;
};

// Time of one step over all recorded runs.
struct StepTimes {
  std::string name, kernel, ops;
  int64_t runs = 0;
  int64_t wall_ns = 0;  // from the first thread's start to the last one's end, summed over runs
  int64_t busy_ns = 0;  // summed over threads: wall_ns times threads where work is evenly spread
  int64_t min_wall_ns = 0, max_wall_ns = 0;  // of one run
};

// The last `capacity` events. Recording takes no lock and allocates nothing; reading is for when
// no run that records is under way.
class Profile {
 public:
  explicit Profile(size_t capacity = 16384);
  // Room for several runs of it.
  static std::unique_ptr<Profile> For(const Executable& executable);

  void Record(const ProfileEvent& event) {
    const uint64_t slot = next_.fetch_add(1, std::memory_order_relaxed);
    events_[slot % events_.size()] = event;
  }
  void Clear() { next_ = 0; }

  // Oldest first.
  std::vector<ProfileEvent> Events() const;
  // In the order of steps; those without an event have no runs. `executable` is the one whose runs
  // were recorded. Of an overflowed ring the oldest run does not count, which lacks events.
  std::vector<StepTimes> Summarize(const Executable& executable) const;
  // Whether the ring was full, so that the oldest events are lost.
  bool overflowed() const { return next_ > events_.size(); }

 private:
  std::vector<ProfileEvent> events_;
  std::atomic<uint64_t> next_{0};
};

}  // namespace fuselite
