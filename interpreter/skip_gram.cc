#include "interpreter/skip_gram.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
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

// All choices of words that begin with `chosen`, longer ones first.
void Choose(const std::vector<std::string_view>& words, const SkipGramParams& params,
            std::vector<size_t>& chosen, std::vector<std::string>& grams) {
  const auto size = static_cast<size_t>(params.ngram_size);
  if (chosen.size() < size) {
    const size_t next = chosen.back() + 1;
    const auto reach = static_cast<size_t>(std::max<int64_t>(int64_t{params.max_skip_size} + 1, 0));
    for (size_t i = next; i < std::min(words.size(), next + reach); ++i) {
      chosen.push_back(i);
      Choose(words, params, chosen, grams);
      chosen.pop_back();
    }
  }
  if (chosen.size() != size && !params.include_all_ngrams) return;
  std::string gram;
  for (const size_t i : chosen) gram.append(gram.empty() ? "" : " ").append(words[i]);
  grams.push_back(std::move(gram));
}

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
  std::vector<std::string> grams;
  if (words.size() >= static_cast<size_t>(params.ngram_size)) {
    for (size_t first = 0; first < words.size(); ++first) {
      std::vector<size_t> chosen{first};
      Choose(words, params, chosen, grams);
    }
  }
  const std::array dims = {static_cast<int>(grams.size())};
  return WriteStrings(graph, Output(graph, node), grams, dims);
}

}  // namespace

void AddSkipGram(OpResolver& resolver) {
  resolver.AddBuiltin(tflite::kTfLiteBuiltinSkipGram, Registration<Prepare, Invoke>());
}

}  // namespace fuselite::interpreter
