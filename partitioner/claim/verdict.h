// Which nodes the delegate takes, and why it does not take the others.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fusion/planner.h"
#include "partitioner/claim/variables.h"
#include "partitioner/import/import.h"
#include "partitioner/import/tensor_table.h"
#include "partitioner/options.h"

namespace fuselite::partitioner {

struct Verdict {
  int host_node = -1;
  std::string op;                    // "CONV_2D"
  std::vector<int> inputs, outputs;  // the host's tensors, -1 for those left out
  std::string shapes;                // of the outputs: "float32[1,8,8,16]"; empty where unknown
  bool claimed = false;
  // Claimed by operator and types alone: its shapes are known only at run time, since they depend
  // on values, or since those at hand do not fit together and the file calls them placeholders.
  bool possible = false;
  // A custom operator of which the host knows the name alone: it cannot run the node.
  bool host_lacks = false;
  std::string reason;                  // why it is the host's; empty where it is claimed
  double cost = 0;                     // multiply-adds, or elements where there are none
  std::shared_ptr<ImportedNode> node;  // until ChoosePartitions(), where it is claimed
};

// Judges the nodes of the plan in running order. The code that answers is the code that builds:
// import, shape rule and kernel lookup all have to succeed. `table` ends up with all shapes,
// `planner` with a plan for each claimed node.
std::vector<Verdict> Judge(tflite::TfLiteContext* context, std::span<const int> plan,
                           const GraphVariables& variables, const Options& options,
                           TensorTable& table, fusion::Planner& planner);

}  // namespace fuselite::partitioner
