// The delegate: what a host applies to its graphs.
#pragma once

#include <memory>

#include "partitioner/delegate_state.h"
#include "partitioner/options.h"
#include "partitioner/report/explanation.h"
#include "runtime/support/status.h"
#include "runtime/tflite/abi.h"

namespace fuselite::partitioner {

class Delegate {
 public:
  explicit Delegate(Options options);
  Delegate(const Delegate&) = delete;
  Delegate& operator=(const Delegate&) = delete;

  // What hosts take. Lives as long as this object.
  tflite::TfLiteDelegate* c_struct() { return &c_struct_; }
  static Delegate* FromC(tflite::TfLiteDelegate* c_struct) {
    return static_cast<Delegate*>(c_struct->data_);
  }

  // Judges the graph's nodes and takes those that are worth it. Fails only where the host does: an
  // error of the delegate leaves the graph to the host, with the reason in the explanation.
  // Where it has taken nodes of the graph already, nothing changes.
  Status Prepare(tflite::TfLiteContext* context);

  Explanation Explain() const { return state_->Explain(); }
  const std::shared_ptr<DelegateState>& state() const { return state_; }

 private:
  bool HasTaken(tflite::TfLiteContext* context) const;

  tflite::TfLiteDelegate c_struct_{};
  std::shared_ptr<DelegateState> state_;
};

}  // namespace fuselite::partitioner
