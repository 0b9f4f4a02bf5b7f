// How integer sums become bytes: what is emitted, and the constants that it reads.
//
// Each vector of channels has one of these forms, which its constants say:
//   floats   round(fma(float(sum), scale, addend)), where that is proven to give the same bytes
//            for every sum (kernels/tail/float_scale.h): most vectors. What it asks to be added to
//            all sums is part of the bias that they begin with
//   moved    the same where some channels first move one sum to its neighbour: a comparison and an
//            addition for sums that are moved down, as many for those that are moved up
//   narrow   32-bit integers: TFLite rounds twice, x = floor((acc m + 2^30) / 2^31), then x / 2^e
//            half away from zero. With
//              y = floor(acc m / 2^30) = high 32 bits of (4 acc) m,
//              result + offset = (y + 1 + 2^e + offset 2^(e+1) - (acc < 0 ? 2 : 0)) >> (e + 1)
//            for e >= 1, and (y + 1 + 2 offset) >> 1 for e = 0, to the bit: everything that is
//            added is a multiple of 2^30 in units of the product, so the floor of y loses nothing.
//            For sums below 2^28 and shifts of up to 21; and for channels of any scale whose sums
//            all give the same byte, which the addition alone then holds: dead channels of trained
//            networks.
//   wide     64-bit integers, for any multiplier, shift and sum
// A rescaling in double precision (TailStage::kRescale) has floats or, as its wide form, doubles:
// half away from zero is the integer part of x + 0.49999999999999994, x's sign given to the
// summand.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "jit/tail/layer_constants.h"
#include "jit/tail/lookup_emitter.h"
#include "jit/tail/prepared_floats.h"
#include "kernels/tail/float_scale.h"
#include "kernels/tail/tail.h"
#include "runtime/cpu/isa.h"
#include "runtime/tensor.h"

namespace fuselite::jit {

// What decides the code, and the numbers that it reads for the layer (layer_constants.h). Whatever
// differs by channel is a constant in memory, too.
struct Requantization {
  bool is_unsigned = false;  // the result is uint8, not int8
  int32_t min = 0, max = 0;  // within that type
  bool real = false;         // kRescale
  int32_t zero_point = 0;
  // The addend of floats has the sum's sign. The zero point is then added behind the requantization
  // instead of within it.
  bool addend_has_sign = false;
  int32_t store_offset = 0;  // added before the clamp: the zero point, where nothing did before
  // The bytes go through a table before they are stored.
  std::optional<LookupMethod> lookup{};

  // The zero point that is added within the requantization.
  int32_t offset() const { return addend_has_sign ? 0 : zero_point; }
  // Vectors of constants behind each other for each vector of channels.
  int constants() const { return real ? 5 : 6; }
  // The code clamps only to what is less than the type's range.
  bool clamps_below() const { return min > (is_unsigned ? 0 : -128); }
  bool clamps_above() const { return max < (is_unsigned ? 255 : 127); }
  void Encode(LayerConstants* constants) const;
  // Tells apart what decides the code.
  std::string key() const;
};

// Plans a kRequantize or kRescale stage. Refuses outputs other than bytes.
Result<Requantization> PlanRequantization(const kernels::TailStage& stage, DataType output);

// A vector's constants, each of one vector. Those of a form are undefined for the other forms.
enum RequantizationSlot {
  kScaleSlot = 0,   // floats. Negative in lane 0: a RequantizationForm
  kAddendSlot = 1,  // floats, moved
  // moved
  kMovedScaleSlot = 2,
  kDownSlot = 3,  // the sums of which one is subtracted
  kUpSlot = 4,    // those to which one is added, for kUpForm
  // narrow, and in brackets wide
  kMultiplierSlot = 1,
  kNudgeSlot = 2,  // what is added to y [what is added to the low half of the product]
  kRightSlot = 3,  // e + 1 [max(e - 1, 0)]
  kLeftSlot = 4,   // 2 more than the shift to the left [that shift]
  kSignSlot = 5,   // 2 where negative sums differ, else 0 [1 where e = 0: the product is doubled]
  kRealSlot = 1,   // and the next: the scales of the lower and the upper half of the lanes
};
enum RequantizationForm : int32_t {
  kDownForm = -1,  // moved down alone
  kUpForm = -2,    // moved down and up
  kNarrowForm = -3,
  kWideForm = -4,
};

// How large sums get: without their bias, and biases; and how many there are.
struct SumBounds {
  int64_t products = 0, bias = 0;
  // Whether weights or biases come with each run. Then `bias` bounds no values but what floats are
  // found for: vectors with greater biases take the wide form.
  bool at_run_time = false;
  int64_t rows = INT64_MAX;  // of sums that a run computes
};

// Makes the constants.
class RequantizationConstants {
 public:
  RequantizationConstants() = default;
  // `plan` was made of `stage`. The form of constants may depend on `isa`, with which they are
  // made; what they give does not.
  RequantizationConstants(kernels::TailStage stage, const Requantization& plan,
                          const SumBounds& bounds, Isa isa);

