// Kernels as lists of phases.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/execution/kernel.h"

namespace fuselite::kernels {

// One of a kernel's phases (see runtime/execution/kernel.h).
struct Phase {
  int64_t units = 0;
  int64_t grain = 1;  // the fewest units worth handing to a thread of their own
  std::function<void(const KernelArgs& args, int64_t begin, int64_t end)> run;
};

// Two phases that do not depend on each other as one, which spares a barrier. The units of `first`
// come first.
inline Phase Merge(Phase first, Phase second) {
  const int64_t units = first.units, all = units + second.units;
  const int64_t grain = first.grain < second.grain ? first.grain : second.grain;
  return {all, grain,
          [first = std::move(first.run), second = std::move(second.run), units](
              const KernelArgs& args, int64_t begin, int64_t end) {
            if (begin < units) first(args, begin, end < units ? end : units);
            if (end > units) second(args, (begin > units ? begin : units) - units, end - units);
          }};
}

// A kernel whose phases cannot fail. What the phases refer to outlives the kernel or is owned by
// the class that derives from this.
class PhasedKernel : public Kernel {
 public:
  std::string_view name() const override { return name_; }
  int phases() const override { return static_cast<int>(phases_.size()); }
  int64_t units(int phase) const override { return phases_[phase].units; }
  int64_t grain(int phase) const override { return phases_[phase].grain; }
  size_t scratch_bytes() const override { return scratch_bytes_; }
  size_t shared_bytes() const override { return shared_bytes_; }
  Status Run(const KernelArgs& args, int phase, int64_t begin, int64_t end) const override {
    phases_[phase].run(args, begin, end);
    return Status();
  }

 protected:
  std::string name_;
  std::vector<Phase> phases_;
  size_t scratch_bytes_ = 0, shared_bytes_ = 0;
};

}  // namespace fuselite::kernels
