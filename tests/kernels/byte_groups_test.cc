#include "kernels/product/byte_groups.h"

#include <cstring>

#include "tests/kernels/guarded_bytes.h"
#include "tests/kernels/op_tester.h"

namespace fuselite::kernels::testing {
namespace {

// One group as its definition has it; values behind the last are zeros.
std::array<std::byte, 4> GroupOf(const ByteGroups& form, std::span<const uint8_t> row, int64_t g) {
  std::array<std::byte, 4> group{};
  for (int i = 0; i < form.values(); ++i) {
    const size_t k = g * form.values() + i;
    if (k >= row.size()) break;
    const int value = static_cast<int8_t>(row[k] ^ form.flip) - form.offset;
    if (form.shape == ByteGroups::kWidePairs) {
      const auto wide = static_cast<int16_t>(value);
      std::memcpy(group.data() + 2 * i, &wide, sizeof(wide));
    } else {
      group[i] = static_cast<std::byte>(value);
    }
  }
  return group;
}

TEST(ByteGroupsTest, GroupsOfRowsLieSideBySide) {
  const std::vector<Isa> isas = RunnableIsas();
  for (uint64_t seed = 1; seed <= 1000; ++seed) {
    Random random(seed);
    SCOPED_TRACE(random.Trace());
    ByteGroups form{
        .shape = random.Pick({ByteGroups::kQuads, ByteGroups::kPairs, ByteGroups::kWidePairs}),
        .flip = static_cast<uint8_t>(random.Chance(0.5) ? 0x80 : 0)};
    if (form.shape == ByteGroups::kWidePairs)
      form.offset = static_cast<int32_t>(random.Int(-160, 160));
    const int64_t count = random.Int(0, 70), row_count = 4 * random.Int(1, 4);
    const int64_t groups = (count + form.values() - 1) / form.values();
    const auto step =
        static_cast<int64_t>(AlignUp(row_count * form.bytes(), 16)) + 16 * random.Int(0, 2);
    std::vector<std::vector<uint8_t>> rows(row_count, std::vector<uint8_t>(count));
    std::vector<const uint8_t*> starts;
    for (auto& row : rows) {
      for (uint8_t& value : row) value = static_cast<uint8_t>(random.Int(0, 255));
      starts.push_back(row.data());
    }
    AlignedBuffer packed(static_cast<size_t>(groups * step + 1));
    constexpr std::byte kUntouched{0xA5};
    std::fill_n(packed.data(), packed.size(), kUntouched);
    PackGroups(isas[seed % isas.size()], form, starts, count, packed.data(), step);
    for (int64_t g = 0; g < groups; ++g) {
      for (int64_t i = 0; i < row_count; ++i) {
        std::array<std::byte, 4> group{};
        std::memcpy(group.data(), packed.data() + g * step + i * form.bytes(), form.bytes());
        ASSERT_EQ(group, GroupOf(form, rows[i], g)) << "group " << g << " of row " << i;
      }
      for (int64_t i = row_count * form.bytes(); i < step; ++i) {
        ASSERT_EQ(packed.data()[g * step + i], kUntouched);
      }
    }
  }
}

// Rows or columns of a matrix, packed to quads whose places are in any order.
void CompareQuads(Isa isa, Random& random, bool of_rows) {
  const auto flip = static_cast<uint8_t>(random.Chance(0.5) ? 0x80 : 0);
  const int64_t lines = random.Int(1, 100), depth = random.Int(0, random.Chance(0.1) ? 600 : 40);
  const int64_t pitch = (of_rows ? depth : lines) + random.Int(0, 20);
  const int64_t quads = (lines + 15) / 16 * 4 - random.Int(0, (16 - (lines + 15) % 16 - 1) / 4);
  const int64_t groups = (depth + 3) / 4, step = 16 * (quads + random.Int(0, 2));
  // The values end where a page does that nobody may read.
  const int64_t last = of_rows ? (lines - 1) * pitch + depth : (depth - 1) * pitch + lines;
  std::vector<uint8_t> values(depth == 0 ? 0 : last);
  for (uint8_t& value : values) value = static_cast<uint8_t>(random.Int(0, 255));
  const GuardedBytes guarded(values.data(), values.size(), GuardedBytes::Edge::kEnd);
  const auto* from = reinterpret_cast<const uint8_t*>(guarded.data());
  std::vector<int64_t> places(quads);
  for (int64_t q = 0; q < quads; ++q) places[q] = 16 * q;
  for (int64_t q = quads; q > 1; --q) std::swap(places[q - 1], places[random.Int(0, q - 1)]);
  constexpr std::byte kUntouched{0xA5};
  AlignedBuffer packed(static_cast<size_t>(groups * step + 1));
  std::fill_n(packed.data(), packed.size(), kUntouched);
  std::vector<int32_t> sums(4 * quads, 1000);
  if (of_rows) {
    PackRowQuads(isa, flip, {from, pitch, lines}, depth, places, packed.data(), step, sums.data());
  } else {
    PackColumnQuads(isa, flip, {from, pitch, lines}, depth, places, packed.data(), step,
                    sums.data());
  }
  for (int64_t i = 0; i < 4 * quads; ++i) {
    std::vector<uint8_t> line;
    int32_t sum = 1000;
    for (int64_t k = 0; i < lines && k < depth; ++k) {
      line.push_back(of_rows ? values[i * pitch + k] : values[k * pitch + i]);
      sum += static_cast<int8_t>(line.back() ^ flip);
    }
    ASSERT_EQ(sums[i], sum) << "line " << i;
    for (int64_t g = 0; g < groups; ++g) {
      std::array<std::byte, 4> group{};
      std::memcpy(group.data(), packed.data() + g * step + places[i / 4] + i % 4 * 4, 4);
      ASSERT_EQ(group, GroupOf({.flip = flip}, line, g)) << "group " << g << " of line " << i;
    }
  }
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t i = 16 * quads; i < step; ++i) {
      ASSERT_EQ(packed.data()[g * step + i], kUntouched);
    }
  }
}

void CompareQuadsOfEachIsa(bool of_rows) {
  for (const Isa isa : RunnableIsas()) {
    for (uint64_t seed = 1; seed <= 300; ++seed) {
      Random random(seed);
      SCOPED_TRACE(internal::Join(IsaName(isa), ' ', random.Trace()));
      CompareQuads(isa, random, of_rows);
    }
  }
}

TEST(ByteGroupsTest, QuadsOfColumnsLieWhereTheyAreSaidTo) { CompareQuadsOfEachIsa(false); }

TEST(ByteGroupsTest, QuadsOfRowsLieWhereTheyAreSaidTo) { CompareQuadsOfEachIsa(true); }

}  // namespace
}  // namespace fuselite::kernels::testing
