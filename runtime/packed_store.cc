#include "runtime/packed_store.h"

#include <exception>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "runtime/hash.h"

namespace fuselite {
namespace {

struct Key {
  Hash128 source, source2;
  size_t source_bytes, source2_bytes, bytes;
  std::string layout;
  friend auto operator<=>(const Key&, const Key&) = default;
};

Key KeyOf(const PackRequest& request) {
  return {HashBytes(request.source, request.source_bytes),
          HashBytes(request.source2, request.source2 ? request.source2_bytes : 0),
          request.source_bytes,
          request.source2 ? request.source2_bytes : 0,
          request.bytes,
          request.layout};
}

// Where those who want the same packing meet: whoever holds `packing` packs, the others wait for
// it and find the result.
struct Slot {
  std::mutex packing;
  std::weak_ptr<const AlignedBuffer> packed;  // guarded by `packing`
};

class MemoryStore : public PackedStore {
 public:
  Result<PackedWeights> GetOrPack(const PackRequest& request,
                                  const std::function<void(std::byte*)>& pack) override {
    try {
      return GetOrPackThrowing(request, pack);
    } catch (const std::bad_alloc&) {
      return OutOfMemory("packing weights as ", request.layout, ": no memory left");
    } catch (const std::exception& error) {
      return Internal("packing weights as ", request.layout, ": ", error.what());
    }
  }

 private:
  Result<PackedWeights> GetOrPackThrowing(const PackRequest& request,
                                          const std::function<void(std::byte*)>& pack) {
    const std::shared_ptr<Slot> slot = SlotFor(KeyOf(request));
    const std::lock_guard lock(slot->packing);
    if (PackedWeights packed = slot->packed.lock()) return packed;

    auto buffer = std::make_shared<AlignedBuffer>(
        request.region ? request.region->Take(request.bytes) : AlignedBuffer(request.bytes));
    if (buffer->data() == nullptr) {
      return OutOfMemory("packed weights (", request.layout, ") need ", request.bytes, " bytes");
    }
    pack(buffer->data());
    slot->packed = buffer;
    return PackedWeights(std::move(buffer));
  }

  std::shared_ptr<Slot> SlotFor(Key key) {
    const std::lock_guard lock(mutex_);
    if (slots_.size() >= sweep_at_) Sweep();
    std::shared_ptr<Slot>& slot = slots_[std::move(key)];
    if (slot == nullptr) slot = std::make_shared<Slot>();
    return slot;
  }

  // Forgets what nobody holds. Slots are handed out under mutex_ only, so one whose only owner is
  // the map is used by nobody. Done at twice the size that was left over, it costs nothing per
  // call.
  void Sweep() {
    std::erase_if(slots_, [](const auto& entry) {
      return entry.second == nullptr ||
             (entry.second.use_count() == 1 && entry.second->packed.expired());
    });
    sweep_at_ = 2 * slots_.size() + 64;
  }

  std::mutex mutex_;
  std::map<Key, std::shared_ptr<Slot>> slots_;  // guarded by mutex_
  size_t sweep_at_ = 64;                        // guarded by mutex_
};

}  // namespace

std::unique_ptr<PackedStore> NewPackedStore() { return std::make_unique<MemoryStore>(); }

PackedStore& ProcessPackedStore() {
  // Never destroyed: threads of the host may outlive static destruction.
  static PackedStore* const store = new MemoryStore;
  return *store;
}

}  // namespace fuselite
