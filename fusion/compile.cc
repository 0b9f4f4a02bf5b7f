#include "fusion/compile.h"

#include <algorithm>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "fusion/batch.h"
#include "fusion/graph/cost.h"
#include "fusion/graph/evaluate.h"
#include "fusion/graph/validate.h"
#include "fusion/plan/lower.h"
#include "fusion/plan/strips.h"
#include "fusion/rewrite.h"
#include "runtime/memory/aligned_buffer.h"
#include "runtime/memory/buffer_region.h"
#include "runtime/memory/file_pages.h"
#include "runtime/support/caught.h"
#include "runtime/support/stopwatch.h"
#include "runtime/weights/weights_cache.h"

namespace fuselite::fusion {
namespace {

// Has what it lets through lie in one region or in the cache, and times what the thread that made
// it waits for: others pack beside it. With a cache it is for that thread alone. The pages of a
// file whose weights were packed leave the process.
class TimedStore : public PackedStore {
 public:
  // `bytes`: that will be packed at least. `cache` and `hashes` may be null.
  TimedStore(PackedStore& store, size_t bytes, WeightsCache* cache, ConstantHashes* hashes,
             FilePages& sources)
      : store_(store), region_(bytes), cache_(cache), hashes_(hashes), sources_(sources) {}
  Result<PackedWeights> GetOrPack(const PackRequest& request,
                                  const std::function<void(std::byte*)>& pack) override {
    Stopwatch watch;
    PackRequest placed = request;
    placed.region = &region_;
    placed.cache = cache_;
    placed.hashes = hashes_;
    Result<PackedWeights> packed = store_.GetOrPack(placed, pack);
    sources_.WereRead(request.source, request.source_bytes);
    if (std::this_thread::get_id() == maker_) milliseconds += watch.Lap();
    return packed;
  }
  double milliseconds = 0;

 private:
  PackedStore& store_;
  BufferRegion region_;
  WeightsCache* cache_;
  ConstantHashes* hashes_;
  FilePages& sources_;
  const std::thread::id maker_ = std::this_thread::get_id();
};

// The bytes of the weights that products pack, which makes them no smaller, and of what stands
// beside them for a channel with its own scale: its bias and six words of requantization. Weights
// that several products read may be packed once for all of them.
size_t BytesToPack(const Graph& graph) {
  constexpr size_t kBesideChannel = 7 * sizeof(int32_t);
  // Smaller weights that are not packed either leave no page empty, and asking takes time.
  constexpr size_t kWorthAsking = kHugePage / 2;
  size_t bytes = 0;
  std::set<const void*> counted;
  for (NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (!node.op->product_inputs) continue;
    const ValueId weights = node.inputs[node.op->product_inputs->weights];
    const TensorInfo& info = graph.value(weights).info;
    if (!info.constant()) continue;
    if (info.bytes() >= kWorthAsking && kernels::ReadsUnpacked(graph.Describe(id))) continue;
    if (counted.insert(info.data).second) bytes += info.bytes();
    if (info.quantization.per_channel()) bytes += info.quantization.scales.size() * kBesideChannel;
  }
  return bytes;
}

// The cache of the host's constants, as far as they may be weights; none where there are none, or
// nothing is to be cached. Rewrites join and fold weights in another way in each signature.
std::optional<WeightsCache> CacheOf(const Graph& graph, const CacheOptions& options,
                                    ConstantHashes* hashes) {
  constexpr size_t kLeastWeights = 1024;
  if (!options.on()) return std::nullopt;
  std::vector<WeightsSource> sources;
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    const Value& value = graph.value(id);
    if (!value.info.constant() || value.info.bytes() < kLeastWeights) continue;
    const auto* data = static_cast<const std::byte*>(value.info.data);
    sources.push_back({{data, value.info.bytes()}, value.host_constant()});
  }
  if (sources.empty()) return std::nullopt;
  return WeightsCache(options, sources, hashes);
}

// Where a graph's weights come from.
struct WeightSources {
  std::optional<WeightsCache> cache;
  FilePages file;  // of the host's model
};

// Some constant of the host's, the largest one; null where there is none.
const void* HostConstant(const Graph& graph) {
  const void* data = nullptr;
  size_t bytes = 0;
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    const Value& value = graph.value(id);
    if (!value.host_constant() || value.info.bytes() <= bytes) continue;
    data = value.info.data;
    bytes = value.info.bytes();
  }
  return data;
}

// Rewrites have read the constants that they put others in the place of: halves that are floats
// now, layers that were joined.
void GiveReplacedBack(const Graph& graph, FilePages& file) {
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    const Value& value = graph.value(id);
    const bool replaced = value.host_constant() && graph.consumers(id).empty();
    if (replaced) file.WereRead(value.info.data, value.info.bytes());
  }
}

// With fewer bytes of weights there is more to emit than to pack, and threads that share it gain
// nothing (EfficientNet-B0 int8, 5 MB: 15.3 ms instead of 16.4 on near cores, 20.6 instead of 17.5
// on far ones); ResNet-50, 102 MB, opens in 43 ms instead of 57.
constexpr size_t kLeastShared = size_t{8} << 20;

