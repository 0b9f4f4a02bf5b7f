#include "tools/zoo/zoo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/common/session.h"
#include "tools/common/tensors.h"

namespace fuselite::tools {
namespace {

using ::testing::HasSubstr;

TEST(ZooTest, EveryModelIsTakenWholeAndAgreesWithTheReference) {
  const auto options = partitioner::ParseOptions({}, [](const char*) { return nullptr; });
  ASSERT_TRUE(options.ok());
  for (const ZooModel& entry : Zoo()) {
    SCOPED_TRACE(entry.name);
    const auto model = OpenModel("zoo:" + std::string(entry.name));
    ASSERT_TRUE(model.ok()) << model.status().message();
    const Result<Session> reference = OpenSession(*model, {.num_threads = 2}, {});
    const Result<Session> fuselite =
        OpenSession(*model, {.num_threads = 2}, {.fuselite = &*options});
    ASSERT_TRUE(reference.ok()) << reference.status().message();
    ASSERT_TRUE(fuselite.ok()) << fuselite.status().message();
    const DelegateCounts counts = CountDelegated(*fuselite->delegate);
    EXPECT_EQ(counts.claimed, counts.nodes);
    EXPECT_EQ(counts.partitions, 1);
    EXPECT_GT(counts.steps, 0);
    for (const Session* session : {&*reference, &*fuselite}) {
      Status status = FillRandom(*session->interpreter, 7);
      if (status.ok()) status = session->interpreter->Invoke();
      ASSERT_TRUE(status.ok()) << status.message();
    }
    const interpreter::TensorView output = reference->interpreter->output(0);
    const Difference difference =
        Compare(*CopyTensor(fuselite->interpreter->output(0)), *CopyTensor(output));
    EXPECT_GT(difference.range, 0);
    EXPECT_LE(difference.max, DefaultTolerance(output.type, difference.range, kFloatPart));
  }
}

TEST(ZooTest, UnknownNamesAreAnsweredWithTheKnownOnes) {
  EXPECT_THAT(OpenModel("zoo:mobilenet_v9").status().message(), HasSubstr("mobilenet_v2"));
}

}  // namespace
}  // namespace fuselite::tools
