#include "tools/generate/decoder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace fuselite::tools {
namespace {

using interpreter::Interpreter;
using interpreter::Signature;
using interpreter::SignatureTensor;
using interpreter::TensorView;

int PlaceOf(std::span<const int> ends, int tensor) {
  const auto found = std::ranges::find(ends, tensor);
  return found == ends.end() ? -1 : static_cast<int>(found - ends.begin());
}

bool Contains(const std::string& name, std::string_view part) {
  return name.find(part) != std::string::npos;
}

// Whether only one operator reads the input, one that updates a part of it, as its output `result`:
// that one may then do so in place.
bool IsUpdatedOnly(const interpreter::ModelSubgraph& graph, int input, int result) {
  int readers = 0;
  bool updated = false;
  for (const interpreter::ModelOperator& op : graph.operators) {
    readers += static_cast<int>(std::ranges::count(op.inputs, input));
    updated |= op.builtin_code == tflite::kTfLiteBuiltinDynamicUpdateSlice &&
               op.inputs[0] == input && op.outputs[0] == result;
  }
  return readers == 1 && updated;
}

// Whether runs may write the end, and rows of it can be told apart.
Status CheckMemory(const TensorView& view, const std::string& name) {
  if (view.constant) return Unsupported("has a constant for ", name);
  if (view.shape.rank() == 0 || view.shape.elements() == 0) {
    return Unsupported("has no elements in ", name, ", which is ", view.shape);
  }
  if (view.data == nullptr) return Unsupported("knows the shape of ", name, " in runs alone");
  return Status();
}

// splitmix64 (Steele et al. 2014): a number in [0, 1) for each state.
double Uniform(uint64_t state) {
  uint64_t z = state + 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
}

}  // namespace

Result<DecoderSignature> DecoderSignature::Open(std::shared_ptr<const interpreter::Model> model,
                                                const std::string& key, const HostOptions& host,
                                                const partitioner::Options* options) {
  DecoderSignature decoder;
  FUSELITE_ASSIGN_OR_RETURN(decoder.session_,
                            OpenSession(std::move(model), host, {.fuselite = options}, {}, key));
  const Signature* const signature = decoder.session_.interpreter->main_signature();
  if (signature == nullptr) return InvalidArgument("has no signatures");
  if (Status status = decoder.FindEnds(*signature); !status.ok()) {
    return status.In("signature " + key);
  }
  return decoder;
}

Status DecoderSignature::FindEnds(const Signature& signature) {
  for (const SignatureTensor& input : signature.inputs) {
    FUSELITE_RETURN_IF_ERROR(TakeInput(input, signature));
  }
  Interpreter& host = *session_.interpreter;
  if (tokens_ < 0 || input_positions_ < 0 || states_.empty()) {
    return Unsupported("has no tokens, no positions or no cache among its inputs");
  }
  length_ = host.input(tokens_).shape.elements();
  if (host.input(input_positions_).shape.elements() != length_) {
    return Unsupported("has positions for another number of tokens");
  }
  logits_ = PlaceOf(host.outputs(), Interpreter::FindOutput(signature, "logits"));
  if (logits_ >= 0) {
    FUSELITE_RETURN_IF_ERROR(CheckMemory(host.output(logits_), "logits"));
    if (host.output(logits_).type != DataType::kFloat32) {
      return Unsupported("has logits that are not float32");
    }
  }
  const Shape& cache = host.input(states_.front().input).shape;
  for (int d = 0; d + 1 < cache.rank(); ++d) {
    positions_ = std::max<int64_t>(positions_, cache[d]);
  }
  return Status();
}

Status DecoderSignature::TakeInput(const SignatureTensor& input, const Signature& signature) {
  Interpreter& host = *session_.interpreter;
  const int place = PlaceOf(host.inputs(), input.tensor);
  if (place < 0) return InvalidArgument("takes ", input.name, ", which its subgraph does not");
  const TensorView view = host.input(place);
  FUSELITE_RETURN_IF_ERROR(CheckMemory(view, input.name));
  const int result = Interpreter::FindOutput(signature, input.name);
  if (result >= 0) {
    return TakeState({input.name, place, PlaceOf(host.outputs(), result)}, input.tensor, signature);
  }
  if (Contains(input.name, "mask") && view.type == DataType::kFloat32) {
    masks_.push_back(place);
  } else if (Contains(input.name, "pos") && view.type == DataType::kInt32) {
    input_positions_ = place;
  } else if (Contains(input.name, "token") && view.type == DataType::kInt32) {
    tokens_ = place;
  } else {
    return Unsupported("takes ", input.name, ", of which is not known what it is");
  }
  return Status();
}

