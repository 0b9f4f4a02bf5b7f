// What a model may ask for, and what the machine has.
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "runtime/memory/budget.h"
#include "runtime/memory/machine_memory.h"

namespace fuselite {
namespace {

TEST(Budget, NamesWhatIsAskedForAndAllowedInThreeDigits) {
  for (const auto& [bytes, text] :
       {std::pair(1.0, "1 B"), std::pair(999.4, "999 B"), std::pair(999.5, "1 kB"),
        std::pair(8.61e9, "8.61 GB"), std::pair(9994e17, "999 EB"), std::pair(2e24, "2e+06 EB")}) {
    const Status status = Budget{.max_memory = 0.5}.CheckMemory(bytes);
    EXPECT_EQ(status.code(), StatusCode::kOverBudget);
    EXPECT_EQ(status.message(), std::string("the model asks for ") + text +
                                    " of memory for its values, and max_memory allows 0.5 B");
  }
  for (const auto& [count, text] : {std::pair(2.0, "2"), std::pair(999.0, "999"),
                                    std::pair(1e3, "1 k"), std::pair(3e8, "300 M")}) {
    const Status status = Budget{.max_multiply_adds = 1}.CheckMultiplyAdds(count);
    EXPECT_EQ(status.code(), StatusCode::kOverBudget);
    EXPECT_EQ(status.message(), std::string("a run of the model takes ") + text +
                                    " multiply-adds, and max_multiply_adds allows 1");
  }
}

TEST(Budget, AllowsItsLimitAndEverythingWithoutOne) {
  EXPECT_TRUE(Budget{.max_memory = 16}.CheckMemory(16).ok());
  EXPECT_FALSE(Budget{.max_memory = 16}.CheckMemory(17).ok());
  EXPECT_TRUE(Budget{.max_multiply_adds = 16}.CheckMemory(17).ok());
  EXPECT_TRUE(Budget{.max_multiply_adds = 16}.CheckMultiplyAdds(16).ok());
  EXPECT_FALSE(Budget{.max_multiply_adds = 16}.CheckMultiplyAdds(17).ok());
  EXPECT_TRUE(Budget{.max_memory = 16}.CheckMultiplyAdds(17).ok());
}

TEST(Budget, ValuesAreAsLongAsTheirTypesSay) {
  const TensorInfo halves{.type = DataType::kFloat16, .shape = {2, 3}};
  const TensorInfo nibbles{.type = DataType::kInt4, .shape = {8}};
  EXPECT_TRUE(Budget{.max_memory = 16}.CheckMemory(std::vector{halves, nibbles}).ok());
  EXPECT_FALSE(Budget{.max_memory = 15}.CheckMemory(std::vector{halves, nibbles}).ok());
}

TEST(MachineMemory, IsTheGroupsWhereThatIsLess) {
  struct {
    double machine;
    const char* limit;
    double expected;
  } const kCases[] = {{100, "50\n", 50}, {100, "150\n", 100}, {100, "max\n", 100}, {100, "", 100},
                      {100, "0\n", 100}, {100, "-1\n", 100},  {0, "50\n", 50},     {0, "max\n", 0}};
  for (const auto& [machine, limit, expected] : kCases) {
    std::istringstream file(limit);
    EXPECT_EQ(internal::MemoryWithin(machine, file), expected) << machine << ", " << limit;
  }
  EXPECT_GT(MachineMemory(), 64e6);
}

}  // namespace
}  // namespace fuselite
