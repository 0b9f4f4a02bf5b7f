#include "fusion/compile.h"

#include <exception>
#include <new>

#include "fusion/evaluate.h"
#include "fusion/plan/lower.h"
#include "fusion/rewrite.h"
#include "fusion/validate.h"

namespace fuselite::fusion {
namespace {

Result<std::shared_ptr<const Executable>> CompileGraph(Graph& graph, const CompileOptions& options,
                                                       CompileReport& report) {
  for (ValueId v : graph.outputs) {
    if (v >= 0 && v < graph.value_count()) graph.value(v).observed = true;
  }
  FUSELITE_RETURN_IF_ERROR(Validate(graph));
  AlignConstants(graph);
  kernels::BuildContext context;
  context.isa = options.isa;
  context.precision = options.precision;
  context.threads = options.threads;
  context.store = options.store ? options.store : &ProcessPackedStore();
  RewriteContext rewriting(context, options.jit, &report.rewrites);
  if (options.fusion) RunRewrites(graph, rewriting);
  StoragePlan plan(graph);
  if (options.fusion) {
    plan = PlanStorage(graph, rewriting);
    PlanInPlace(graph, rewriting, plan);
  }
  return Lower(graph, plan, context, options.jit, report);
}

}  // namespace

Result<std::shared_ptr<const Executable>> Compile(Graph graph, const CompileOptions& options,
                                                  CompileReport* report) {
  CompileReport unread;
  try {
    return CompileGraph(graph, options, report ? *report : unread);
  } catch (const std::bad_alloc&) {
    return OutOfMemory("not enough memory to compile the partition");
  } catch (const std::exception& e) {
    return Internal("compiling the partition failed: ", e.what());
  }
}

}  // namespace fuselite::fusion
