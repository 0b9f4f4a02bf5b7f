// A model's graph as a picture: one file for a browser, which needs nothing else.
#pragma once

#include <map>
#include <string>

#include "interpreter/file/model.h"
#include "partitioner/report/explanation.h"

namespace fuselite::tools {

// The time of one run by the host node that a step or an operator begins with, in microseconds.
using NodeTimesUs = std::map<int, double>;

// One subgraph: a box for each fused step and for each operator that is left to the host, an arrow
// for each tensor between them, frames around partitions, times where `times` has them. Scripts and
// styles are in the page.
std::string GraphHtml(const interpreter::Model& model, int subgraph, const std::string& title,
                      const partitioner::Explanation& explanation, const NodeTimesUs& times);

}  // namespace fuselite::tools
