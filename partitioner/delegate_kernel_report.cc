// What a kernel of the delegate tells of itself: its plan, and where its time goes.
#include <algorithm>
#include <chrono>
#include <iterator>

#include "partitioner/delegate_kernel.h"
#include "partitioner/run/loop_rows.h"

namespace fuselite::partitioner {
namespace {

// The node for whose values everything behind the last segment waits, unless that is the node's
// own. Branches of known shapes let nothing wait.
void AddWaitingNode(const Partition& partition, std::span<const Segment* const> path,
                    PartitionReport& report) {
  auto first = partition.nodes.begin();
  if (!path.empty()) {
    const Segment& last = *path.back();
    if (last.waits && !last.has_known_shapes()) return;
    first += last.waits ? last.begin + 1 : last.end;
  }
  first = std::find_if(first, partition.nodes.end(),
                       [](const SharedNode& node) { return node->host_call == nullptr; });
  if (first == partition.nodes.end()) return;
  // The shapes that the host's kernel gives stop what reads them, not the kernel itself.
  const bool behind_call =
      first != partition.nodes.begin() && (*std::prev(first))->host_call != nullptr;
  report.waiting_nodes.push_back((*(behind_call ? std::prev(first) : first))->host_node);
}

}  // namespace

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
  std::vector<bool> covered(static_cast<size_t>(program_->size()), program_->IsAllHostCalls());
  for (const Segment* segment : path) {
    std::fill(covered.begin() + segment->begin, covered.begin() + segment->end, true);
    const bool waiting = segment->waits || !segment->values.empty();
    if (waiting) report.waiting_nodes.push_back(partition.nodes[segment->begin]->host_node);
    for (const std::shared_ptr<LoopRows>& rows : segment->rows) add(rows->block());
    add(*segment);
  }
  for (int i = 0; i < program_->size(); ++i) {
    const ImportedNode& node = *partition.nodes[i];
    if (node.host_call != nullptr) {
      report.host_run_nodes.push_back(node.host_node);
    } else if (!covered[i]) {
      report.later_nodes.push_back(node.host_node);
    }
  }
  AddWaitingNode(partition, path, report);
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
  state_->profile().AddEvents(first_node, *segment.executable, profile->Events());
}

}  // namespace fuselite::partitioner
