// Batches: whether a graph computes each sample of a batch on its own, and how many of them it
// should compute at a time.
#pragma once

#include <cstdint>
#include <optional>

#include "fusion/graph/graph.h"

namespace fuselite::fusion {

// The graph for some samples of a batch: run `count` times, each time with the next samples of all
// inputs and outputs, it computes what the graph of the whole batch does.
struct BatchPart {
  Graph graph;
  int count = 0;
};

// What makes a part: as many samples as its widest layer reads and writes in `most_bytes`, one at
// least. Neither threads nor the machine decide, as kernels, and with them the order of sums,
// depend on the number of samples.
struct BatchLimits {
  // Half of the L2 of most cores. 0: batches are computed whole.
  int64_t most_bytes = 512 << 10;
  // Multiply-adds of a part for a byte of weights, below which it takes too long to read them again
  // for each part: one of MobileNetV2 in float has 21, of matrices by one row 1/4.
  double least_work = 12;
};

// The part of a batch whose values would not stay in a core's cache from one layer to the next.
// nullopt where they would, where a node may look beyond its sample, and below `least_work`.
std::optional<BatchPart> PartOfBatch(const Graph& graph, const BatchLimits& limits);

}  // namespace fuselite::fusion
