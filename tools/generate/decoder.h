// A model that generates text: one signature that takes a prompt's tokens, one that takes the next
// token, and a cache that goes from each run to the next.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "tools/common/session.h"

namespace fuselite::tools {

// One signature of such a model. Its inputs are the tokens [1, L] ("tokens", or the only int32 of
// that shape), their positions [L] ("input_pos"), masks [.., L, S] ("mask"), and the cache: inputs
// that outputs of the same name replace.
class DecoderSignature {
 public:
  // Refuses inputs that are none of these.
  static Result<DecoderSignature> Open(std::shared_ptr<const interpreter::Model> model,
                                       const std::string& key, const HostOptions& host,
                                       const partitioner::Options* options);

  int64_t length() const { return length_; }        // L
  int64_t positions() const { return positions_; }  // of the cache
  bool gives_logits() const { return logits_ >= 0; }

  // Runs `tokens`, at most length(), at positions from `first` on. What is left of the length is
  // filled with token 0; its places in the cache are to be overwritten.
  Status Run(std::span<const int32_t> tokens, int64_t first);
  // The logits of the last row. Precondition: gives_logits().
  std::span<const float> logits() const;
  // Takes over the cache of another signature.
  Status TakeCache(const DecoderSignature& from);

  const Session& session() const { return session_; }

 private:
  struct State {
    std::string name;
    int input = -1, output = -1;  // places
    bool in_place = false;
  };
  Status FindEnds(const interpreter::Signature& signature);
  Status TakeInput(const interpreter::SignatureTensor& input,
                   const interpreter::Signature& signature);
  // Takes what outputs replace: a part of the cache, and tensor `tensor` of the subgraph.
  Status TakeState(State state, int tensor, const interpreter::Signature& signature);
  void FillMask(const interpreter::TensorView& mask, int64_t first) const;
  // Where the cache is after a run.
  const void* CacheOf(const State& state) const;

  Session session_;
  int tokens_ = -1, input_positions_ = -1, logits_ = -1;  // places
  std::vector<int> masks_;
  std::vector<State> states_;
  int64_t length_ = 0, positions_ = 0;
};

// How a token is chosen from logits.
struct Sampling {
  float temperature = 0;  // 0: the largest
  uint64_t seed = 0;
};
int32_t Choose(std::span<const float> logits, const Sampling& sampling, uint64_t step);

}  // namespace fuselite::tools
