// Kernels from functions, for the many that need no state beyond what a closure holds.
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "runtime/kernel.h"

namespace fuselite::kernels {

// How a single-phase kernel is split and what memory it asks for (see runtime/kernel.h).
struct Work {
  int64_t units = 1;
  int64_t grain = 1;
  size_t scratch_bytes = 0;
  int in_place_input = -1;
};

// The grain that gives a thread about 16 thousand elements' worth of work, some microseconds: less
// does not repay waking it.
inline int64_t GrainFor(int64_t elements_per_unit) {
  return elements_per_unit <= 0 ? 16384 : (16384 + elements_per_unit - 1) / elements_per_unit;
}

// `body(args, begin, end)` computes units [begin, end); it returns Status or nothing.
template <class Body>
std::unique_ptr<Kernel> MakeKernel(std::string name, Work work, Body body) {
  class FunctionKernel final : public Kernel {
   public:
    FunctionKernel(std::string name, Work work, Body body)
        : name_(std::move(name)), work_(work), body_(std::move(body)) {}
    std::string_view name() const override { return name_; }
    int64_t units(int) const override { return work_.units; }
    int64_t grain(int) const override { return work_.grain; }
    int in_place_input() const override { return work_.in_place_input; }
    size_t scratch_bytes() const override { return work_.scratch_bytes; }
    Status Run(const KernelArgs& args, int, int64_t begin, int64_t end) const override {
      if constexpr (std::is_void_v<
                        std::invoke_result_t<const Body&, const KernelArgs&, int64_t, int64_t>>) {
        body_(args, begin, end);
        return Status();
      } else {
        return body_(args, begin, end);
      }
    }

   private:
    std::string name_;
    Work work_;
    Body body_;
  };
  return std::make_unique<FunctionKernel>(std::move(name), work, std::move(body));
}

}  // namespace fuselite::kernels
