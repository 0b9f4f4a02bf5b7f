// The file in which packed weights are kept: whatever its bytes are, it is refused in one line that
// names it, or what it gives can be read to the end.
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "runtime/memory/mapped_file.h"
#include "runtime/weights/packed_file.h"
#include "tests/fuzz/target.h"

namespace fuselite::fuzz {
namespace {

constexpr size_t kPackings = 4;

// The keys are 1 to kPackings; the packings have 0, 64, 65 and 300 bytes.
std::vector<std::byte> PackingOf(size_t i) {
  constexpr std::array<size_t, kPackings> kSizes = {0, 64, 65, 300};
  return std::vector<std::byte>(kSizes[i], static_cast<std::byte>(i + 1));
}

const std::string& Path() {
  static const std::string path =
      testing::TempDir() + "packed_file_fuzz_" + std::to_string(getpid());
  return path;
}

std::string WrittenFile() {
  std::vector<std::vector<std::byte>> all;
  std::vector<PackedBytes> packings;
  for (size_t i = 0; i < kPackings; ++i) all.push_back(PackingOf(i));
  for (size_t i = 0; i < kPackings; ++i) packings.push_back({{i + 1, 0}, all[i]});
  EXPECT_TRUE(WritePackedFile(Path(), packings).ok());
  std::ifstream file(Path(), std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// What the first byte asks for: the rest of the input as a file, or changes of a written one: three
// bytes each, a place and what is added there. The hash of the index is made right again where that
// is asked for too, so that the entries are looked at.
std::string FileOf(std::span<const uint8_t> bytes) {
  static const std::string written = WrittenFile();
  const int how = bytes.empty() ? 0 : bytes[0];
  if (how % 4 == 3) return {bytes.begin() + 1, bytes.end()};
  std::string file = written;
  for (size_t i = 1; i + 3 <= bytes.size(); i += 3) {
    const size_t at = (bytes[i] + size_t{256} * bytes[i + 1]) % file.size();
    file[at] = static_cast<char>(file[at] + bytes[i + 2]);
  }
  if (how % 4 == 2) file.resize(file.size() * static_cast<size_t>(how) / 256);
  FileHeader header;
  if (how % 4 != 1 || file.size() < sizeof header) return file;
  std::memcpy(&header, file.data(), sizeof header);
  const size_t index = header.entries * sizeof(FileEntry);
  if (index > file.size() - sizeof header) return file;
  header.index = HashBytes(file.data() + sizeof header, index);
  header.build = BuildIdentity();
  header.file_bytes = file.size();
  std::memcpy(file.data(), &header, sizeof header);
  return file;
}

void ExpectRefused(const Status& status, const std::string& path) {
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(status.message().find('\n'), std::string::npos);
  EXPECT_NE(status.message().find(path), std::string::npos);
}

// What is no file of one's own: one that others may write, a link, a folder, nothing. Nor is
// anything written where there is no folder. A model, in contrast, is read through a link.
void CheckOtherPaths(bool empty) {
  const std::string link = Path() + ".link";
  std::error_code error;
  std::filesystem::create_symlink(Path(), link, error);
  using std::filesystem::perms;
  std::filesystem::permissions(Path(), perms::owner_all | perms::others_write);
  for (const std::string& path : {Path(), link, testing::TempDir(), Path() + ".none"}) {
    ExpectRefused(PackedFile::Open(path).status(), path);
  }
  EXPECT_EQ(MappedFile::Open(link).ok(), !empty);
  const std::string nowhere = Path() + "/file";
  ExpectRefused(WritePackedFile(nowhere, std::vector<PackedBytes>()), nowhere);
  std::filesystem::remove(link);
}

}  // namespace

void FuzzOne(std::span<const uint8_t> bytes) {
  const std::string content = FileOf(bytes);
  std::filesystem::remove(Path());
  std::ofstream(Path(), std::ios::binary) << content;
  if (bytes.size() % 16 == 1) CheckOtherPaths(content.empty());
  std::filesystem::permissions(Path(), std::filesystem::perms::owner_all);
  const auto file = PackedFile::Open(Path());
  if (!file.ok()) return ExpectRefused(file.status(), Path());
  for (const FileEntry& entry : (*file)->entries()) {
    const PackedWeights packed = (*file)->Find(entry.key, entry.bytes);
    if (packed == nullptr) continue;
    EXPECT_EQ(HashBytes(packed->data(), packed->size()), entry.content);
    volatile std::byte behind = packed->data()[packed->size() + kAlignment - 1];
    (void)behind;
  }
  for (size_t i = 0; i < kPackings; ++i) {
    const std::vector<std::byte> packing = PackingOf(i);
    const PackedWeights packed = (*file)->Find({i + 1, 0}, packing.size());
    if (packed == nullptr || bytes.empty() || bytes[0] % 4 != 0) continue;
    EXPECT_TRUE(std::equal(packing.begin(), packing.end(), packed->data()));
  }
  std::filesystem::remove(Path());
}

}  // namespace fuselite::fuzz
