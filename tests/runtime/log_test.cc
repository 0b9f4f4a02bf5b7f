#include "runtime/support/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "runtime/support/environment.h"
#include "runtime/version.h"

namespace fuselite {
namespace {

using testing::ElementsAre;

// Collects messages while it lives, then puts everything back.
class Recorder {
 public:
  explicit Recorder(LogLevel level) : before_(GetLogLevel()) {
    SetLogLevel(level);
    SetLogSink(
        [](LogLevel l, std::string_view text, void* self) {
          static_cast<Recorder*>(self)->lines.push_back(std::string(LogLevelName(l)) + ": " +
                                                        std::string(text));
        },
        this);
  }
  ~Recorder() {
    SetLogSink(nullptr);
    SetLogLevel(before_);
  }
  std::vector<std::string> lines;

 private:
  LogLevel before_;
};

TEST(Log, IsSilentByDefault) {
  ASSERT_EQ(std::getenv("FUSELITE_LOG"), nullptr);
  testing::internal::CaptureStderr();
  testing::internal::CaptureStdout();
  FUSELITE_LOG(kError) << "not to be seen";
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(GetLogLevel(), LogLevel::kOff);
}

TEST(Log, LevelsIncludeThoseBelow) {
  Recorder recorder(LogLevel::kInfo);
  FUSELITE_LOG(kError) << "a" << 1;
  FUSELITE_LOG(kInfo) << "b";
  FUSELITE_LOG(kDebug) << "c";
  EXPECT_THAT(recorder.lines, ElementsAre("error: a1", "info: b"));
  SetLogLevel(LogLevel::kOff);
  FUSELITE_LOG(kOff) << "never";
  EXPECT_EQ(recorder.lines.size(), 2u);
}

TEST(Log, PartsOfSilentMessagesAreNotEvaluated) {
  Recorder recorder(LogLevel::kError);
  int evaluated = 0;
  FUSELITE_LOG(kDebug) << ++evaluated;
  EXPECT_EQ(evaluated, 0);
  // Braces would hide an `else` that the macro leaves open.
  // NOLINTBEGIN(readability-braces-around-statements)
  if (evaluated == 0)
    FUSELITE_LOG(kError) << "the macro's else is its own";
  else
    ++evaluated;
  // NOLINTEND(readability-braces-around-statements)
  EXPECT_EQ(evaluated, 0);
  EXPECT_EQ(recorder.lines.size(), 1u);
}

TEST(Log, WithoutASinkItGoesToStandardError) {
  SetLogLevel(LogLevel::kWarning);
  testing::internal::CaptureStderr();
  FUSELITE_LOG(kWarning) << "threads refused";
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "fuselite: warning: threads refused\n");
  SetLogLevel(LogLevel::kOff);
}

TEST(Log, NamesGoBothWays) {
  for (int i = 0; i <= 4; ++i) {
    const auto level = static_cast<LogLevel>(i);
    EXPECT_EQ(LogLevelFromName(LogLevelName(level)), level);
  }
  EXPECT_EQ(LogLevelFromName("loud"), std::nullopt);
}

TEST(Log, StartsAsTheSettingSays) {
  constexpr char kComplaint[] =
      "fuselite: warning: FUSELITE_LOG is 'loud', which is none of off, error, warning, info, "
      "debug\n";
  struct {
    std::optional<std::string> name;
    LogLevel level;
    std::string said;
  } const kSettings[] = {{std::nullopt, LogLevel::kOff, ""},
                         {"off", LogLevel::kOff, ""},
                         {"debug", LogLevel::kDebug, ""},
                         {"loud", LogLevel::kOff, kComplaint}};
  for (const auto& [name, level, said] : kSettings) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(internal::LevelOfSetting(name), level);
    EXPECT_EQ(testing::internal::GetCapturedStderr(), said);
  }
}

TEST(Environment, NamesAndValues) {
  EXPECT_EQ(EnvironmentName("num_threads"), "FUSELITE_NUM_THREADS");
  EXPECT_EQ(EnvironmentName("a`z{Z9"), "FUSELITE_A`Z{Z9");
  setenv("FUSELITE_TEST_VALUE", "7", 1);
  EXPECT_EQ(ReadEnvironment("test_value"), "7");
  setenv("FUSELITE_TEST_VALUE", "", 1);
  EXPECT_EQ(ReadEnvironment("test_value"), std::nullopt);
  unsetenv("FUSELITE_TEST_VALUE");
  EXPECT_EQ(ReadEnvironment("test_value"), std::nullopt);
}

TEST(Version, HasThreeNumbers) {
  EXPECT_THAT(std::string(kVersion), testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
}

}  // namespace
}  // namespace fuselite
