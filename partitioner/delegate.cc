#include "partitioner/delegate.h"

#include <algorithm>
#include <cstdio>

#include "partitioner/delegate_kernel.h"
#include "partitioner/guard.h"
#include "runtime/cpu/cpu.h"
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

// Nothing can be reported to anybody where a file that the user named cannot be written, and no
// model fails for that; with verbose=on it is printed, else logged.
void Warn(const Options& options, const Status& status) {
  if (status.ok()) return;
  if (options.verbose) {
    std::fprintf(stderr, "fuselite: %s\n", status.message().c_str());
  } else {
    FUSELITE_LOG(kWarning) << status.message();
  }
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

void LogPlan(const PartitionReport& partition) {
  size_t steps = 0;
  for (const auto& segment : partition.segments) steps += segment->steps.size();
  FUSELITE_LOG(kInfo) << "compiled the partition from node " << partition.nodes.front() << ": "
                      << steps << " steps, threads: " << partition.threads << ", "
                      << partition.compile_ms << " ms";
  for (const auto& segment : partition.segments) {
    for (const fusion::StepReport& step : segment->steps) {
      for (const fusion::Refusal& refusal : step.refusals) {
        FUSELITE_LOG(kDebug) << step.ops << " " << step.output_shape << " does not run as "
                             << refusal.candidate << ": " << refusal.reason;
      }
    }
  }
}

// The bytes of all constants of a graph.
int64_t ConstantBytes(const TfLiteContext& context) {
  const std::span tensors(context.tensors, context.tensors_size);
  int64_t bytes = 0;
  for (const TfLiteTensor& tensor : tensors) {
    if (tensor.allocation_type == kTfLiteMmapRo) bytes += static_cast<int64_t>(tensor.bytes);
  }
  return bytes;
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

DelegateState::DelegateState(Options options) : options_(std::move(options)) {}

int DelegateState::ThreadsFor(const TfLiteContext* context) const {
  if (options_.num_threads > 0) return options_.num_threads;
  if (context->recommended_num_threads > 0) {
    return std::min(context->recommended_num_threads, kMaxThreads);
  }
  std::call_once(cores_read_, [&] { physical_cores_ = PhysicalCores(); });
  return physical_cores_;
}

void DelegateState::AddKernel(const TfLiteContext* context, std::atomic<bool>* stop) {
  const std::lock_guard lock(mutex_);
  kernels_[stop] = context;
}

void DelegateState::RemoveKernel(std::atomic<bool>* stop) {
  const std::lock_guard lock(mutex_);
  kernels_.erase(stop);
}

void DelegateState::Cancel() {
  const std::lock_guard lock(mutex_);
  for (const auto& [stop, context] : kernels_) stop->store(true, std::memory_order_relaxed);
}

DelegateState::KernelsToCome::KernelsToCome(DelegateState& state, const TfLiteContext* context)
    : state_(state), context_(context) {
  const std::lock_guard lock(state_.mutex_);
  state_.without_kernels_.insert(context_);
}

DelegateState::KernelsToCome::~KernelsToCome() {
  const std::lock_guard lock(state_.mutex_);
  state_.without_kernels_.erase(state_.without_kernels_.find(context_));
}

void DelegateState::ForgetDeadGraphs() {
  const auto lives = [&](const TfLiteContext* context) {
    return without_kernels_.contains(context) ||
           std::ranges::any_of(kernels_, [&](const auto& k) { return k.second == context; });
  };
  std::erase_if(kept_, [&](const auto& kept) { return !lives(kept.first.first); });
  std::erase_if(facts_, [&](const auto& facts) { return !lives(facts.first); });
  std::erase_if(memory_, [](const auto& memory) { return memory.second.expired(); });
  // A graph of which nothing was taken has no kernels while it lives.
  std::erase_if(graphs_, [&](const auto& graph) {
    return !graph.second.partitions.empty() && !lives(graph.first);
  });
}

GraphFacts DelegateState::FactsOf(const TfLiteContext* context) const {
  const std::lock_guard lock(mutex_);
  const auto facts = facts_.find(context);
  return facts == facts_.end() ? GraphFacts() : facts->second;
}

Result<std::shared_ptr<VariableMemory>> DelegateState::MemoryOf(const TfLiteContext* context,
                                                                const GraphVariables& variables) {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<VariableMemory>& known = memory_[context];
  if (std::shared_ptr<VariableMemory> memory = known.lock()) return memory;
  FUSELITE_ASSIGN_OR_RETURN(std::shared_ptr<VariableMemory> memory,
                            VariableMemory::New(variables.first_values()));
  known = memory;
  return memory;
}

std::optional<JudgedPartition> DelegateState::TakeJudged(const TfLiteContext* context,
                                                         const HostPartition& host) {
  const std::lock_guard lock(mutex_);
  if (judged_.first != context) return std::nullopt;
  std::vector<JudgedPartition>& waiting = judged_.second;
  const auto judged = std::ranges::find(waiting, host, &JudgedPartition::host);
  if (judged == waiting.end()) return std::nullopt;
  std::optional<JudgedPartition> taken(std::move(*judged));
  waiting.erase(judged);
  return taken;
}

fusion::CompileOptions DelegateState::CompileOptionsFor(const TfLiteContext* context) const {
  fusion::CompileOptions compile;
  compile.isa = options_.isa;
  compile.jit = options_.jit;
  compile.fusion = options_.fusion;
  compile.precision = options_.precision;
  compile.threads = ThreadsFor(context);
  compile.constant_bytes = ConstantBytes(*context);
  compile.budget = options_.budget;
  compile.cache = options_.cache;
  return compile;
}

DelegateState::GraphEntry* DelegateState::FindGraph(const TfLiteContext* context) {
  const auto entry = std::ranges::find(graphs_, context, &GraphEntry::first);
  return entry == graphs_.end() ? nullptr : &*entry;
}

PartitionReport* DelegateState::FindPartition(const TfLiteContext* context,
                                              const std::vector<int>& nodes) {
  GraphEntry* const entry = FindGraph(context);
  if (entry == nullptr) return nullptr;
  std::vector<PartitionReport>& partitions = entry->second.partitions;
  const auto known = std::ranges::find(partitions, nodes, &PartitionReport::nodes);
  return known == partitions.end() ? nullptr : &*known;
}

void DelegateState::SetGraph(const TfLiteContext* context, GraphReport report, JudgedGraph judged) {
  {
    const std::lock_guard lock(mutex_);
    judged_ = {context, std::move(judged.partitions)};
    // The same graph comes again on a resize, without its kernels.
    if (FindGraph(context) == nullptr) ForgetDeadGraphs();
    facts_[context] = std::move(judged.facts);
    if (GraphEntry* const entry = FindGraph(context)) {
      report.number = entry->second.number;
      entry->second = std::move(report);
    } else {
      report.number = graphs_shown_++;
      graphs_.emplace_back(context, std::move(report));
    }
  }
  WriteExplainFile();
}

void DelegateState::SetCompiled(const TfLiteContext* context, PartitionReport report,
                                std::vector<std::shared_ptr<const Executable>> executables) {
  LogPlan(report);
  {
    const std::lock_guard lock(mutex_);
    kept_[{context, report.nodes.front()}] = std::move(executables);
    PartitionReport* const known = FindPartition(context, report.nodes);
    if (known == nullptr) return;
    report.cost = known->cost;
    *known = std::move(report);
  }
  WriteExplainFile();
}

void DelegateState::SetFailed(const TfLiteContext* context, const std::vector<int>& nodes,
                              const Status& status) {
  {
    const std::lock_guard lock(mutex_);
    PartitionReport* const known = FindPartition(context, nodes);
    if (known == nullptr) return;
    PartitionReport failed;
    failed.nodes = nodes;
    failed.cost = known->cost;
    failed.error = status.message();
    *known = std::move(failed);
  }
  WriteExplainFile();
}

Explanation DelegateState::Explain() const {
  const std::lock_guard lock(mutex_);
  Explanation explanation{options_, {}};
  for (const auto& [context, report] : graphs_) explanation.graphs.push_back(WithReports(report));
  return explanation;
}

void DelegateState::AddProfile(const TfLiteContext* context, int first_node,
                               const std::vector<StepTimes>& steps) {
  {
    const std::lock_guard lock(mutex_);
    const GraphEntry* const graph = FindGraph(context);
    if (graph == nullptr) return;
    AddTimes(profile_[{graph->second.number, first_node}], steps);
  }
  WriteProfileFile();
}

void DelegateState::AddEvents(int first_node, const Executable& executable,
                              std::vector<ProfileEvent> events) {
  PartitionEvents added{first_node, {}, std::move(events)};
  for (const Step& step : executable.steps()) {
    added.steps.push_back({step.name, std::string(step.kernel->name()), step.ops});
  }
  const std::lock_guard lock(mutex_);
  events_.push_back(std::move(added));
}

std::vector<PartitionEvents> DelegateState::Events() const {
  const std::lock_guard lock(mutex_);
  return events_;
}

ProfiledPartitions DelegateState::Profile() const {
  const std::lock_guard lock(mutex_);
  return profile_;
}

void DelegateState::WriteExplainFile() const {
  if (options_.explain_file.empty()) return;
  const std::lock_guard lock(writing_);
  Warn(options_, WriteExplanation(Explain(), options_.explain_file));
}

void DelegateState::WriteProfileFile() const {
  if (options_.profile_file.empty()) return;
  const std::lock_guard lock(writing_);
  Warn(options_, WriteProfile(Profile(), options_.profile_file));
}

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
  const DelegateState::KernelsToCome kernels_to_come(*state_, context);
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
