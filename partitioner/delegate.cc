#include "partitioner/delegate.h"

#include <algorithm>
#include <cstdio>

#include "partitioner/delegate_kernel.h"
#include "partitioner/guard.h"
#include "runtime/support/log.h"
#include "runtime/support/stopwatch.h"
#include "runtime/tflite/arrays.h"

namespace fuselite::partitioner {
namespace {

using namespace tflite;

TfLiteStatus PrepareDelegate(TfLiteContext* context, TfLiteDelegate* delegate) {
  return GuardKernel(context, "applying the delegate",
                     [&] { return Delegate::FromC(delegate)->Prepare(context); });
}

void LogVerdicts(const Options& options, const GraphReport& report) {
  if (!report.error.empty()) {
    FUSELITE_LOG(kError) << report.error;
  }
  FUSELITE_LOG(kInfo) << "isa " << IsaName(options.isa) << ", jit " << (options.jit ? "on" : "off")
                      << ", fusion " << (options.fusion ? "on" : "off") << "; took "
                      << std::ranges::count(report.verdicts, true, &Verdict::claimed) << " of "
                      << report.verdicts.size()
                      << " nodes, partitions: " << report.partitions.size();
  for (const Verdict& verdict : report.verdicts) {
    if (verdict.claimed) continue;
    FUSELITE_LOG(kDebug) << "node " << verdict.host_node << " " << verdict.op
                         << " is left to the host: " << verdict.reason;
  }
}

// What the verdicts on a graph are made of. Plans name constants that the table may have unpacked,
// so that the two live together.
struct Judgement {
  TensorTable table;
  fusion::Planner planner;
};

Result<JudgedGraph> JudgeAndChoose(TfLiteContext* context, const DelegateState& state,
                                   GraphReport& report) {
  TfLiteIntArray* host_plan = nullptr;
  if (context->GetExecutionPlan(context, &host_plan) != kTfLiteOk) {
    return Internal("the host does not show its execution plan");
  }
  // The host's next call overwrites its array.
  const std::span<const int> elements = Elements(host_plan);
  const std::vector<int> plan(elements.begin(), elements.end());
  const Options& options = state.options();
  const auto judgement = std::make_shared<Judgement>(
      Judgement{TensorTable(context), fusion::PlannerFor(state.CompileOptionsFor(context))});
  auto& [table, planner] = *judgement;
  JudgedGraph judged;
  GraphFacts& facts = judged.facts;
  facts.variables = std::make_shared<const GraphVariables>(context, plan);
  report.verdicts = Judge(context, plan, *facts.variables, options, table, planner);
  facts.makers = std::make_shared<const ConstantMakers>(context, report.verdicts);
  FUSELITE_ASSIGN_OR_RETURN(judged.partitions,
                            ChoosePartitions(context, options, table, facts, report.verdicts));
  for (JudgedPartition& choice : judged.partitions) {
    choice.planner = std::shared_ptr<fusion::Planner>(judgement, &planner);
    report.partitions.emplace_back();
    report.partitions.back().nodes = choice.host.nodes;
    report.partitions.back().cost = choice.cost;
  }
  const bool whole = judged.partitions.size() == 1 &&
                     judged.partitions[0].host.nodes.size() == report.verdicts.size();
  if (whole) facts.loop = FindLoop(context);
  return judged;
}

}  // namespace

Delegate::Delegate(Options options) : state_(std::make_shared<DelegateState>(std::move(options))) {
  c_struct_.data_ = this;
  c_struct_.Prepare = PrepareDelegate;
  c_struct_.flags = kTfLiteDelegateFlagsAllowDynamicTensors;
}

bool Delegate::HasTaken(TfLiteContext* context) const {
  TfLiteIntArray* plan = nullptr;
  if (context->GetExecutionPlan(context, &plan) != kTfLiteOk) return false;
  // The host's next call overwrites its array.
  const std::span<const int> elements = Elements(plan);
  const std::vector<int> nodes(elements.begin(), elements.end());
  return std::ranges::any_of(nodes, [&](int index) {
    TfLiteNode* node = nullptr;
    TfLiteRegistration* registration = nullptr;
    return context->GetNodeAndRegistration(context, index, &node, &registration) == kTfLiteOk &&
           node != nullptr && node->delegate == &c_struct_;
  });
}

Status Delegate::Prepare(TfLiteContext* context) {
  const Options& options = state_->options();
  if (HasTaken(context)) {
    constexpr const char* kTaken = "this delegate has taken the graph already";
    if (options.verbose) std::fprintf(stderr, "fuselite: %s\n", kTaken);
    FUSELITE_LOG(kInfo) << kTaken;
    return Status();
  }
  Stopwatch watch;
  GraphReport report;
  JudgedGraph judged;
  const auto judge = [&]() -> Status {
    FUSELITE_ASSIGN_OR_RETURN(judged, JudgeAndChoose(context, *state_, report));
    return Status();
  };
  if (!Guard(judge, [&](StatusCode, const char* message) { report.error = message; })) {
    report.partitions.clear();
    for (Verdict& verdict : report.verdicts) {
      if (!verdict.claimed) continue;
      verdict.claimed = false;
      verdict.reason = report.error;
    }
  }
  report.judge_ms = watch.Lap();
  std::vector<int> nodes;  // in running order
  for (const Verdict& verdict : report.verdicts) {
    if (verdict.claimed) nodes.push_back(verdict.host_node);
  }
  if (options.verbose) {
    std::fputs(ToText(Explanation{options, {report}}).c_str(), stderr);
  }
  LogVerdicts(options, report);
  const LiveKernels::ToCome kernels_to_come(state_->kernels(), context);
  state_->SetGraph(context, std::move(report), std::move(judged));
  if (nodes.empty()) return Status();
  const IntArrayPtr array = MakeIntArray(nodes);
  if (array == nullptr) return OutOfMemory("no memory for a list of nodes");
  if (context->ReplaceNodeSubsetsWithDelegateKernels(context, DelegateKernel::Registration(*state_),
                                                     array.get(), &c_struct_) != kTfLiteOk) {
    return Internal("the host does not replace the nodes");
  }
  return Status();
}

}  // namespace fuselite::partitioner
