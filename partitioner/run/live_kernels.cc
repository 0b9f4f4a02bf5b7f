#include "partitioner/run/live_kernels.h"

namespace fuselite::partitioner {

using tflite::TfLiteContext;

void LiveKernels::Add(const TfLiteContext* context, std::atomic<bool>* stop) {
  const std::lock_guard lock(mutex_);
  kernels_[stop] = context;
}

void LiveKernels::Remove(std::atomic<bool>* stop) {
  const std::lock_guard lock(mutex_);
  kernels_.erase(stop);
}

void LiveKernels::Cancel() {
  const std::lock_guard lock(mutex_);
  for (const auto& [stop, context] : kernels_) stop->store(true, std::memory_order_relaxed);
}

LiveKernels::ToCome::ToCome(LiveKernels& kernels, const TfLiteContext* context)
    : kernels_(kernels), context_(context) {
  const std::lock_guard lock(kernels_.mutex_);
  kernels_.to_come_.insert(context_);
}

LiveKernels::ToCome::~ToCome() {
  const std::lock_guard lock(kernels_.mutex_);
  kernels_.to_come_.erase(kernels_.to_come_.find(context_));
}

std::set<const TfLiteContext*> LiveKernels::Graphs() const {
  const std::lock_guard lock(mutex_);
  std::set<const TfLiteContext*> graphs(to_come_.begin(), to_come_.end());
  for (const auto& [stop, context] : kernels_) graphs.insert(context);
  return graphs;
}

}  // namespace fuselite::partitioner
