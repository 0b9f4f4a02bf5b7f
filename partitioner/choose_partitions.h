// Which of the claimed nodes are worth taking, together.
#pragma once

#include <memory>
#include <vector>

#include "partitioner/build_graph.h"
#include "partitioner/constants.h"
#include "partitioner/verdict.h"

namespace fuselite::partitioner {

// Claimed nodes that the host would join into one delegate kernel, and will after ReplaceNodes.
struct PartitionChoice {
  std::vector<int> nodes;  // the host's, in running order
  double cost = 0;         // of the nodes together
};

// What the kernels of a graph have to know of it beyond their own nodes.
struct GraphFacts {
  std::shared_ptr<const ConstantMakers> makers;
  std::shared_ptr<const GraphVariables> variables;
};

// The partitions to take. Claims that come to nothing are withdrawn, with the reason: partitions
// that are too small to be worth a change of hands, those beyond max_partitions, nodes whose
// partition does not build, makers of constants that the host's nodes read. `table` is what Judge()
// left, `facts` what is known of its verdicts.
Result<std::vector<PartitionChoice>> ChoosePartitions(tflite::TfLiteContext* context,
                                                      const Options& options,
                                                      const TensorTable& table,
                                                      const GraphFacts& facts,
                                                      std::vector<Verdict>& verdicts);

}  // namespace fuselite::partitioner
