// Resource variables: VAR_HANDLE, READ_VARIABLE and ASSIGN_VARIABLE, and CALL_ONCE, which fills
// them. They belong to the interpreter, not to a subgraph, and keep their values between invokes.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/memory/aligned_buffer.h"
#include "runtime/support/status.h"
#include "runtime/tflite/abi.h"

namespace fuselite::interpreter {

class OpResolver;

// A variable's value; of no type until something is assigned.
struct ResourceVariable {
  tflite::TfLiteType type = tflite::kTfLiteNoType;
  std::vector<int> dims;
  AlignedBuffer bytes;
  size_t size = 0;  // of `bytes`, as far as they are the value's
};

// A hash table; keys and values are strings, numbers their bytes.
struct HashTable {
  tflite::TfLiteType key_type, value_type;
  bool filled = false;  // something was imported, which happens once
  size_t bytes = 0;     // of the entries, about
  std::unordered_map<std::string, std::string> entries{};
};

// What the subgraphs of one interpreter share.
class Resources {
 public:
  // The number of the variable of this name: the same for all who name it.
  int IdOf(const std::string& container, const std::string& name);
  // nullptr where nobody has given out the number.
  ResourceVariable* Find(int id);

  // The hash tables, by the number that the file gives them.
  std::map<int, HashTable>& tables() { return tables_; }

  // Bytes of all values and entries.
  double bytes() const;

  // CALL_ONCE has run this subgraph.
  bool IsInitialized(int subgraph) const { return initialized_.contains(subgraph); }
  void SetInitialized(int subgraph) { initialized_.insert(subgraph); }

 private:
  std::map<std::pair<std::string, std::string>, int> ids_;
  std::vector<std::unique_ptr<ResourceVariable>> variables_;  // by number
  std::map<int, HashTable> tables_;
  std::set<int> initialized_;
};

void AddResources(OpResolver& resolver);

}  // namespace fuselite::interpreter
