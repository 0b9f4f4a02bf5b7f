// fuselite generate: tokens from a decoder with a cache, and how fast they come.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <iostream>
#include <numeric>
#include <optional>

#include "runtime/cpu/cpu.h"
#include "runtime/support/text_table.h"
#include "tools/commands/commands.h"
#include "tools/common/validators.h"
#include "tools/generate/bandwidth.h"
#include "tools/generate/decoder.h"
#include "tools/zoo/zoo.h"

namespace fuselite::tools {
namespace {

using Clock = std::chrono::steady_clock;

struct Arguments {
  std::string model;
  std::vector<std::string> prompt;
  std::vector<int32_t> tokens;  // of the prompt
  int steps = 32;
  Sampling sampling;
  bool use_delegate = true, limit = true;
  DelegateFlags delegate;
};

int32_t ParseToken(std::string_view text) {
  int32_t token;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), token);
  if (error == std::errc() && stop == text.data() + text.size() && token >= 0) return token;
  throw CommandError("--tokens: '" + std::string(text) +
                         "' is no token id, a whole number from 0 to 2147483647; write the "
                         "prompt's ids with commas between them, as in --tokens 1,2,3",
                     2);
}

// "1,2,3", as often as it is given; at least one.
std::vector<int32_t> ParseTokens(const std::vector<std::string>& prompt) {
  std::vector<int32_t> tokens;
  for (const std::string& ids : prompt) {
    std::string_view rest = ids;
    for (size_t comma; (comma = rest.find(',')) != std::string_view::npos;) {
      tokens.push_back(ParseToken(rest.substr(0, comma)));
      rest.remove_prefix(comma + 1);
    }
    tokens.push_back(ParseToken(rest));
  }
  return tokens;
}

// The signatures of a model that generates.
struct Keys {
  std::vector<std::string> prefill;  // none: the prompt goes through `decode`
  std::string decode;
};

Keys FindKeys(const interpreter::Model& model, const std::string& path) {
  Keys keys;
  std::string all;
  for (const interpreter::Signature& signature : model.signatures) {
    all += (all.empty() ? "" : ", ") + signature.key;
    if (signature.key.starts_with("prefill")) keys.prefill.push_back(signature.key);
    if (signature.key == "decode") keys.decode = signature.key;
  }
  if (keys.decode.empty()) {
    throw CommandError(path + ": has no signature \"decode\"; it has " +
                       (all.empty() ? "none" : all));
  }
  return keys;
}

class Timing {
 public:
  template <class Body>
  void Add(int64_t count, Body body) {
    const Clock::time_point start = Clock::now();
    body();
    AddSeconds(count, std::chrono::duration<double>(Clock::now() - start).count());
  }
  void AddSeconds(int64_t count, double seconds) {
    tokens_ += count;
    runs_.push_back(seconds);
  }
  int64_t tokens() const { return tokens_; }
  double seconds() const { return std::accumulate(runs_.begin(), runs_.end(), 0.0); }
  // The seconds of a run. Precondition: there was one.
  double median() const {
    std::vector<double> sorted = runs_;
    const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
    std::ranges::nth_element(sorted, middle);
    return *middle;
  }

 private:
  int64_t tokens_ = 0;
  std::vector<double> runs_;
};

class Generator {
 public:
  Generator(const Arguments& arguments, const partitioner::Options& options)
      : arguments_(arguments), model_(Check(OpenModel(arguments.model))) {
    const partitioner::Options* const with =
        arguments.use_delegate && arguments.delegate.use_fuselite ? &options : nullptr;
    const Keys keys = FindKeys(*model_, arguments.model);
    const auto open = [&](const std::string& key) {
      return Check(DecoderSignature::Open(model_, key, HostOf(options), with), arguments.model);
    };
    decode_.emplace(open(keys.decode));
    if (decode_->length() != 1 || !decode_->gives_logits()) {
      throw CommandError(arguments.model +
                         ": signature decode does not take one token and give logits");
    }
    if (static_cast<int64_t>(arguments.tokens.size()) > decode_->positions()) {
      throw CommandError(internal::Join(arguments.model, ": the prompt has ",
                                        arguments.tokens.size(), " tokens, the cache ",
                                        decode_->positions(), " positions"));
    }
    for (const std::string& key : keys.prefill) prefill_.push_back(open(key));
    std::ranges::sort(prefill_, {}, &DecoderSignature::length);
  }

  // The last token of the prompt is the first that is decoded.
  void Prefill() {
    const std::span<const int32_t> prompt(arguments_.tokens);
    const auto count = static_cast<int64_t>(prompt.size()) - 1;
    DecoderSignature* last = nullptr;
    while (position_ < count) {
      DecoderSignature* const next = NextPrefill(count - position_);
      if (next == nullptr) break;
      if (last != nullptr && last != next) CheckRun(next->TakeCache(*last));
      const int64_t taken = std::min(next->length(), count - position_);
      prefilled_.Add(taken,
                     [&] { CheckRun(next->Run(prompt.subspan(position_, taken), position_)); });
      position_ += taken;
      last = next;
    }
    if (last != nullptr) CheckRun(decode_->TakeCache(*last));
    for (; position_ < count; ++position_) {
      prefilled_.Add(1, [&] { CheckRun(decode_->Run(prompt.subspan(position_, 1), position_)); });
    }
  }

