#include "runtime/support/status.h"

#include <gtest/gtest.h>

namespace fuselite {
namespace {

TEST(StatusTest, SaysWhereItFailed) {
  const Status status = InvalidArgument("axis ", 3, " of rank ", 2).In("SUM").In("node 7");
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "node 7: SUM: axis 3 of rank 2");
  EXPECT_FALSE(status.ok());
}

TEST(StatusTest, OfSuccessHasNothingToSay) {
  const Status status = Status().In("node 7");
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(status.message(), "");
  EXPECT_EQ(status.ToString(), "ok");
}

TEST(StatusTest, AResultWithoutAValueIsAnError) {
  EXPECT_EQ(Result<int>(NotFound("it")).status().ToString(), "not found: it");
  const Result<int> neither{Status()};
  EXPECT_FALSE(neither.ok());
  EXPECT_EQ(neither.status().code(), StatusCode::kInternal);
}

TEST(StatusTest, CopiesAndMovesWhatItSays) {
  const Status good, bad = InvalidArgument("no");
  for (const Status& from : {good, bad}) {
    for (const Status& to : {good, bad}) {
      const Status copied(from);
      Status assigned = to;
      assigned = from;
      Status moved = to;
      moved = Status(from);
      for (const Status& status : {copied, assigned, moved}) {
        EXPECT_EQ(status.code(), from.code());
        EXPECT_EQ(status.ToString(), from.ToString());
      }
    }
  }
  EXPECT_EQ(bad.ToString(), "invalid argument: no");
  EXPECT_TRUE(Status(StatusCode::kOk, "ignored").ok());
}

}  // namespace
}  // namespace fuselite
