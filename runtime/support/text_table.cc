#include "runtime/support/text_table.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <ostream>
#include <string_view>

#include "runtime/support/printable.h"

namespace fuselite {
namespace {

// Bytes of UTF-8 that continue a character take no column.
size_t Width(std::string_view text) {
  return std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; });
}

bool LooksNumeric(const std::string& cell) {
  return cell.empty() || cell == "-" || std::isdigit(static_cast<unsigned char>(cell[0])) ||
         ((cell[0] == '-' || cell[0] == '.') && std::isdigit(static_cast<unsigned char>(cell[1])));
}

std::string Scaled(double value, std::string_view suffix) {
  static constexpr std::array<const char*, 5> kPrefixes = {"", "K", "M", "G", "T"};
  size_t i = 0;
  while (value >= 1000 && i + 1 < kPrefixes.size()) {
    value /= 1000;
    ++i;
  }
  const int digits = i == 0 || value >= 100 ? 0 : value >= 10 ? 1 : 2;
  return Fixed(value, digits) + ' ' + kPrefixes[i] + std::string(suffix);
}

}  // namespace

void TextTable::AddRow(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = OneLine(cell);
  rows_.push_back(std::move(cells));
}

void TextTable::Print(std::ostream& out, int indent) const {
  const size_t columns = rows_[0].size();
  std::vector<size_t> widths(columns, 0);
  std::vector<bool> numeric(columns, true);
  for (size_t r = 0; r < rows_.size(); ++r) {
    for (size_t c = 0; c < columns && c < rows_[r].size(); ++c) {
      widths[c] = std::max(widths[c], Width(rows_[r][c]));
      if (r > 0) numeric[c] = numeric[c] && LooksNumeric(rows_[r][c]);
    }
  }
  for (const auto& row : rows_) {
    std::string line(indent, ' ');
    for (size_t c = 0; c < columns && c < row.size(); ++c) {
      const std::string fill(widths[c] - Width(row[c]), ' ');
      if (c) line += "  ";
      line += numeric[c] ? fill + row[c] : row[c] + fill;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out << line << '\n';
  }
}

std::string Fixed(double value, int digits) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

std::string Bytes(double bytes) { return Scaled(bytes, "B"); }
std::string ShortName(std::string_view name) {
  constexpr size_t kLongest = 60;
  constexpr std::string_view kMiddle = "...";
  if (name.size() <= kLongest) return OneLine(name);
  const size_t front = (kLongest - kMiddle.size()) / 2, back = kLongest - kMiddle.size() - front;
  return OneLine(name.substr(0, front))
      .append(kMiddle)
      .append(OneLine(name.substr(name.size() - back)));
}

std::string Count(double count) {
  std::string text = Scaled(count, "");
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

}  // namespace fuselite
