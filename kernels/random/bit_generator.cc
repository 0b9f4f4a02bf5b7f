// STABLEHLO_RNG_BIT_GENERATOR: state → (state behind the bits, bits). The state is a key and a
// counter of 64 bits each, which Philox may follow by the upper half of the counter (its key again,
// where there is none). The bits are those of the counter, the next one, and so on; what a
// generator gives beyond the last element is dropped. The shape is the file's.
#include <array>
#include <cstring>

#include "kernels/make_kernel.h"
#include "kernels/random/counter_based.h"
#include "kernels/shape_rules.h"
#include "runtime/tflite/abi.h"

namespace fuselite::kernels {
namespace {

enum class Algorithm : int32_t { kDefault, kPhilox, kThreefry };
struct BitGeneratorParams {
  Algorithm algorithm;
};
// The struct numbers the algorithms as it does paddings: one higher than the file.
constexpr Field kFields[] = {
    {.name = "algorithm",
     .kind = FieldKind::kPadding,
     .id = 0,
     .offset = offsetof(BitGeneratorParams, algorithm),
     .struct_offset = offsetof(tflite::TfLiteStablehloRngBitGeneratorParams, algorithm),
     .choices = 3},
};
constexpr TypeRow kTypes[] = {{{DataType::kUInt64}, DataType::kUInt64}};

Status InferBitGenerator(OpDescription& op) {
  const TensorInfo& state = op.inputs[0];
  const bool threefry = op.params.as<BitGeneratorParams>().algorithm == Algorithm::kThreefry;
  if (state.shape.rank() != 1 || state.shape[0] < 2 || state.shape[0] > (threefry ? 2 : 3)) {
    return InvalidArgument("a state of ", state.shape);
  }
  FUSELITE_RETURN_IF_ERROR(SetOutput(op, 0, DataType::kUInt64, state.shape));
  switch (op.outputs[1].type) {
    case DataType::kInt32:
    case DataType::kInt64:
    case DataType::kUInt32:
    case DataType::kUInt64: return SetOutput(op, 1, op.outputs[1].type, op.outputs[1].shape);
    default: return Unsupported("does not take bits of type ", DataTypeName(op.outputs[1].type));
  }
}

// A unit is one counter's words.
template <size_t kWords, class F>
std::unique_ptr<Kernel> BuildOf(const OpDescription& op, F words_of) {
  const int64_t words = op.outputs[1].bytes() / 4;
  const int64_t counters = (words + kWords - 1) / kWords;
  const int64_t state_bytes = op.inputs[0].bytes();
  return MakeKernel("stablehlo_rng_bit_generator",
                    {.units = std::max<int64_t>(1, counters), .grain = GrainFor(kWords * 8)},
                    [=](const KernelArgs& args, int64_t begin, int64_t end) {
                      std::array<uint32_t, 6> state{};
                      std::memcpy(state.data(), args.inputs[0], state_bytes);
                      const uint64_t first = state[2] | static_cast<uint64_t>(state[3]) << 32;
                      auto* out = static_cast<std::byte*>(args.outputs[1]);
                      for (int64_t unit = begin; unit < std::min(end, counters); ++unit) {
                        const uint64_t counter = first + static_cast<uint64_t>(unit);
                        const std::array<uint32_t, kWords> bits =
                            words_of(state, static_cast<uint32_t>(counter),
                                     static_cast<uint32_t>(counter >> 32));
                        const int64_t count = std::min<int64_t>(kWords, words - unit * kWords);
                        std::memcpy(out + unit * kWords * 4, bits.data(), count * 4);
                      }
                      if (begin > 0) return;
                      const uint64_t next = first + static_cast<uint64_t>(counters);
                      state[2] = static_cast<uint32_t>(next);
                      state[3] = static_cast<uint32_t>(next >> 32);
                      std::memcpy(args.outputs[0], state.data(), state_bytes);
                    });
}

Result<std::unique_ptr<Kernel>> Build(const OpDescription& op, const BuildContext&) {
  if (!op.tail.empty()) return Unsupported("STABLEHLO_RNG_BIT_GENERATOR takes no fused tail");
  FUSELITE_RETURN_IF_ERROR(RequireDense(op));
  using State = std::array<uint32_t, 6>;
  if (op.params.as<BitGeneratorParams>().algorithm == Algorithm::kThreefry) {
    return BuildOf<2>(op, [](const State& state, uint32_t low, uint32_t high) {
      return Threefry2x32({state[0], state[1]}, {low, high});
    });
  }
  const int upper = op.inputs[0].shape[0] == 3 ? 4 : 0;
  return BuildOf<4>(op, [upper](const State& state, uint32_t low, uint32_t high) {
    return Philox4x32({state[0], state[1]}, {low, high, state[upper], state[upper + 1]});
  });
}

constexpr Candidate kCandidates[] = {{"reference", Build}};

}  // namespace

const OperatorDef& StablehloRngBitGeneratorOperator() {
  static constexpr OperatorDef kDef = {
      .name = "STABLEHLO_RNG_BIT_GENERATOR",
      .builtin_code = tflite::kTfLiteBuiltinStablehloRngBitGenerator,
      .options_type = kSecondUnion + 19,
      .fields = kFields,
      .params_bytes = sizeof(BitGeneratorParams),
      .struct_bytes = sizeof(tflite::TfLiteStablehloRngBitGeneratorParams),
      .min_outputs = 2,
      .max_outputs = 2,
      .types = kTypes,
      .limits = "rank 1; bits of int32, int64, uint32 and uint64",
      .infer = InferBitGenerator,
      .candidates = kCandidates,
      .cost = [](const OpDescription& op) { return 8.0 * op.outputs[1].elements(); },
  };
  return kDef;
}

}  // namespace fuselite::kernels
