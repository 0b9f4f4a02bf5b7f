// The segments of nodes that wait: a node whose outputs' shapes depend on values is made when its
// operands have these, and kept for them.
#include <algorithm>
#include <utility>

#include "kernels/operator.h"
#include "partitioner/import/branches.h"
#include "partitioner/run/program.h"

namespace fuselite::partitioner {
namespace {

// Operands of at most so many elements are taken for axes, sizes and the like, whose values a
// segment may be made for and found again by.
constexpr int64_t kMaxValues = 64;

bool IsSmall(const TensorInfo& info) { return !info.constant() && info.elements() <= kMaxValues; }

// Whether a node that waits is described with the tensor's value of this run.
bool IsGiven(int tensor, const LiveValues& live, bool all) {
  const auto value = live.find(tensor);
  return value != live.end() && !value->second.info.constant() &&
         (all || IsSmall(value->second.info));
}

}  // namespace

Segment* Program::FindMade(const Segment& waiting, const std::string& values) {
  auto& kept = segments_[waiting.begin];
  const auto known = std::ranges::find_if(kept, [&](const std::unique_ptr<Segment>& segment) {
    return segment->values == values && !segment->by_shapes && segment->key == waiting.key;
  });
  if (known == kept.end()) return nullptr;
  kept.splice(kept.begin(), kept, known);
  return kept.front().get();
}

Segment* Program::FindForShapes(const Segment& waiting, const std::string& values,
                                const LiveValues& live) {
  const std::vector<int>& inputs = partition_.nodes[waiting.begin]->inputs;
  std::optional<kernels::OpDescription> op;  // as it is in this run
  auto& kept = segments_[waiting.begin];
  for (auto known = kept.begin(); known != kept.end(); ++known) {
    const Segment& segment = **known;
    if (!segment.by_shapes || segment.values != values || segment.key != waiting.key) continue;
    if (!op) {
      op = segment.by_shapes;
      for (size_t i = 0; i < inputs.size(); ++i) {
        const auto value = live.find(inputs[i]);
        if (value == live.end()) continue;
        const TensorInfo& info = value->second.info;
        op->inputs[i].data = info.constant() ? info.data : value->second.data;
      }
      if (!kernels::Infer(*op).ok()) return nullptr;  // who makes it says why
    }
    if (!std::ranges::equal(op->outputs, segment.by_shapes->outputs, {}, &TensorInfo::shape,
                            &TensorInfo::shape)) {
      continue;
    }
    kept.splice(kept.begin(), kept, known);
    return kept.front().get();
  }
  return nullptr;
}

Result<BuiltGraph> Program::BuildBranch(int begin, int branch, const tflite::TfLiteContext* context,
                                        const LiveValues& live) const {
  const auto chosen =
      std::make_shared<const ImportedNode>(BranchOf(*partition_.nodes[begin], branch));
  TensorTable table(context);
  FillTable(live, table);
  int failed = -1;
  const Partition alone{{chosen}, 0, chosen->inputs, chosen->outputs};
  Result<BuiltGraph> built = BuildGraph(alone, 0, context, table, &failed);
  if (!built.ok()) return At(partition_, begin, built.status());
  return built;
}

void Program::DescribeBranches(Segment& waiting, const tflite::TfLiteContext* context,
                               const LiveValues& live) const {
  const ImportedNode& node = *partition_.nodes[waiting.begin];
  const auto count = static_cast<int>(node.branches.size());
  std::vector<BoundTensor> known;
  for (int branch = 0; branch < count; ++branch) {
    Result<BuiltGraph> built = BuildBranch(waiting.begin, branch, context, live);
    if (!built.ok()) return;  // the run that chooses it says why
    const auto same = [](const BoundTensor& a, const BoundTensor& b) {
      return a.tensor == b.tensor && a.info.type == b.info.type && a.info.shape == b.info.shape;
    };
    if (built->outputs.size() != node.outputs.size()) return;
    if (branch > 0 && !std::ranges::equal(built->outputs, known, same)) return;
    if (branch == 0) known = std::move(built->outputs);
  }
  waiting.built.outputs = std::move(known);
}

Result<Segment*> Program::MakeBranch(const Segment& waiting, const tflite::TfLiteContext* context,
                                     const LiveValues& live,
                                     const fusion::CompileOptions& options) {
  const ImportedNode& node = *partition_.nodes[waiting.begin];
  const auto selector = live.find(node.inputs[0]);
  const void* const value =
      selector != live.end() ? selector->second.data : context->tensors[node.inputs[0]].data.data;
  if (value == nullptr) return Internal("what chooses a branch has no value");
  const int branch = ChosenBranch(node, value);
  std::string values = "branch " + std::to_string(branch);
  if (Segment* const known = FindMade(waiting, values)) return known;
  auto segment = std::make_unique<Segment>();
  segment->key = waiting.key;
  segment->values = std::move(values);
  segment->begin = waiting.begin;
  segment->end = waiting.begin + 1;
  FUSELITE_ASSIGN_OR_RETURN(segment->built, BuildBranch(waiting.begin, branch, context, live));
  FUSELITE_ASSIGN_OR_RETURN(segment->constants,
                            TakeConstantOutputs(segment->built, options.budget));
  FUSELITE_RETURN_IF_ERROR(Finish(*segment, options, nullptr));
  return Keep(std::move(segment));
}

// The values of small operands decide what is made; where they do not suffice, so do the shapes
// that all values lead to.
Result<Segment*> Program::MakeWaiting(const Segment& waiting, const tflite::TfLiteContext* context,
                                      const LiveValues& live,
                                      const fusion::CompileOptions& options) {
  const ImportedNode& node = *partition_.nodes[waiting.begin];
  std::string values = "values ";
  for (int tensor : node.inputs) {
    const auto value = live.find(tensor);
    if (value == live.end() || !IsSmall(value->second.info)) continue;
    values.append(static_cast<const char*>(value->second.data), value->second.info.bytes());
  }
  if (Segment* const known = FindMade(waiting, values)) return known;
  if (Segment* const known = FindForShapes(waiting, values, live)) return known;
  auto segment = std::make_unique<Segment>();
  segment->key = waiting.key;
  segment->values = std::move(values);
  segment->begin = waiting.begin;
  segment->end = waiting.begin + 1;
  for (const bool all : {false, true}) {
    FUSELITE_ASSIGN_OR_RETURN(segment->built,
                              BuildAlone(partition_.nodes[waiting.begin], context, live, all));
    if (segment->built.end == 0) continue;
    fusion::CompileOptions as_it_is = options;
    as_it_is.fusion = false;
    FUSELITE_RETURN_IF_ERROR(Finish(*segment, as_it_is, nullptr));
    if (all) {
      FUSELITE_ASSIGN_OR_RETURN(segment->by_shapes, TableOf(node, context, live, true).Infer(node));
    }
    return Keep(std::move(segment));
  }
  return At(partition_, waiting.begin, Internal("has no shape, though its operands have values"));
}

TensorTable Program::TableOf(const ImportedNode& node, const tflite::TfLiteContext* context,
                             const LiveValues& live, bool all) const {
  TensorTable table(context);
  FillTable(live, table);
  for (int tensor : node.inputs) {
    if (!IsGiven(tensor, live, all)) continue;
    TensorInfo info = live.at(tensor).info;
    info.data = live.at(tensor).data;
    table.Set(tensor, std::move(info));
  }
  return table;
}

Result<BuiltGraph> Program::BuildAlone(const SharedNode& shared,
                                       const tflite::TfLiteContext* context, const LiveValues& live,
                                       bool all) const {
  const ImportedNode& node = *shared;
  TensorTable table = TableOf(node, context, live, all);
  int failed = -1;
  const Partition alone{{shared}, 0, node.inputs, node.outputs};
  Result<BuiltGraph> built = BuildGraph(alone, 0, context, table, &failed);
  if (!built.ok()) return At(alone, failed, built.status());
  if (built->end == 0) return built;
  // What describes the operands is no constant: it is bound as they are.
  const std::vector<fusion::ValueId> inputs = built->graph.node(built->graph.order()[0]).inputs;
  std::set<fusion::ValueId> bound;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!IsGiven(node.inputs[i], live, all) || !bound.insert(inputs[i]).second) continue;
    fusion::Value& value = built->graph.value(inputs[i]);
    value.input = true;
    if (!IsSmall(live.at(node.inputs[i]).info)) value.info.data = nullptr;  // of this run alone
    built->graph.inputs.push_back(inputs[i]);
    built->inputs.push_back({node.inputs[i], value.info, value.info.bytes()});
  }
  return built;
}

}  // namespace fuselite::partitioner
