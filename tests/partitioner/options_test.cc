#include "partitioner/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "runtime/support/environment.h"

namespace fuselite::partitioner {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

Result<Options> Parse(std::vector<KeyValue> given,
                      std::map<std::string, std::string> environment = {}) {
  return ParseOptions(given, [&](const char* name) -> const char* {
    const auto variable = environment.find(name);
    return variable == environment.end() ? nullptr : variable->second.c_str();
  });
}

std::string ErrorOf(std::vector<KeyValue> given,
                    std::map<std::string, std::string> environment = {}) {
  const Result<Options> options = Parse(std::move(given), std::move(environment));
  return options.ok() ? "no error" : options.status().message();
}

TEST(OptionsTest, DefaultsAreThoseOfTheTable) {
  const Result<Options> options = Parse({});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->num_threads, 0);
  EXPECT_EQ(options->isa, DetectIsa());
  EXPECT_TRUE(options->jit);
  EXPECT_TRUE(options->fusion);
  EXPECT_EQ(options->precision, kernels::Precision::kDefault);
  EXPECT_EQ(options->max_partitions, 0);
  EXPECT_EQ(options->min_nodes_per_partition, 1);
  EXPECT_FALSE(options->verbose);
  EXPECT_TRUE(options->ops_deny.empty());
  EXPECT_EQ(options->budget.max_memory, 0);
  EXPECT_EQ(options->budget.max_multiply_adds, 0);
  EXPECT_FALSE(options->cache.on());
  EXPECT_EQ(options->cache.mode, CacheMode::kReadWrite);
}

TEST(OptionsTest, EveryOptionIsReadFromStringsAndFromTheEnvironment) {
  const std::map<std::string, std::string> values = {{"num_threads", "3"},
                                                     {"isa", "scalar"},
                                                     {"jit", "off"},
                                                     {"fusion", "off"},
                                                     {"precision", "strict"},
                                                     {"max_partitions", "4"},
                                                     {"min_nodes_per_partition", "5"},
                                                     {"ops_deny", "softmax,CONV_2D"},
                                                     {"max_memory", "1.5G"},
                                                     {"max_multiply_adds", "2e9"},
                                                     {"cache_dir", "folder"},
                                                     {"cache_mode", "read"},
                                                     {"verbose", "on"},
                                                     {"explain_file", "e.txt"},
                                                     {"profile_file", "p.json"}};
  ASSERT_EQ(OptionTable().size(), values.size());
  std::vector<KeyValue> given(values.begin(), values.end());
  std::map<std::string, std::string> environment;
  for (const auto& [key, value] : values) environment[EnvironmentName(key)] = value;
  for (const Result<Options>& options : {Parse(given), Parse({}, environment)}) {
    ASSERT_TRUE(options.ok()) << options.status().message();
    EXPECT_EQ(options->num_threads, 3);
    EXPECT_EQ(options->isa, Isa::kScalar);
    EXPECT_FALSE(options->jit);
    EXPECT_FALSE(options->fusion);
    EXPECT_EQ(options->precision, kernels::Precision::kStrict);
    EXPECT_EQ(options->max_partitions, 4);
    EXPECT_EQ(options->min_nodes_per_partition, 5);
    EXPECT_THAT(options->ops_deny, ElementsAre("SOFTMAX", "CONV_2D"));
    EXPECT_EQ(options->budget.max_memory, 1.5 * (1 << 30));
    EXPECT_EQ(options->budget.max_multiply_adds, 2e9);
    EXPECT_EQ(options->cache.directory, "folder");
    EXPECT_EQ(options->cache.mode, CacheMode::kRead);
    EXPECT_TRUE(options->verbose);
    EXPECT_EQ(options->explain_file, "e.txt");
    EXPECT_EQ(options->profile_file, "p.json");
  }
}

TEST(OptionsTest, AnOptionWinsOverTheEnvironment) {
  const Result<Options> options =
      Parse({{"num_threads", "2"}}, {{"FUSELITE_NUM_THREADS", "7"}, {"FUSELITE_JIT", ""}});
  ASSERT_TRUE(options.ok());
  EXPECT_EQ(options->num_threads, 2);
  EXPECT_TRUE(options->jit) << "an empty variable counts as unset";
}

TEST(OptionsTest, SwitchesTakeTheUsualWords) {
  for (const char* word : {"on", "On", "true", "True", "TRUE", "yes", "1"}) {
    EXPECT_TRUE(Parse({{"verbose", word}})->verbose) << word;
  }
  for (const char* word : {"off", "false", "False", "no", "0"}) {
    EXPECT_FALSE(Parse({{"jit", word}})->jit) << word;
  }
  for (const char* word : {"of", "maybe", ""}) {
    EXPECT_EQ(ErrorOf({{"jit", word}}),
              "option jit: '" + std::string(word) + "' is neither on nor off; write on or off");
  }
}

