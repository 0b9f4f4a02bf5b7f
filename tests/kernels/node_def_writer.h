// Options as TensorFlow's converter writes them for an operator that it leaves in a model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/flexible_map.h"

namespace fuselite::kernels::testing {

class NodeDefWriter {
 public:
  explicit NodeDefWriter(std::string op) : op_(std::move(op)) {}

  NodeDefWriter& Integers(std::string_view attribute, const std::vector<int64_t>& values,
                          bool packed = true) {
    std::string list, value;
    protozero::pbf_writer integers(list);
    if (packed) {
      integers.add_packed_int64(3, values.begin(), values.end());
    } else {
      for (const int64_t v : values) integers.add_int64(3, v);
    }
    protozero::pbf_writer(value).add_message(1, list);
    return Attribute(attribute, value);
  }
  NodeDefWriter& Integer(std::string_view attribute, int64_t integer) {
    std::string value;
    protozero::pbf_writer(value).add_int64(3, integer);
    return Attribute(attribute, value);
  }
  NodeDefWriter& Text(std::string_view attribute, std::string_view text) {
    std::string value;
    protozero::pbf_writer(value).add_bytes(2, text.data(), text.size());
    return Attribute(attribute, value);
  }
  NodeDefWriter& Flag(std::string_view attribute, bool flag) {
    std::string value;
    protozero::pbf_writer(value).add_bool(5, flag);
    return Attribute(attribute, value);
  }

  std::vector<std::byte> Options() const {
    flexbuffers::Builder builder;
    builder.Vector([&] {
      builder.String(op_);
      builder.String(node_);
    });
    builder.Finish();
    const auto* const bytes = reinterpret_cast<const std::byte*>(builder.GetBuffer().data());
    return {bytes, bytes + builder.GetSize()};
  }

 private:
  NodeDefWriter& Attribute(std::string_view name, const std::string& value) {
    std::string entry;
    protozero::pbf_writer writer(entry);
    writer.add_string(1, name.data(), name.size());
    writer.add_message(2, value);
    protozero::pbf_writer(node_).add_message(5, entry);
    return *this;
  }

  std::string op_, node_;
};

}  // namespace fuselite::kernels::testing
