#include "runtime/support/caught.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "runtime/support/is_index.h"

namespace fuselite {
namespace {

TEST(Caught, ExceptionsBecomeErrorsOfWhatWasDone) {
  const auto message = [](auto body) { return Guarded("reading", body).ToString(); };
  EXPECT_EQ(message([] { return Status(); }), "ok");
  EXPECT_EQ(message([] { return InvalidArgument("no"); }), "invalid argument: no");
  EXPECT_EQ(message([]() -> Status { throw std::bad_alloc(); }),
            "out of memory: reading: no memory left");
  EXPECT_EQ(message([]() -> Status { throw std::runtime_error("odd"); }),
            "internal error: reading: odd");
  EXPECT_EQ(message([]() -> Status { throw 1; }),
            "internal error: reading: an exception of unknown type");
}

TEST(Caught, AnExceptionIsDescribedWithoutMemory) {
  const auto describe = [](auto exception) {
    try {
      throw exception;
    } catch (...) {
      const CaughtError error = DescribeCaught();
      return std::pair(error.code, std::string(error.text));
    }
  };
  EXPECT_EQ(describe(std::bad_alloc()),
            std::pair(StatusCode::kOutOfMemory, std::string("no memory left")));
  EXPECT_EQ(describe(std::runtime_error("odd")),
            std::pair(StatusCode::kInternal, std::string("odd")));
  EXPECT_EQ(describe(1),
            std::pair(StatusCode::kInternal, std::string("an exception of unknown type")));
}

TEST(Caught, AResultKeepsItsValue) {
  EXPECT_EQ(*Guarded("counting", []() -> Result<int> { return 3; }), 3);
  EXPECT_EQ(Guarded("counting", []() -> Result<int> { throw std::bad_alloc(); }).status().code(),
            StatusCode::kOutOfMemory);
}

TEST(IsIndex, TakesWhatAListHas) {
  EXPECT_TRUE(IsIndex(0, 1));
  EXPECT_TRUE(IsIndex(6, 7));
  EXPECT_FALSE(IsIndex(7, 7));
  EXPECT_FALSE(IsIndex(0, 0));
  EXPECT_FALSE(IsIndex(-1, SIZE_MAX));
  EXPECT_FALSE(IsIndex(INT64_MIN, SIZE_MAX));
}

}  // namespace
}  // namespace fuselite
