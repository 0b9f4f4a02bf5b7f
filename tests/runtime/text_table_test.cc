#include "runtime/support/text_table.h"

#include <gtest/gtest.h>

#include <sstream>

namespace fuselite {
namespace {

// Each column's kind follows from its cells; the heading says nothing.
TEST(TextTableTest, NumbersAreAlignedToTheRight) {
  TextTable table({"name", "plain", "signed", "part", "mixed", "later", "none", "signs", "x"});
  EXPECT_TRUE(table.empty());
  table.AddRow({"a", "1", "-5", ".5", "7", "seven", "-", "-", "x1"});
  EXPECT_FALSE(table.empty());
  table.AddRow({"b\u00e4r", "", "12", "0.25", "seven", "7", "3", ".x", "y2"});
  std::ostringstream out;
  table.Print(out, 1);
  EXPECT_EQ(out.str(),
            " name  plain  signed  part  mixed  later  none  signs  x\n"
            " a         1      -5    .5  7      seven     -  -      x1\n"
            " b\u00e4r              12  0.25  seven  7         3  .x     y2\n");
}

TEST(TextTableTest, RowsMayBeShortAndHaveWhatTheirHeadingHas) {
  TextTable table({"a", "b"});
  table.AddRow({"1"});
  table.AddRow({"1", "2", "beyond"});
  std::ostringstream out;
  table.Print(out);
  EXPECT_EQ(out.str(), "a  b\n1\n1  2\n");
}

// Line ends, DEL, and the escape of ASCII and of U+009B; other characters beyond ASCII stay.
TEST(TextTableTest, CellsAreOneLine) {
  TextTable table({"a", "b"});
  table.AddRow({"x\ny\x7f\x1b[2J", "b\u00e4r\u009b2J"});
  std::ostringstream out;
  table.Print(out);
  EXPECT_EQ(out.str(), "a         b\nx?y??[2J  b\u00e4r?2J\n");
  EXPECT_EQ(ShortName("x\ny"), "x?y");
}

TEST(TextTest, NumbersHaveThreeDigitsAndAPrefix) {
  EXPECT_EQ(Bytes(999), "999 B");
  EXPECT_EQ(Bytes(1000), "1.00 KB");
  EXPECT_EQ(Bytes(99900), "99.9 KB");
  EXPECT_EQ(Bytes(100e6), "100 MB");
  EXPECT_EQ(Count(12), "12");
  EXPECT_EQ(Count(1.144e9), "1.14 G");
  EXPECT_EQ(Count(5e15), "5000 T");
  EXPECT_EQ(Fixed(1.25, 3), "1.250");
}

TEST(TextTest, LongNamesKeepTheirEnds) {
  const std::string fits(60, 'x');
  EXPECT_EQ(ShortName(fits), fits);
  std::string name;
  for (int i = 0; i < 70; ++i) name += static_cast<char>('0' + i % 10);
  const std::string shortened = ShortName(name);
  EXPECT_EQ(shortened, name.substr(0, 28) + "..." + name.substr(70 - 29));
  EXPECT_EQ(shortened.size(), 60u);
}

}  // namespace
}  // namespace fuselite
