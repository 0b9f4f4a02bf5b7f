// Text for terminals: tables, and numbers that are read rather than computed with.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace fuselite {

// Columns as wide as their widest cell, two spaces apart. Columns whose cells (all but the heading)
// are numbers are aligned to the right. Cells are printed as OneLine() has them.
class TextTable {
 public:
  explicit TextTable(std::vector<std::string> heading) : rows_{std::move(heading)} {}
  void AddRow(std::vector<std::string> cells);
  bool empty() const { return rows_.size() == 1; }
  // Each line begins with `indent` spaces.
  void Print(std::ostream& out, int indent = 0) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// `value` with `digits` digits after the point.
std::string Fixed(double value, int digits);
// "1.2 GB", "34 KB": decimal units.
std::string Bytes(double bytes);
// OneLine() of a name of at most 60 characters, of a longer one with "..." in the place of its
// middle: converters make names of a thousand, which tell apart what they name by their ends.
std::string ShortName(std::string_view name);
// "1.14 G", "569 M": for counts of operations.
std::string Count(double count);

}  // namespace fuselite
