// A .tflite model in memory: what the file says, checked, with every index in range.
//
// Built by the loader (loader.h). Immutable, shared by any number of interpreters. Constants stay
// where the file has them; everything else is copied out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/operator.h"
#include "runtime/tensor.h"
#include "runtime/weights/packed_store.h"

namespace fuselite::interpreter {

// No machine has room for a tensor of more bytes; sums of a few such sizes still fit in 64 bits.
inline constexpr double kMostTensorBytes = 1e15;

// Scales that are tensors themselves: one for each block of `block_size` elements along `axis`.
struct BlockwiseQuantization {
  int scales = -1;       // index of a tensor of the same subgraph
  int zero_points = -1;  // likewise; -1: zero
  int block_size = 0;
  int axis = 0;
};

struct ModelTensor {
  std::string name;
  DataType type = DataType::kNone;
  Shape shape;  // where the signature has -1: as the file has it, usually 1
  // As `shape`, with -1 for dimensions unknown until run time; empty where all are known.
  std::vector<int32_t> shape_signature;
  Quantization quantization;
  BlockwiseQuantization blockwise;  // block_size 0: none
  bool is_variable = false;
  // A constant's bytes: exactly TensorInfo::bytes() of them, or a checked string table. `data` is
  // not null for a constant without elements.
  bool constant = false;
  std::span<const std::byte> data;
  // Holds the bytes of a constant that is sparse in the file.
  PackedWeights unpacked;
};

struct ModelOperator {
  int builtin_code = 0;     // kTfLiteBuiltinCustom for custom operators
  std::string custom_name;  // of custom operators only
  int version = 1;
  std::vector<int> inputs;         // tensor indices, -1 for an optional input left out
  std::vector<int> outputs;        // tensor indices
  std::vector<int> intermediates;  // tensor indices: only quantization is read from these
  // Stands in the table of operators; null where that does not have the code.
  const kernels::OperatorDef* def = nullptr;
  kernels::Params params;  // of `def`'s type
  std::span<const std::byte> custom_options;
  // Subgraphs that it runs (IF: then, else; WHILE: condition, body; STABLEHLO_CASE: branches;
  // CALL_ONCE: initializer;
  // STABLEHLO_COMPOSITE: decomposition), or whose one operator it computes (STABLEHLO_SCATTER).
  std::vector<int> subgraphs;
  // What a composite is called, and its attributes: a map of FlexBuffers, or nothing.
  std::string composite_name;
  std::span<const std::byte> attributes;
  // Which variable VAR_HANDLE names.
  std::string container, shared_name;
};

struct ModelSubgraph {
  std::string name;
  std::vector<ModelTensor> tensors;
  std::vector<int> inputs;
  std::vector<int> outputs;
  // In an order in which every tensor is written before it is read.
  std::vector<ModelOperator> operators;
};

struct SignatureTensor {
  std::string name;
  int tensor = -1;  // index in the signature's subgraph
};

struct Signature {
  std::string key;
  int subgraph = 0;
  std::vector<SignatureTensor> inputs;
  std::vector<SignatureTensor> outputs;
};

struct Metadata {
  std::string name;
  std::span<const std::byte> data;
};

struct Model {
  std::string description;
  std::vector<ModelSubgraph> subgraphs;  // at least one; the first is the main one
  std::vector<Signature> signatures;
  std::vector<Metadata> metadata;
  size_t file_bytes = 0;
  std::shared_ptr<const void> backing;  // keeps the constants alive

  // "CONV_2D", "custom operator Foo", "operator 250": how messages call an operator.
  static std::string OperatorName(const ModelOperator& op);
};

}  // namespace fuselite::interpreter
