#include "tools/generate/bandwidth.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <map>
#include <set>
#include <vector>

#include "runtime/aligned_buffer.h"
#include "runtime/cpu.h"
#include "runtime/parallel.h"
#include "runtime/tflite_builtin_codes.h"

namespace fuselite::tools {
namespace {

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

double MeasureReadBandwidth(int threads) {
  using Clock = std::chrono::steady_clock;
  constexpr int kPasses = 6;
  constexpr size_t kSmallest = size_t{128} << 20, kLargest = size_t{512} << 20;
  constexpr size_t kPiece = size_t{1} << 20;
  const auto cache = static_cast<size_t>(std::max<int64_t>(ReadCpuInfo().l3_bytes, 0));
  const size_t bytes = std::clamp(4 * cache, kSmallest, kLargest) / kPiece * kPiece;
  const AlignedBuffer buffer(bytes);
  if (buffer.data() == nullptr) return 0;
  std::memset(buffer.data(), 1, bytes);
  std::atomic<int64_t> found{0};  // keeps the searches from being left out
  double best = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    const Clock::time_point start = Clock::now();
    ParallelFor(threads, static_cast<int64_t>(bytes / kPiece), 1, [&](int64_t begin, int64_t end) {
      // The C library searches a block for a byte that is not there as fast as memory gives it.
      const std::byte* const from = buffer.data() + begin * kPiece;
      found += std::memchr(from, 2, (end - begin) * kPiece) != nullptr;
    });
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::max(best, static_cast<double>(bytes) / seconds);
  }
  return found == 0 ? best : 0;
}

}  // namespace fuselite::tools
