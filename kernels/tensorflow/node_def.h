// The options of TensorFlow's operators that converters leave in a model ("Select TF ops"): custom
// operators under the name that TensorFlow knows them by, behind "Flex".
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/fields.h"
#include "runtime/support/status.h"

namespace fuselite::kernels {

// The attributes of a node of TensorFlow's graph.
class NodeDef {
 public:
  // `options`: a vector of FlexBuffers, the operator's name and its NodeDef as a protocol buffer,
  // into which the result points. kInvalidArgument where they are none.
  static Result<NodeDef> Read(std::span<const std::byte> options);

  // nullopt where there is no such attribute, or one of another type.
  std::optional<std::vector<int64_t>> Integers(std::string_view attribute) const;
  std::optional<int64_t> Integer(std::string_view attribute) const;
  std::optional<std::string_view> Text(std::string_view attribute) const;
  std::optional<bool> Flag(std::string_view attribute) const;

 private:
  std::string_view ValueOf(std::string_view attribute) const;

  std::map<std::string_view, std::string_view> values_;  // each an AttrValue
};

// Of a list by the dimensions of NHWC, the entries of height and width; of three in the form of
// NDHWC, that of depth in front of them. kInvalidArgument where the list is another one,
// kUnsupported where it covers several samples or channels.
Status ReadSpatial(const NodeDef& node, std::string_view attribute, std::span<int32_t> entries);
// "SAME" or "VALID".
Result<Padding> ReadPadding(const NodeDef& node);

}  // namespace fuselite::kernels
