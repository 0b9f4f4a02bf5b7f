// What every operator's definition has to hold.
#include "kernels/operator.h"

#include <gtest/gtest.h>

#include "tests/kernels/random.h"

namespace fuselite::kernels {
namespace {

// Recurrent operators check the inputs between which some are left out themselves.
TEST(OperatorTest, InputsThatAreNeededAreNotLeftOut) {
  for (const OperatorDef* def : AllOperators()) {
    for (int left_out = 0; left_out < def->min_inputs; ++left_out) {
      OpDescription op;
      op.op = def;
      op.inputs.resize(def->min_inputs);
      op.outputs.resize(def->min_outputs);
      for (int i = 0; i < def->min_inputs; ++i) {
        if (i == left_out) continue;
        op.inputs[i].type = DataType::kFloat32;
        op.inputs[i].shape = Shape({1});
      }
      const Status status = Infer(op);
      EXPECT_FALSE(status.ok()) << def->name << " without input " << left_out;
      if (def->state_inputs.empty()) {
        EXPECT_EQ(status.message(), "input " + std::to_string(left_out) + " is left out");
      }
    }
  }
}

// Operands of any ranks, which no other test gives on purpose: the rules take them or say why not.
// What a rule reads outside of a shape, the sanitizers see.
TEST(OperatorTest, OperandsOfAnyRanksAreTakenOrRefused) {
  for (const OperatorDef* def : AllOperators()) {
    SCOPED_TRACE(def->name);
    for (const TypeRow& row : def->types) {
      testing::Random random(def->builtin_code);
      for (int trial = 0; trial < 50; ++trial) {
        OpDescription op;
        op.op = def;
        op.version = def->max_version;
        SetDefaults(def->fields, op.params.data());
        const int inputs = def->max_inputs < 0 ? def->min_inputs + 1 : def->max_inputs;
        for (int i = 0; i < inputs; ++i) {
          TensorInfo& input = op.inputs.emplace_back();
          if (i >= def->min_inputs && random.Chance(0.5)) continue;
          const bool listed = i < 3 && row.inputs[i] != DataType::kNone;
          input.type = row.inputs[listed ? i : 0];
          std::vector<int32_t> dims(random.Int(0, 6));
          for (int32_t& dim : dims) dim = random.Int(0, 3);
          input.shape = Shape(dims);
        }
        op.outputs.resize(def->min_outputs);
        const Status status = Infer(op);
        EXPECT_TRUE(status.ok() || !status.message().empty());
        if (!status.ok()) continue;
        for (const TensorInfo& output : op.outputs) EXPECT_GE(output.elements(), 0);
      }
    }
  }
}

}  // namespace
}  // namespace fuselite::kernels
