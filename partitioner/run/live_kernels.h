// Which graphs have kernels of a delegate, and how their runs are ended.
#pragma once

#include <atomic>
#include <map>
#include <mutex>
#include <set>

#include "runtime/tflite/abi.h"

namespace fuselite::partitioner {

// The kernels of one delegate. Thread-safe.
class LiveKernels {
 public:
  // A kernel of the graph lives from the first call to the second. Its runs end at their next step
  // where *stop is true, which Cancel() sets.
  void Add(const tflite::TfLiteContext* context, std::atomic<bool>* stop);
  void Remove(std::atomic<bool>* stop);
  // Ends the runs that are under way.
  void Cancel();

  // While one lives the host makes the kernels of its graph, which counts as alive before it has
  // any: other threads may begin graphs with the same delegate.
  class ToCome {
   public:
    ToCome(LiveKernels& kernels, const tflite::TfLiteContext* context);
    ~ToCome();
    ToCome(const ToCome&) = delete;
    ToCome& operator=(const ToCome&) = delete;

   private:
    LiveKernels& kernels_;
    const tflite::TfLiteContext* const context_;
  };

  // The graphs that have kernels now, or are about to have some.
  std::set<const tflite::TfLiteContext*> Graphs() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::atomic<bool>*, const tflite::TfLiteContext*> kernels_;
  std::multiset<const tflite::TfLiteContext*> to_come_;
};

}  // namespace fuselite::partitioner
