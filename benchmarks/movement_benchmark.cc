// Operators whose limit is the memory: resizing, pooling, conversions, extremes, transposing. Rates
// count the bytes that are read and written.
#include "benchmarks/op_benchmark.h"
#include "kernels/arg_max/arg_max.h"
#include "kernels/pool/pool.h"
#include "kernels/resize/resize.h"

namespace fuselite::benchmarks {
namespace {

constexpr DataType kF32 = DataType::kFloat32, kF16 = DataType::kFloat16, kI8 = DataType::kInt8,
                   kU8 = DataType::kUInt8, kI16 = DataType::kInt16, kI32 = DataType::kInt32,
                   kI64 = DataType::kInt64;

Quantization Scale(DataType type, float scale) {
  if (type != kI8 && type != kU8 && type != kI16 && type != kI32) return {};
  return {.scales = {scale}, .zero_points = {type == kI8 ? -3 : type == kU8 ? 128 : 0}};
}

// A square of `from` becomes one of `to`. 513 and 257 pixels: align_corners, as DeepLab has it.
struct Resize {
  const char* op;
  DataType type;
  int32_t from, to, channels;
};
constexpr Resize kResizes[] = {
    {"RESIZE_BILINEAR", kU8, 33, 513, 21},          {"RESIZE_BILINEAR", kI8, 33, 513, 21},
    {"RESIZE_BILINEAR", kF32, 33, 513, 21},         {"RESIZE_BILINEAR", kI8, 24, 48, 64},
    {"RESIZE_BILINEAR", kU8, 192, 224, 3},          {"RESIZE_BILINEAR", kI8, 192, 224, 3},
    {"RESIZE_BILINEAR", kF32, 128, 256, 32},        {"RESIZE_NEAREST_NEIGHBOR", kF32, 128, 256, 32},
    {"RESIZE_NEAREST_NEIGHBOR", kI8, 128, 256, 32},
};

void RegisterResizes() {
  for (const Resize& r : kResizes) {
    RegisterCandidates(
        r.op,
        std::string(DataTypeName(r.type)) + "/" + std::to_string(r.from) + "->" +
            std::to_string(r.to) + "x" + std::to_string(r.channels),
        [r](benchmark::State& state, std::string_view candidate, Isa isa) {
          const int32_t size[] = {r.to, r.to};
          OpBenchmark bench(r.op);
          bench.rate = OpBenchmark::Rate::kMemory;
          bench.params<kernels::ResizeParams>().align_corners = r.to % 2 == 1;
          bench.params<kernels::ResizeParams>().half_pixel_centers = r.to % 2 == 0;
          bench.Input({1, r.from, r.from, r.channels}, false, r.type, Scale(r.type, 0.1f));
          bench.Constant({2}, kI32, size);
          bench.Output(r.type, Scale(r.type, 0.1f));
          bench.Run(state, candidate, isa);
        });
  }
}

struct Pool {
  const char* op;
  int32_t size, channels, filter, stride;
};
constexpr Pool kPools[] = {
    {"AVERAGE_POOL_2D", 7, 1280, 7, 1}, {"AVERAGE_POOL_2D", 33, 320, 33, 1},
    {"AVERAGE_POOL_2D", 28, 192, 3, 1}, {"MAX_POOL_2D", 112, 64, 3, 2},
    {"MAX_POOL_2D", 28, 256, 2, 2},     {"MAX_POOL_2D", 24, 16, 2, 2},
};

void RegisterPools() {
  for (const Pool& p : kPools) {
    for (const DataType type : {kF32, kI8, kU8, kI16}) {
      RegisterCandidates(
          p.op,
          std::string(DataTypeName(type)) + "/" + std::to_string(p.size) + "x" +
              std::to_string(p.channels) + "/k" + std::to_string(p.filter) + "s" +
              std::to_string(p.stride),
          [p, type](benchmark::State& state, std::string_view candidate, Isa isa) {
            OpBenchmark bench(p.op);
            bench.rate = OpBenchmark::Rate::kMemory;
            auto& params = bench.params<kernels::PoolParams>();
            params.padding = kernels::Padding::kValid;
            params.stride_w = params.stride_h = p.stride;
            params.filter_width = params.filter_height = p.filter;
            bench.Input({1, p.size, p.size, p.channels}, false, type, Scale(type, 0.1f));
            bench.Output(type, Scale(type, 0.1f));
            bench.Run(state, candidate, isa);
          });
    }
  }
}

struct Conversion {
  const char* op;
  DataType from, to;
};
constexpr Conversion kConversions[] = {
    {"QUANTIZE", kF32, kI8},    {"QUANTIZE", kF32, kU8},   {"QUANTIZE", kF32, kI16},
    {"QUANTIZE", kU8, kU8},     {"QUANTIZE", kI8, kU8},    {"QUANTIZE", kI16, kI8},
    {"QUANTIZE", kI32, kI8},    {"DEQUANTIZE", kI8, kF32}, {"DEQUANTIZE", kI16, kF32},
    {"DEQUANTIZE", kF16, kF32}, {"CAST", kU8, kF32},       {"CAST", kI32, kF32},
    {"CAST", kF32, kI32},       {"CAST", kF32, kU8},       {"CAST", kI64, kI32},
    {"CAST", kI32, kI64},
};

void RegisterConversions() {
  for (const Conversion& c : kConversions) {
    RegisterCandidates(c.op,
                       std::string(DataTypeName(c.from)) + "->" + std::string(DataTypeName(c.to)),
                       [c](benchmark::State& state, std::string_view candidate, Isa isa) {
                         OpBenchmark bench(c.op);
                         bench.rate = OpBenchmark::Rate::kMemory;
                         bench.Input({1, 192, 192, 3}, false, c.from, Scale(c.from, 0.05f));
                         bench.Output(c.to, Scale(c.to, 0.1f));
                         bench.Run(state, candidate, isa);
                       });
  }
}

struct Extreme {
  DataType type;
  Shape shape;
  int32_t axis;
};

void RegisterExtremes() {
  for (const Extreme& e : {Extreme{kU8, {1, 513, 513, 21}, 3}, Extreme{kI8, {1, 513, 513, 21}, 3},
                           Extreme{kF32, {1, 513, 513, 21}, 3}, Extreme{kI8, {256, 256, 2}, 2},
                           Extreme{kF32, {1, 1001}, 1}, Extreme{kI8, {48 * 48, 17}, 0}}) {
    RegisterCandidates("ARG_MAX",
                       std::string(DataTypeName(e.type)) + "/" +
                           std::to_string(e.shape.elements()) + "/" +
                           std::to_string(e.shape[e.axis]),
                       [e](benchmark::State& state, std::string_view candidate, Isa isa) {
                         OpBenchmark bench("ARG_MAX");
                         bench.rate = OpBenchmark::Rate::kMemory;
                         bench.params<kernels::ArgMaxParams>().output_type = kI32;
                         bench.Input(e.shape, false, e.type);
                         bench.Constant({}, kI32, std::span(&e.axis, 1));
                         bench.Run(state, candidate, isa);
                       });
  }
}

// As they stand between convolutions, in attention, and in channel shuffles.
struct Transposition {
  DataType type;
  std::vector<int32_t> shape, order;
};

void RegisterTransposes() {
  for (const Transposition& t : {
           Transposition{kF32, {1, 999, 128}, {0, 2, 1}},
           Transposition{kF32, {1, 28, 28, 116}, {0, 3, 1, 2}},
           Transposition{kF32, {1, 464, 7, 7}, {0, 2, 3, 1}},
           Transposition{kF32, {1, 3, 224, 224}, {0, 2, 3, 1}},
           Transposition{kF32, {1, 192, 192, 4}, {0, 3, 1, 2}},
           Transposition{kF32, {784, 2, 58}, {0, 2, 1}},
           Transposition{kF32, {1, 196, 3, 64}, {0, 2, 1, 3}},
           Transposition{kF32, {1, 10, 335, 160}, {3, 2, 1, 0}},
           Transposition{kI8, {1, 999, 128}, {0, 2, 1}},
           Transposition{kI8, {1, 464, 7, 7}, {0, 2, 3, 1}},
           Transposition{kI8, {1, 3, 224, 224}, {0, 2, 3, 1}},
           Transposition{kI8, {1, 2, 58, 28, 28}, {0, 2, 1, 3, 4}},
           Transposition{kI8, {1, 196, 3, 64}, {0, 2, 3, 1}},
           Transposition{kI16, {1, 999, 128}, {0, 2, 1}},
           Transposition{kI64, {1, 999, 128}, {0, 2, 1}},
       }) {
    std::string name(DataTypeName(t.type));
    for (const auto* list : {&t.shape, &t.order}) {
      name += "/";
      for (const int32_t d : *list) name += std::to_string(d) + (&d == &list->back() ? "" : "x");
    }
    RegisterCandidates("TRANSPOSE", name,
                       [t](benchmark::State& state, std::string_view candidate, Isa isa) {
                         OpBenchmark bench("TRANSPOSE");
                         bench.rate = OpBenchmark::Rate::kMemory;
                         bench.Input(Shape(t.shape), false, t.type);
                         bench.Constant({static_cast<int32_t>(t.order.size())}, kI32, t.order);
                         bench.Run(state, candidate, isa);
                       });
  }
}

const bool kRegistered = [] {
  RegisterResizes();
  RegisterPools();
  RegisterConversions();
  RegisterExtremes();
  RegisterTransposes();
  return true;
}();

}  // namespace
}  // namespace fuselite::benchmarks
