// Products of rows that a loop takes from a value one by one.
//
// A loop over a sequence takes in each turn the row that its counter names and multiplies it by
// weights, for which it reads all of them. One product of many rows reads them once.
#pragma once

#include <vector>

#include "fusion/graph/graph.h"

namespace fuselite::fusion {

// What a body computes of one row, as a graph of its own that computes it of several. Results of
// these are as many rows of what the body reads.
struct RowsAhead {
  Graph graph;                   // one input; its outputs are the results, in order
  ValueId from = kNone;          // in the body: the value whose outermost dimension counts the rows
  ValueId index = kNone;         // in the body: one int32 or int64, which row a turn takes
  int32_t rows = 0;              // of how many rows the graph computes, at most those of `from`
  std::vector<ValueId> results;  // in the body, whose last inputs they are, in this order
};

// Takes FULLY_CONNECTED with constant weights, of a row that GATHER takes of an input of the graph
// by another one, out of `body`, the graph of a loop's body as it was built. Where the row is
// concatenated with other values (the state of an LSTM), the product becomes the sum of two, whose
// rounding differs. What nobody reads any more stays.
std::vector<RowsAhead> TakeRowsAhead(Graph& body);

}  // namespace fuselite::fusion
