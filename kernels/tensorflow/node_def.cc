#include "kernels/tensorflow/node_def.h"

#include <algorithm>
#include <exception>
#include <protozero/pbf_reader.hpp>

#include "kernels/flexible_map.h"

namespace fuselite::kernels {
namespace {

// The numbers of fields in TensorFlow's node_def.proto and attr_value.proto.
constexpr uint32_t kAttribute = 5, kKey = 1, kValue = 2;
constexpr uint32_t kList = 1, kText = 2, kInteger = 3, kFlag = 5;

std::string_view ViewOf(protozero::data_view view) { return {view.data(), view.size()}; }

using Wire = protozero::pbf_wire_type;

// The field `tag` of an AttrValue by `read`, which is called for each of its parts; nullopt where
// there is none, or bytes that are none.
template <class T, class Read>
std::optional<T> ReadField(std::string_view value, uint32_t tag, Wire wire, Read read) {
  std::optional<T> found;
  try {
    protozero::pbf_reader reader(value.data(), value.size());
    while (reader.next(tag, wire)) {
      if (!found) found.emplace();
      read(reader, *found);
    }
  } catch (const std::exception&) {
    return std::nullopt;
  }
  return found;
}

// Lists are packed, or have a field for each entry.
void ReadList(protozero::pbf_reader& value, std::vector<int64_t>& integers) {
  protozero::pbf_reader list = value.get_message();
  while (list.next(kInteger)) {
    if (list.wire_type() == Wire::varint) {
      integers.push_back(list.get_int64());
    } else if (list.wire_type() == Wire::length_delimited) {
      const auto packed = list.get_packed_int64();
      integers.insert(integers.end(), packed.begin(), packed.end());
    } else {
      list.skip();
    }
  }
}

// The NodeDef in the options; empty where they are none.
std::string_view NodeDefBytes(std::span<const std::byte> options) {
  const auto* data = reinterpret_cast<const uint8_t*>(options.data());
  if (options.empty() || !flexbuffers::VerifyBuffer(data, options.size())) return {};
  const flexbuffers::Reference root = flexbuffers::GetRoot(data, options.size());
  if (!root.IsUntypedVector() || root.AsVector().size() != 2) return {};
  const flexbuffers::Reference node = root.AsVector()[1];
  if (!node.IsString()) return {};
  return {node.AsString().c_str(), node.AsString().length()};
}

}  // namespace

Result<NodeDef> NodeDef::Read(std::span<const std::byte> options) {
  const std::string_view bytes = NodeDefBytes(options);
  if (bytes.empty()) return InvalidArgument("its options hold no node of TensorFlow's");
  NodeDef node;
  try {
    protozero::pbf_reader reader(bytes.data(), bytes.size());
    while (reader.next(kAttribute, Wire::length_delimited)) {
      protozero::pbf_reader entry = reader.get_message();
      std::string_view key, value;
      while (entry.next()) {
        if (entry.wire_type() != Wire::length_delimited) {
          entry.skip();
          continue;
        }
        const uint32_t tag = entry.tag();
        const std::string_view view = ViewOf(entry.get_view());
        if (tag == kKey) key = view;
        if (tag == kValue) value = view;
      }
      node.values_[key] = value;
    }
  } catch (const std::exception& error) {
    return InvalidArgument("its options are no node of TensorFlow's: ", error.what());
  }
  return node;
}

// The bytes of no AttrValue where there is no such attribute: no field is found in them.
std::string_view NodeDef::ValueOf(std::string_view attribute) const {
  const auto found = values_.find(attribute);
  return found == values_.end() ? std::string_view() : found->second;
}

std::optional<std::vector<int64_t>> NodeDef::Integers(std::string_view attribute) const {
  return ReadField<std::vector<int64_t>>(ValueOf(attribute), kList, Wire::length_delimited,
                                         ReadList);
}

std::optional<int64_t> NodeDef::Integer(std::string_view attribute) const {
  return ReadField<int64_t>(
      ValueOf(attribute), kInteger, Wire::varint,
      [](protozero::pbf_reader& value, int64_t& integer) { integer = value.get_int64(); });
}

std::optional<std::string_view> NodeDef::Text(std::string_view attribute) const {
  return ReadField<std::string_view>(ValueOf(attribute), kText, Wire::length_delimited,
                                     [](protozero::pbf_reader& value, std::string_view& text) {
                                       text = ViewOf(value.get_view());
                                     });
}

std::optional<bool> NodeDef::Flag(std::string_view attribute) const {
  return ReadField<bool>(ValueOf(attribute), kFlag, Wire::varint,
                         [](protozero::pbf_reader& value, bool& flag) { flag = value.get_bool(); });
}

Status ReadSpatial(const NodeDef& node, std::string_view attribute, std::span<int32_t> entries) {
  const auto list = node.Integers(attribute);
  if (!list || list->size() != entries.size() + 2) {
    return InvalidArgument("its attribute ", attribute, " is not a list of ", entries.size() + 2,
                           " whole numbers");
  }
  if (list->front() != 1 || list->back() != 1) {
    return Unsupported("does not take ", attribute, " over samples or channels");
  }
  const auto possible = [](int64_t value) { return value >= 1 && value <= INT32_MAX; };
  if (!std::ranges::all_of(*list, possible)) {
    return InvalidArgument("its attribute ", attribute, " has a number that is not at least 1");
  }
  std::transform(list->begin() + 1, list->end() - 1, entries.begin(),
                 [](int64_t value) { return static_cast<int32_t>(value); });
  return Status();
}

Result<Padding> ReadPadding(const NodeDef& node) {
  const auto padding = node.Text("padding");
  if (padding == "SAME") return Padding::kSame;
  if (padding == "VALID") return Padding::kValid;
  return Unsupported("does not take a padding other than SAME and VALID");
}

}  // namespace fuselite::kernels