TEST(OptionsTest, AmountsTakeSuffixesAndRefuseWhatIsNoNumber) {
  const auto memory = [](const char* text) {
    return Parse({{"max_memory", text}})->budget.max_memory;
  };
  EXPECT_EQ(memory("0"), 0);
  EXPECT_EQ(memory("4096"), 4096);
  EXPECT_EQ(memory("2k"), 2048);
  EXPECT_EQ(memory("8T"), 8 * std::pow(1024.0, 4));
  EXPECT_EQ(Parse({{"max_multiply_adds", "500M"}})->budget.max_multiply_adds, 5e8);
  for (const char* text : {"-1", "much", "2GB", "2X", "1e999", "nan", "", "G"}) {
    EXPECT_THAT(ErrorOf({{"max_memory", text}}),
                AllOf(HasSubstr("option max_memory"), HasSubstr("0 (no limit)")))
        << text;
  }
}

TEST(OptionsTest, UnknownKeysNameTheNearestOne) {
  EXPECT_THAT(ErrorOf({{"num_thread", "1"}}), AllOf(HasSubstr("option num_thread "),
                                                    HasSubstr("nearest valid one is num_threads")));
  EXPECT_THAT(ErrorOf({{"Min_Nodes_Per_Part", "1"}}), HasSubstr("min_nodes_per_partition"));
  EXPECT_THAT(ErrorOf({{"bogus", "1"}}),
              HasSubstr("option bogus is unknown; the options are num_threads, isa, jit"));
}

TEST(OptionsTest, BadValuesNameTheOptionAndTheNearestValue) {
  const bool is_x86 = OfThisArchitecture(Isa::kAvx2);
  EXPECT_THAT(ErrorOf({{"isa", is_x86 ? "avx512vni" : "noen"}}),
              AllOf(HasSubstr("option isa"), HasSubstr(is_x86 ? "nearest valid value is avx512vnni"
                                                              : "nearest valid value is neon")));
  EXPECT_THAT(ErrorOf({{"precision", "fats"}}), HasSubstr("nearest valid value is fast"));
  EXPECT_THAT(ErrorOf({{"cache_mode", "reed"}}), HasSubstr("nearest valid value is read "));
  EXPECT_THAT(ErrorOf({{"num_threads", "5000"}}), HasSubstr("nearest valid value is 1024"));
  EXPECT_THAT(ErrorOf({{"num_threads", "-3"}}), HasSubstr("nearest valid value is 0"));
  EXPECT_THAT(ErrorOf({{"max_partitions", "1.5"}}), HasSubstr("not a whole number"));
  EXPECT_THAT(ErrorOf({{"num_threads", ""}}), HasSubstr("not a whole number"));
  EXPECT_THAT(ErrorOf({{"ops_deny", "CONV2D"}}), HasSubstr("nearest one is CONV_2D"));
  EXPECT_THAT(ErrorOf({{"ops_deny", "conv"}}), HasSubstr("nearest one is CONV_2D"));
  EXPECT_THAT(ErrorOf({}, {{"FUSELITE_ISA", "mmx"}}),
              HasSubstr("environment variable FUSELITE_ISA"));
  EXPECT_THAT(ErrorOf({{"isa", "mmx"}}), Not(HasSubstr("\n")));
}

TEST(OptionsTest, WordsThatAreValidAreListed) {
  EXPECT_THAT(ErrorOf({{"precision", "fats"}}), HasSubstr("(of strict, default, fast)"));
  EXPECT_THAT(ErrorOf({{"precision", "exact"}}),
              HasSubstr("'exact' is unknown; write strict, default or fast"));
}

// "neon" has as few edits from "best" as others, and "mmx" one from "amx".
TEST(OptionsTest, InstructionSetsOfOtherArchitecturesAreNotNamed) {
  for (const char* word : {"best", "mmx", "neom", "avx511"}) {
    const std::string message = ErrorOf({{"isa", word}});
    for (const IsaPreset& preset : IsaPresets()) {
      if (OfThisArchitecture(preset.isa)) continue;
      EXPECT_THAT(message, Not(HasSubstr(std::string(preset.name)))) << word;
    }
  }
  EXPECT_THAT(ErrorOf({{"isa", "best"}}), HasSubstr("'best' is unknown; write scalar"));
}

