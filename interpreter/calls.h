// How operators run other subgraphs of the model: their values go in, and results come back, as
// copies.
#pragma once

#include <span>
#include <vector>

#include "interpreter/subgraph.h"
#include "runtime/support/status.h"

namespace fuselite::interpreter {

// A tensor's shape and bytes, kept while subgraphs run over the original.
struct Value {
  tflite::TfLiteType type = tflite::kTfLiteNoType;
  std::vector<int> dims;
  std::vector<char> bytes;
};

// The subgraph that the node's parameters name in place `which`, for IF, WHILE and CASE.
Subgraph& Callee(Subgraph& graph, const tflite::TfLiteNode& node, int which);

// The callee takes `arguments`, one for each of its inputs, and gives `result_count` values, those
// of the types of `results`, where there are any.
Status CheckSignature(Subgraph& graph, std::span<const int> arguments, std::span<const int> results,
                      Subgraph& callee, size_t result_count);

// Gives the callee's inputs the shapes of `arguments` and plans it.
Status ShapeCallee(Subgraph& graph, std::span<const int> arguments, Subgraph& callee);

// Gives them those shapes; states and random sequences begin anew, where LiteRT has them so.
Status BeginOn(Subgraph& graph, std::span<const int> arguments, Subgraph& callee);

bool SameShape(const tflite::TfLiteTensor& a, const tflite::TfLiteTensor& b);

// The outputs get the shapes of the callee's, or become dynamic where `fixed` is false.
Status ShapeOutputs(Subgraph& graph, std::span<const int> outputs, Subgraph& callee, bool fixed);

// What chooses a branch or ends a loop.
Result<bool> ReadCondition(const tflite::TfLiteTensor& tensor);

// Whether LiteRT prepares the callee before each call, whatever it keeps between others.
bool TakesHandles(const Subgraph& callee);

// Whether a call begins as BeginOn() does.
enum class Call { kBegins, kGoesOn };
Status RunOn(const std::vector<Value>& arguments, Subgraph& callee, Call call);

std::vector<Value> CopyAll(Subgraph& graph, std::span<const int> tensors);
std::vector<Value> Results(Subgraph& callee);
Status Store(Subgraph& graph, std::span<const int> outputs, const std::vector<Value>& values);

}  // namespace fuselite::interpreter
