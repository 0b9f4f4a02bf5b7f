// Values that are made once for each key and live as long as somebody holds them.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "runtime/support/process_lock.h"

namespace fuselite {

// Where those who want the value of one key meet: whoever holds `making` makes it, the others wait
// and find it.
template <class Value>
struct SharedSlot {
  std::mutex making;
  std::weak_ptr<const Value> value;  // guarded by `making`
};

// The slots by key, in a Map from keys to them. Thread-safe.
template <class Key, class Value, template <class...> class Map = std::map>
class SharedByKey {
 public:
  using Slot = SharedSlot<Value>;

  std::shared_ptr<Slot> SlotFor(Key key) {
    const ProcessLock lock(mutex_);
    if (slots_.size() >= sweep_at_) Sweep();
    std::shared_ptr<Slot>& slot = slots_[std::move(key)];
    if (slot == nullptr) slot = std::make_shared<Slot>();
    return slot;
  }

  // The value of `key`; where nobody holds one, what `make()` gives, a shared pointer.
  template <class Make>
  std::shared_ptr<const Value> FindOrMake(Key key, Make make) {
    const std::shared_ptr<Slot> slot = SlotFor(std::move(key));
    const ProcessLock lock(slot->making);
    if (std::shared_ptr<const Value> known = slot->value.lock()) return known;
    std::shared_ptr<const Value> made = make();
    slot->value = made;
    return made;
  }

 private:
  // Forgets what nobody holds. Done at twice the size that was left over, it costs nothing per
  // call.
  void Sweep() {
    std::erase_if(slots_, [](const auto& entry) { return IsForgotten(entry.second); });
    sweep_at_ = 2 * slots_.size() + 64;
  }

  // Slots are handed out under mutex_ only, so one whose only owner is the map is used by nobody,
  // and its lock is free. The count alone does not tell what the last maker wrote: it is taken.
  static bool IsForgotten(const std::shared_ptr<Slot>& slot) {
    if (slot == nullptr) return true;
    if (slot.use_count() > 1) return false;
    const ProcessLock lock(slot->making);
    return slot->value.expired();
  }

  std::mutex mutex_;
  Map<Key, std::shared_ptr<Slot>> slots_;  // guarded by mutex_
  size_t sweep_at_ = 64;                   // guarded by mutex_
};

}  // namespace fuselite
