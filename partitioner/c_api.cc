#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "fuselite/delegate.h"
#include "partitioner/delegate.h"
#include "partitioner/guard.h"
#include "runtime/threads/parallel.h"
#include "runtime/version.h"

namespace {

using fuselite::Result;
using fuselite::Status;
using fuselite::partitioner::Delegate;
using fuselite::partitioner::KeyValue;
using fuselite::partitioner::Options;

using ReportError = void (*)(const char*);

// The global TfLiteDelegate is the host's name for the struct that fuselite::tflite declares.
TfLiteDelegate* ToHost(fuselite::tflite::TfLiteDelegate* delegate) {
  return reinterpret_cast<TfLiteDelegate*>(delegate);
}

Delegate* FromHost(TfLiteDelegate* delegate) {
  return Delegate::FromC(reinterpret_cast<fuselite::tflite::TfLiteDelegate*>(delegate));
}

// A host that gives nobody to tell (TensorFlow Lite's own tools) would run without the delegate and
// say nothing: then it is said on the standard error output.
void Report(ReportError report_error, const char* message) {
  if (report_error != nullptr) return report_error(message);
  std::fprintf(stderr, "%s\n", message);
}

TfLiteDelegate* Create(const std::vector<KeyValue>& given, ReportError report_error,
                       const char* node_name = nullptr) {
  Result<Options> options = fuselite::partitioner::ParseOptions(given);
  if (!options.ok()) {
    Report(report_error, ("fuselite: no delegate: " + options.status().message()).c_str());
    return nullptr;
  }
  if (node_name != nullptr) options->node_name = node_name;
  return ToHost((new Delegate(*std::move(options)))->c_struct());
}

// `create` with exceptions turned into errors.
template <class Function>
TfLiteDelegate* Guarded(ReportError report_error, Function&& create) noexcept {
  TfLiteDelegate* delegate = nullptr;
  fuselite::partitioner::Guard(
      [&] {
        delegate = create();
        return Status();
      },
      [&](fuselite::StatusCode, const char* message) {
        char text[256];  // on the stack, as there may be no memory
        std::snprintf(text, sizeof text, "fuselite: no delegate: %s", message);
        Report(report_error, text);
      });
  return delegate;
}

// Collects what is set, as the strings that the table of options takes.
class Given {
 public:
  void Add(const char* key, int32_t number) {
    if (number < 0) return;
    numbers_.emplace_back(key, std::to_string(number));
  }
  void Add(const char* key, const char* text) {
    if (text != nullptr) texts_.emplace_back(key, text);
  }
  std::vector<KeyValue> All() const {
    std::vector<KeyValue> all(texts_.begin(), texts_.end());
    for (const auto& [key, number] : numbers_) all.emplace_back(key, number);
    return all;
  }

 private:
  std::vector<std::pair<const char*, std::string>> numbers_;
  std::vector<KeyValue> texts_;
};

}  // namespace

extern "C" {

FuseliteDelegateOptions FuseliteDelegateOptionsDefault(void) {
  FuseliteDelegateOptions options{};
  options.struct_size = sizeof options;
  options.num_threads = options.jit = options.fusion = -1;
  options.max_partitions = options.min_nodes_per_partition = options.verbose = -1;
  return options;
}

TfLiteDelegate* FuseliteDelegateCreate(const FuseliteDelegateOptions* options) {
  FuseliteDelegateOptions all = FuseliteDelegateOptionsDefault();
  // A caller built with an older header has fewer members.
  const size_t given_bytes = options != nullptr ? options->struct_size : 0;
  if (options != nullptr) std::memcpy(&all, options, std::min(given_bytes, sizeof all));
  return Guarded(all.report_error, [&]() -> TfLiteDelegate* {
    if (options != nullptr && given_bytes < offsetof(FuseliteDelegateOptions, isa)) {
      Report(all.report_error,
             ("fuselite: no delegate: struct_size of the options is " +
              std::to_string(given_bytes) + "; begin with FuseliteDelegateOptionsDefault()")
                 .c_str());
      return nullptr;
    }
    Given given;
    given.Add("num_threads", all.num_threads);
    given.Add("jit", all.jit);
    given.Add("fusion", all.fusion);
    given.Add("max_partitions", all.max_partitions);
    given.Add("min_nodes_per_partition", all.min_nodes_per_partition);
    given.Add("verbose", all.verbose);
    given.Add("isa", all.isa);
    given.Add("precision", all.precision);
    given.Add("ops_deny", all.ops_deny);
    given.Add("explain_file", all.explain_file);
    given.Add("profile_file", all.profile_file);
    given.Add("max_memory", all.max_memory);
    given.Add("max_multiply_adds", all.max_multiply_adds);
    given.Add("cache_dir", all.cache_dir);
    given.Add("cache_mode", all.cache_mode);
    return Create(given.All(), all.report_error, all.node_name);
  });
}

void FuseliteDelegateDelete(TfLiteDelegate* delegate) {
  if (delegate != nullptr) delete FromHost(delegate);
}

void FuseliteDelegateCancel(TfLiteDelegate* delegate) {
  if (delegate == nullptr) return;
  fuselite::partitioner::Guard(
      [&] {
        FromHost(delegate)->state()->kernels().Cancel();
        return Status();
      },
      [](fuselite::StatusCode, const char*) {});
}

const char* FuseliteVersion(void) { return fuselite::kVersion; }

void FuseliteReleaseThreads(void) { fuselite::ReleaseIdleThreads(); }

char* FuseliteDelegateExplain(TfLiteDelegate* delegate, const char* format) {
  if (delegate == nullptr || format == nullptr) return nullptr;
  char* copy = nullptr;
  fuselite::partitioner::Guard(
      [&]() -> Status {
        const std::string_view name = format;
        auto* const write = name == "text"   ? fuselite::partitioner::ToText
                            : name == "json" ? fuselite::partitioner::ToJson
                            : name == "dot"  ? fuselite::partitioner::ToDot
                                             : nullptr;
        if (write == nullptr) return fuselite::InvalidArgument("unknown format");
        copy = strdup(write(FromHost(delegate)->Explain()).c_str());
        return Status();
      },
      [](fuselite::StatusCode, const char*) {});
  return copy;
}

void FuseliteFree(void* memory) { std::free(memory); }

TfLiteDelegate* tflite_plugin_create_delegate(char** keys, char** values, size_t count,
                                              void (*report_error)(const char*)) {
  return Guarded(report_error, [&]() -> TfLiteDelegate* {
    std::vector<KeyValue> given;
    for (size_t i = 0; i < count; ++i) {
      if (keys == nullptr || values == nullptr || keys[i] == nullptr || values[i] == nullptr) {
        Report(report_error, "fuselite: an option's key or value is null");
        return nullptr;
      }
      given.emplace_back(keys[i], values[i]);
    }
    return Create(given, report_error);
  });
}

void tflite_plugin_destroy_delegate(TfLiteDelegate* delegate) { FuseliteDelegateDelete(delegate); }

}  // extern "C"
