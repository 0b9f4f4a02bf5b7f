// The tools' choice of delegates, with a provider as a third party writes it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <sstream>

#include "tools/common/session.h"
#include "tools/delegates/delegate_provider.h"

namespace fuselite::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// --use_dummy NAME, as often as one likes: a delegate that takes nothing and is called NAME.
class DummyProvider : public DelegateProvider {
 public:
  std::string name() const override { return "DUMMY"; }
  void AddFlags(CLI::App& command) override {
    command.add_option("--use_dummy", names_)->expected(1)->take_all();
  }
  Result<std::vector<PlacedDelegate>> Create(const CLI::App& command) const override {
    std::vector<PlacedDelegate> delegates;
    for (size_t i = 0; i < names_.size(); ++i) {
      if (names_[i] == "bad") return InvalidArgument("--use_dummy: bad");
      auto* delegate = new tflite::TfLiteDelegate{};
      delegate->data_ = const_cast<std::string*>(&names_[i]);
      const int place = FlagPlace(command, "--use_dummy", static_cast<int>(i));
      delegates.push_back({{delegate, [](tflite::TfLiteDelegate* d) { delete d; }}, place});
    }
    return delegates;
  }
  void LogParams(std::ostream& out) const override {
    for (const std::string& name : names_) out << "Use dummy: [" << name << "]\n";
  }

 private:
  std::vector<std::string> names_;
};
REGISTER_DELEGATE_PROVIDER(DummyProvider);

std::vector<std::string> NamesOf(const std::vector<DelegatePtr>& delegates) {
  std::vector<std::string> names;
  for (const DelegatePtr& delegate : delegates) {
    names.push_back(*static_cast<const std::string*>(delegate->data_));
  }
  return names;
}

class DelegateFlagsTest : public ::testing::Test {
 protected:
  DelegateFlagsTest() { flags_.AddTo(command_); }
  Result<SessionDelegates> Create(const std::string& line) {
    command_.parse(line);
    return flags_.Create(options_);
  }

  CLI::App command_;
  DelegateFlags flags_;
  partitioner::Options options_;
};

TEST_F(DelegateFlagsTest, FuseliteAloneAndFirst) {
  const auto delegates = Create("");
  ASSERT_TRUE(delegates.ok()) << delegates.status().message();
  EXPECT_EQ(delegates->fuselite, &options_);
  EXPECT_THAT(NamesOf(delegates->before), ElementsAre());
  EXPECT_THAT(NamesOf(delegates->after), ElementsAre());
}

TEST_F(DelegateFlagsTest, FuseliteIsFirstWhereItHasNoPlace) {
  const auto delegates = Create("--use_dummy a --num_threads 2 --use_dummy b");
  ASSERT_TRUE(delegates.ok()) << delegates.status().message();
  EXPECT_EQ(delegates->fuselite, &options_);
  EXPECT_THAT(NamesOf(delegates->before), ElementsAre());
  EXPECT_THAT(NamesOf(delegates->after), ElementsAre("a", "b"));
}

TEST_F(DelegateFlagsTest, TheOrderIsThatOfTheFlags) {
  const auto delegates = Create("--use_dummy=a --use_dummy b --use_fuselite --use_dummy c");
  ASSERT_TRUE(delegates.ok()) << delegates.status().message();
  EXPECT_THAT(NamesOf(delegates->before), ElementsAre("a", "b"));
  EXPECT_THAT(NamesOf(delegates->after), ElementsAre("c"));
  std::ostringstream log;
  for (const auto& provider : flags_.providers) provider->LogParams(log);
  EXPECT_THAT(log.str(), HasSubstr("Use dummy: [a]\nUse dummy: [b]\n"));
}

TEST_F(DelegateFlagsTest, OthersWithoutFuselite) {
  const auto delegates = Create("--use_dummy a --use_fuselite=false");
  ASSERT_TRUE(delegates.ok()) << delegates.status().message();
  EXPECT_EQ(delegates->fuselite, nullptr);
  EXPECT_THAT(NamesOf(delegates->before), ElementsAre("a"));
}

TEST_F(DelegateFlagsTest, ProvidersSayWhatIsWrong) {
  EXPECT_EQ(Create("--use_dummy bad").status().message(), "--use_dummy: bad");
}

TEST_F(DelegateFlagsTest, OptionsGoByBothTheirNames) {
  command_.parse("--fuselite_num_threads=3 --max_delegated_partitions 2");
  const Result<partitioner::Options> options = flags_.Parse();
  ASSERT_TRUE(options.ok()) << options.status().message();
  EXPECT_EQ(options->num_threads, 3);
  EXPECT_EQ(options->max_partitions, 2);
}

}  // namespace
}  // namespace fuselite::tools
