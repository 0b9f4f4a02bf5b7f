#include "tools/inputs/image.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <numeric>
#include <span>
#include <string_view>

#include "kernels/resize/resize.h"
#include "runtime/support/printable.h"
#include "tools/inputs/files.h"

// The decoder reads tables that a file uses and does not have: it shall find zeros there, and not
// what the memory held before. Its assertions are about files, too, which must end no process.
#define STBI_MALLOC(bytes) std::calloc(1, bytes)
#define STBI_REALLOC(memory, bytes) std::realloc(memory, bytes)
#define STBI_FREE(memory) std::free(memory)
#define STBI_ASSERT(condition) static_cast<void>(0)

// Only the formats of photographs are decoded: the other decoders of stb_image are of no use to a
// model.
#define STB_IMAGE_IMPLEMENTATION
#define STB_IMAGE_STATIC
#define STBI_ONLY_JPEG
#define STBI_ONLY_PNG
#define STBI_ONLY_BMP
#define STBI_NO_STDIO
#define STBI_MAX_DIMENSIONS (1 << 16)
#include <stb_image.h>

namespace fuselite::tools {
namespace {

// 256 MiB as RGBA: beyond any camera, within any machine.
constexpr int64_t kMaxPixels = int64_t{1} << 26;

using Pixels = std::unique_ptr<stbi_uc, void (*)(void*)>;

// [rows, columns, channels] of bytes.
struct Decoded {
  int height = 0, width = 0, channels = 0;
  Pixels pixels{nullptr, stbi_image_free};
};

// Whether one of the Huffman tables of a JPEG's segment has more symbols than the decoder has room
// for: it takes a file's word for how many there are. `segment` begins with its length in two bytes
// and goes on to the end of the file, beyond which the decoder reads zeros.
bool HasLongTable(std::span<const stbi_uc> segment, size_t length) {
  // A byte of the table's name, and how many symbols have 1 to 16 bits.
  constexpr size_t kHead = 17;
  constexpr int kMostSymbols = 256;
  for (size_t at = 2; at < length && at < segment.size();) {
    const auto head = segment.subspan(at, std::min(kHead, segment.size() - at));
    const int symbols = std::accumulate(head.begin() + 1, head.end(), 0);
    if (symbols > kMostSymbols) return true;
    at += kHead + static_cast<size_t>(symbols);
  }
  return false;
}

// As HasLongTable(), of all tables that the decoder comes to. Follows its markers as it does:
// segment by segment, and through a scan's codes to the first marker that is none of a restart.
// What stands behind the image's end is not looked at: cameras put films there.
bool HasLongTables(std::span<const stbi_uc> file) {
  constexpr stbi_uc kRestart = 0xD0, kBegin = 0xD8, kEnd = 0xD9, kTables = 0xC4, kScan = 0xDA;
  bool codes = false;
  for (size_t at = 0; at + 4 <= file.size();) {
    const stbi_uc marker = file[at + 1];
    if (file[at] != 0xFF || marker == 0xFF || marker == 0 ||
        (codes && (marker & 0xF8) == kRestart)) {
      ++at;
      continue;
    }
    if (marker == kEnd) return false;
    at += 2;
    if (marker == kBegin) continue;
    const std::span<const stbi_uc> segment = file.subspan(at);
    const size_t length = size_t{segment[0]} << 8 | segment[1];
    if (marker == kTables && HasLongTable(segment, length)) return true;
    at += length;
    codes = marker == kScan;
  }
  return false;
}

template <std::endian order>
uint32_t Number(std::span<const stbi_uc> bytes) {
  uint32_t number = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    number |= uint32_t{bytes[order == std::endian::little ? i : bytes.size() - 1 - i]} << 8 * i;
  }
  return number;
}

// Whether a PNG ends before its last chunk, "IEND". What a file lacks, the decoder takes for zeros.
bool IsCutPng(std::span<const stbi_uc> file) {
  constexpr size_t kSignature = 8, kHead = 8, kChecksum = 4;
  constexpr uint32_t kEnd = 0x49454E44;
  for (size_t at = kSignature; at + kHead <= file.size();) {
    const uint32_t length = Number<std::endian::big>(file.subspan(at, 4));
    if (Number<std::endian::big>(file.subspan(at + 4, 4)) == kEnd) return false;
    at += kHead + length + kChecksum;
  }
  return true;
}

// Whether a BMP ends before its last pixel. Only rows that follow one are filled up to 32 bits:
// some writers leave the last one as it is.
bool IsCutBmp(std::span<const stbi_uc> file, int64_t width, int64_t height) {
  constexpr size_t kHeaders = 30, kOldHeader = 12;
  if (file.size() < kHeaders) return true;
  const bool old = Number<std::endian::little>(file.subspan(14, 4)) == kOldHeader;
  const int64_t begin = Number<std::endian::little>(file.subspan(10, 4));
  const int64_t bits = width * Number<std::endian::little>(file.subspan(old ? 24 : 28, 2));
  const int64_t last = (bits + 7) / 8, row = (bits + 31) / 32 * 4;
  return static_cast<int64_t>(file.size()) < begin + row * (height - 1) + last;
}

Result<Decoded> Decode(const std::string& path, int channels) {
  FUSELITE_ASSIGN_OR_RETURN(std::ifstream file, OpenForReading(path));
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const auto* data = reinterpret_cast<const stbi_uc*>(bytes.data());
  const int size = static_cast<int>(std::min<size_t>(bytes.size(), INT32_MAX));
  if (bytes.starts_with('\xFF') && HasLongTables({data, bytes.size()})) {
    return InvalidArgument(path, ": cannot be decoded: a table of more than 256 symbols");
  }
  const auto cut = [&] {
    return InvalidArgument(path, ": cannot be decoded: the file is cut off after ", bytes.size(),
                           " bytes");
  };
  if (bytes.starts_with("\x89PNG\r\n\x1a\n") && IsCutPng({data, bytes.size()})) return cut();
  Decoded image;
  int in_file;
  if (stbi_info_from_memory(data, size, &image.width, &image.height, &in_file) == 0) {
    return InvalidArgument(path, ": is no JPEG, PNG or BMP image");
  }
  // BMP files whose first row is the lowest one have a negative height here.
  const int64_t height = std::abs(int64_t{image.height});
  if (image.width < 1 || height < 1 || image.width * height > kMaxPixels) {
    return InvalidArgument(path, ": has ", image.width, " x ", height, " pixels, from 1 to ",
                           kMaxPixels, " are taken");
  }
  if (bytes.starts_with("BM") && IsCutBmp({data, bytes.size()}, image.width, height)) return cut();
  image.channels = channels;
  image.pixels.reset(
      stbi_load_from_memory(data, size, &image.width, &image.height, &in_file, channels));
  if (image.pixels == nullptr) {
    return InvalidArgument(path, ": cannot be decoded: ", Printable(stbi_failure_reason()));
  }
  return image;
}

// The bytes as real numbers, [height, width, channels].
std::vector<float> Stretch(const Decoded& image, int height, int width) {
  constexpr kernels::ResizeParams kCentres = {.align_corners = false, .half_pixel_centers = true};
  const std::vector<kernels::Tap> rows = kernels::BilinearTaps(image.height, height, kCentres);
  const std::vector<kernels::Tap> columns = kernels::BilinearTaps(image.width, width, kCentres);
  std::vector<float> result;
  result.reserve(rows.size() * columns.size() * image.channels);
  const auto at = [&](int32_t row, int32_t column, int c) {
    const int64_t pixel = int64_t{row} * image.width + column;
    return static_cast<float>(image.pixels.get()[pixel * image.channels + c]);
  };
  for (const kernels::Tap& y : rows) {
    for (const kernels::Tap& x : columns) {
      for (int c = 0; c < image.channels; ++c) {
        const float top = std::lerp(at(y.low, x.low, c), at(y.low, x.high, c), x.t);
        const float bottom = std::lerp(at(y.high, x.low, c), at(y.high, x.high, c), x.t);
        result.push_back(std::lerp(top, bottom, y.t));
      }
    }
  }
  return result;
}

// One image's elements in the type of the request.
std::vector<std::byte> Convert(const std::vector<float>& values, const ImageRequest& request) {
  std::vector<std::byte> bytes;
  if (request.type == DataType::kFloat32) {
    std::vector<float> floats(values.size());
    std::ranges::transform(values, floats.begin(), [&](float value) {
      return static_cast<float>(request.low + value / 255.0 * (request.high - request.low));
    });
    const auto view = std::as_bytes(std::span(floats));
    bytes.assign(view.begin(), view.end());
  } else {
    const int zero = request.type == DataType::kInt8 ? 128 : 0;
    bytes.resize(values.size());
    std::ranges::transform(values, bytes.begin(), [zero](float value) {
      return static_cast<std::byte>(static_cast<int>(std::lround(value)) - zero);
    });
  }
  return bytes;
}

}  // namespace