Status DecoderSignature::TakeState(State state, int tensor, const Signature& signature) {
  Interpreter& host = *session_.interpreter;
  if (state.output < 0) {
    return InvalidArgument("gives ", state.name, ", which its subgraph does not");
  }
  const TensorView to = host.output(state.output);
  FUSELITE_RETURN_IF_ERROR(CheckMemory(to, state.name));
  if (to.bytes != host.input(state.input).bytes) {
    return Unsupported("gives ", state.name, " another size");
  }
  const interpreter::ModelSubgraph& graph = host.model().subgraphs[signature.subgraph];
  state.in_place = IsUpdatedOnly(graph, tensor, host.outputs()[state.output]) &&
                   host.ShareMemory(state.input, state.output).ok();
  // The cache begins empty, wherever the next run takes it from.
  std::memset(host.output(state.output).data, 0, to.bytes);
  states_.push_back(std::move(state));
  return Status();
}

void DecoderSignature::FillMask(const TensorView& mask, int64_t first) const {
  const int64_t columns = mask.shape.dim(-1), rows = mask.shape.elements() / columns;
  auto* values = static_cast<float*>(mask.data);
  for (int64_t i = 0; i < rows * columns; ++i) {
    const bool seen = i % columns <= first + i / columns % length_;
    values[i] = seen ? 0.0f : -std::numeric_limits<float>::infinity();
  }
}

Status DecoderSignature::Run(std::span<const int32_t> tokens, int64_t first) {
  Interpreter& host = *session_.interpreter;
  auto* const ids = static_cast<int32_t*>(host.input(tokens_).data);
  auto* const positions = static_cast<int32_t*>(host.input(input_positions_).data);
  for (int64_t i = 0; i < length_; ++i) {
    ids[i] = i < static_cast<int64_t>(tokens.size()) ? tokens[i] : 0;
    positions[i] = static_cast<int32_t>(first + i);
  }
  for (int mask : masks_) FillMask(host.input(mask), first);
  for (const State& state : states_) {
    // What the last run gave is what this one takes.
    const TensorView to = host.input(state.input);
    if (!state.in_place) std::memcpy(to.data, host.output(state.output).data, to.bytes);
  }
  return host.Invoke();
}

std::span<const float> DecoderSignature::logits() const {
  const TensorView view = session_.interpreter->output(logits_);
  const int64_t width = view.shape.dim(-1), rows = view.shape.elements() / width;
  return {static_cast<const float*>(view.data) + (rows - 1) * width, static_cast<size_t>(width)};
}

const void* DecoderSignature::CacheOf(const State& state) const {
  return session_.interpreter->output(state.output).data;
}

Status DecoderSignature::TakeCache(const DecoderSignature& from) {
  for (const State& state : states_) {
    const auto other = std::ranges::find(from.states_, state.name, &State::name);
    const TensorView to = session_.interpreter->output(state.output);
    if (other == from.states_.end() ||
        from.session_.interpreter->output(other->output).bytes != to.bytes) {
      return Unsupported("the signatures' caches differ in ", state.name);
    }
    std::memcpy(to.data, from.CacheOf(*other), to.bytes);
  }
  return Status();
}

int32_t Choose(std::span<const float> logits, const Sampling& sampling, uint64_t step) {
  const auto largest = std::ranges::max_element(logits);
  const auto best = static_cast<int32_t>(largest - logits.begin());
  if (sampling.temperature <= 0) return best;
  const auto weight = [&](float logit) {
    return std::exp(double{logit - *largest} / sampling.temperature);
  };
  double total = 0;
  for (float logit : logits) total += weight(logit);
  double left = total * Uniform(sampling.seed * 0x9E3779B97F4A7C15 + step);
  for (size_t i = 0; i < logits.size(); ++i) {
    left -= weight(logits[i]);
    if (left < 0) return static_cast<int32_t>(i);
  }
  return best;
}

}  // namespace fuselite::tools
