#include "runtime/support/log.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <exception>
#include <mutex>
#include <string>

#include "runtime/support/environment.h"
#include "runtime/support/process_lock.h"

namespace fuselite {
namespace {

constexpr std::array<std::string_view, 5> kNames = {"off", "error", "warning", "info", "debug"};

void WriteToStandardError(LogLevel level, std::string_view message, void*) {
  std::string line = "fuselite: ";
  line.append(LogLevelName(level)).append(": ").append(message).append("\n");
  // One call, so that lines of several threads do not mix.
  std::fwrite(line.data(), 1, line.size(), stderr);
}

struct Sink {
  LogSink function = &WriteToStandardError;
  void* context = nullptr;
};

std::atomic<LogLevel>& Level() {
  static std::atomic<LogLevel> level{internal::LevelOfSetting(ReadEnvironment("LOG"))};
  return level;
}

std::mutex& SinkMutex() {
  static std::mutex* const mutex = new std::mutex;  // used until the last thread ends
  return *mutex;
}

Sink& CurrentSink() {
  static Sink sink;
  return sink;
}

}  // namespace

std::string_view LogLevelName(LogLevel level) { return kNames[static_cast<size_t>(level)]; }

std::optional<LogLevel> LogLevelFromName(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<LogLevel>(i);
  }
  return std::nullopt;
}

LogLevel GetLogLevel() { return Level().load(std::memory_order_relaxed); }

void SetLogLevel(LogLevel level) { Level().store(level, std::memory_order_relaxed); }

void SetLogSink(LogSink sink, void* context) {
  const ProcessLock lock(SinkMutex());
  CurrentSink() = sink != nullptr ? Sink{sink, context} : Sink{};
}

void LogMessage(LogLevel level, std::string_view message) {
  Sink sink;
  {
    const ProcessLock lock(SinkMutex());
    sink = CurrentSink();
  }
  sink.function(level, message, sink.context);
}

namespace internal {

LogLevel LevelOfSetting(const std::optional<std::string>& name) {
  if (!name) return LogLevel::kOff;
  const auto level = LogLevelFromName(*name);
  if (!level) {
    // Whoever sets it wants to read something; silence would look like "nothing happened".
    WriteToStandardError(
        LogLevel::kWarning,
        "FUSELITE_LOG is '" + *name + "', which is none of off, error, warning, info, debug",
        nullptr);
  }
  return level.value_or(LogLevel::kOff);
}

LogLine::~LogLine() {
  try {
    LogMessage(level_, text_.str());
  } catch (const std::exception&) {
    // No memory for a message: the message is what can be spared.
  }
}

}  // namespace internal
}  // namespace fuselite