  // Call before the first Pack: where all channels have one scale, finds its constants once, and
  // where they are packed at each run, those of each channel.
  void Prepare();
  // The constants of one vector; lane i is channel channels[i], or nothing where negative. A null
  // bias is zeros. `first_sums`: what the lanes' sums begin with, to which FloatScale::shift is
  // added.
  void Pack(std::span<const int64_t> channels, const int32_t* bias, int32_t* first_sums,
            int32_t* to) const;
  // What decides the constants, for PackRequest::layout.
  std::string key() const;

 private:
  struct Channel {
    int32_t multiplier = 0, shift = 0;
    double real = 0;
    std::optional<kernels::FloatScale> floats{};
    bool narrow = false;
    bool fits = false;  // shifted sums do not wrap around
    // Less the zero point: what all sums give, of channels that are narrow for that reason alone.
    std::optional<int32_t> constant{};
  };
  // What stands in a lane without a channel.
  static Channel Nothing() {
    return {.floats = kernels::FloatScale{}, .narrow = true, .fits = true};
  }
  // All but its floats, which `query` asks for.
  Channel Of(int64_t channel, int64_t least, int64_t largest,
             kernels::FloatScaleQuery* query) const;
  void PackLanes(std::span<const Channel> lanes, int32_t* first_sums, int32_t* to) const;
  // What Pack needs of the channels, of sums that end near their biases.
  void Find(std::span<const int64_t> channels, const int32_t* bias, std::span<Channel> lanes) const;
  void PrepareUniform();
  void PrepareEach(int64_t channels);
  bool WithinBounds(std::span<const int64_t> channels, const int32_t* bias) const;
  // Constants for all lanes where sums may be anything.
  void FillWide(std::span<const int64_t> channels, std::span<Channel> lanes) const;
  // Makes the channel narrow and constant if all sums from `least` to `largest` give one byte.
  // Shifted to the left they must fit into 32 bits.
  void SetConstant(int64_t least, int64_t largest, Channel* c) const;
  void PackFloats(std::span<const Channel> lanes, int32_t* first_sums, int32_t* to) const;
  void PackNarrow(std::span<const Channel> lanes, int32_t* to) const;
  void PackWide(std::span<const Channel> lanes, int32_t* to) const;
  void PackReal(std::span<const Channel> lanes, int32_t* to) const;

  kernels::TailStage stage_;
  Requantization plan_;
  SumBounds bounds_;
  Isa isa_;
  std::optional<Channel> uniform_;
  // A vector of that channel as Pack leaves it, and what is added to each of its first sums.
  std::vector<int32_t> uniform_constants_;
  int32_t uniform_shift_ = 0;
  // Where constants are packed at each run: slots of uniform_constants_ that its form reads, and
  // the constants of each channel, those that have floats once more.
  size_t uniform_slots_ = 0;
  std::vector<Channel> each_;
  PreparedFloats each_floats_;
};

}  // namespace fuselite::jit