bool IsImageName(const std::string& path) {
  constexpr std::array<std::string_view, 4> kEndings = {".jpg", ".jpeg", ".png", ".bmp"};
  return std::ranges::any_of(kEndings, [&](std::string_view ending) {
    return path.size() > ending.size() &&
           std::equal(ending.rbegin(), ending.rend(), path.rbegin(), [](char wanted, char given) {
             return wanted == std::tolower(static_cast<unsigned char>(given));
           });
  });
}

Result<Array> ReadImage(const std::string& path, const ImageRequest& request) {
  const size_t rank = request.shape.size();
  const int channels = rank == 0 || request.shape.back() == -1 ? 3 : request.shape.back();
  const bool known_type = request.type == DataType::kFloat32 || request.type == DataType::kUInt8 ||
                          request.type == DataType::kInt8;
  if (!known_type || (rank != 3 && rank != 4) ||
      (channels != 1 && channels != 3 && channels != 4)) {
    return InvalidArgument(path,
                           ": an image is float32, uint8 or int8 of [(images,) height, width, ",
                           "1, 3 or 4 channels]");
  }
  FUSELITE_ASSIGN_OR_RETURN(const Decoded image, Decode(path, channels));
  std::vector<int32_t> shape = request.shape;
  const int32_t own[] = {1, image.height, image.width, channels};
  for (size_t d = 0; d < rank; ++d) {
    if (shape[d] == -1) shape[d] = own[4 - rank + d];
  }
  Array array{request.type, *Shape::FromDims(shape), {}};
  if (array.shape.elements() == 0) return array;
  const std::vector<std::byte> one =
      Convert(Stretch(image, shape[rank - 3], shape[rank - 2]), request);
  for (int32_t n = 0; n < (rank == 4 ? shape[0] : 1); ++n) {
    array.bytes.insert(array.bytes.end(), one.begin(), one.end());
  }
  return array;
}

}  // namespace fuselite::tools
