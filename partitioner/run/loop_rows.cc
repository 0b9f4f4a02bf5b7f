#include "partitioner/run/loop_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace fuselite::partitioner {
namespace {

// Its place among those inputs of the graph that are bound as inputs.
int PlaceOf(const fusion::Graph& graph, fusion::ValueId value) {
  int place = 0;
  for (fusion::ValueId input : graph.inputs) {
    if (input == value) return place;
    if (!graph.value(input).variable) ++place;
  }
  return -1;
}

int64_t LoadIndex(DataType type, const void* data) {
  int64_t wide = 0;
  int32_t narrow = 0;
  if (type == DataType::kInt64) {
    std::memcpy(&wide, data, sizeof wide);
    return wide;
  }
  std::memcpy(&narrow, data, sizeof narrow);
  return narrow;
}

}  // namespace

Result<std::unique_ptr<LoopRows>> LoopRows::Make(fusion::RowsAhead taken, const fusion::Graph& body,
                                                 const fusion::CompileOptions& options) {
  auto rows = std::make_unique<LoopRows>();
  const TensorInfo& from = body.value(taken.from).info;
  rows->from_ = PlaceOf(body, taken.from);
  rows->index_ = PlaceOf(body, taken.index);
  rows->index_type_ = body.value(taken.index).info.type;
  rows->count_ = from.shape[0];
  rows->rows_ = taken.rows;
  rows->bytes_ = from.bytes() / from.shape[0];
  for (fusion::ValueId result : taken.results) {
    rows->products_.push_back({PlaceOf(body, result), body.value(result).info.bytes()});
  }
  Segment& block = rows->block_;
  FUSELITE_ASSIGN_OR_RETURN(block.executable, fusion::Compile(std::move(taken.graph), options,
                                                              block.report.get(), nullptr));
  block.execution = std::make_unique<Execution>(block.executable);
  FUSELITE_RETURN_IF_ERROR(block.execution->Prepare(options.threads));
  return rows;
}

Status LoopRows::TakeMemory() {
  bool memory = true;
  for (size_t i = 0; i < products_.size(); ++i) {
    Product& product = products_[i];
    product.memory = AlignedBuffer(product.bytes * rows_);
    memory &= product.memory.data() != nullptr;
    block_.execution->BindOutput(static_cast<int>(i), product.memory.data());
  }
  // Last: where these are, all is, and nothing is taken again.
  if (memory) kept_ = AlignedBuffer(bytes_ * rows_);
  if (kept_.data() == nullptr) return OutOfMemory("no memory for the products of a loop's rows");
  block_.execution->BindInput(0, kept_.data());
  return Status();
}

Status LoopRows::Bind(Execution& body, FunctionRef<Status(Segment& segment)> run) {
  const auto* const from = static_cast<const std::byte*>(body.input(from_));
  const int64_t row = LoadIndex(index_type_, body.input(index_));
  if (row < 0 || row >= count_) {
    return InvalidArgument("index ", row, " is not in [0, ", count_, ")").In("GATHER");
  }
  if (kept_.size() == 0) FUSELITE_RETURN_IF_ERROR(TakeMemory());
  const int64_t begin = std::min(row - row % rows_, count_ - rows_);
  const auto kept = [&] { return static_cast<std::byte*>(kept_.data()) + (row - begin) * bytes_; };
  if (begin != begin_ || std::memcmp(kept(), from + row * bytes_, bytes_) != 0) {
    begin_ = -1;
    std::memcpy(kept_.data(), from + begin * bytes_, rows_ * bytes_);
    FUSELITE_RETURN_IF_ERROR(run(block_));
    begin_ = begin;
  }
  for (const Product& product : products_) {
    body.BindInput(product.input, static_cast<const std::byte*>(product.memory.data()) +
                                      (row - begin) * product.bytes);
  }
  return Status();
}

Status TakeLoopRows(Segment& segment, const fusion::CompileOptions& options) {
  fusion::Graph& body = segment.built.graph;
  for (fusion::RowsAhead& taken : fusion::TakeRowsAhead(body)) {
    FUSELITE_ASSIGN_OR_RETURN(std::unique_ptr<LoopRows> rows,
                              LoopRows::Make(std::move(taken), body, options));
    segment.rows.push_back(std::move(rows));
  }
  return Status();
}

}  // namespace fuselite::partitioner
