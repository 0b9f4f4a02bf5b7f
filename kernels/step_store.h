// What a step of a plan keeps of its constants.
#pragma once

#include <algorithm>
#include <functional>
#include <set>

#include "kernels/operator.h"
#include "runtime/weights/packed_store.h"

namespace fuselite::kernels {

// Passes on what the building of one kernel packs, and remembers of what.
class StepStore final : public PackedStore {
 public:
  explicit StepStore(PackedStore& store) : store_(store) {}
  Result<PackedWeights> GetOrPack(const PackRequest& request,
                                  const std::function<void(std::byte*)>& pack) override {
    packed_.insert({request.source, request.source2});
    return store_.GetOrPack(request, pack);
  }
  // Whether the kernel that was built with this store reads the operation's input `i` at no run: it
  // is packed, and what is packed of a constant is all that kernels read of it. Such an input is
  // null in KernelArgs, and its memory may be gone.
  bool IsAllOf(const OpDescription& op, size_t i) const {
    if (i >= op.own_inputs() || !op.has_input(i) || !op.inputs[i].constant()) return false;
    const void* data = op.inputs[i].data;
    return packed_.contains(data) && std::ranges::count(op.inputs, data, &TensorInfo::data) == 1;
  }

 private:
  PackedStore& store_;
  std::set<const void*> packed_;
};

}  // namespace fuselite::kernels
