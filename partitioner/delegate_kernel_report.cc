// What a kernel of the delegate tells of itself: its plan, and where its time goes.
#include <chrono>
#include <iterator>

#include "partitioner/delegate_kernel.h"
#include "partitioner/loop_rows.h"

namespace fuselite::partitioner {

void DelegateKernel::Report(tflite::TfLiteContext* context, std::span<const Segment* const> path) {
  PartitionReport report;
  report.nodes = host_nodes_;
  report.compiled = true;
  report.threads = compile_.threads;
  const Partition& partition = program_->partition();
  std::vector<std::shared_ptr<const Executable>> executables;
  const auto add = [&](const Segment& segment) {
    report.compile_ms += segment.compile_ms;
    report.segments.push_back(segment.report);
    executables.push_back(segment.executable);
  };
  for (const Segment* segment : path) {
    const bool waiting = segment->waits || !segment->values.empty();
    if (waiting) report.waiting_nodes.push_back(partition.nodes[segment->begin]->host_node);
    for (const std::shared_ptr<LoopRows>& rows : segment->rows) add(rows->block());
    add(*segment);
  }
  for (const SharedNode& node : partition.nodes) {
    if (node->host_call != nullptr) report.host_run_nodes.push_back(node->host_node);
  }
  // No path: nothing but such nodes.
  const int end = path.empty() ? program_->size() : path.back()->end;
  if (end < program_->size() && !path.back()->waits) {
    report.waiting_nodes.push_back(partition.nodes[end]->host_node);
  }
  state_->SetCompiled(context, std::move(report), std::move(executables));
  reported_ = program_->made();
}

void DelegateKernel::FlushProfile() {
  last_flush_ = std::chrono::steady_clock::now();
  if (program_ == nullptr) return;
  for (const auto& [begin, segments] : program_->kept()) {
    const int first_node =
        begin == 0 ? host_nodes_.front() : program_->partition().nodes[begin]->host_node;
    for (const std::unique_ptr<Segment>& segment : segments) {
      if (segment->profile == nullptr) continue;
      std::vector<StepTimes> steps;
      for (const std::shared_ptr<LoopRows>& rows : segment->rows) {
        FlushProfile(first_node, rows->block(), steps);
      }
      FlushProfile(first_node, *segment, steps);
      state_->AddProfile(context_, first_node, steps);
    }
  }
}

void DelegateKernel::FlushProfile(int first_node, Segment& segment, std::vector<StepTimes>& steps) {
  // Blocks that were not computed since the last time have steps, too.
  const std::unique_ptr<Profile> profile =
      segment.profile ? std::move(segment.profile) : Profile::For(*segment.executable);
  std::ranges::move(profile->Summarize(*segment.executable), std::back_inserter(steps));
  if (!state_->options().keep_events) return;
  state_->AddEvents(first_node, *segment.executable, profile->Events());
}

}  // namespace fuselite::partitioner
