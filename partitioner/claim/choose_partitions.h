// Which of the claimed nodes are worth taking, together.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "fusion/planner.h"
#include "partitioner/claim/constants.h"
#include "partitioner/claim/loops.h"
#include "partitioner/claim/verdict.h"
#include "partitioner/import/build_graph.h"

namespace fuselite::partitioner {

// Claimed nodes that the host would join into one delegate kernel, and will after ReplaceNodes;
// nodes and tensors are the host's.
struct HostPartition {
  // Made from the host's struct; left-out inputs are dropped.
  static HostPartition Of(const tflite::TfLiteDelegateParams& params);
  std::vector<int> nodes, inputs, outputs;
  friend bool operator==(const HostPartition&, const HostPartition&) = default;
};

// A HostPartition with its graph for inputs such as `key` says.
struct JudgedPartition {
  HostPartition host;
  double cost = 0;  // of the nodes together
  Partition partition{};
  std::vector<InputKey> key{};        // of partition.inputs
  std::optional<BuiltGraph> built{};  // nullopt where shapes are not there yet
  // Has planned each node for its verdict.
  std::shared_ptr<fusion::Planner> planner{};
};

// What the kernels of a graph have to know of it beyond their own nodes.
struct GraphFacts {
  std::shared_ptr<const ConstantMakers> makers = std::make_shared<ConstantMakers>();
  std::shared_ptr<const GraphVariables> variables = std::make_shared<GraphVariables>();
  std::shared_ptr<const Loop> loop{};  // null unless one partition computes the loop's whole body
};

// The partitions to take, without a planner. Claims that come to nothing are withdrawn, with the
// reason: partitions whose work is too little to repay entering the delegate, those beyond
// max_partitions, nodes whose partition does not build, makers of constants that the host's nodes
// read. `table` is what Judge() left, `facts` what is known of its verdicts, whose nodes go into
// the partitions.
Result<std::vector<JudgedPartition>> ChoosePartitions(tflite::TfLiteContext* context,
                                                      const Options& options,
                                                      const TensorTable& table,
                                                      const GraphFacts& facts,
                                                      std::vector<Verdict>& verdicts);

}  // namespace fuselite::partitioner
