#include "kernels/make_kernel.h"

namespace fuselite::kernels {
namespace {

class FunctionKernel final : public Kernel {
 public:
  FunctionKernel(std::string name, Work work, KernelBody body)
      : body_(std::move(body)), work_(work), name_(std::move(name)) {}
  std::string_view name() const override { return name_; }
  int64_t units(int) const override { return work_.units; }
  int64_t grain(int) const override { return work_.grain; }
  int in_place_input() const override { return work_.in_place_input; }
  size_t scratch_bytes() const override { return work_.scratch_bytes; }
  Status Run(const KernelArgs& args, int, int64_t begin, int64_t end) const override {
    return body_.run(body_.state.get(), args, begin, end);
  }

 private:
  KernelBody body_;  // first: all that a run reads lies in the object's first 64 bytes
  Work work_;
  std::string name_;
};

}  // namespace

std::unique_ptr<Kernel> MakeKernelOf(std::string name, Work work, KernelBody body) {
  return std::make_unique<FunctionKernel>(std::move(name), work, std::move(body));
}

}  // namespace fuselite::kernels
