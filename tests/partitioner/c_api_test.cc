// The shared library as a C or C++ program sees it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "fuselite/delegate.h"
#include "partitioner/delegate.h"
#include "runtime/tflite/abi.h"
#include "tests/partitioner/c_api_user.h"

namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string last_error;
void KeepError(const char* message) { last_error = message; }

class CApiTest : public ::testing::Test {
 protected:
  void SetUp() override { last_error.clear(); }
};

TEST_F(CApiTest, CreatesFromDefaultsAndFromNothing) {
  FuseliteDelegateOptions options = FuseliteDelegateOptionsDefault();
  EXPECT_EQ(options.struct_size, sizeof options);
  for (const FuseliteDelegateOptions* given :
       {static_cast<const FuseliteDelegateOptions*>(nullptr),
        static_cast<const FuseliteDelegateOptions*>(&options)}) {
    TfLiteDelegate* delegate = FuseliteDelegateCreate(given);
    ASSERT_NE(delegate, nullptr);
    const auto* host_view = reinterpret_cast<const fuselite::tflite::TfLiteDelegate*>(delegate);
    EXPECT_NE(host_view->Prepare, nullptr);
    EXPECT_EQ(host_view->flags, fuselite::tflite::kTfLiteDelegateFlagsAllowDynamicTensors);
    FuseliteDelegateDelete(delegate);
  }
  FuseliteDelegateDelete(nullptr);
}

TEST_F(CApiTest, WrongOptionsAreRefusedAndNamed) {
  FuseliteDelegateOptions options = FuseliteDelegateOptionsDefault();
  options.report_error = KeepError;
  options.isa = "avx1024";
  EXPECT_EQ(FuseliteDelegateCreate(&options), nullptr);
  EXPECT_THAT(last_error, AllOf(HasSubstr("isa"), HasSubstr("avx1024")));
  options.report_error = nullptr;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(FuseliteDelegateCreate(&options), nullptr);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), last_error + "\n");
}

// Each member reaches its option: what the option refuses is refused under its name.
TEST_F(CApiTest, EveryMemberIsItsOption) {
  const std::pair<const char*, int32_t FuseliteDelegateOptions::*> numbers[] = {
      {"num_threads", &FuseliteDelegateOptions::num_threads},
      {"jit", &FuseliteDelegateOptions::jit},
      {"fusion", &FuseliteDelegateOptions::fusion},
      {"max_partitions", &FuseliteDelegateOptions::max_partitions},
      {"min_nodes_per_partition", &FuseliteDelegateOptions::min_nodes_per_partition},
      {"verbose", &FuseliteDelegateOptions::verbose}};
  for (const auto& [name, member] : numbers) {
    FuseliteDelegateOptions options = FuseliteDelegateOptionsDefault();
    options.report_error = KeepError;
    last_error.clear();
    options.*member = INT32_MAX;
    TfLiteDelegate* delegate = FuseliteDelegateCreate(&options);
    EXPECT_EQ(delegate, nullptr) << name;
    EXPECT_THAT(last_error, HasSubstr(name));
    FuseliteDelegateDelete(delegate);
    // -1: not given.
    options.*member = -1;
    delegate = FuseliteDelegateCreate(&options);
    EXPECT_NE(delegate, nullptr) << name;
    FuseliteDelegateDelete(delegate);
  }
  const std::pair<const char*, const char * FuseliteDelegateOptions::*> texts[] = {
      {"isa", &FuseliteDelegateOptions::isa},
      {"precision", &FuseliteDelegateOptions::precision},
      {"cache_mode", &FuseliteDelegateOptions::cache_mode},
      {"max_memory", &FuseliteDelegateOptions::max_memory},
      {"max_multiply_adds", &FuseliteDelegateOptions::max_multiply_adds}};
  for (const auto& [name, member] : texts) {
    FuseliteDelegateOptions options = FuseliteDelegateOptionsDefault();
    options.report_error = KeepError;
    options.*member = "nonsense";
    EXPECT_EQ(FuseliteDelegateCreate(&options), nullptr) << name;
    EXPECT_THAT(last_error, AllOf(HasSubstr(name), HasSubstr("nonsense")));
  }
}

TEST_F(CApiTest, NodesAreCalledAsIsAskedFor) {
  for (const char* name : {static_cast<const char*>(nullptr), "MyBlock"}) {
    FuseliteDelegateOptions options = FuseliteDelegateOptionsDefault();
    options.node_name = name;
    TfLiteDelegate* delegate = FuseliteDelegateCreate(&options);
    ASSERT_NE(delegate, nullptr);
    auto* const host_delegate = reinterpret_cast<fuselite::tflite::TfLiteDelegate*>(delegate);
    using fuselite::partitioner::Delegate;
    EXPECT_EQ(Delegate::FromC(host_delegate)->state()->options().node_name,
              name != nullptr ? name : fuselite::partitioner::Options().node_name);
    FuseliteDelegateDelete(delegate);
  }
  FuseliteDelegateDelete(nullptr);
}

