// What every operator's definition has to hold.
#include "kernels/operator.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace fuselite::kernels
