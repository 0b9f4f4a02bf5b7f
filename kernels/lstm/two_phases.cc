#include "kernels/lstm/two_phases.h"

#include <algorithm>

#include "kernels/make_kernel.h"

namespace fuselite::kernels {
namespace {

constexpr int64_t kMaxSharedBytes = int64_t{1} << 30;

}  // namespace

TwoPhaseLstm::TwoPhaseLstm(const OpDescription& op, size_t sum_bytes)
    : s_(op),
      row_((kLstmGates - s_.first_gate()) * s_.cells),
      sum_bytes_(static_cast<int64_t>(sum_bytes)) {}

Status TwoPhaseLstm::CheckSharedBytes() const {
  if (s_.steps * s_.batch <= kMaxSharedBytes / sum_bytes_ / row_) return Status();
  return Unsupported("the sums of all steps take more than ", kMaxSharedBytes, " bytes");
}

int64_t TwoPhaseLstm::units(int phase) const {
  const int64_t rows = s_.steps * s_.batch;
  return phase == 0 ? (rows + kBlockRows - 1) / kBlockRows : (rows > 0 ? s_.batch : 0);
}

int64_t TwoPhaseLstm::grain(int phase) const {
  // A multiply-add is worth an eighth of what GrainFor counts: a vector does 8 or 16 at once.
  return phase == 0 ? GrainFor(kBlockRows * row_ * s_.inputs / 8)
                    : GrainFor(s_.steps * row_ * (s_.outputs + 16) / 8);
}

size_t TwoPhaseLstm::shared_bytes() const {
  return static_cast<size_t>(s_.steps * s_.batch * row_ * sum_bytes_) + kVectorRoom;
}

Status TwoPhaseLstm::Run(const KernelArgs& args, int phase, int64_t begin, int64_t end) const {
  for (int64_t unit = begin; unit < end; ++unit) {
    if (phase == 0) {
      const int64_t first = unit * kBlockRows;
      MultiplyInputs(args, first, std::min(kBlockRows, s_.steps * s_.batch - first));
    } else {
      RunSteps(args, unit);
    }
  }
  return Status();
}

}  // namespace fuselite::kernels
