#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "tools/stress/scenario.h"

namespace fuselite::tools {
namespace {

namespace fs = std::filesystem;

// A folder for one scenario's cache, and the options that name it.
class CacheFolder {
 public:
  explicit CacheFolder(const StressContext& context) : cached_(context) {
    std::string name = (fs::temp_directory_path() / "fuselite_stress_XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) return;
    path_ = name;
    cached_.options.cache = {(path_ / "cache").string(), CacheMode::kReadWrite};
  }
  ~CacheFolder() {
    std::error_code error;
    if (!path_.empty()) fs::remove_all(path_, error);
  }
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;

  Status status() const {
    return path_.empty() ? IoError("no temporary folder can be made") : Status();
  }
  fs::path folder() const { return path_ / "cache"; }
  const StressContext& cached() const { return cached_; }
  std::vector<fs::path> Files() const {
    std::vector<fs::path> files;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder(), error)) {
      files.push_back(entry.path());
    }
    return files;
  }
  // Opens the model with the cache as it is now, and compares what it gives.
  Status Check(const std::string& expected, std::string_view when) const {
    return CheckOutputs(ExpectedOutputs(cached_), expected, when);
  }

 private:
  StressContext cached_;
  fs::path path_;
};

// Children that open the model with the cache, `delay` microseconds before each is killed; 0: none
// is, and each must compare right.
Status OpenInChildren(const CacheFolder& cache, const std::string& expected, int count,
                      useconds_t delay) {
  std::vector<pid_t> children;
  for (int i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(cache.Check(expected, "in a child").ok() ? 0 : 1);
    if (child > 0) children.push_back(child);
  }
  if (delay > 0) usleep(delay);
  Status result = children.empty() ? Internal("no process can be made") : Status();
  for (const pid_t child : children) {
    if (delay > 0) kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && delay > 0;
    const bool right = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!killed && !right) result = Internal("a process that shares the cache was wrong");
  }
  return result;
}

Status Reopened(const StressContext& context) {
  const CacheFolder cache(context);
  FUSELITE_RETURN_IF_ERROR(cache.status());
  FUSELITE_ASSIGN_OR_RETURN(const std::string expected, ExpectedOutputs(context));
  for (int round = 0; round < context.rounds; ++round) {
    FUSELITE_RETURN_IF_ERROR(cache.Check(expected, round == 0 ? "written" : "read"));
  }
  return Status();
}

Status TwoWriters(const StressContext& context) {
  const CacheFolder cache(context);
  FUSELITE_RETURN_IF_ERROR(cache.status());
  FUSELITE_ASSIGN_OR_RETURN(const std::string expected, ExpectedOutputs(context));
  for (int round = 0; round < context.rounds / 10 + 1; ++round) {
    FUSELITE_RETURN_IF_ERROR(OpenInChildren(cache, expected, 4, 0));
    for (const fs::path& file : cache.Files()) {
      if (file.extension() != ".fuselite") return Internal(file.string(), " was left behind");
      fs::remove(file);
    }
  }
  return Status();
}

Status KilledWriters(const StressContext& context) {
  const CacheFolder cache(context);
  FUSELITE_RETURN_IF_ERROR(cache.status());
  FUSELITE_ASSIGN_OR_RETURN(const std::string expected, ExpectedOutputs(context));
  std::mt19937_64 random(context.seed);
  for (int round = 0; round < context.rounds; ++round) {
    for (const fs::path& file : cache.Files()) fs::remove(file);
    const auto delay = static_cast<useconds_t>(1 + random() % 30'000);
    FUSELITE_RETURN_IF_ERROR(OpenInChildren(cache, expected, 1, delay));
    FUSELITE_RETURN_IF_ERROR(cache.Check(expected, "after a writer was killed"));
  }
  return Status();
}

// Any byte of the file, any length of it.
Status ChangedFiles(const StressContext& context) {
  const CacheFolder cache(context);
  FUSELITE_RETURN_IF_ERROR(cache.status());
  FUSELITE_ASSIGN_OR_RETURN(const std::string expected, ExpectedOutputs(context));
  std::mt19937_64 random(context.seed);
  for (int round = 0; round < context.rounds; ++round) {
    FUSELITE_RETURN_IF_ERROR(cache.Check(expected, "with a changed file"));
    for (const fs::path& file : cache.Files()) {
      const uintmax_t size = fs::file_size(file);
      if (round % 2 == 0) {
        fs::resize_file(file, random() % size);
        continue;
      }
      // Half of them in the header and the index.
      const uintmax_t at = random() % (random() % 2 == 0 ? size : std::min<uintmax_t>(size, 1024));
      std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
      stream.seekp(static_cast<std::streamoff>(at));
      stream.put(static_cast<char>(random()));
    }
  }
  return Status();
}

// Folders that cannot be made, written or trusted, and one that goes away.
Status BadFolders(const StressContext& context) {
  const CacheFolder cache(context);
  FUSELITE_RETURN_IF_ERROR(cache.status());
  FUSELITE_ASSIGN_OR_RETURN(const std::string expected, ExpectedOutputs(context));
  for (const char* folder : {"/proc/self", "/proc/nowhere/cache", "/dev/full", "/dev/null/cache"}) {
    StressContext bad = context;
    bad.options.cache.directory = folder;
    FUSELITE_RETURN_IF_ERROR(CheckOutputs(ExpectedOutputs(bad), expected, folder));
  }
  FUSELITE_RETURN_IF_ERROR(cache.Check(expected, "in a new folder"));
  fs::create_directories(cache.folder());  // a model without packed weights makes none
  fs::permissions(cache.folder(), fs::perms::all);
  for (const fs::path& file : cache.Files()) fs::permissions(file, fs::perms::all);
  FUSELITE_RETURN_IF_ERROR(cache.Check(expected, "with a file that all may write"));
  fs::permissions(cache.folder(), fs::perms::owner_read | fs::perms::owner_exec);
  FUSELITE_RETURN_IF_ERROR(cache.Check(expected, "in a folder that is not to be written"));
  fs::permissions(cache.folder(), fs::perms::owner_all);
  if (geteuid() == 0) {
    for (const fs::path& file : cache.Files()) {
      if (chown(file.c_str(), 12345, 12345) != 0) return IoError(std::strerror(errno));
    }
    FUSELITE_RETURN_IF_ERROR(cache.Check(expected, "with another user's file"));
  }
  fs::remove_all(cache.folder());
  FUSELITE_RETURN_IF_ERROR(cache.Check(expected, "after the folder was removed"));
  // A disk that is full after a few bytes.
  fs::remove_all(cache.folder());
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{100, 100};
  if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return Internal("RLIMIT_FSIZE cannot be set");
  FUSELITE_RETURN_IF_ERROR(cache.Check(expected, "on a full disk"));
  return cache.Files().empty() ? Status() : Internal("half a file was left behind");
}

constexpr Scenario kScenarios[] = {
    {"cache", "opened again and again with its packed weights in a cache", Reopened},
    {"cachewriters", "four processes write the same cache", TwoWriters},
    {"cachekill", "processes are killed while they open and write", KilledWriters},
    {"cachebytes", "the cache's file is cut and changed", ChangedFiles},
    {"cachefolder", "the cache's folder is full, foreign, not to be written, or goes", BadFolders},
};

}  // namespace

std::span<const Scenario> CacheScenarios() { return kScenarios; }

}  // namespace fuselite::tools
