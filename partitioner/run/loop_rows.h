// Products of a sequence's rows, made before a loop's body asks for them (fusion/rows_ahead.h).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "fusion/rows_ahead.h"
#include "partitioner/run/program.h"
#include "runtime/memory/aligned_buffer.h"
#include "runtime/support/function_ref.h"

namespace fuselite::partitioner {

// The products of one sequence. Rows are computed in blocks that begin where they always begin, so
// that a row's bits do not depend on what the loop has done before. The rows that a block was
// computed from are kept: what the body or its caller has changed since is computed anew.
class LoopRows {
 public:
  // `body`: what `taken` was taken from.
  static Result<std::unique_ptr<LoopRows>> Make(fusion::RowsAhead taken, const fusion::Graph& body,
                                                const fusion::CompileOptions& options);

  // Before each run of the body, whose other inputs are bound: binds the products of the row that
  // its index names, and has `run` compute them where they are not there.
  Status Bind(Execution& body, FunctionRef<Status(Segment& segment)> run);

  // What computes a block.
  const Segment& block() const { return block_; }
  Segment& block() { return block_; }

 private:
  struct Product {
    int input = -1;    // of the body
    size_t bytes = 0;  // of one row
    AlignedBuffer memory{};
  };

  Status TakeMemory();

  Segment block_;
  int from_ = -1, index_ = -1;  // inputs of the body
  std::vector<int> host_nodes_;
  DataType index_type_ = DataType::kNone;
  int64_t count_ = 0, rows_ = 0;  // of rows, all and in a block
  size_t bytes_ = 0;              // of one of them
  AlignedBuffer kept_;            // the rows of the block
  int64_t begin_ = -1;            // its first row; -1: there is none
  std::vector<Product> products_;
};

// Takes from the body that `segment` is to be compiled from what may be made ahead.
Status TakeLoopRows(Segment& segment, const fusion::CompileOptions& options);

}  // namespace fuselite::partitioner
