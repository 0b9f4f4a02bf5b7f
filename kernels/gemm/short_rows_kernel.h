// Kernels that bring their activations to int16 first.
#pragma once

#include <string>

#include "kernels/gemm/short_rows.h"

namespace fuselite::kernels {

// Base of a kernel whose first phases are those of ShortRows, on input `input`, and whose last one
// computes units of its own.
class ShortRowsKernel : public Kernel {
 public:
  std::string_view name() const final { return name_; }
  int phases() const final { return rows_.phases() + 1; }
  int64_t units(int phase) const final {
    return phase < rows_.phases() ? rows_.units() : own_units();
  }
  int64_t grain(int phase) const final {
    return phase < rows_.phases() ? rows_.grain() : own_grain();
  }
  size_t shared_bytes() const final { return rows_.shared_bytes(); }
  Status Run(const KernelArgs& args, int phase, int64_t begin, int64_t end) const final {
    if (phase < rows_.phases()) {
      rows_.Run(args.inputs[input_], args.shared, phase, begin, end);
    } else {
      RunUnits(args, begin, end);
    }
    return Status();
  }

 protected:
  explicit ShortRowsKernel(int input) : input_(input) {}
  virtual int64_t own_units() const = 0;
  virtual int64_t own_grain() const = 0;
  virtual void RunUnits(const KernelArgs& args, int64_t begin, int64_t end) const = 0;

  std::string name_;
  ShortRows rows_;

 private:
  int input_;
};

}  // namespace fuselite::kernels
