// The delegates that the tools' flags can ask for, besides fuselite itself. Another one is one more
// file in this folder:
//
//   class DummyProvider : public DelegateProvider {
//    public:
//     std::string name() const override { return "DUMMY"; }
//     void AddFlags(CLI::App& command) override { command.add_option("--use_dummy", use_, "..."); }
//     Result<std::vector<DelegatePtr>> Create() const override { ... }
//     void LogParams(std::ostream& out) const override { out << "Use dummy: [" << use_ << "]\n"; }
//   };
//   REGISTER_DELEGATE_PROVIDER(DummyProvider);
#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "runtime/status.h"
#include "runtime/tflite_abi.h"

namespace CLI {
class App;
}

namespace fuselite::tools {

using DelegatePtr =
    std::unique_ptr<tflite::TfLiteDelegate, std::function<void(tflite::TfLiteDelegate*)>>;

// One kind of delegate. An object serves one command: it adds its flags, keeps what they say, and
// then creates what they ask for.
class DelegateProvider {
 public:
  virtual ~DelegateProvider() = default;
  // As the tools' lines name it: "EXTERNAL".
  virtual std::string name() const = 0;
  // The object outlives the command.
  virtual void AddFlags(CLI::App& command) = 0;
  // In the order in which they are to be applied; none where the flags ask for none.
  virtual Result<std::vector<DelegatePtr>> Create() const = 0;
  // One line for each flag that was given.
  virtual void LogParams(std::ostream& out) const = 0;
};

using MakeProvider = std::function<std::unique_ptr<DelegateProvider>()>;

// What REGISTER_DELEGATE_PROVIDER makes, before main().
struct DelegateProviderRegistrar {
  explicit DelegateProviderRegistrar(MakeProvider make);
};
#define REGISTER_DELEGATE_PROVIDER(Class)                                     \
  static const ::fuselite::tools::DelegateProviderRegistrar kRegister##Class( \
      [] { return std::make_unique<Class>(); })

// A fresh object of each kind, in the order of their files' names.
std::vector<std::unique_ptr<DelegateProvider>> MakeDelegateProviders();

}  // namespace fuselite::tools
