#include <nlohmann/json.hpp>

#include "partitioner/report/explanation.h"

namespace fuselite::partitioner {
namespace {

using Json = nlohmann::ordered_json;

Json StepJson(const fusion::StepReport& step) {
  Json refusals = Json::array();
  for (const fusion::Refusal& refusal : step.refusals) {
    refusals.push_back({{"candidate", refusal.candidate}, {"reason", refusal.reason}});
  }
  Json json = {{"kernel", step.kernel},
               {"candidate", step.candidate},
               {"ops", step.ops},
               {"tail", step.tail},
               {"nodes", step.host_nodes},
               {"output_shape", step.output_shape},
               {"placement", step.placement},
               {"multiply_adds", step.multiply_adds},
               {"weight_bytes", step.weight_bytes},
               {"arena_offset", step.arena_offset},
               {"output_bytes", step.output_bytes},
               {"refusals", refusals}};
  // Of a step that computes strips of rows.
  for (const fusion::StepReport& part : step.steps) json["steps"].push_back(StepJson(part));
  return json;
}

Json PartitionJson(const PartitionReport& partition) {
  Json json = {{"nodes", partition.nodes},
               {"multiply_adds", partition.cost},
               {"compiled", partition.compiled}};
  if (!partition.error.empty()) json["error"] = partition.error;
  if (!partition.compiled) return json;
  json["threads"] = partition.threads;
  json["compile_ms"] = partition.compile_ms;
  const fusion::CompileTimes& times = partition.report.times;
  json["opening_ms"] = {{"rewrites", times.rewrites},
                        {"placement", times.placement},
                        {"packing", times.packing},
                        {"kernels", times.kernels},
                        {"memory", times.memory}};
  json["waiting_nodes"] = partition.waiting_nodes;
  json["later_nodes"] = partition.later_nodes;
  json["host_run_nodes"] = partition.host_run_nodes;
  json["nodes_without_step"] = NodesWithoutStep(partition);
  json["arena_bytes"] = partition.report.arena_bytes;
  json["batch_parts"] = partition.report.batch_parts;
  json["caches"] = Json::array();
  for (const CacheReport& cache : partition.report.caches) {
    json["caches"].push_back({{"file", cache.file},
                              {"found", cache.found},
                              {"made", cache.made},
                              {"problem", cache.problem}});
  }
  json["rewrites"] = Json::array();
  for (const fusion::RewriteRecord& rewrite : partition.report.rewrites) {
    json["rewrites"].push_back({{"rewrite", rewrite.what}, {"nodes", rewrite.host_nodes}});
  }
  json["steps"] = Json::array();
  for (const fusion::StepReport& step : partition.report.steps) {
    json["steps"].push_back(StepJson(step));
  }
  return json;
}

Json GraphJson(const GraphReport& graph) {
  Json json = {{"nodes", Json::array()}, {"partitions", Json::array()}};
  if (!graph.error.empty()) json["error"] = graph.error;
  for (const Verdict& verdict : graph.verdicts) {
    Json node = {{"node", verdict.host_node},
                 {"op", verdict.op},
                 {"outputs", verdict.shapes},
                 {"claimed", verdict.claimed},
                 {"multiply_adds", verdict.cost}};
    if (!verdict.claimed) node["reason"] = verdict.reason;
    json["nodes"].push_back(std::move(node));
  }
  for (const PartitionReport& partition : graph.partitions) {
    json["partitions"].push_back(PartitionJson(partition));
  }
  return json;
}

}  // namespace

std::string ToJson(const Explanation& explanation) {
  const Options& options = explanation.options;
  Json json = {{"isa", std::string(IsaName(options.isa))},
               {"jit", options.jit},
               {"fusion", options.fusion},
               {"graphs", Json::array()}};
  for (const GraphReport& graph : explanation.graphs) json["graphs"].push_back(GraphJson(graph));
  // Names come from models: bytes that are no UTF-8 are replaced.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace fuselite::partitioner
