#include "tools/generate/bandwidth.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <set>

#include "runtime/tflite/builtin_codes.h"
#include "runtime/threads/parallel.h"

namespace fuselite::tools {
namespace {

constexpr size_t kLargestBlock = size_t{1} << 30;

bool IsProduct(const interpreter::ModelOperator& op) {
  return op.def != nullptr && op.def->product != nullptr;
}

int64_t BytesWithScales(const interpreter::ModelSubgraph& graph, int tensor) {
  const interpreter::ModelTensor& weights = graph.tensors[tensor];
  int64_t bytes = static_cast<int64_t>(weights.data.size());
  if (weights.blockwise.block_size > 0) {
    bytes += static_cast<int64_t>(graph.tensors[weights.blockwise.scales].data.size());
  }
  return bytes;
}

}  // namespace

int64_t ProductWeightBytes(const interpreter::Model& model, int subgraph) {
  const interpreter::ModelSubgraph& graph = model.subgraphs[subgraph];
  std::map<int, int> dequantized;  // from what the operator gives to what it reads
  std::set<int> read;
  for (const interpreter::ModelOperator& op : graph.operators) {
    if (op.builtin_code == tflite::kTfLiteBuiltinDequantize)
      dequantized[op.outputs[0]] = op.inputs[0];
    if (!IsProduct(op)) continue;
    for (int tensor : op.inputs) {
      const auto source = dequantized.find(tensor);
      if (source != dequantized.end()) tensor = source->second;
      if (tensor >= 0 && graph.tensors[tensor].constant) read.insert(tensor);
    }
  }
  int64_t bytes = 0;
  for (int tensor : read) bytes += BytesWithScales(graph, tensor);
  return bytes;
}

WeightReader::WeightReader(int64_t bytes, int threads)
    : bytes_(bytes), threads_(threads), block_(std::min<size_t>(bytes, kLargestBlock)) {
  // Memory that nobody wrote is one page of zeros, which no cache would have to give up.
  if (block_.data() != nullptr) std::memset(block_.data(), 1, block_.size());
}

double WeightReader::Pass() const {
  using Clock = std::chrono::steady_clock;
  constexpr int64_t kPiece = 1 << 18;
  const auto size = static_cast<int64_t>(block_.size());
  std::atomic<int64_t> found{0};  // keeps the searches from being left out
  const Clock::time_point start = Clock::now();
  ParallelFor(threads_, (size + kPiece - 1) / kPiece, 1, [&](int64_t begin, int64_t end) {
    // The C library searches a block for a byte that is not there as fast as memory gives it.
    const int64_t first = begin * kPiece, last = std::min(size, end * kPiece);
    found += std::memchr(block_.data() + first, 2, last - first) != nullptr;
  });
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return seconds * static_cast<double>(bytes_ + found) / static_cast<double>(size);
}

}  // namespace fuselite::tools
