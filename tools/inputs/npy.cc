#include "tools/inputs/npy.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>

#include "runtime/support/printable.h"
#include "runtime/support/write_file.h"
#include "tools/inputs/files.h"

namespace fuselite::tools {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kHeaderAlignment = 64;
// A header names one type and at most Shape::kMaxRank dimensions; more is no .npy that is read
// here.
constexpr size_t kMaxHeader = 4096;

struct TypeCode {
  DataType type;
  std::string_view code;
};
constexpr std::array<TypeCode, 14> kCodes = {{{DataType::kFloat32, "<f4"},
                                              {DataType::kFloat16, "<f2"},
                                              {DataType::kFloat64, "<f8"},
                                              {DataType::kInt8, "|i1"},
                                              {DataType::kUInt8, "|u1"},
                                              {DataType::kBool, "|b1"},
                                              {DataType::kInt16, "<i2"},
                                              {DataType::kUInt16, "<u2"},
                                              {DataType::kInt32, "<i4"},
                                              {DataType::kUInt32, "<u4"},
                                              {DataType::kInt64, "<i8"},
                                              {DataType::kUInt64, "<u8"},
                                              {DataType::kComplex64, "<c8"},
                                              {DataType::kComplex128, "<c16"}}};

std::optional<DataType> TypeOf(std::string_view code) {
  if (code.empty()) return std::nullopt;
  for (const TypeCode& entry : kCodes) {
    // One-byte types are written with any byte order mark.
    if (entry.code == code || (entry.code[0] == '|' && entry.code.substr(1) == code.substr(1))) {
      return entry.type;
    }
  }
  return std::nullopt;
}

// The text after `key` and its colon, or nothing.
std::string_view After(std::string_view header, std::string_view key) {
  const size_t at = header.find(key);
  if (at == std::string_view::npos) return {};
  const size_t colon = header.find(':', at + key.size());
  if (colon == std::string_view::npos) return {};
  header.remove_prefix(colon + 1);
  header.remove_prefix(std::min(header.find_first_not_of(' '), header.size()));
  return header;
}

Result<Shape> ParseShape(std::string_view text) {
  const size_t end = text.find(')');
  if (text.empty() || text[0] != '(' || end == std::string_view::npos) {
    return InvalidArgument("its header has no shape");
  }
  std::vector<int32_t> dims;
  std::istringstream in{std::string(text.substr(1, end - 1))};
  for (std::string part; std::getline(in, part, ',');) {
    if (part.find_first_not_of(" L") == std::string::npos) continue;
    char* rest = nullptr;
    const long long dim = std::strtoll(part.c_str(), &rest, 10);
    if (rest == part.c_str() || dim < 0 || dim > INT32_MAX) {
      return InvalidArgument("its header has the dimension '", Printable(part), "'");
    }
    dims.push_back(static_cast<int32_t>(dim));
  }
  const std::optional<Shape> shape = Shape::FromDims(dims);
  if (!shape) {
    return InvalidArgument("its shape has more than ", Shape::kMaxRank,
                           " dimensions or too many elements");
  }
  return *shape;
}

// Fills type and shape.
Status ParseHeader(std::string_view header, Array* array) {
  const std::string_view order = After(header, "'fortran_order'");
  if (order.substr(0, 5) != "False") {
    return Unsupported("its order is Fortran's; save it from numpy.ascontiguousarray");
  }
  const std::string_view descr = After(header, "'descr'");
  const size_t close = descr.size() > 1 ? descr.find('\'', 1) : std::string_view::npos;
  if (close == std::string_view::npos) return InvalidArgument("its header names no type");
  const std::string_view code = descr.substr(1, close - 1);
  const std::optional<DataType> type = TypeOf(code);
  if (!type && code.starts_with('>')) {
    return Unsupported("its type '", Printable(code), "' is big-endian; save it as '<",
                       Printable(code.substr(1)), "'");
  }
  if (!type) return Unsupported("its type '", Printable(code), "' is none of a tensor's");
  array->type = *type;
  FUSELITE_ASSIGN_OR_RETURN(array->shape, ParseShape(After(header, "'shape'")));
  return Status();
}

Result<std::string> ReadHeader(std::istream& in) {
  std::array<char, 8> start{};
  if (!in.read(start.data(), start.size()) || std::string_view(start.data(), 6) != kMagic) {
    return InvalidArgument("it is no .npy file");
  }
  const int length_bytes = start[6] == 1 ? 2 : 4;
  std::array<unsigned char, 4> length{};
  in.read(reinterpret_cast<char*>(length.data()), length_bytes);
  const size_t size = length[0] | length[1] << 8 | length[2] << 16 | size_t{length[3]} << 24;
  if (!in || size > kMaxHeader) return InvalidArgument("its header is damaged");
  std::string header(size, '\0');
  if (!in.read(header.data(), static_cast<std::streamsize>(size))) {
    return InvalidArgument("it ends within its header");
  }
  return header;
}

Result<Array> Read(std::istream& in) {
  FUSELITE_ASSIGN_OR_RETURN(const std::string header, ReadHeader(in));
  Array array;
  FUSELITE_RETURN_IF_ERROR(ParseHeader(header, &array));
  const auto begin = in.tellg();
  in.seekg(0, std::ios::end);
  const auto available = static_cast<size_t>(in.tellg() - begin);
  const size_t expected = static_cast<size_t>(array.shape.elements()) * BitWidth(array.type) / 8;
  if (available < expected) {
    return InvalidArgument("it has ", available, " bytes of data, its shape needs ", expected);
  }
  in.seekg(begin);
  array.bytes.resize(expected);
  in.read(reinterpret_cast<char*>(array.bytes.data()), static_cast<std::streamsize>(expected));
  if (!in) return IoError("it cannot be read");
  return array;
}

std::string HeaderFor(std::string_view code, const Shape& shape) {
  std::string dims;
  for (int32_t d : shape.dims()) dims += std::to_string(d) + ",";
  std::string text =
      "{'descr': '" + std::string(code) + "', 'fortran_order': False, 'shape': (" + dims + "), }";
  const size_t start = kMagic.size() + 4;
  const size_t total =
      (start + text.size() + 1 + kHeaderAlignment - 1) / kHeaderAlignment * kHeaderAlignment;
  text.append(total - start - text.size() - 1, ' ');
  return text + '\n';
}

}  // namespace

Result<Array> ReadNpy(const std::string& path) {
  FUSELITE_ASSIGN_OR_RETURN(std::ifstream in, OpenForReading(path));
  Result<Array> array = Read(in);
  if (!array.ok()) return array.status().In(path);
  return array;
}

bool HasNpyType(DataType type) { return std::ranges::count(kCodes, type, &TypeCode::type) > 0; }

Status WriteNpy(const std::string& path, const Array& array) {
  const auto entry = std::ranges::find(kCodes, array.type, &TypeCode::type);
  if (entry == kCodes.end()) {
    return Unsupported(path, ": ", DataTypeName(array.type), " has no .npy type");
  }
  const std::string header = HeaderFor(entry->code, array.shape);
  const std::array<char, 4> version_and_length = {1, 0, static_cast<char>(header.size() & 0xff),
                                                  static_cast<char>(header.size() >> 8)};
  return WriteFile(path, {kMagic,
                          {version_and_length.data(), version_and_length.size()},
                          header,
                          AsText(array.bytes)});
}

}  // namespace fuselite::tools
