// The accelerator of LiteRT's CompiledModel, loaded and called as LiteRT does.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "partitioner/litert/accelerator_abi.h"
#include "runtime/support/sanitizers.h"

namespace fuselite::litert {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// What LiteRT would do, under the test's control.
struct {
  LiteRtStatus get_options, find_options, wrap;
  const char* toml;
  std::string asked;  // the identifier of the options
  void* delegate;
  void (*destroy)(void* delegate);
} runtime;

LiteRtStatus GetOptions(void* options, void** opaque) {
  *opaque = options;
  return runtime.get_options;
}

LiteRtStatus FindOptions(void*, const char* identifier, void** data) {
  runtime.asked = identifier;
  *data = const_cast<char*>(runtime.toml);
  return runtime.find_options;
}

LiteRtStatus Wrap(void* delegate, void (*destroy)(void* delegate), void** wrapper) {
  runtime.delegate = delegate;
  runtime.destroy = destroy;
  *wrapper = delegate;
  return runtime.wrap;
}

class AcceleratorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // libgomp leaves 8 bytes behind whenever it is unloaded, of which nobody could say then whose
    // they are.
    const int keep = kAddressSanitizer ? RTLD_NODELETE : 0;
    library_ = dlopen(FUSELITE_ACCELERATOR, RTLD_NOW | RTLD_LOCAL | keep);
    ASSERT_NE(library_, nullptr) << dlerror();
    accelerator_ =
        static_cast<const AcceleratorDefinition*>(dlsym(library_, "LiteRtAcceleratorImpl"));
    ASSERT_NE(accelerator_, nullptr);
    runtime = {};
    context_.header = {sizeof(RuntimeContext), 1, 0, 0};
    context_.get_opaque_options = GetOptions;
    context_.find_opaque_options_data = FindOptions;
    context_.wrap_delegate = Wrap;
  }
  void TearDown() override { dlclose(library_); }

  // Creates a delegate with these options for the CPU and destroys it; what was said.
  std::string Create(LiteRtStatus expected, const char* toml, bool made) {
    runtime.toml = toml;
    runtime.delegate = nullptr;
    void* wrapper = this;
    ::testing::internal::CaptureStderr();
    const LiteRtStatus status =
        accelerator_->create_delegate(&context_, nullptr, nullptr, options_, &wrapper);
    EXPECT_EQ(status, expected);
    EXPECT_EQ(runtime.delegate != nullptr, made);
    if (status == kOk) {
      EXPECT_EQ(wrapper, runtime.delegate);
      if (made) runtime.destroy(runtime.delegate);
    }
    return ::testing::internal::GetCapturedStderr();
  }

  void* library_ = nullptr;
  const AcceleratorDefinition* accelerator_ = nullptr;
  RuntimeContext context_{};
  void* options_ = &context_;  // any address: the runtime's functions alone know what it is
};

TEST_F(AcceleratorTest, SaysWhatItIs) {
  EXPECT_EQ(accelerator_->header.struct_size, sizeof(AcceleratorDefinition));
  EXPECT_EQ(accelerator_->header.major_version, 1);
  const char* name = nullptr;
  ApiVersion version{};
  int32_t hardware = 0;
  bool just_in_time = false;
  EXPECT_EQ(accelerator_->get_name(nullptr, &name), kOk);
  EXPECT_STREQ(name, "fuselite");
  EXPECT_EQ(accelerator_->get_version(nullptr, &version), kOk);
  EXPECT_EQ(version.major, 1);
  EXPECT_EQ(accelerator_->get_hardware_support(nullptr, &hardware), kOk);
  EXPECT_EQ(hardware, kHardwareCpu);
  EXPECT_EQ(accelerator_->compiles_just_in_time(nullptr, &just_in_time), kOk);
  EXPECT_TRUE(just_in_time);
  EXPECT_EQ(accelerator_->get_name(nullptr, nullptr), kInvalidArgument);
  EXPECT_EQ(accelerator_->get_version(nullptr, nullptr), kInvalidArgument);
  EXPECT_EQ(accelerator_->get_hardware_support(nullptr, nullptr), kInvalidArgument);
  EXPECT_EQ(accelerator_->compiles_just_in_time(nullptr, nullptr), kInvalidArgument);
}

