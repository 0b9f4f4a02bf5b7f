// Any library that exports tflite_plugin_create_delegate: --external_delegate_path,
// --external_delegate_options.
#include <dlfcn.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <ostream>

#include "tools/delegates/delegate_provider.h"

namespace fuselite::tools {
namespace {

using Create = tflite::TfLiteDelegate* (*)(char** keys, char** values, size_t count,
                                           void (*report_error)(const char*));
using Destroy = void (*)(tflite::TfLiteDelegate*);

constexpr const char* kPathFlag = "--external_delegate_path";

// What the library says when it refuses an option.
std::string& LastReport() {
  static thread_local std::string report;
  return report;
}

// "key1:value1;key2:value2"; a value may have colons in it.
Status SplitOptions(std::string_view text, std::vector<std::string>& keys,
                    std::vector<std::string>& values) {
  while (!text.empty()) {
    const std::string_view pair = text.substr(0, text.find(';'));
    text.remove_prefix(std::min(pair.size() + 1, text.size()));
    if (pair.empty()) continue;
    const size_t colon = pair.find(':');
    if (colon == std::string_view::npos || colon == 0) {
      return InvalidArgument("--external_delegate_options: '", pair, "' is not KEY:VALUE");
    }
    keys.emplace_back(pair.substr(0, colon));
    values.emplace_back(pair.substr(colon + 1));
  }
  return Status();
}

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  return pointers;
}

// "once", "2 times".
std::string Times(size_t count) { return count == 1 ? "once" : std::to_string(count) + " times"; }

// The library stays loaded: threads of its may outlive the delegate.
Result<DelegatePtr> Load(const std::string& path, const std::string& options) {
  if (path.empty()) return InvalidArgument(kPathFlag, ": '' names no file");
  std::vector<std::string> keys, values;
  FUSELITE_RETURN_IF_ERROR(SplitOptions(options, keys, values));
  // The loader looks for a name without a slash among the system's libraries, not here.
  const bool here = path.find('/') == std::string::npos && access(path.c_str(), F_OK) == 0;
  void* library = dlopen((here ? "./" + path : path).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return NotFound("--external_delegate_path: ", dlerror());
  const auto create = reinterpret_cast<Create>(dlsym(library, "tflite_plugin_create_delegate"));
  const auto destroy = reinterpret_cast<Destroy>(dlsym(library, "tflite_plugin_destroy_delegate"));
  if (create == nullptr || destroy == nullptr) {
    return InvalidArgument(path, ": is no external delegate: it does not export ",
                           "tflite_plugin_create_delegate and tflite_plugin_destroy_delegate");
  }
  LastReport().clear();
  tflite::TfLiteDelegate* delegate =
      create(Pointers(keys).data(), Pointers(values).data(), keys.size(),
             [](const char* message) { LastReport() = message; });
  if (delegate == nullptr) {
    return InvalidArgument(path, ": ", LastReport().empty() ? "no delegate" : LastReport());
  }
  return DelegatePtr(delegate, destroy);
}

class ExternalProvider : public DelegateProvider {
 public:
  std::string name() const override { return "EXTERNAL"; }

  void AddFlags(CLI::App& command) override {
    const auto add = [&](const char* flag, std::vector<std::string>& values, const char* help) {
      command.add_option(flag, values, help)
          ->group("Delegate")
          ->expected(1)
          ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    };
    add(kPathFlag, paths_,
        "The library of another delegate; may be given several times. Delegates are applied in the "
        "order of their flags, fuselite first or where --use_fuselite stands");
    add("--external_delegate_options", options_,
        "Its options, KEY:VALUE;KEY:VALUE; the n-th are those of the n-th path");
  }

  Result<std::vector<PlacedDelegate>> Create(const CLI::App& command) const override {
    if (options_.size() > paths_.size()) {
      return InvalidArgument("--external_delegate_options is given ", Times(options_.size()),
                             ", --external_delegate_path ", Times(paths_.size()),
                             "; give the path of each delegate that has options");
    }
    std::vector<PlacedDelegate> delegates;
    for (size_t i = 0; i < paths_.size(); ++i) {
      FUSELITE_ASSIGN_OR_RETURN(DelegatePtr delegate,
                                Load(paths_[i], i < options_.size() ? options_[i] : ""));
      const int place = FlagPlace(command, kPathFlag, static_cast<int>(i));
      delegates.push_back({std::move(delegate), place});
    }
    return delegates;
  }

  void LogParams(std::ostream& out) const override {
    for (const std::string& path : paths_) out << "External delegate path: [" << path << "]\n";
    for (const std::string& options : options_) {
      out << "External delegate options: [" << options << "]\n";
    }
  }

 private:
  std::vector<std::string> paths_, options_;
};

REGISTER_DELEGATE_PROVIDER(ExternalProvider);

}  // namespace
}  // namespace fuselite::tools