// Lower, with the weights out of the cache and into it.
Result<std::shared_ptr<const Executable>> LowerCached(Graph& graph, const StoragePlan& plan,
                                                      std::map<NodeId, Strips>& strips,
                                                      const CompileOptions& options,
                                                      Planner& planner, WeightSources& weights,
                                                      CompileReport& report) {
  WeightsCache* const cache = weights.cache ? &*weights.cache : nullptr;
  size_t bytes = BytesToPack(graph);
  for (const auto& [node, made] : strips) bytes += BytesToPack(made.parts[0].graph);
  TimedStore store(options.store ? *options.store : ProcessPackedStore(), bytes, cache,
                   options.hashes, weights.file);
  const bool shared = cache == nullptr && bytes >= kLeastShared;
  FUSELITE_ASSIGN_OR_RETURN(
      std::shared_ptr<const Executable> executable,
      Lower(graph, plan, strips, planner, store, shared ? options.threads : 1, report));
  report.times.packing += store.milliseconds;
  report.times.kernels -= store.milliseconds;
  if (cache != nullptr) {
    Stopwatch watch;
    cache->Save();
    const CacheReport& told = cache->report();
    if (told.found + told.made > 0) report.caches.push_back(told);
    report.times.packing += watch.Lap();
  }
  return executable;
}

Result<std::shared_ptr<const Executable>> CompileGraph(Graph& graph, const CompileOptions& options,
                                                       Planner& planner, CompileReport& report);

// Threads take parts, each with an arena of its own.
Result<std::shared_ptr<const Executable>> CompileInParts(BatchPart part,
                                                         const CompileOptions& options,
                                                         Planner& planner, CompileReport& report) {
  CompileOptions whole = options;
  whole.batch.most_bytes = 0;
  FUSELITE_ASSIGN_OR_RETURN(std::shared_ptr<const Executable> executable,
                            CompileGraph(part.graph, whole, planner, report));
  executable = Executable::Repeat(std::move(executable), part.count);
  for (StepReport& step : report.steps) {
    step.multiply_adds *= part.count;
    step.input_bytes *= static_cast<size_t>(part.count);
    step.output_bytes *= static_cast<size_t>(part.count);
  }
  report.batch_parts = part.count;
  FUSELITE_RETURN_IF_ERROR(options.budget.CheckMemory(
      static_cast<double>(executable->scratch_bytes()) * options.threads));
  return executable;
}

Result<std::shared_ptr<const Executable>> CompileGraph(Graph& graph, const CompileOptions& options,
                                                       Planner& planner, CompileReport& report) {
  for (ValueId v : graph.outputs) {
    if (v >= 0 && v < graph.value_count()) graph.value(v).observed = true;
  }
  FUSELITE_RETURN_IF_ERROR(Validate(graph));
  if (options.budget.max_multiply_adds > 0) {
    FUSELITE_RETURN_IF_ERROR(options.budget.CheckMultiplyAdds(GraphCost(graph)));
  }
  AlignConstants(graph);
  if (options.fusion) {
    if (std::optional<BatchPart> part = PartOfBatch(graph, options.batch)) {
      return CompileInParts(*std::move(part), options, planner, report);
    }
  }
  Stopwatch watch;
  WeightSources weights{CacheOf(graph, options.cache, options.hashes),
                        FilePages(HostConstant(graph))};
  report.times.packing = watch.Lap();
  RewriteContext rewriting(planner, &report.rewrites);
  if (options.fusion) RunRewrites(graph, rewriting);
  GiveReplacedBack(graph, weights.file);
  report.times.rewrites = watch.Lap();
  StoragePlan plan = options.fusion ? PlanStorage(graph, rewriting) : StoragePlan(graph);
  std::map<NodeId, Strips> strips;
  if (options.fusion) {
    strips = MakeStrips(graph, plan, options.strips, options.threads, rewriting);
    PlanInPlace(graph, rewriting, plan);
  }
  report.times.placement = watch.Lap();
  FUSELITE_ASSIGN_OR_RETURN(std::shared_ptr<const Executable> executable,
                            LowerCached(graph, plan, strips, options, planner, weights, report));
  const double scratch = static_cast<double>(executable->scratch_bytes()) * options.threads;
  FUSELITE_RETURN_IF_ERROR(
      options.budget.CheckMemory(static_cast<double>(executable->arena_bytes()) + scratch));
  return executable;
}

}  // namespace

CompileTimes& CompileTimes::operator+=(const CompileTimes& more) {
  rewrites += more.rewrites;
  placement += more.placement;
  packing += more.packing;
  kernels += more.kernels;
  memory += more.memory;
  return *this;
}

CompileReport& CompileReport::operator+=(const CompileReport& more) {
  times += more.times;
  steps.insert(steps.end(), more.steps.begin(), more.steps.end());
  rewrites.insert(rewrites.end(), more.rewrites.begin(), more.rewrites.end());
  caches.insert(caches.end(), more.caches.begin(), more.caches.end());
  arena_bytes = std::max(arena_bytes, more.arena_bytes);
  batch_parts = std::max(batch_parts, more.batch_parts);
  return *this;
}

Planner PlannerFor(const CompileOptions& options) {
  return Planner({options.isa, options.precision, options.threads, options.constant_bytes},
                 options.jit, options.budget);
}

Result<std::shared_ptr<const Executable>> Compile(Graph graph, const CompileOptions& options,
                                                  CompileReport* report, Planner* planner) {
  CompileReport unread;
  return Guarded("compiling the partition", [&] {
    std::optional<Planner> own;
    if (planner == nullptr) planner = &own.emplace(PlannerFor(options));
    return CompileGraph(graph, options, *planner, report ? *report : unread);
  });
}

}  // namespace fuselite::fusion
