#include "fusion/select.h"

#include <exception>
#include <new>

// The one place that knows whether this build has a JIT (see CMakeLists.txt).
#if FUSELITE_JIT
#include "jit/candidates.h"
#endif

namespace fuselite::fusion {
namespace {

std::span<const kernels::Candidate> JitCandidates([[maybe_unused]] const kernels::OperatorDef& op) {
#if FUSELITE_JIT
  return jit::CandidatesFor(op);
#else
  return {};
#endif
}

// Exceptions of libraries below (Xbyak, the allocator) become the candidate's refusal.
Result<std::unique_ptr<Kernel>> Ask(const kernels::Candidate& candidate,
                                    const kernels::OpDescription& op,
                                    const kernels::BuildContext& context) {
  try {
    return candidate.build(op, context);
  } catch (const std::bad_alloc&) {
    return OutOfMemory("not enough memory to build the kernel");
  } catch (const std::exception& e) {
    return Internal(e.what());
  }
}

struct Choice {
  std::unique_ptr<Kernel> kernel;
  std::string_view candidate;
  Selection selection;
};

Result<Choice> Choose(const kernels::OpDescription& op, const kernels::BuildContext& context,
                      bool jit, std::vector<Refusal>* refusals) {
  const std::span<const kernels::Candidate> emitters =
      jit ? JitCandidates(*op.op) : std::span<const kernels::Candidate>();
  Status last = Internal("no candidate computes ", op.op->name);
  // Ranks count the JIT's candidates even where it is off, so that they mean the same.
  int rank = static_cast<int>(JitCandidates(*op.op).size() - emitters.size());
  for (std::span<const kernels::Candidate> list : {emitters, op.op->candidates}) {
    const bool emitted = list.data() == emitters.data();
    for (const kernels::Candidate& candidate : list) {
      Result<std::unique_ptr<Kernel>> kernel = Ask(candidate, op, context);
      if (kernel.ok()) {
        if (emitted && refusals) refusals->clear();
        const bool last_resort = !emitted && list.size() > 1 && &candidate == &list.back();
        return Choice{std::move(*kernel), candidate.name, {rank, emitted, last_resort}};
      }
      last = kernel.status();
      if (refusals) refusals->push_back({std::string(candidate.name), last.message()});
      ++rank;
    }
  }
  return last.In(op.op->name);
}

}  // namespace

Result<std::unique_ptr<Kernel>> SelectKernel(const kernels::OpDescription& op,
                                             const kernels::BuildContext& context, bool jit,
                                             std::string* candidate,
                                             std::vector<Refusal>* refusals) {
  FUSELITE_ASSIGN_OR_RETURN(Choice choice, Choose(op, context, jit, refusals));
  if (candidate) *candidate = choice.candidate;
  return std::move(choice.kernel);
}

std::optional<Selection> JudgeSelection(kernels::OpDescription op,
                                        const kernels::BuildContext& context, bool jit) {
  kernels::BuildContext judging = context;
  judging.judging = true;
  if (!kernels::Infer(op).ok()) return std::nullopt;
  const Result<Choice> choice = Choose(op, judging, jit, nullptr);
  if (!choice.ok()) return std::nullopt;
  return choice->selection;
}

}  // namespace fuselite::fusion
