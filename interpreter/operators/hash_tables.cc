#include "interpreter/operators/hash_tables.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "interpreter/node_tensors.h"
#include "interpreter/op_resolver.h"
#include "interpreter/registration.h"
#include "interpreter/strings.h"
#include "interpreter/subgraph.h"
#include "kernels/hashtable/hashtable.h"

namespace fuselite::interpreter {
namespace {

using kernels::HashtableParams;
using tflite::Elements;
using tflite::TfLiteNode;
using tflite::TfLiteTensor;
using tflite::TfLiteType;

std::span<const int> Dims(const TfLiteTensor& tensor) {
  return Elements(static_cast<const tflite::TfLiteIntArray*>(tensor.dims));
}

Status CheckTypes(TfLiteType keys, TfLiteType values) {
  const bool to_string = keys == tflite::kTfLiteInt64 && values == tflite::kTfLiteString;
  const bool from_string = keys == tflite::kTfLiteString && values == tflite::kTfLiteInt64;
  if (to_string || from_string) return Status();
  return Unsupported("a table from ", DataTypeName(static_cast<DataType>(keys)), " to ",
                     DataTypeName(static_cast<DataType>(values)),
                     ", not from int64 to string or back");
}

Status CheckHandle(const TfLiteTensor& tensor) {
  const auto dims = Dims(tensor);
  if (tensor.type == tflite::kTfLiteResource && dims.size() == 1 && dims[0] == 1) return Status();
  return InvalidArgument("its first input is no handle of a table");
}

// The keys or values of a tensor, numbers as their bytes.
Result<std::vector<std::string>> ReadEntries(const TfLiteTensor& tensor) {
  std::vector<std::string> entries;
  if (tensor.type == tflite::kTfLiteString) {
    FUSELITE_ASSIGN_OR_RETURN(const auto strings, ReadStrings(tensor));
    entries.assign(strings.begin(), strings.end());
    return entries;
  }
  for (size_t i = 0; i < tensor.bytes; i += sizeof(int64_t)) {
    entries.emplace_back(tensor.data.raw_const + i, sizeof(int64_t));
  }
  return entries;
}

Status PrepareTable(Subgraph& graph, const TfLiteNode& node) {
  FUSELITE_RETURN_IF_ERROR(CheckCounts(node, 0, 1));
  const auto& params = *static_cast<const HashtableParams*>(node.builtin_data);
  FUSELITE_RETURN_IF_ERROR(CheckTypes(static_cast<TfLiteType>(params.key_type),
                                      static_cast<TfLiteType>(params.value_type)));
  TfLiteTensor& output = Output(graph, node);
  if (output.type != tflite::kTfLiteResource) return InvalidArgument("its output is no resource");
  graph.SetPersistent(output);
  FUSELITE_RETURN_IF_ERROR(graph.ResizeTensor(output, std::array{1}));
  output.data.i32[0] = params.table_id;
  return Status();
}

Status InvokeTable(Subgraph& graph, const TfLiteNode& node) {
  const auto& params = *static_cast<const HashtableParams*>(node.builtin_data);
  auto& tables = graph.host().resources.tables();
  tables.try_emplace(params.table_id, HashTable{static_cast<TfLiteType>(params.key_type),
                                                static_cast<TfLiteType>(params.value_type)});
  return Status();
}

Result<HashTable*> TableOf(Subgraph& graph, const TfLiteNode& node) {
  auto& tables = graph.host().resources.tables();
  const auto found = tables.find(Input(graph, node, 0).data.i32[0]);
  if (found == tables.end()) return InvalidArgument("its handle names no table");
  return &found->second;
}

Status CheckTableTypes(const HashTable& table, TfLiteType keys, TfLiteType values) {
  if (table.key_type == keys && table.value_type == values) return Status();
  return InvalidArgument("its table has keys or values of another type");
}

Status PrepareImport(Subgraph& graph, const TfLiteNode& node) {
  FUSELITE_RETURN_IF_ERROR(CheckCounts(node, 3, 0));
  FUSELITE_RETURN_IF_ERROR(CheckHandle(Input(graph, node, 0)));
  const TfLiteTensor &keys = Input(graph, node, 1), &values = Input(graph, node, 2);
  FUSELITE_RETURN_IF_ERROR(CheckTypes(keys.type, values.type));
  if (std::ranges::equal(Dims(keys), Dims(values))) return Status();
  return InvalidArgument("its keys and values have other shapes");
}

// The first import counts; of a key that it gives twice, the first value.
Status InvokeImport(Subgraph& graph, const TfLiteNode& node) {
  FUSELITE_ASSIGN_OR_RETURN(HashTable * table, TableOf(graph, node));
  const TfLiteTensor &keys = Input(graph, node, 1), &values = Input(graph, node, 2);
  FUSELITE_RETURN_IF_ERROR(CheckTableTypes(*table, keys.type, values.type));
  if (table->filled) return Status();
  FUSELITE_ASSIGN_OR_RETURN(const auto from, ReadEntries(keys));
  FUSELITE_ASSIGN_OR_RETURN(const auto to, ReadEntries(values));
  if (from.size() != to.size()) return InvalidArgument("its keys and values have other shapes");
  const size_t bytes = keys.bytes + values.bytes + from.size() * sizeof(*table->entries.begin());
  FUSELITE_RETURN_IF_ERROR(graph.CheckMemory(static_cast<double>(bytes)));
  table->bytes = bytes;
  for (size_t i = 0; i < from.size(); ++i) table->entries.try_emplace(from[i], to[i]);
  table->filled = true;
  return Status();
}

Status PrepareFind(Subgraph& graph, const TfLiteNode& node) {
  FUSELITE_RETURN_IF_ERROR(CheckCounts(node, 3, 1));
  FUSELITE_RETURN_IF_ERROR(CheckHandle(Input(graph, node, 0)));
  const TfLiteTensor& keys = Input(graph, node, 1);
  TfLiteTensor& output = Output(graph, node);
  if (Input(graph, node, 2).type != output.type) {
    return InvalidArgument("its default has another type than its output");
  }
  FUSELITE_RETURN_IF_ERROR(CheckTypes(keys.type, output.type));
  if (output.type == tflite::kTfLiteString) graph.SetDynamic(output);
  return graph.ResizeTensor(output, Dims(keys));
}

Status InvokeFind(Subgraph& graph, const TfLiteNode& node) {
  FUSELITE_ASSIGN_OR_RETURN(const HashTable* table, TableOf(graph, node));
  const TfLiteTensor& keys = Input(graph, node, 1);
  TfLiteTensor& output = Output(graph, node);
  FUSELITE_RETURN_IF_ERROR(CheckTableTypes(*table, keys.type, output.type));
  if (!table->filled) return InvalidArgument("nothing was imported into its table");
  FUSELITE_ASSIGN_OR_RETURN(std::vector<std::string> entries, ReadEntries(keys));
  FUSELITE_ASSIGN_OR_RETURN(const auto otherwise, ReadEntries(Input(graph, node, 2)));
  if (otherwise.empty()) return InvalidArgument("it has no default");
  for (std::string& entry : entries) {
    const auto found = table->entries.find(entry);
    entry = found == table->entries.end() ? otherwise[0] : found->second;
  }
  if (output.type == tflite::kTfLiteString) {
    const std::vector<int> dims(Dims(keys).begin(), Dims(keys).end());
    return WriteStrings(graph, output, entries, dims);
  }
  if (output.bytes != entries.size() * sizeof(int64_t)) return Internal("keys of another shape");
  for (size_t i = 0; i < entries.size(); ++i) {
    std::memcpy(output.data.raw + i * sizeof(int64_t), entries[i].data(), sizeof(int64_t));
  }
  return Status();
}

Status PrepareSize(Subgraph& graph, const TfLiteNode& node) {
  FUSELITE_RETURN_IF_ERROR(CheckCounts(node, 1, 1));
  FUSELITE_RETURN_IF_ERROR(CheckHandle(Input(graph, node, 0)));
  TfLiteTensor& output = Output(graph, node);
  if (output.type != tflite::kTfLiteInt64) return InvalidArgument("its output is no int64");
  return graph.ResizeTensor(output, std::array{1});
}

Status InvokeSize(Subgraph& graph, const TfLiteNode& node) {
  FUSELITE_ASSIGN_OR_RETURN(const HashTable* table, TableOf(graph, node));
  Output(graph, node).data.i64[0] = static_cast<int64_t>(table->entries.size());
  return Status();
}

}  // namespace

void AddHashTables(OpResolver& resolver) {
  resolver.AddBuiltin(tflite::kTfLiteBuiltinHashtable, Registration<PrepareTable, InvokeTable>());
  resolver.AddBuiltin(tflite::kTfLiteBuiltinHashtableImport,
                      Registration<PrepareImport, InvokeImport>());
  resolver.AddBuiltin(tflite::kTfLiteBuiltinHashtableFind, Registration<PrepareFind, InvokeFind>());
  resolver.AddBuiltin(tflite::kTfLiteBuiltinHashtableSize, Registration<PrepareSize, InvokeSize>());
}

}  // namespace fuselite::interpreter
