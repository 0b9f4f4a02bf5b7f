#include "partitioner/options.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "runtime/support/environment.h"
#include "runtime/support/status_join.h"

namespace fuselite::partitioner {
namespace {

constexpr int kMaxCount = 1'000'000;

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

// "a, b, c".
std::string List(std::span<const std::string_view> words) {
  std::string text;
  for (std::string_view word : words) {
    if (!text.empty()) text += ", ";
    text += word;
  }
  return text;
}

// "a, b or c".
std::string OneOf(std::span<const std::string_view> words) {
  if (words.size() < 2) return List(words);
  return List(words.first(words.size() - 1)) + " or " + std::string(words.back());
}

// "; the nearest valid value is 3" for "2.5", as "1e9", " 2" and "+2" give what they are near; what
// is no number at all is told one.
std::string ValidNumber(std::string_view value, int min, int max) {
  value.remove_prefix(std::min(value.find_first_not_of(" \t+"), value.size()));
  double number = 0;
  const auto [stop, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error == std::errc::result_out_of_range) {
    number = value.starts_with('-') ? min : max;
  } else if (error != std::errc() || std::isnan(number)) {
    return internal::Join("; write a number, ", std::clamp(2, min, max), " for example");
  }
  const double nearest = std::clamp(std::round(number), double(min), double(max));
  return internal::Join("; the nearest valid value is ", static_cast<int>(nearest));
}

Status ParseInt(std::string_view value, int min, int max, int& result) {
  int number = 0;
  const char* end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, number);
  if (error != std::errc() || stop != end) {
    return InvalidArgument("'", value, "' is not a whole number from ", min, " to ", max,
                           ValidNumber(value, min, max));
  }
  if (number < min || number > max) {
    return InvalidArgument("'", value, "' is not from ", min, " to ", max,
                           "; the nearest valid value is ", std::clamp(number, min, max));
  }
  result = number;
  return Status();
}

// A number that is not negative, with one of `suffixes` (factors of `step`, `step`^2, ...) behind
// it.
Status ParseAmount(std::string_view value, std::string_view suffixes, double step, double& result) {
  double number = 0;
  const char* const end = value.data() + value.size();
  const auto [stop, error] = std::from_chars(value.data(), end, number);
  std::string_view rest(stop, end);
  if (rest.size() == 1) {
    const size_t power =
        suffixes.find(static_cast<char>(std::toupper(static_cast<unsigned char>(rest.front()))));
    if (power != std::string_view::npos) {
      number *= std::pow(step, static_cast<double>(power) + 1);
      rest = {};
    }
  }
  if (error != std::errc() || !rest.empty() || !std::isfinite(number) || number < 0) {
    return InvalidArgument("'", value, "' is not a number from 0 up, with one of ", suffixes,
                           " behind it or none; write 0 (no limit), 500M or 2G");
  }
  result = number;
  return Status();
}

Status ParseBool(std::string_view value, bool& result) {
  constexpr std::string_view kTrue[] = {"on", "true", "yes", "1"};
  constexpr std::string_view kFalse[] = {"off", "false", "no", "0"};
  const std::string word = Lower(value);
  if (std::ranges::count(kTrue, word) > 0) {
    result = true;
  } else if (std::ranges::count(kFalse, word) > 0) {
    result = false;
  } else {
    return InvalidArgument("'", value, "' is neither on nor off; write on or off");
  }
  return Status();
}

Status UnknownWord(std::string_view value, std::span<const std::string_view> valid) {
  const std::string_view nearest = Nearest(value, valid);
  if (nearest.empty()) return InvalidArgument("'", value, "' is unknown; write ", OneOf(valid));
  return InvalidArgument("'", value, "' is unknown; the nearest valid value is ", nearest, " (of ",
                         List(valid), ")");
}

Status ParseIsa(std::string_view value, Isa& result) {
  const std::optional<Isa> isa = IsaFromName(Lower(value));
  if (!isa) {
    std::vector<std::string_view> names;
    for (const IsaPreset& preset : IsaPresets()) {
      if (OfThisArchitecture(preset.isa)) names.push_back(preset.name);
    }
    return UnknownWord(value, names);
  }
  FUSELITE_ASSIGN_OR_RETURN(result, CapIsa(*isa));
  return Status();
}

// The words that an option takes, in the order of its values.
template <class T>
Status ParseWord(std::string_view value, std::span<const std::string_view> words, T& result) {
  const auto word = std::ranges::find(words, Lower(value));
  if (word == words.end()) return UnknownWord(value, words);
  result = static_cast<T>(word - words.begin());
  return Status();
}

constexpr std::string_view kPrecisions[] = {"strict", "default", "fast"};
static_assert(static_cast<int>(kernels::Precision::kFast) == 2);
constexpr std::string_view kCacheModes[] = {"off", "read", "readwrite"};
static_assert(static_cast<int>(CacheMode::kReadWrite) == 2);

std::string Upper(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return upper;
}

Status ParseOperators(std::string_view value, std::vector<std::string>& result) {
  std::vector<std::string_view> names = {"VAR_HANDLE", "READ_VARIABLE",       "ASSIGN_VARIABLE",
                                         "CALL_ONCE",  "STABLEHLO_COMPOSITE", "IF",
                                         "WHILE",      "STABLEHLO_CASE"};
  for (const kernels::OperatorDef* op : kernels::AllOperators()) {
    if (op->builtin_code >= 0 || op->custom()) names.push_back(op->name);
  }
  result.clear();
  while (!value.empty()) {
    const size_t length = std::min(value.find_first_of(",; "), value.size());
    const std::string name = Upper(value.substr(0, length));
    value.remove_prefix(std::min(length + 1, value.size()));
    if (name.empty()) continue;
    const auto known = std::ranges::find(names, name, Upper);
    if (known == names.end()) {
      const std::string_view nearest = Nearest(name, names);
      return InvalidArgument(
          "'", name, "' is no operator known here; ",
          nearest.empty() ? "fuselite explain lists those of a model" : "the nearest one is ",
          nearest);
    }
    result.emplace_back(*known);
  }
  return Status();
}

constexpr std::string_view kSwitch = "on, off (also true, false, yes, no, 1, 0)";

constexpr OptionRow kTable[] = {
    {"num_threads", "a whole number from 0 to 1024", "0",
     "threads of one run, at most: short runs take fewer where these turn out to be faster; 0: "
     "what the host recommends, else the physical cores allowed",
     [](std::string_view v, Options& o) {
       // TensorFlow Lite's own way to say "no wish".
       if (v == "-1") v = "0";
       return ParseInt(v, 0, kMaxThreads, o.num_threads);
     }},
    {"isa", "scalar, ssse3, sse4, avx2, avxvnni, avx512, avx512vnni, avx512bf16, amx, neon",
     "the machine's best", "the highest instruction set to use",
     [](std::string_view v, Options& o) { return ParseIsa(v, o.isa); }},
    {"jit", kSwitch, "on", "emit code for the model's own shapes",
     [](std::string_view v, Options& o) { return ParseBool(v, o.jit); }},
    {"fusion", kSwitch, "on", "fuse operators into one step",
     [](std::string_view v, Options& o) { return ParseBool(v, o.fusion); }},
    {"precision", "strict, default, fast", "default",
     "strict: only plain sums of products, no Winograd; fast: bfloat16 arithmetic too",
     [](std::string_view v, Options& o) { return ParseWord(v, kPrecisions, o.precision); }},
    {"max_partitions", "a whole number from 0 to 1000000", "0",
     "take at most so many partitions, the largest first, and those with custom operators that the "
     "host lacks; 0: no limit",
     [](std::string_view v, Options& o) { return ParseInt(v, 0, kMaxCount, o.max_partitions); }},
    {"min_nodes_per_partition", "a whole number from 0 to 1000000", "1",
     "leave smaller partitions to the host, unless one is the whole graph or has a custom operator "
     "that the host lacks",
     [](std::string_view v, Options& o) {
       return ParseInt(v, 0, kMaxCount, o.min_nodes_per_partition);
     }},
    {"ops_deny", "operator names, separated by commas", "none",
     "leave these operators to the host: CONV_2D,SOFTMAX",
     [](std::string_view v, Options& o) { return ParseOperators(v, o.ops_deny); }},
    {"max_memory", "a number of bytes, also as 512M or 2G", "0",
     "refuse a model whose values take more memory than this; 0: no limit",
     [](std::string_view v, Options& o) {
       return ParseAmount(v, "KMGT", 1024, o.budget.max_memory);
     }},
    {"max_multiply_adds", "a number, also as 500M, 2G or 1e12", "0",
     "refuse a model of which one run takes more multiply-adds than this; 0: no limit",
     [](std::string_view v, Options& o) {
       return ParseAmount(v, "KMGT", 1000, o.budget.max_multiply_adds);
     }},
    {"cache_dir", "a path", "none",
     "keep packed weights in this folder, for the next time the model is opened",
     [](std::string_view v, Options& o) {
       o.cache.directory = v;
       return Status();
     }},
    {"cache_mode", "off, read, readwrite", "readwrite",
     "read: take what lies in the folder of cache_dir, and write nothing there",
     [](std::string_view v, Options& o) { return ParseWord(v, kCacheModes, o.cache.mode); }},
    {"verbose", kSwitch, "off", "print the verdicts and errors to the standard error output",
     [](std::string_view v, Options& o) { return ParseBool(v, o.verbose); }},
    {"explain_file", "a path", "none",
     "write what became of each node: JSON where the name ends in .json, Graphviz in .dot",
     [](std::string_view v, Options& o) {
       o.explain_file = v;
       return Status();
     }},
    {"profile_file", "a path", "none",
     "write the time of each step when the model is closed: JSON where the name ends in .json",
     [](std::string_view v, Options& o) {
       o.profile_file = v;
       return Status();
     }},
};

const OptionRow* FindOption(std::string_view name) {
  const auto row = std::ranges::find(kTable, name, &OptionRow::name);
  return row == std::end(kTable) ? nullptr : row;
}

Status UnknownOption(std::string_view name) {
  std::vector<std::string_view> names;
  for (const OptionRow& row : kTable) names.push_back(row.name);
  const std::string_view nearest = Nearest(name, names);
  if (nearest.empty()) {
    return InvalidArgument("option ", name, " is unknown; the options are ", List(names));
  }
  return InvalidArgument("option ", name, " is unknown; the nearest valid one is ", nearest);
}

// How many letters are to be replaced, added, left out or exchanged with their neighbours.
size_t EditDistance(std::string_view from, std::string_view to) {
  // One row for each letter of `from` that counts, the last three of which are needed.
  std::vector<size_t> before, above, row(to.size() + 1);
  for (size_t j = 0; j <= to.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= from.size(); ++i) {
    before = std::move(above);
    above = std::move(row);
    row.assign(to.size() + 1, i);
    for (size_t j = 1; j <= to.size(); ++j) {
      const size_t replaced = above[j - 1] + (from[i - 1] != to[j - 1]);
      row[j] = std::min({replaced, above[j] + 1, row[j - 1] + 1});
      const bool exchanged = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
      if (exchanged) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row.back();
}

}  // namespace

std::span<const OptionRow> OptionTable() { return kTable; }

Result<Options> ParseOptions(std::span<const KeyValue> given, const ReadVariable& variable) {
  Options options;
  options.isa = DetectIsa();
  for (const OptionRow& row : kTable) {
    const std::string name = EnvironmentName(row.name);
    const char* value = variable(name.c_str());
    if (value == nullptr || *value == '\0') continue;
    Status status = row.parse(value, options);
    if (!status.ok()) return status.In("environment variable " + name);
  }
  for (const auto& [key, value] : given) {
    const OptionRow* row = FindOption(key);
    if (row == nullptr) return UnknownOption(key);
    Status status = row->parse(value, options);
    if (!status.ok()) return status.In("option " + std::string(key));
  }
  return options;
}

Result<Options> ParseOptions(std::span<const KeyValue> given) {
  return ParseOptions(given, [](const char* name) { return std::getenv(name); });
}

Result<Isa> CapIsa(Isa cap) {
  if (OfThisArchitecture(cap)) return DetectIsa().CutTo(cap);
  return Unsupported("'", IsaName(cap), "' is of another architecture; the nearest valid value is ",
                     IsaName(DetectIsa()));
}

std::string_view Nearest(std::string_view word, std::span<const std::string_view> candidates) {
  const std::string from = Lower(word);
  std::string_view best;
  // Who leaves off an end (CONV) means what begins so (CONV_2D), not what is as short (COS).
  constexpr size_t kLeastBeginning = 3;
  for (std::string_view candidate : candidates) {
    if (from.size() < kLeastBeginning || !Lower(candidate).starts_with(from)) continue;
    if (best.empty() || candidate.size() < best.size()) best = candidate;
  }
  if (!best.empty()) return best;
  size_t best_distance = from.size() / 2 + 1;
  for (std::string_view candidate : candidates) {
    const size_t distance = EditDistance(from, Lower(candidate));
    if (distance >= best_distance) continue;
    best_distance = distance;
    best = candidate;
  }
  return best;
}

}  // namespace fuselite::partitioner
