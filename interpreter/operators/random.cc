#include "interpreter/operators/random.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <vector>

#include "interpreter/node_tensors.h"
#include "interpreter/op_resolver.h"
#include "interpreter/registration.h"
#include "interpreter/subgraph.h"
#include "kernels/import.h"
#include "kernels/operator.h"
#include "kernels/random/random.h"

namespace fuselite::interpreter {
namespace {

using kernels::RandomSequence;
using tflite::Elements;
using tflite::TfLiteContext;
using tflite::TfLiteNode;
using tflite::TfLiteTensor;

// What one node has drawn so far. It begins anew whenever the node is prepared.
struct Sequence {
  RandomSequence next;
  bool dynamic = false;  // the output's shape is a value of the run
};

Sequence& Of(const TfLiteNode& node) { return *static_cast<Sequence*>(node.user_data); }

RandomSequence Begin(const kernels::RandomParams& params) {
  // LiteRT keeps seeds in 32 bits, with their sign.
  const auto seed1 = static_cast<int32_t>(params.seed), seed2 = static_cast<int32_t>(params.seed2);
  if (seed1 != 0 || seed2 != 0) {
    return {static_cast<uint64_t>(int64_t{seed1}), static_cast<uint64_t>(int64_t{seed2})};
  }
  std::random_device device;
  std::mt19937_64 seeds(device());
  const uint64_t seed = seeds();
  return {seed, seeds()};
}

// What the node's operands give; with their values where `running`.
Result<Shape> OutputShape(Subgraph& graph, const TfLiteNode& node, int code, bool running) {
  kernels::OpDescription op;
  op.op = kernels::FindOperator(code);
  op.version = op.op->max_version;
  const auto describe = [&](std::span<const int> tensors, std::vector<TensorInfo>& to) -> Status {
    for (int tensor : tensors) {
      if (tensor < 0) return InvalidArgument("has an operand left out");
      FUSELITE_ASSIGN_OR_RETURN(to.emplace_back(),
                                kernels::ImportTensor(graph.context(), graph.tensor(tensor),
                                                      kernels::Constants::kPrepared));
    }
    return Status();
  };
  FUSELITE_RETURN_IF_ERROR(describe(Elements(node.inputs), op.inputs));
  FUSELITE_RETURN_IF_ERROR(describe(Elements(node.outputs), op.outputs));
  for (size_t i = 0; running && i < op.inputs.size(); ++i) {
    op.inputs[i].data = Input(graph, node, static_cast<int>(i)).data.raw;
  }
  FUSELITE_RETURN_IF_ERROR(kernels::Infer(op));
  return op.outputs[0].shape;
}

template <int kCode>
Status Prepare(Subgraph& graph, const TfLiteNode& node) {
  Sequence& sequence = Of(node);
  sequence.next = Begin(*static_cast<const kernels::RandomParams*>(node.builtin_data));
  const Result<Shape> shape = OutputShape(graph, node, kCode, false);
  sequence.dynamic = shape.status().code() == StatusCode::kDynamicShape;
  if (!sequence.dynamic && !shape.ok()) return shape.status();
  TfLiteTensor& output = Output(graph, node);
  if (!sequence.dynamic) return graph.ResizeTensor(output, shape->dims());
  graph.SetDynamic(output);
  return Status();
}

void DrawUniform(RandomSequence& sequence, std::span<float> to) {
  for (size_t i = 0; i < to.size(); i += 4) {
    const RandomSequence::Words words = sequence.Next();
    for (size_t k = 0; k < std::min<size_t>(4, to.size() - i); ++k) {
      to[i + k] = kernels::UniformFloat(words[k]);
    }
  }
}

void DrawNormal(RandomSequence& sequence, std::span<float> to) {
  for (size_t i = 0; i < to.size(); i += 4) {
    const RandomSequence::Words words = sequence.Next();
    const std::array pairs = {kernels::NormalFloats(words[0], words[1]),
                              kernels::NormalFloats(words[2], words[3])};
    for (size_t k = 0; k < std::min<size_t>(4, to.size() - i); ++k) to[i + k] = pairs[k / 2][k % 2];
  }
}

// The sums of the row's exponentials up to each class; infinite and undefined logits count nothing.
std::vector<double> Cumulate(std::span<const float> logits) {
  float largest = std::numeric_limits<float>::lowest();
  for (const float x : logits) {
    if (std::isfinite(x)) largest = std::max(largest, x);
  }
  std::vector<double> sums;
  double total = 0;
  for (const float x : logits) {
    if (std::isfinite(x)) total += std::exp(x - static_cast<double>(largest));
    sums.push_back(total);
  }
  return sums;
}

template <class Index>
void DrawClasses(RandomSequence& sequence, std::span<const float> logits, const Shape& shape,
                 int64_t classes, Index* to) {
  RandomSequence drawn = sequence;
  // TensorFlow's kernel leaves out so many, whatever it draws.
  const auto rounded = static_cast<uint64_t>(shape[1] + 3) / 4 * 4;
  sequence.Skip(static_cast<uint64_t>(shape[0]) * rounded * 2 * 256);
  RandomSequence::Words words{};
  size_t used = words.size();
  for (int64_t row = 0; row < shape[0]; ++row) {
    const std::vector<double> sums =
        Cumulate(logits.subspan(static_cast<size_t>(row * classes), static_cast<size_t>(classes)));
    for (int64_t i = 0; i < shape[1]; ++i) {
      if (used == words.size()) {
        words = drawn.Next();
        used = 0;
      }
      const double wanted = kernels::UniformDouble(words[used], words[used + 1]) * sums.back();
      used += 2;
      to[row * shape[1] + i] =
          static_cast<Index>(std::ranges::upper_bound(sums, wanted) - sums.begin());
    }
  }
}

template <int kCode>
Status Invoke(Subgraph& graph, const TfLiteNode& node) {
  Sequence& sequence = Of(node);
  FUSELITE_ASSIGN_OR_RETURN(const Shape shape, OutputShape(graph, node, kCode, true));
  TfLiteTensor& output = Output(graph, node);
  if (sequence.dynamic) FUSELITE_RETURN_IF_ERROR(graph.ResizeTensor(output, shape.dims()));
  const auto count = static_cast<size_t>(shape.elements());
  if constexpr (kCode == tflite::kTfLiteBuiltinMultinomial) {
    const TfLiteTensor& logits = Input(graph, node, 0);
    const int64_t classes = logits.dims->data[1];
    const std::span values(logits.data.f, logits.bytes / sizeof(float));
    if (output.type == tflite::kTfLiteInt64) {
      DrawClasses(sequence.next, values, shape, classes, output.data.i64);
    } else {
      DrawClasses(sequence.next, values, shape, classes, output.data.i32);
    }
  } else if constexpr (kCode == tflite::kTfLiteBuiltinRandomUniform) {
    DrawUniform(sequence.next, {output.data.f, count});
  } else {
    DrawNormal(sequence.next, {output.data.f, count});
  }
  return Status();
}

template <int kCode>
void Add(OpResolver& resolver) {
  tflite::TfLiteRegistration registration = Registration<Prepare<kCode>, Invoke<kCode>>();
  registration.init = [](TfLiteContext*, const char*, size_t) -> void* { return new Sequence(); };
  registration.free = [](TfLiteContext*, void* data) { delete static_cast<Sequence*>(data); };
  resolver.AddBuiltin(kCode, registration);
}

}  // namespace

void AddRandom(OpResolver& resolver) {
  Add<tflite::kTfLiteBuiltinRandomUniform>(resolver);
  Add<tflite::kTfLiteBuiltinRandomStandardNormal>(resolver);
  Add<tflite::kTfLiteBuiltinMultinomial>(resolver);
}

}  // namespace fuselite::interpreter
