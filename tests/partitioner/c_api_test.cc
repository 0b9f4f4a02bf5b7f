// The shared library as a C or C++ program sees it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "fuselite/delegate.h"
#include "runtime/tflite_abi.h"
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

TEST_F(CApiTest, CallersWithAShorterStructGetTheirOptions) {
  FuseliteDelegateOptions options = FuseliteDelegateOptionsDefault();
  options.struct_size = offsetof(FuseliteDelegateOptions, isa);
  options.isa = "beyond the caller's struct";
  TfLiteDelegate* delegate = FuseliteDelegateCreate(&options);
  EXPECT_NE(delegate, nullptr);
  FuseliteDelegateDelete(delegate);
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
