#include "interpreter/operators/skip_gram.h"

#include <algorithm>
#include <array>
#include <climits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "interpreter/node_tensors.h"
#include "interpreter/op_resolver.h"
#include "interpreter/registration.h"
#include "interpreter/strings.h"
#include "interpreter/subgraph.h"
#include "kernels/hashtable/hashtable.h"

namespace fuselite::interpreter {
namespace {

using kernels::SkipGramParams;
using tflite::TfLiteNode;
using tflite::TfLiteTensor;

bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// As LiteRT cuts: the first character is part of a word whatever it is, and so is a space behind
// which nothing comes.
std::vector<std::string_view> Words(std::string_view sentence) {
  std::vector<std::string_view> words;
  size_t begin = 0;
  for (size_t i = 1; i < sentence.size(); ++i) {
    if (!IsSpace(sentence[i])) continue;
    if (i > begin && !IsSpace(sentence[begin])) words.push_back(sentence.substr(begin, i - begin));
    begin = i + 1;
  }
  if (begin < sentence.size()) words.push_back(sentence.substr(begin));
  return words;
}

// The n-grams of a sentence. There may be as many as memory holds, and more.
class Grams {
 public:
  Grams(Subgraph& graph, std::vector<std::string_view> words, const SkipGramParams& params)
      : graph_(graph),
        words_(std::move(words)),
        size_(static_cast<size_t>(params.ngram_size)),
        reach_(static_cast<size_t>(std::max<int64_t>(int64_t{params.max_skip_size} + 1, 0))),
        all_(params.include_all_ngrams) {}

  // Adds all choices of words that begin with this one, longer ones first.
  Status AddFrom(size_t first) {
    std::vector<size_t> chosen{first}, next{first + 1};  // the words to be tried behind each
    while (!chosen.empty()) {
      if (next.back() < EndBehind(chosen)) {
        const size_t word = next.back()++;
        chosen.push_back(word);
        next.push_back(word + 1);
        continue;
      }
      if (chosen.size() == size_ || all_) FUSELITE_RETURN_IF_ERROR(Add(chosen));
      chosen.pop_back();
      next.pop_back();
    }
    return Status();
  }

  std::span<const std::string> all() const { return grams_; }

 private:
  // Before which the next word must lie: near enough, and with as many behind it as are missing.
  size_t EndBehind(std::span<const size_t> chosen) const {
    if (chosen.size() == size_) return 0;
    const size_t missing = all_ ? 0 : size_ - chosen.size() - 1;
    const size_t last = words_.size() - std::min(missing, words_.size());
    return std::min(last, chosen.back() + 1 + reach_);
  }

  Status Add(std::span<const size_t> chosen) {
    FUSELITE_RETURN_IF_ERROR(graph_.CheckCancelled());
    std::string gram;
    for (const size_t i : chosen) gram.append(gram.empty() ? "" : " ").append(words_[i]);
    bytes_ += sizeof(std::string) + gram.size();
    if (bytes_ > INT_MAX) return OutOfMemory("n-grams of more than 2 GiB");
    if (bytes_ >= checked_ + kCounted) {
      FUSELITE_RETURN_IF_ERROR(graph_.CheckMemory(static_cast<double>(bytes_)));
      checked_ = bytes_;
    }
    grams_.push_back(std::move(gram));
    return graph_.host().budget.CheckMultiplyAdds(static_cast<double>(grams_.size()));
  }

  // Of how many bytes more the budget is asked.
  static constexpr size_t kCounted = size_t{64} << 10;

  Subgraph& graph_;
  const std::vector<std::string_view> words_;
  const size_t size_, reach_;
  const bool all_;
  std::vector<std::string> grams_;
  size_t bytes_ = 0, checked_ = 0;
};

Status Prepare(Subgraph& graph, const TfLiteNode& node) {
  FUSELITE_RETURN_IF_ERROR(CheckCounts(node, 1, 1));
  TfLiteTensor& output = Output(graph, node);
  if (Input(graph, node, 0).type != tflite::kTfLiteString || output.type != tflite::kTfLiteString) {
    return InvalidArgument("takes and gives strings alone");
  }
  graph.SetDynamic(output);
  return Status();
}

Status Invoke(Subgraph& graph, const TfLiteNode& node) {
  const auto& params = *static_cast<const SkipGramParams*>(node.builtin_data);
  FUSELITE_ASSIGN_OR_RETURN(const auto sentences, ReadStrings(Input(graph, node, 0)));
  if (sentences.empty()) return InvalidArgument("its input has no sentence");
  if (params.ngram_size < 1) return InvalidArgument("n-grams of ", params.ngram_size, " words");
  const std::vector<std::string_view> words = Words(sentences[0]);
  Grams grams(graph, words, params);
  if (words.size() >= static_cast<size_t>(params.ngram_size)) {
    for (size_t i = 0; i < words.size(); ++i) FUSELITE_RETURN_IF_ERROR(grams.AddFrom(i));
  }
  const std::array dims = {static_cast<int>(grams.all().size())};
  return WriteStrings(graph, Output(graph, node), grams.all(), dims);
}

}  // namespace

void AddSkipGram(OpResolver& resolver) {
  resolver.AddBuiltin(tflite::kTfLiteBuiltinSkipGram, Registration<Prepare, Invoke>());
}

}  // namespace fuselite::interpreter