std::string Explained(TfLiteDelegate* delegate, const char* format) {
  char* const text = FuseliteDelegateExplain(delegate, format);
  std::string copy = text != nullptr ? text : "null";
  FuseliteFree(text);
  return copy;
}

TEST_F(CApiTest, ExplainsInTheFormThatIsAskedFor) {
  FuseliteDelegateOptions options = FuseliteDelegateOptionsDefault();
  options.isa = "scalar";
  options.jit = options.fusion = 0;
  TfLiteDelegate* delegate = FuseliteDelegateCreate(&options);
  ASSERT_NE(delegate, nullptr);
  EXPECT_EQ(Explained(delegate, "text"), "fuselite: isa scalar, jit off, fusion off\n");
  EXPECT_THAT(Explained(delegate, "json"), ::testing::StartsWith("{"));
  EXPECT_THAT(Explained(delegate, "dot"), ::testing::StartsWith("digraph"));
  EXPECT_EQ(Explained(delegate, "xml"), "null");
  EXPECT_EQ(Explained(delegate, nullptr), "null");
  EXPECT_EQ(Explained(nullptr, "text"), "null");
  FuseliteDelegateCancel(delegate);
  FuseliteDelegateDelete(delegate);
}

TEST_F(CApiTest, CallersWithAShorterStructGetTheirOptions) {
  FuseliteDelegateOptions options = FuseliteDelegateOptionsDefault();
  options.struct_size = offsetof(FuseliteDelegateOptions, isa);
  options.isa = "beyond the caller's struct";
  TfLiteDelegate* delegate = FuseliteDelegateCreate(&options);
  EXPECT_NE(delegate, nullptr);
  FuseliteDelegateDelete(delegate);
}

TEST_F(CApiTest, RefusesAStructWithoutItsSize) {
  FuseliteDelegateOptions options{};
  options.report_error = KeepError;
  EXPECT_EQ(FuseliteDelegateCreate(&options), nullptr);
  EXPECT_THAT(last_error, IsEmpty());  // the struct is too short to have a report_error
  options.struct_size = offsetof(FuseliteDelegateOptions, isa) - 1;
  EXPECT_EQ(FuseliteDelegateCreate(&options), nullptr);
}

TEST_F(CApiTest, ThePluginTakesStrings) {
  std::string key = "num_threads", good = "2", bad = "two";
  char* keys[] = {key.data()};
  char* good_values[] = {good.data()};
  char* bad_values[] = {bad.data()};
  TfLiteDelegate* delegate = tflite_plugin_create_delegate(keys, good_values, 1, KeepError);
  ASSERT_NE(delegate, nullptr);
  tflite_plugin_destroy_delegate(delegate);
  EXPECT_THAT(last_error, IsEmpty());
  EXPECT_EQ(tflite_plugin_create_delegate(keys, bad_values, 1, KeepError), nullptr);
  EXPECT_THAT(last_error, AllOf(HasSubstr("num_threads"), HasSubstr("'two'")));
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(tflite_plugin_create_delegate(keys, bad_values, 1, nullptr), nullptr);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), last_error + "\n");
}

TEST_F(CApiTest, ThePluginRefusesNullStrings) {
  std::string key = "num_threads", value = "2";
  char* strings[] = {key.data()};
  char* values[] = {value.data()};
  char* nothing[] = {nullptr};
  EXPECT_EQ(tflite_plugin_create_delegate(nothing, values, 1, KeepError), nullptr);
  EXPECT_EQ(tflite_plugin_create_delegate(values, nullptr, 1, KeepError), nullptr);
  EXPECT_EQ(tflite_plugin_create_delegate(nullptr, values, 1, KeepError), nullptr);
  EXPECT_EQ(last_error, "fuselite: an option's key or value is null");
  EXPECT_EQ(tflite_plugin_create_delegate(strings, nothing, 1, KeepError), nullptr);
  EXPECT_EQ(tflite_plugin_create_delegate(nullptr, nullptr, 1, nullptr), nullptr);
  tflite_plugin_destroy_delegate(tflite_plugin_create_delegate(nullptr, nullptr, 0, KeepError));
  FuseliteDelegateCancel(nullptr);
}

TEST_F(CApiTest, WorksFromC) { EXPECT_EQ(CreateAndDeleteFromC(2), 1); }

TEST_F(CApiTest, HasAVersion) {
  EXPECT_THAT(FuseliteVersion(), ::testing::ContainsRegex("^[0-9]"));
}

}  // namespace
