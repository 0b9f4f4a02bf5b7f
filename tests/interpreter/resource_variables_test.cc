// Variables in the interpreter alone: what they give, by hand, and what they refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/interpreter/flow_builder.h"

namespace fuselite::interpreter {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace testing;

TEST(Variables, RefuseWhatIsNoneOfTheirs) {
  struct Case {
    const char* message;
    void (*write)(Builder& b, int handle);
  };
  const auto read = [](Builder& b, int handle, DataType type, const Shape& shape) {
    const int value = b.Out(shape, type);
    b.AddOperator(kRead, {handle}, {value});
    b.End({value});
  };
  static constexpr auto kAssigned = [](Builder& b, int handle) {
    b.AddOperator(kAssign, {handle, b.AddConstant("value", kFloat, {2}, std::vector{3.0f, 4.0f})},
                  {});
  };
  static const auto kReads = read;
  const Case cases[] = {
      {"none",
       [](Builder& b, int handle) {
         kAssigned(b, handle);
         kReads(b, handle, kFloat, {2});
       }},
      {"none",
       [](Builder& b, int handle) {
         kAssigned(b, handle);
         kReads(b, handle, kFloat, Shape());
       }},
      {"nothing was assigned to its variable",
       [](Builder& b, int handle) { kReads(b, handle, kFloat, {2}); }},
      {"its variable has another type",
       [](Builder& b, int handle) {
         kAssigned(b, handle);
         kReads(b, handle, kInt, {2});
       }},
      {"its variable has 8 bytes, its output 12",
       [](Builder& b, int handle) {
         kAssigned(b, handle);
         kReads(b, handle, kFloat, {3});
       }},
      {"is no handle of a variable", [](Builder& b, int) { kReads(b, b.Number(1), kFloat, {2}); }},
      {"is no handle of a variable",
       [](Builder& b, int) { kReads(b, b.In({2}, kInt), kFloat, {2}); }},
      {"is no handle of a variable",
       [](Builder& b, int) {
         b.AddOperator(kAssign, {b.Number(1), b.Number(2)}, {});
         b.End({});
       }},
      {"nothing was assigned",
       [](Builder& b, int) {
         const int no_variable = b.AddConstant("one", kInt, {1}, std::vector{1});
         kReads(b, no_variable, kFloat, {2});
       }},
      {"its handle names no variable",
       [](Builder& b, int) {
         b.AddOperator(kAssign, {b.AddConstant("below", kInt, {1}, std::vector{-1}), b.Number(2)},
                       {});
         b.End({});
       }},
      {"expected 2 and 0",
       [](Builder& b, int handle) {
         b.AddOperator(kAssign, {handle}, {});
         b.End({});
       }},
      {"expected 1 and 1",
       [](Builder& b, int handle) {
         b.AddOperator(kRead, {handle, handle}, {b.Out({2})});
         b.End({});
       }},
      {"expected 0 and 1",
       [](Builder& b, int handle) {
         b.AddOperator(kVarHandle, {handle}, {b.Out({1}, kHandle)});
         b.End({});
       }},
      {"its output is no resource",
       [](Builder& b, int) {
         b.AddOperator(kVarHandle, {}, {b.Out({1}, kInt)});
         b.End({});
       }},
  };
  for (const auto& [message, write] : cases) {
    Builder b;
    const int handle = b.Out(Shape(), kHandle);
    b.AddOperator(kVarHandle, {}, {handle});
    write(b, handle);
    EXPECT_THAT(ErrorOf(b), HasSubstr(message));
  }
}

// Assigned a smaller value and a larger one, over several runs.
TEST(Variables, KeepWhatWasAssignedLast) {
  Builder b;
  const int x = b.In({1}), handle = b.Out(Shape(), kHandle), value = b.Out(Shape());
  b.AddOperator(kVarHandle, {}, {handle});
  b.AddOperator(kAssign, {handle, b.Op("CONCATENATION", {x, x, x}, {3})}, {});
  b.AddOperator(kAssign, {handle, b.Op("NEG", {x}, {1})}, {});
  b.AddOperator(kRead, {handle}, {value});
  b.End({value});
  const auto interpreter = OpenBuiltin(b);
  ASSERT_TRUE(interpreter->AllocateTensors().ok());
  for (const float given : {1.0f, 2.0f}) {
    *static_cast<float*>(interpreter->input(0).data) = given;
    ASSERT_TRUE(interpreter->Invoke().ok());
    EXPECT_THAT(Output(*interpreter), ElementsAre(-given));
    EXPECT_EQ(interpreter->output(0).shape, Shape({1}));
  }
}

}  // namespace
}  // namespace fuselite::interpreter
