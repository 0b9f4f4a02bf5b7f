// Weights in the order that a kernel reads them: packed once, shared by everybody who needs them.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "runtime/memory/buffer_region.h"
#include "runtime/support/status.h"

namespace fuselite {

class ConstantHashes;
class WeightsCache;

using PackedWeights = std::shared_ptr<const AlignedBuffer>;

// What makes two packings the same: the source's bytes (by hash) and how they are arranged.
struct PackRequest {
  const void* source = nullptr;  // first byte of the constant that is packed
  size_t source_bytes = 0;
  const void* source2 = nullptr;  // a second constant mixed in (a bias, a scale); may be null
  size_t source2_bytes = 0;
  std::string layout;  // everything else that decides the bytes: "f32 k288 n64/1 p32/16 last2"
  size_t bytes = 0;    // of the packed form
  // Where a packing that is made now should lie; null: anywhere. Decides no bytes.
  BufferRegion* region = nullptr;
  // Where a packing may lie from an earlier process, and where one that is made now is kept for
  // later ones; null: nowhere. Decides no bytes.
  WeightsCache* cache = nullptr;
  // Who may know the sources' hashes; null: nobody. Decides no bytes.
  ConstantHashes* hashes = nullptr;
};

// Thread-safe. Requests for the same packing wait for one of them to do it; others are not held
// up. Entries live as long as somebody holds them, and a packing that failed is tried again by the
// next request. `pack` writes all `bytes` bytes, and asks the store for nothing.
class PackedStore {
 public:
  virtual ~PackedStore() = default;
  virtual Result<PackedWeights> GetOrPack(const PackRequest& request,
                                          const std::function<void(std::byte*)>& pack) = 0;
};

// A store of its own, in memory: for tests, and for whoever must not share.
std::unique_ptr<PackedStore> NewPackedStore();

// The store of this process: weights of a model that several interpreters open are packed once.
PackedStore& ProcessPackedStore();

}  // namespace fuselite
