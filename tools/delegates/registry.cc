#include <CLI/CLI.hpp>
#include <algorithm>

#include "tools/delegates/delegate_provider.h"

namespace fuselite::tools {
namespace {

std::vector<MakeProvider>& Registry() {
  static std::vector<MakeProvider> registry;
  return registry;
}

}  // namespace

int FlagPlace(const CLI::App& command, const std::string& flag, int n) {
  const std::vector<CLI::Option*>& order = command.parse_order();
  for (size_t place = 0; place < order.size(); ++place) {
    if (order[place]->check_name(flag) && n-- == 0) return static_cast<int>(place);
  }
  return -1;
}

DelegateProviderRegistrar::DelegateProviderRegistrar(MakeProvider make) {
  Registry().push_back(std::move(make));
}

std::vector<std::unique_ptr<DelegateProvider>> MakeDelegateProviders() {
  std::vector<std::unique_ptr<DelegateProvider>> providers;
  for (const MakeProvider& make : Registry()) providers.push_back(make());
  // The order in which objects are initialized is the linker's.
  std::ranges::sort(providers, {}, [](const auto& provider) { return provider->name(); });
  return providers;
}

}  // namespace fuselite::tools
