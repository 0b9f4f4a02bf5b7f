// WHILE, and IF where its branches cannot be inlined: nodes of a partition that the host's own
// kernel runs. The interface does not tell in which order a subgraph gives its results; the host's
// kernel knows it, and runs subgraphs that the delegate has taken.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "partitioner/import/import.h"
#include "runtime/support/status.h"
#include "runtime/tflite/abi.h"

namespace fuselite::partitioner {

// A node of the host and its kernel, which the host keeps as long as its interpreter lives, under
// whatever delegate stands in the node's place. The node's tensors are the host's; those between
// nodes of one partition must be given memory by the partition's kernel.
class HostCall {
 public:
  // kUnsupported where the host shows no kernel that could be called. The node has options.
  static Result<std::shared_ptr<HostCall>> Take(const tflite::TfLiteNode& node,
                                                const tflite::TfLiteRegistration& registration);
  // The condition and the body, or the two branches.
  std::array<int, 2> subgraphs() const;
  ~HostCall();
  HostCall(const HostCall&) = delete;
  HostCall& operator=(const HostCall&) = delete;

  // Gives the outputs their shapes, or makes them dynamic. The inputs must have theirs.
  Status Prepare(tflite::TfLiteContext* context);
  // Prepares anew where inputs have other shapes than before. The inputs must have memory.
  Status Invoke(tflite::TfLiteContext* context);

 private:
  HostCall() = default;
  // Whether the inputs have the shapes for which it was prepared. Every run asks.
  bool IsPrepared(const tflite::TfLiteContext* context) const;
  // LiteRT's WHILE leaves out a result that its body hands on unchanged, where no node of the
  // host's reads it: readers inside partitions do not count. Such results are the inputs, and have
  // to be given to these readers: Shape...() once it is prepared, Copy...() once it has run.
  Status ShapeHandedOn(tflite::TfLiteContext* context) const;
  Status CopyHandedOn(tflite::TfLiteContext* context) const;

  // The host's kernel may take outputs out of it.
  tflite::TfLiteNode node_{};
  std::vector<int> outputs_;  // as the host has them
  decltype(tflite::TfLiteRegistration::prepare) prepare_ = nullptr;
  decltype(tflite::TfLiteRegistration::invoke) invoke_ = nullptr;
  std::vector<std::vector<int>> prepared_;  // the inputs' shapes
};

// Makes `imported` a node that its host's kernel runs. Whether something is gained, which is where
// the delegate takes all nodes of its subgraphs, whoever judges it finds out. `whole_structs` as
// ImportNode's.
Status ImportHostCall(const tflite::TfLiteContext& context, const tflite::TfLiteNode& node,
                      const tflite::TfLiteRegistration& registration, bool whole_structs,
                      ImportedNode& imported);

}  // namespace fuselite::partitioner
