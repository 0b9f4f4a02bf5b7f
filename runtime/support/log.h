// Messages for whoever looks for a reason: silent unless asked for.
//
//   FUSELITE_LOG(kInfo) << "threads: " << threads;
//
// Parts after << are evaluated only where the level is on.
#pragma once

#include <optional>
#include <sstream>
#include <string>
#include <string_view>

namespace fuselite {

enum class LogLevel {
  kOff,      // the default
  kError,    // something was given up; the host was told by a status too
  kWarning,  // it works, but worse than it could: a refused thread, an ignored setting
  kInfo,     // what was chosen: ISA, threads, partitions
  kDebug,    // why: every refusal of a candidate
};

std::string_view LogLevelName(LogLevel level);  // "off", "error", "warning", "info", "debug"
std::optional<LogLevel> LogLevelFromName(std::string_view name);

// The level starts as the environment variable FUSELITE_LOG names it, kOff where it names none.
LogLevel GetLogLevel();
void SetLogLevel(LogLevel level);

// Receives one message, without a line end, from any thread; must not throw. The text is valid
// during the call only. nullptr: back to standard error, one line "fuselite: info: ..." each.
using LogSink = void (*)(LogLevel level, std::string_view message, void* context);
void SetLogSink(LogSink sink, void* context = nullptr);

inline bool LogEnabled(LogLevel level) { return level <= GetLogLevel() && level != LogLevel::kOff; }

// Hands a message to the sink, whatever the level.
void LogMessage(LogLevel level, std::string_view message);

namespace internal {

// What FUSELITE_LOG asks for: kOff where it is not set, and with a line on standard error where it
// names no level.
LogLevel LevelOfSetting(const std::optional<std::string>& name);

// Collects one message and hands it over when destroyed.
class LogLine {
 public:
  explicit LogLine(LogLevel level) : level_(level) {}
  LogLine(const LogLine&) = delete;
  LogLine& operator=(const LogLine&) = delete;
  ~LogLine();
  std::ostream& stream() { return text_; }

 private:
  LogLevel level_;
  std::ostringstream text_;
};

}  // namespace internal
}  // namespace fuselite

#define FUSELITE_LOG(level)                                   \
  if (!::fuselite::LogEnabled(::fuselite::LogLevel::level)) { \
  } else                                                      \
    ::fuselite::internal::LogLine(::fuselite::LogLevel::level).stream()