TEST_F(AcceleratorTest, ReadsTheOptionsForTheCpu) {
  EXPECT_EQ(Create(kOk, "", true), "");
  EXPECT_EQ(runtime.asked, "xnnpack");
  EXPECT_EQ(Create(kOk, nullptr, true), "");
  EXPECT_EQ(Create(kOk, "num_threads = 2", true), "");
  EXPECT_EQ(Create(kOk, "num_threads = 0\nnum_threads = -3\n", true), "");
  EXPECT_EQ(Create(kOk, "kernel_mode = \"delegate\"", true), "");
  EXPECT_EQ(Create(kOk, "kernel_mode = \"builtin\"", false), "");
  EXPECT_EQ(Create(kOk, "kernel_mode = \" \"\t", false), "") << "no mode of ours";
  EXPECT_EQ(Create(kOk, "kernel_mode", true), "") << "a line that says nothing";
  EXPECT_EQ(Create(kOk, "other = builtin", true), "");
  EXPECT_EQ(Create(kOk, "a line without\n\n \t kernel_mode\t= \"reference\" \nother = 1", false),
            "");
  // What a line gives reaches the delegate's options, which refuse it.
  EXPECT_THAT(Create(kRuntimeFailure, "kernel_mode = delegate\nnum_threads=2000000000", false),
              HasSubstr("num_threads"));
}

TEST_F(AcceleratorTest, DoesWithoutOptions) {
  runtime.find_options = kNotFound;
  EXPECT_EQ(Create(kOk, "kernel_mode = builtin", true), "");
  runtime.find_options = kWrongVersion;
  EXPECT_THAT(Create(kWrongVersion, "", false), HasSubstr("options for the CPU cannot be read"));
  runtime.find_options = kOk;
  runtime.get_options = kNotFound;
  EXPECT_EQ(Create(kOk, "kernel_mode = builtin", true), "");
  runtime.get_options = kOk;
  context_.get_opaque_options = nullptr;
  EXPECT_EQ(Create(kOk, "kernel_mode = builtin", true), "");
  context_.get_opaque_options = GetOptions;
  context_.find_opaque_options_data = nullptr;
  EXPECT_EQ(Create(kOk, "kernel_mode = builtin", true), "");
  context_.find_opaque_options_data = FindOptions;
  options_ = nullptr;
  EXPECT_EQ(Create(kOk, "kernel_mode = builtin", true), "");
}

TEST_F(AcceleratorTest, RefusesRuntimesThatItDoesNotKnow) {
  constexpr char kRefused[] = "fuselite: the CompiledModel is not accelerated: LiteRT";
  context_.header.major_version = 2;
  EXPECT_THAT(Create(kWrongVersion, "", false), StartsWith(kRefused));
  context_.header.major_version = 1;
  context_.header.struct_size = sizeof(RuntimeContext) - 1;
  EXPECT_THAT(Create(kWrongVersion, "", false), StartsWith(kRefused));
  context_.header.struct_size = sizeof(RuntimeContext) + 8;
  EXPECT_EQ(Create(kOk, "", true), "");
  context_.wrap_delegate = nullptr;
  EXPECT_THAT(Create(kWrongVersion, "", false), StartsWith(kRefused));
  void* wrapper = nullptr;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(accelerator_->create_delegate(nullptr, nullptr, nullptr, nullptr, &wrapper),
            kInvalidArgument);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), StartsWith(kRefused));
}

TEST_F(AcceleratorTest, PassesOnWhatWrappingSays) {
  EXPECT_EQ(accelerator_->create_delegate(&context_, nullptr, nullptr, options_, nullptr),
            kInvalidArgument);
  runtime.wrap = kRuntimeFailure;
  EXPECT_EQ(Create(kRuntimeFailure, "", true), "");
}

}  // namespace
}  // namespace fuselite::litert
