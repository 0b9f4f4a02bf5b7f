// The parts of the loader. Each turns one kind of table into its checked form.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "interpreter/file/model.h"
#include "interpreter/schema/tflite_generated.h"
#include "runtime/support/status.h"

namespace fuselite::interpreter::loader {

// Memory that reading a file may take: a file may name one long table thousands of times, which are
// copied as often, and have sparse constants, which are unpacked. Real ones take a few times their
// size.
class Allowance {
 public:
  explicit Allowance(size_t file_bytes) : left_(24e6 + 128 * static_cast<double>(file_bytes)) {}

  // kInvalidArgument where no more than that is left.
  Status Take(double bytes);
  Status Take(size_t bytes) { return Take(static_cast<double>(bytes)); }

 private:
  double left_;
};

// The file as its verified root sees it.
struct Source {
  std::span<const std::byte> bytes;
  const schema::Model* model = nullptr;
  Allowance* allowance = nullptr;
};

// The bytes of buffer `index`, inside the FlatBuffer or behind it; an empty span with a null
// pointer where it has none.
Result<std::span<const std::byte>> BufferBytes(const Source& source, uint32_t index);

Result<ModelTensor> ReadTensor(const Source& source, const schema::Tensor& from);

// Fills `to` with `from`'s indices of tensors, of which there are so many; `optional`: -1 stands
// for one that is left out. `what` is "input" and the like.
Status ReadIndices(std::string_view what, const flatbuffers::Vector<int32_t>* from,
                   size_t tensor_count, bool optional, std::vector<int>& to);

// `subgraph` has its tensors already.
Result<ModelOperator> ReadOperator(const Source& source, const schema::Operator& op,
                                   const ModelSubgraph& subgraph);

}  // namespace fuselite::interpreter::loader
