// A store of packed weights that adds up the bytes that are packed anew.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "runtime/weights/packed_store.h"

namespace fuselite {

class CountingStore final : public PackedStore {
 public:
  Result<PackedWeights> GetOrPack(const PackRequest& request,
                                  const std::function<void(std::byte*)>& pack) override {
    return store_->GetOrPack(request, [&](std::byte* to) {
      bytes += request.bytes;
      pack(to);
    });
  }
  size_t bytes = 0;

 private:
  std::unique_ptr<PackedStore> store_ = NewPackedStore();
};

}  // namespace fuselite
