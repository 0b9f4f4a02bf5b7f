// The parts of the loader. Each turns one kind of table into its checked form.
#pragma once

#include <cstddef>
#include <span>

#include "interpreter/model.h"
#include "interpreter/schema/tflite_generated.h"
#include "runtime/status.h"

namespace fuselite::interpreter::loader {

// The file as its verified root sees it.
struct Source {
  std::span<const std::byte> bytes;
  const schema::Model* model = nullptr;
};

// The bytes of buffer `index`, inside the FlatBuffer or behind it; an empty span with a null
// pointer where it has none.
Result<std::span<const std::byte>> BufferBytes(const Source& source, uint32_t index);

Result<ModelTensor> ReadTensor(const Source& source, const schema::Tensor& from);

// `subgraph` has its tensors already.
Result<ModelOperator> ReadOperator(const Source& source, const schema::Operator& op,
                                   const ModelSubgraph& subgraph);

}  // namespace fuselite::interpreter::loader
