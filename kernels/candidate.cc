#include "kernels/candidate.h"

#include <exception>
#include <new>
#include <string>
#include <vector>

namespace fuselite::kernels {
namespace {

template <class T, class Function>
Result<T> Guarded(Function function) {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    return OutOfMemory("not enough memory to build the kernel");
  } catch (const std::exception& e) {
    return Internal(e.what());
  }
}

Result<std::shared_ptr<const Kernel>> Share(Result<std::unique_ptr<Kernel>> kernel) {
  if (!kernel.ok()) return kernel.status();
  return std::shared_ptr<const Kernel>(*std::move(kernel));
}

// What is asked of a kernel before it is built, without what it holds: of EfficientNet int8's 250
// nodes that is 3 MB of scales, panels and padding.
class Outline final : public Kernel {
 public:
  explicit Outline(const Kernel& kernel)
      : name_(kernel.name()),
        in_place_input_(kernel.in_place_input()),
        scratch_bytes_(kernel.scratch_bytes()),
        shared_bytes_(kernel.shared_bytes()) {
    for (int i = 0; i < kernel.phases(); ++i) phases_.push_back({kernel.units(i), kernel.grain(i)});
  }
  std::string_view name() const override { return name_; }
  int phases() const override { return static_cast<int>(phases_.size()); }
  int64_t units(int phase) const override { return phases_[phase].units; }
  int64_t grain(int phase) const override { return phases_[phase].grain; }
  int in_place_input() const override { return in_place_input_; }
  size_t scratch_bytes() const override { return scratch_bytes_; }
  size_t shared_bytes() const override { return shared_bytes_; }
  Status Run(const KernelArgs&, int, int64_t, int64_t) const override {
    return Internal(name_, " is only planned");
  }

 private:
  struct Phase {
    int64_t units, grain;
  };
  std::string name_;
  std::vector<Phase> phases_;
  int in_place_input_;
  size_t scratch_bytes_, shared_bytes_;
};

}  // namespace

Result<PackedWeights> BuildContext::Pack(const PackRequest& request,
                                         const std::function<void(std::byte*)>& pack) const {
  if (judging) return PackedWeights();
  if (store == nullptr) return Internal("weights are packed where a kernel is only planned");
  return store->GetOrPack(request, pack);
}

Result<KernelPlan::KernelPtr> KernelPlan::Build(const OpDescription& op,
                                                const BuildContext& context) const {
  if (!finish_) return draft_;
  return Guarded<KernelPtr>([&] { return finish_(op, context); });
}

Result<KernelPlan> Candidate::Plan(const OpDescription& op, const PlanContext& context) const {
  return Guarded<KernelPlan>([&]() -> Result<KernelPlan> {
    if (plan_ != nullptr) return plan_(op, context);
    BuildContext build{context.isa, context.precision, context.threads};
    if (build_ != nullptr) {
      FUSELITE_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel, build_(op, build));
      return KernelPlan(std::move(kernel));
    }
    build.judging = true;
    FUSELITE_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> draft, judged_(op, build));
    const BuildKernel judged = judged_;
    return KernelPlan(
        std::make_shared<const Outline>(*draft),
        [judged](const auto& op, const auto& context) { return Share(judged(op, context)); });
  });
}

Result<std::shared_ptr<const Kernel>> Candidate::Build(const OpDescription& op,
                                                       const BuildContext& context) const {
  FUSELITE_ASSIGN_OR_RETURN(const KernelPlan plan, Plan(op, context.plan()));
  return plan.Build(op, context);
}

}  // namespace fuselite::kernels
