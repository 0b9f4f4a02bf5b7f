#include "runtime/weights/packed_store.h"

#include <array>
#include <optional>
#include <utility>

#include "runtime/support/caught.h"
#include "runtime/support/process_lock.h"
#include "runtime/support/shared_by_key.h"
#include "runtime/weights/constant_hashes.h"
#include "runtime/weights/hash.h"
#include "runtime/weights/weights_cache.h"

namespace fuselite {
namespace {

struct Key {
  Hash128 source, source2;
  size_t source_bytes, source2_bytes, bytes;
  std::string layout;
  friend auto operator<=>(const Key&, const Key&) = default;

  Hash128 Hash() const {
    const std::array<uint64_t, 7> words = {source.low,   source.high,   source2.low, source2.high,
                                           source_bytes, source2_bytes, bytes};
    const Hash128 numbers = HashBytes(words.data(), sizeof words);
    const Hash128 text = HashBytes(layout.data(), layout.size());
    const std::array<Hash128, 2> both = {numbers, text};
    return HashBytes(both.data(), sizeof both);
  }
};

Key KeyOf(const PackRequest& request) {
  const auto hash = [&](const void* data, size_t bytes) {
    if (request.cache != nullptr) return request.cache->HashOf(data, bytes);
    return request.hashes != nullptr ? request.hashes->HashOf(data, bytes) : HashBytes(data, bytes);
  };
  const size_t source2_bytes = request.source2 ? request.source2_bytes : 0;
  return {hash(request.source, request.source_bytes),
          hash(request.source2, source2_bytes),
          request.source_bytes,
          source2_bytes,
          request.bytes,
          request.layout};
}

class MemoryStore : public PackedStore {
 public:
  Result<PackedWeights> GetOrPack(const PackRequest& request,
                                  const std::function<void(std::byte*)>& pack) override {
    try {
      return GetOrPackThrowing(request, pack);
    } catch (...) {
      return Caught("packing weights as " + std::string(request.layout));
    }
  }

 private:
  Result<PackedWeights> GetOrPackThrowing(const PackRequest& request,
                                          const std::function<void(std::byte*)>& pack) {
    Key key = KeyOf(request);
    const std::optional<Hash128> on_disk =
        request.cache != nullptr ? std::optional(key.Hash()) : std::nullopt;
    const auto slot = packed_.SlotFor(std::move(key));
    const ProcessLock lock(slot->making);
    PackedWeights packed = slot->value.lock();
    if (packed == nullptr && on_disk) {
      packed = request.cache->Find(*on_disk, request.bytes);
      slot->value = packed;
      if (packed != nullptr) return packed;
    }
    if (packed == nullptr) {
      FUSELITE_ASSIGN_OR_RETURN(packed, Pack(request, pack));
      slot->value = packed;
    }
    if (on_disk) request.cache->Keep(*on_disk, packed);
    return packed;
  }

  static Result<PackedWeights> Pack(const PackRequest& request,
                                    const std::function<void(std::byte*)>& pack) {
    auto buffer = std::make_shared<AlignedBuffer>(
        request.region ? request.region->Take(request.bytes) : AlignedBuffer(request.bytes));
    if (buffer->data() == nullptr) {
      return OutOfMemory("packed weights (", request.layout, ") need ", request.bytes, " bytes");
    }
    pack(buffer->data());
    return PackedWeights(std::move(buffer));
  }

  SharedByKey<Key, AlignedBuffer> packed_;
};

}  // namespace

std::unique_ptr<PackedStore> NewPackedStore() { return std::make_unique<MemoryStore>(); }

PackedStore& ProcessPackedStore() {
  // It is never destroyed: threads of the host may outlive static destruction.
  static PackedStore* const store = new MemoryStore;
  return *store;
}

}  // namespace fuselite
