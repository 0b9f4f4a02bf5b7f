// Files of a few drawn operators, with branches, loops and variables among them.
#pragma once

#include <cstddef>
#include <vector>

#include "interpreter/file/writer.h"
#include "tests/fuzz/random_operation.h"

namespace fuselite::fuzz {

class ModelGrower {
 public:
  explicit ModelGrower(Random& random) : random_(random) {}

  // The bytes of a file, mostly a right one.
  std::vector<std::byte> Grow();

 private:
  // What stands in the current subgraph.
  struct Graph {
    std::vector<int> inputs, outputs, made;
  };

  void Add();
  int Operand(const RandomOperation& drawn, size_t i);

  // One value through a subgraph: the main graph's last floats, or an input of its own.
  int Floats();
  int Made(DataType type, const Shape& shape);
  void AddBranches();
  void AddLoop();
  void AddVariable();
  void AddSequence();
  void AddComposite();
  void AddTexts();
  void AddCustom();
  void AddRandomNumbers();
  void AddMeasured();
  void AddSubgraphs();
  // Functions of one value, which becomes the result.
  int Chain(int value);
  void AddBranch(const char* name);
  void AddCondition();
  void AddBody();
  void AddInitializer();
  // A loop over the rows of a sequence, as recurrent networks have it.
  void AddSequenceCondition();
  void AddSequenceBody();
  int Weights(const Shape& shape);
  int Dense(int x, int32_t from, int32_t to);
  int Op(std::string_view name, std::vector<int> inputs, const Shape& shape,
         DataType type = DataType::kFloat32);

  Random& random_;
  interpreter::ModelWriter writer_;
  Graph graph_;
  // The first of their subgraphs; -1: there are none.
  int branches_ = -1, branch_count_ = 0, loop_ = -1, initializer_ = -1, sequence_ = -1;
  int composite_ = -1;
  int subgraphs_ = 1;
  bool exchanged_ = false;  // the loop's results
};

}  // namespace fuselite::fuzz