TEST(OptionsTest, OperatorsAreThoseOfModels) {
  const auto denied = [](const char* names) { return Parse({{"ops_deny", names}})->ops_deny; };
  EXPECT_THAT(denied(",softmax,, ;CONV_2D,"), ElementsAre("SOFTMAX", "CONV_2D"));
  EXPECT_THAT(denied("tflite_detection_postprocess"), ElementsAre("TFLite_Detection_PostProcess"));
  EXPECT_THAT(denied("if,WHILE"), ElementsAre("IF", "WHILE"));
  EXPECT_THAT(denied(""), ::testing::IsEmpty());
  EXPECT_THAT(ErrorOf({{"ops_deny", "FUSELITE_ATTENTION"}}),
              HasSubstr("is no operator known here"));
  EXPECT_THAT(ErrorOf({{"ops_deny", "Q"}}),
              HasSubstr("no operator known here; fuselite explain lists those of a model"));
}

TEST(OptionsTest, IsaIsACap) {
  for (Isa isa : RunnableIsas()) EXPECT_EQ(*CapIsa(isa), isa) << IsaName(isa);
  // Another architecture's features cannot be meant as a cap.
  EXPECT_FALSE(CapIsa(OfThisArchitecture(Isa::kNeon) ? Isa::kAvx2 : Isa::kNeon).ok());
  if (OfThisArchitecture(Isa::kAvx512Bf16)) {
    EXPECT_EQ(*CapIsa(Isa::kAvx512Bf16), DetectIsa().CutTo(Isa::kAvx512Bf16));
  }
}

TEST(OptionsTest, TheNearestNumberIsNamed) {
  const auto nearest = [](std::string_view value) {
    const std::string message = Parse({{"num_threads", value}}).status().message();
    return message.substr(message.rfind(' ') + 1);
  };
  EXPECT_EQ(nearest("2.6"), "3");
  EXPECT_EQ(nearest("1e3"), "1000");
  EXPECT_EQ(nearest("1e300"), "1024");
  EXPECT_EQ(nearest("1e999"), "1024");
  EXPECT_EQ(nearest("-1e999"), "0");
  EXPECT_EQ(nearest("99999999999999999999"), "1024");
  EXPECT_EQ(nearest("-7"), "0");
  EXPECT_EQ(nearest(" 2"), "2");
  EXPECT_EQ(nearest("+2"), "2");
  EXPECT_EQ(nearest("-inf"), "0");
  for (const char* text : {"many", "nan", "", " ", "+"}) {
    EXPECT_THAT(ErrorOf({{"num_threads", text}}),
                EndsWith("'" + std::string(text) +
                         "' is not a whole number from 0 to 1024; "
                         "write a number, 2 for example"));
  }
}

TEST(OptionsTest, MinusOneThreadsMeansNoWish) {
  EXPECT_EQ(Parse({{"num_threads", "-1"}})->num_threads, 0);
}

TEST(OptionsTest, TheDocumentHasTheTable) {
  std::ifstream file(FUSELITE_SOURCE_DIR "/docs/options.md");
  std::stringstream text;
  text << file.rdbuf();
  for (const OptionRow& row : OptionTable()) {
    const std::string line = "| `" + std::string(row.name) + "` | " + std::string(row.values) +
                             " | " + std::string(row.default_value) + " | " + std::string(row.doc) +
                             " |\n";
    EXPECT_THAT(text.str(), HasSubstr(line));
  }
}

TEST(NearestTest, CountsEdits) {
  constexpr std::string_view kWords[] = {"fusion", "jit", "isa"};
  EXPECT_EQ(Nearest("fussion", kWords), "fusion");
  EXPECT_EQ(Nearest("JITT", kWords), "jit");
  EXPECT_EQ(Nearest("x", {}), "");
}

TEST(NearestTest, AnExchangeOfNeighboursIsOneEdit) {
  constexpr std::string_view kWords[] = {"isa", "jit"};
  EXPECT_EQ(Nearest("jti", kWords), "jit");
  EXPECT_EQ(Nearest("sia", kWords), "isa");
}

TEST(NearestTest, WhatIsFarIsNotNamed) {
  constexpr std::string_view kWords[] = {"fusion", "jit", "isa"};
  EXPECT_EQ(Nearest("", kWords), "");
  EXPECT_EQ(Nearest("best", kWords), "");
  EXPECT_EQ(Nearest("fuxxxn", kWords), "fusion") << "half of the letters are right";
  EXPECT_EQ(Nearest("fxxxxn", kWords), "");
}

}  // namespace
}  // namespace fuselite::partitioner
