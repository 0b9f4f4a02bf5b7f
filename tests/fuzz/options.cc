// The delegate's options: any text is taken, or refused in one line that names what is near.
#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "partitioner/options.h"
#include "tests/fuzz/target.h"

namespace fuselite::fuzz {
namespace {

using namespace partitioner;

// "key=value;key=value".
std::vector<KeyValue> Split(std::string_view text) {
  std::vector<KeyValue> pairs;
  while (!text.empty()) {
    const size_t end = std::min(text.find(';'), text.size());
    const std::string_view pair = text.substr(0, end);
    const size_t equals = std::min(pair.find('='), pair.size());
    pairs.emplace_back(pair.substr(0, equals), pair.substr(std::min(equals + 1, pair.size())));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return pairs;
}

void Check(const Result<Options>& options) {
  if (options.ok()) {
    EXPECT_GE(options->num_threads, 0);
    EXPECT_LE(options->num_threads, 1024);
    EXPECT_GE(options->min_nodes_per_partition, 0);
    return;
  }
  // The nearest word, or what there is to write where none is near.
  const std::string& message = options.status().message();
  const auto says = [&](const char* text) { return message.find(text) != std::string::npos; };
  EXPECT_TRUE(says("nearest") || says("; write ") || says("; the options are ") ||
              says("; fuselite explain lists"))
      << message;
}

}  // namespace

void FuzzOne(std::span<const uint8_t> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const auto none = [](const char*) -> const char* { return nullptr; };
  Check(ParseOptions(Split(text), none));
  // Each option with the text as its value, also as the environment gives it.
  const std::string value(text.substr(0, text.find('\0')));
  for (const OptionRow& row : OptionTable()) {
    const KeyValue pair{row.name, text};
    Check(ParseOptions({&pair, 1}, none));
    Check(ParseOptions({}, [&](const char*) { return value.c_str(); }));
  }
}

}  // namespace fuselite::fuzz
