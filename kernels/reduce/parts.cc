#include "kernels/reduce/parts.h"

#include <algorithm>
#include <utility>

#include "kernels/product/phase.h"
#include "runtime/memory/aligned_buffer.h"
#include "runtime/support/ceil_div.h"

namespace fuselite::kernels {
namespace {

// So many outer indices are shared whole.
constexpr int64_t kEnoughOuters = 4;
// Parts come in such numbers where there are rows enough, so that two or four threads have equally
// many.
constexpr int64_t kTogether = 4;

class ReduceInParts final : public PhasedKernel {
 public:
  ReduceInParts(std::string name, ReducePlan plan, ReducedParts parts, int64_t totals_bytes,
                int64_t grain, ReduceFunctions functions)
      : plan_(std::move(plan)),
        parts_(std::move(parts)),
        totals_bytes_(totals_bytes),
        functions_(std::move(functions)) {
    name_ = std::move(name);
    const int64_t units = plan_.outer * parts_.count;
    shared_bytes_ = AlignUp(static_cast<size_t>(units * totals_bytes_));
    phases_.push_back({.units = units,
                       .grain = grain,
                       .run = [this](const KernelArgs& args, int64_t begin, int64_t end) {
                         for (int64_t unit = begin; unit < end; ++unit) Reduce(args, unit);
                       }});
    phases_.push_back({.units = plan_.outer,
                       .grain = plan_.outer,
                       .run = [this](const KernelArgs& args, int64_t begin, int64_t end) {
                         for (int64_t o = begin; o < end; ++o) {
                           functions_.join(args, Totals(args, o * parts_.count), o);
                         }
                       }});
  }

 private:
  std::byte* Totals(const KernelArgs& args, int64_t unit) const {
    return args.shared + unit * totals_bytes_;
  }

  void Reduce(const KernelArgs& args, int64_t unit) const {
    const int64_t outer = unit / parts_.count, part = unit % parts_.count;
    functions_.reduce(args, parts_.Plan(part), plan_.OuterOffset(outer) + part * parts_.step,
                      Totals(args, unit));
  }

  ReducePlan plan_;
  ReducedParts parts_;
  int64_t totals_bytes_;
  ReduceFunctions functions_;
};

// `plan` over `rows` of its outermost reduced dimension, of one outer index.
ReducePlan OverRows(ReducePlan plan, int64_t rows) {
  int64_t& size = plan.reduced.empty() ? plan.run_count : plan.reduced[0].size;
  if (!plan.reduced.empty()) plan.runs = plan.runs / size * rows;
  size = rows;
  plan.kept.clear();
  plan.outer = 1;
  return plan;
}

}  // namespace

std::optional<ReducedParts> DivideTerms(const ReducePlan& plan, int64_t elements) {
  const ReducePlan::Dim rows =
      plan.reduced.empty() ? ReducePlan::Dim{plan.run_count, plan.run_stride} : plan.reduced[0];
  const int64_t all = plan.terms() * plan.lanes;
  if (plan.outer >= kEnoughOuters || plan.outer == 0 || rows.size < 2 || all < 2 * elements) {
    return std::nullopt;
  }
  ReducedParts parts;
  const int64_t even = CeilDiv(all / elements, kTogether) * kTogether;
  parts.count = std::min(rows.size, even);
  const int64_t together = CeilDiv(rows.size, parts.count);
  parts.count = CeilDiv(rows.size, together);
  parts.step = together * rows.stride;
  parts.part = OverRows(plan, together);
  parts.last = OverRows(plan, rows.size - (parts.count - 1) * together);
  return parts;
}

std::unique_ptr<Kernel> MakeReduceInParts(std::string name, const ReducePlan& plan,
                                          ReducedParts parts, int64_t totals_bytes, int64_t grain,
                                          ReduceFunctions functions) {
  return std::make_unique<ReduceInParts>(std::move(name), plan, std::move(parts), totals_bytes,
                                         grain, std::move(functions));
}

}  // namespace fuselite::kernels
