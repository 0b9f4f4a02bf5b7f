// Steps that compute row by row, as one kernel: all of them over a strip of rows before any of them
// over the next, so that what they hand on stays with the thread that made it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/execution/executable.h"
#include "runtime/execution/kernel.h"

namespace fuselite {

class StripsKernel final : public Kernel {
 public:
  // `count` strips of `rows` rows each. `part` computes one: it has no variables, and each of its
  // inputs and outputs is the strip's share of the kernel's operand of the same index, or the whole
  // of it where a row has no bytes in `input_rows`.
  struct Strips {
    std::shared_ptr<const Executable> part;
    int64_t rows = 0, count = 0;
  };
  // `strips` lie one behind the other. `input_rows` and `output_rows`: the bytes of a row.
  StripsKernel(std::vector<Strips> strips, std::vector<size_t> input_rows,
               std::vector<size_t> output_rows);

  std::string_view name() const override { return name_; }
  int64_t units(int /*phase*/) const override { return units_; }
  size_t scratch_bytes() const override { return scratch_bytes_; }
  Status Run(const KernelArgs& args, int phase, int64_t begin, int64_t end) const override;

 private:
  // An operand of a step of a part: where its address is to be found.
  struct Operand {
    Placement placement = Placement::kConstant;
    size_t index = 0;  // of the kernel's input or output
    size_t offset = 0;
    const void* data = nullptr;  // of a constant; null for one that is absent
  };
  struct Call {
    const Step* step = nullptr;
    size_t inputs = 0, outputs = 0;  // first operands
    size_t shared_offset = 0;
  };
  struct Sequence {
    Strips strips;
    std::vector<Operand> operands;
    std::vector<Call> calls;
    size_t slots_bytes = 0, arena_bytes = 0;
  };
  static Sequence SequenceOf(Strips strips);
  static Operand OperandOf(const Executable& part, int id);
  Status RunStrip(const Sequence& sequence, const KernelArgs& args, int64_t row) const;

  std::vector<Sequence> sequences_;
  std::vector<size_t> input_rows_, output_rows_;
  std::string name_;
  int64_t units_ = 0;
  size_t scratch_bytes_ = 0;
};

}  // namespace fuselite