  // Reads the weights' bytes beside each token, where there is a reader.
  std::vector<int32_t> Decode(const WeightReader* reader) {
    std::vector<int32_t> made;
    int32_t token = arguments_.tokens.back();
    for (int step = 0; step < arguments_.steps; ++step, ++position_) {
      if (position_ >= decode_->positions()) {
        std::cerr << "fuselite: the cache ends after " << decode_->positions() << " positions\n";
        break;
      }
      if (reader != nullptr) read_.AddSeconds(1, reader->Pass());
      decoded_.Add(1, [&] { CheckRun(decode_->Run(std::span(&token, 1), position_)); });
      token = Choose(decode_->logits(), arguments_.sampling, step);
      made.push_back(token);
    }
    return made;
  }

  const Timing& prefilled() const { return prefilled_; }
  const Timing& decoded() const { return decoded_; }
  const Timing& read() const { return read_; }
  int64_t weight_bytes() const {
    return ProductWeightBytes(*model_, decode_->session().interpreter->main_subgraph());
  }

 private:
  void CheckRun(const Status& status) const {
    if (!status.ok()) Check(status.In(arguments_.model));
  }

  // The shortest that takes all that is left, else the longest; nullptr where none stays inside of
  // the cache.
  DecoderSignature* NextPrefill(int64_t left) {
    DecoderSignature* found = nullptr;
    for (DecoderSignature& signature : prefill_) {
      if (position_ + signature.length() > signature.positions()) break;
      found = &signature;
      if (signature.length() >= left) break;
    }
    return found;
  }

  const Arguments& arguments_;
  std::shared_ptr<const interpreter::Model> model_;
  std::optional<DecoderSignature> decode_;
  std::vector<DecoderSignature> prefill_;  // shortest first
  int64_t position_ = 0;
  Timing prefilled_, decoded_, read_;
};

std::string Rate(const Timing& timing) {
  char text[96];
  std::snprintf(text, sizeof text, "%lld %s in %.2f ms, %.1f tokens/s",
                static_cast<long long>(timing.tokens()), timing.tokens() == 1 ? "token" : "tokens",
                timing.seconds() * 1e3, static_cast<double>(timing.tokens()) / timing.seconds());
  return text;
}

void PrintLimit(const Generator& generator) {
  const auto bytes = static_cast<double>(generator.weight_bytes());
  const double read = generator.read().median(), decoded = generator.decoded().median();
  char text[200];
  std::snprintf(text, sizeof text,
                "%.2f ms: %s of weights for each token, read at %.1f GB/s; decode takes %.2f ms, "
                "%.2f times that (medians)",
                read * 1e3, Bytes(bytes).c_str(), bytes / read / 1e9, decoded * 1e3,
                decoded / read);
  std::cout << "limit   " << text << '\n';
}

void Generate(const Arguments& arguments) {
  const partitioner::Options options = CheckUsage(arguments.delegate.Parse());
  Generator generator(arguments, options);
  generator.Prefill();
  const int threads = options.num_threads > 0 ? options.num_threads : ReadCpuInfo().physical_cores;
  const WeightReader reader(arguments.limit ? generator.weight_bytes() : 0, threads);
  const std::vector<int32_t> made = generator.Decode(reader.ready() ? &reader : nullptr);
  std::cout << "tokens  ";
  for (size_t i = 0; i < made.size(); ++i) std::cout << (i > 0 ? "," : "") << made[i];
  std::cout << '\n';
  if (generator.prefilled().tokens() > 0) {
    std::cout << "prefill " << Rate(generator.prefilled()) << '\n';
  }
  if (made.empty()) return;
  std::cout << "decode  " << Rate(generator.decoded()) << '\n';
  if (reader.ready()) PrintLimit(generator);
}

}  // namespace

void AddGenerateCommand(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("generate", "Generate tokens with a decoder, and say how fast they come");
  auto arguments = std::make_shared<Arguments>();
  command->add_option("model", arguments->model, "A .tflite file with a signature \"decode\"")
      ->required();
  command->add_option("--tokens", arguments->prompt, "The prompt's token ids: 1,2,3")
      ->required()
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  command->add_option("--steps", arguments->steps, "How many tokens to generate")
      ->check(AtLeast(0))
      ->capture_default_str();
  command
      ->add_option("--temperature", arguments->sampling.temperature,
                   "Of the choice among tokens; 0: the likeliest one")
      ->check(AtLeast(0))
      ->capture_default_str();
  command->add_option("--seed", arguments->sampling.seed, "Of the choice")
      ->check(WholeNumber())
      ->capture_default_str();
  command->add_flag("--delegate,!--no-delegate", arguments->use_delegate,
                    "With fuselite, or with the reference kernels alone");
  command->add_flag(
      "--limit,!--no-limit", arguments->limit,
      "Read as many bytes as the weights have beside each token, and say how long that takes");
  arguments->delegate.AddFuseliteTo(*command);
  command->callback([arguments] {
    arguments->tokens = ParseTokens(arguments->prompt);
    Generate(*arguments);
  });
}

}  // namespace fuselite::tools
