// Kernels from functions, for the many that need no state beyond what a closure holds.
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "runtime/execution/kernel.h"

namespace fuselite::kernels {

// How a single-phase kernel is split and what memory it asks for (see runtime/execution/kernel.h).
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

// A kernel's function, whatever it holds. One class runs them all: a class for each of the 600
// would be 0.3 MB of code and two thirds of the addresses to adjust when the library is loaded.
struct KernelBody {
  std::unique_ptr<void, void (*)(void* state)> state;
  Status (*run)(const void* state, const KernelArgs& args, int64_t begin, int64_t end);
};
std::unique_ptr<Kernel> MakeKernelOf(std::string name, Work work, KernelBody body);

// `body(args, begin, end)` computes units [begin, end); it returns Status or nothing.
template <class Body>
std::unique_ptr<Kernel> MakeKernel(std::string name, Work work, Body body) {
  return MakeKernelOf(
      std::move(name), work,
      {{new Body(std::move(body)), [](void* state) { delete static_cast<Body*>(state); }},
       [](const void* state, const KernelArgs& args, int64_t begin, int64_t end) {
         const Body& run = *static_cast<const Body*>(state);
         if constexpr (std::is_void_v<decltype(run(args, begin, end))>) {
           run(args, begin, end);
           return Status();
         } else {
           return Status(run(args, begin, end));
         }
       }});
}

}  // namespace fuselite::kernels
