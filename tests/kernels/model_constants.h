// The constants of an operation in memory of their own, as a model holds them.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "kernels/operator.h"
#include "tests/kernels/guarded_bytes.h"

namespace fuselite::kernels::testing {

// Copies of an operation's constants, each of which ends right before a page that nobody may touch,
// so that packing, too, reads nothing behind them. They can be taken away.
class ModelConstants {
 public:
  explicit ModelConstants(const OpDescription& op) : op_(op), copy_of_input_(op.inputs.size()) {
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      TensorInfo& info = op_.inputs[i];
      if (info.absent() || !info.constant()) continue;
      GuardedBytes& copy =
          copies_
              .try_emplace(info.data, info.data, info.bytes(), GuardedBytes::Edge::kEnd, Gap(info))
              .first->second;
      copy_of_input_[i] = &copy;
      info.data = copy.data();
    }
  }
  ModelConstants(const ModelConstants&) = delete;
  ModelConstants& operator=(const ModelConstants&) = delete;

  // The operation with these copies. Inputs that share a constant share its copy.
  const OpDescription& op() const { return op_; }
  // Nobody may read input `i`, which is constant, from here on.
  void Forbid(size_t i) { copy_of_input_[i]->Forbid(); }

 private:
  // What lies between a copy and the page, less than an element, so that the copy is aligned as its
  // origin: files leave constants anywhere.
  static size_t Gap(const TensorInfo& info) {
    const uintptr_t end = reinterpret_cast<uintptr_t>(info.data) + info.bytes();
    const uintptr_t element = BitWidth(info.type) > 8 ? BitWidth(info.type) / 8 : 1;
    return (element - end % element) % element;
  }

  OpDescription op_;
  std::map<const void*, GuardedBytes> copies_;  // by the origin's address
  std::vector<GuardedBytes*> copy_of_input_;    // null for what is not constant
};

}  // namespace fuselite::kernels::testing
