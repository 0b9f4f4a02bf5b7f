// How an operation becomes a kernel: a candidate plans, and what was planned is built.
//
// Planning decides: it accepts with a plan or refuses with the reason. It is cheap, as it is asked
// before anything is known to run: for the verdict on a node, for each rewrite that would change
// it, for memory that it could write over. Building packs the weights and emits the code, once, for
// the plan that is left in the end. The plan that said yes is the one that is built.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <utility>

#include "runtime/cpu/isa.h"
#include "runtime/execution/kernel.h"
#include "runtime/support/status.h"
#include "runtime/weights/packed_store.h"

namespace fuselite::kernels {

struct OpDescription;

enum class Precision {
  kStrict,   // no algorithm that sums in another order than a plain dot product's
  kDefault,  // within the bounds of docs/design.md: Winograd where it meets them
  kFast,     // bf16 arithmetic too
};

// What the choice of a kernel may depend on, beside the operation.
struct PlanContext {
  Isa isa = Isa::kScalar;
  Precision precision = Precision::kDefault;
  int threads = 1;
  // At most so many bytes of constants are read by each run of the operation's graph. 0: unknown.
  int64_t constant_bytes = 0;

  // Whether a single row gains by fetching weights of so many bytes ahead: a run does not find them
  // in L2, where the one before left them, and the core does not follow them by itself
  // (Trait::kFollowsStreams). It decides no bits.
  bool FetchesAhead(int64_t weights_bytes) const;
};

// What building needs beside the choice's context.
struct BuildContext : PlanContext {
  // `packed`: null where nothing is packed.
  BuildContext(const PlanContext& context,  // NOLINT(google-explicit-constructor)
               PackedStore* packed = nullptr)
      : PlanContext(context), store(packed) {}

  PackedStore* store;

  // The packed form of `request`.
  Result<PackedWeights> Pack(const PackRequest& request,
                             const std::function<void(std::byte*)>& pack) const;
};

// A kernel as planned. Immutable, and shared by whoever asks the same question.
class KernelPlan {
 public:
  using KernelPtr = std::shared_ptr<const Kernel>;
  // Makes the kernel that the draft promises.
  using Finish = std::function<Result<KernelPtr>(const OpDescription&, const BuildContext&)>;

  // A kernel that packs and emits nothing is its own plan.
  KernelPlan(std::unique_ptr<Kernel> kernel)  // NOLINT(google-explicit-constructor)
      : draft_(std::move(kernel)) {}

  // `draft` answers everything about the kernel, but is not to be run. `finish(kernel, op,
  // context)` gives a copy of it what it lacks; it returns Status.
  template <class K, class FinishCopy>
  static KernelPlan Of(K draft, FinishCopy finish) {
    auto shared = std::make_shared<const K>(std::move(draft));
    return KernelPlan(
        shared,
        [shared, finish = std::move(finish)](const OpDescription& op,
                                             const BuildContext& context) -> Result<KernelPtr> {
          auto kernel = std::make_shared<K>(*shared);
          FUSELITE_RETURN_IF_ERROR(finish(*kernel, op, context));
          return KernelPtr(std::move(kernel));
        });
  }
  // As Of(), but the kernel is made anew: `make(op, context)` gives Result<unique_ptr<Kernel>>.
  template <class Make>
  static KernelPlan MadeLater(std::unique_ptr<Kernel> draft, Make make) {
    return KernelPlan(KernelPtr(std::move(draft)),
                      [make = std::move(make)](const OpDescription& op,
                                               const BuildContext& context) -> Result<KernelPtr> {
                        FUSELITE_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel,
                                                  make(op, context));
                        return KernelPtr(std::move(kernel));
                      });
  }
  KernelPlan(KernelPtr draft, Finish finish)
      : draft_(std::move(draft)), finish_(std::move(finish)) {}

  // Tells the kernel's name, its phases, the input in whose place it computes, and the memory that
  // it asks for.
  const Kernel& kernel() const { return *draft_; }
  KernelPtr draft() const { return draft_; }

  // The kernel, ready to run. `op` and `context` are those that it was planned for.
  Result<KernelPtr> Build(const OpDescription& op, const BuildContext& context) const;

 private:
  KernelPtr draft_;
  Finish finish_;  // null: nothing is left to do
};

// The plan that a kernel is of itself, or the refusal.
inline Result<KernelPlan> OwnPlan(Result<std::unique_ptr<Kernel>> kernel) {
  if (!kernel.ok()) return kernel.status();
  return KernelPlan(*std::move(kernel));
}

// Accepts with a plan, or refuses with the reason: kUnsupported, in the words of a user.
using PlanKernel = Result<KernelPlan> (*)(const OpDescription&, const PlanContext&);
// As PlanKernel, for a kernel that is its own plan: there is nothing to pack, and no store.
using BuildKernel = Result<std::unique_ptr<Kernel>> (*)(const OpDescription&, const BuildContext&);

// The plan of a kernel K that is planned by `Plan(op, PlanContext)` and gets its weights by
// `Pack(op, BuildContext)`, in a copy.
template <class K>
Result<KernelPlan> PlanThenPack(K draft, const OpDescription& op, const PlanContext& context) {
  FUSELITE_RETURN_IF_ERROR(draft.Plan(op, context));
  return KernelPlan::Of(std::move(draft),
                        [](K& kernel, const OpDescription& described, const BuildContext& build) {
                          return kernel.Pack(described, build);
                        });
}

// One way to compute an operator.
class Candidate {
 public:
  std::string_view name;  // "reference", "highway", "jit"

  constexpr Candidate(std::string_view name, BuildKernel build) : name(name), build_(build) {}
  constexpr Candidate(std::string_view name, PlanKernel plan) : name(name), plan_(plan) {}
  // One that is asked about values of bfloat16, too (OperatorDef::bfloat16_values). What others
  // take of them, the operator's last candidate computes in float32.
  template <class Function>
  static constexpr Candidate OfBFloat16(std::string_view name, Function function) {
    Candidate candidate(name, function);
    candidate.takes_bfloat16_ = true;
    return candidate;
  }

  // Exceptions of libraries below (Xbyak, the allocator) become refusals, here and when building.
  // Where no output has an element, what the candidate accepts is a plan of no units.
  Result<KernelPlan> Plan(const OpDescription& op, const PlanContext& context) const;
  // Plan() and the plan's Build() at once, for who has no further question.
  Result<std::shared_ptr<const Kernel>> Build(const OpDescription& op,
                                              const BuildContext& context) const;

 private:
  BuildKernel build_ = nullptr;
  PlanKernel plan_ = nullptr;
  bool takes_bfloat16_ = false;
};

}  // namespace fuselite::kernels
