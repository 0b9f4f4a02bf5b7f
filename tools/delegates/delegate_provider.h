// The delegates that the tools' flags can ask for, besides fuselite itself. Another one is one more
// file in this folder:
//
//   class DummyProvider : public DelegateProvider {
//    public:
//     std::string name() const override { return "DUMMY"; }
//     void AddFlags(CLI::App& command) override { command.add_flag("--use_dummy", use_, "..."); }
//     Result<std::vector<PlacedDelegate>> Create(const CLI::App& command) const override { ... }
//     void LogParams(std::ostream& out) const override { out << "Use dummy: [" << use_ << "]\n"; }
//   };
//   REGISTER_DELEGATE_PROVIDER(DummyProvider);
#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "runtime/support/status.h"
#include "runtime/tflite/abi.h"

namespace CLI {
class App;
}

namespace fuselite::tools {

using DelegatePtr =
    std::unique_ptr<tflite::TfLiteDelegate, std::function<void(tflite::TfLiteDelegate*)>>;

// A delegate, and the place of the flag that asks for it: delegates are applied in the order of
// their places.
struct PlacedDelegate {
  DelegatePtr delegate;
  int place = -1;
};

// Where `flag` ("--use_dummy") is given for the n-th time, counted over all flags of the command
// line that was parsed; -1 where it is not given so often.
int FlagPlace(const CLI::App& command, const std::string& flag, int n = 0);

// One kind of delegate. An object serves one command: it adds its flags, keeps what they say, and
// then creates what they ask for.
class DelegateProvider {
 public:
  virtual ~DelegateProvider() = default;
  // As the tools' lines name it: "EXTERNAL".
  virtual std::string name() const = 0;
  // The object outlives the command.
  virtual void AddFlags(CLI::App& command) = 0;
  // None where the flags ask for none. `command` is the one that AddFlags() got, parsed.
  virtual Result<std::vector<PlacedDelegate>> Create(const CLI::App& command) const = 0;
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
