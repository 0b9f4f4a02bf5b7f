#include "partitioner/delegate_state.h"

#include <algorithm>
#include <cstdio>
#include <set>

#include "runtime/cpu/cpu.h"
#include "runtime/support/log.h"

namespace fuselite::partitioner {
namespace {

using namespace tflite;

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

void DelegateState::ForgetDeadGraphs() {
  const std::set<const TfLiteContext*> alive = kernels_.Graphs();
  const auto lives = [&](const TfLiteContext* context) { return alive.contains(context); };
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
    profile_.Add({graph->second.number, first_node}, steps);
  }
  WriteProfileFile();
}

void DelegateState::WriteExplainFile() const {
  if (options_.explain_file.empty()) return;
  const std::lock_guard lock(writing_);
  Warn(options_, WriteExplanation(Explain(), options_.explain_file));
}

void DelegateState::WriteProfileFile() const {
  if (options_.profile_file.empty()) return;
  const std::lock_guard lock(writing_);
  Warn(options_, WriteProfile(profile_.Times(), options_.profile_file));
}

}  // namespace fuselite::partitioner
