// What is known of a graph's tensors while its nodes are walked in running order.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "kernels/operator.h"
#include "partitioner/import/import.h"
#include "partitioner/import/tensor_indices.h"
#include "runtime/support/status.h"
#include "runtime/tensor.h"
#include "runtime/weights/packed_store.h"

namespace fuselite::partitioner {

// Starts from what the host says; what fuselite's shape rules give replaces the host's shapes,
// which may be the file's or stale. Judging and building walk with this table, so that they agree.
//
// Small integer results that depend only on constants and shapes (SHAPE and what models compute
// from it) are computed on the way: their `data` is set, and lives as long as the table.
class TensorTable {
 public:
  explicit TensorTable(const tflite::TfLiteContext* context)
      : context_(context), constants_(std::make_shared<Infos>()) {}
  // A new table of the same graph. What either imports of the host's constants the other need not:
  // the scales of thousands of channels, in memory of their own each time.
  TensorTable Another() const {
    TensorTable another(context_);
    another.constants_ = constants_;
    return another;
  }

  // Errors name the tensor.
  Result<TensorInfo> Get(int tensor) const;
  // `storage` keeps what info.data points to; null where that lives as long as the table anyway.
  void Set(int tensor, TensorInfo info, std::shared_ptr<const void> storage = nullptr);

  // The node with its operands described, as far as they are known.
  Result<kernels::OpDescription> Describe(const ImportedNode& node) const;
  // Describe(node), and its outputs are inferred and recorded; on an error the host's word on them
  // stands. kDynamicShape, with the types checked, where the shape of an output or of an input
  // depends on values that are not known.
  Result<kernels::OpDescription> Infer(const ImportedNode& node);

  // The tensor is a handle, and stands for the variable that `info` describes: it is read and
  // written in the order of the nodes.
  void SetVariable(int tensor, TensorInfo info);
  bool IsVariable(int tensor) const { return variables_.contains(tensor); }

  // Keeps the bytes of a constant that Get() has described; null for those that the host keeps.
  std::shared_ptr<const void> StorageOf(int tensor) const;

  // The tensor's shape depends on values of a run: what the host says of it is a guess. Get()
  // refuses it where the host does not even have its rank.
  void MarkUnknown(int tensor) { unknown_.insert(tensor); }
  bool IsUnknown(int tensor) const { return unknown_.contains(tensor); }

 private:
  Result<TensorInfo> Import(int tensor) const;

  class Infos {
   public:
    const TensorInfo* Find(int tensor) const {
      const int at = places_[tensor];
      return at == TensorIndices::kNone ? nullptr : &infos_[static_cast<size_t>(at)];
    }
    void Set(int tensor, TensorInfo info) {
      if (const int at = places_[tensor]; at != TensorIndices::kNone) {
        infos_[static_cast<size_t>(at)] = std::move(info);
        return;
      }
      places_.Set(tensor, static_cast<int>(infos_.size()));
      infos_.push_back(std::move(info));
    }

   private:
    TensorIndices places_;
    std::deque<TensorInfo> infos_;
  };

  const tflite::TfLiteContext* context_;
  std::shared_ptr<Infos> constants_;  // as the host describes them
  Infos known_;
  std::set<int> unknown_, variables_;
  std::map<int, std::shared_ptr<const void>> storage_;
  mutable std::map<int, PackedWeights> unpacked_;  // the sparse constants
};

}  // namespace fuselite::partitioner
