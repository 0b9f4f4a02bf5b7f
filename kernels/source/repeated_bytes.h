// Bytes that stand several times each: the channels of an image whose depthwise convolution has
// several filters for each.
#pragma once

#include <array>
#include <cstdint>

#include "runtime/cpu/isa.h"

namespace fuselite::kernels {

class RepeatedBytes {
 public:
  // Sixteen bytes are looked up in the sixteen that are repeated; more repetitions are stored.
  static constexpr int32_t kBlock = 16, kMostLookedUp = 15;
  using Order = std::array<uint8_t, kBlock * kMostLookedUp>;
  using Function = void(const uint8_t* from, int64_t n, int32_t times, const Order& order,
                        uint8_t* to);

  // `times` >= 1; each ISA gives the same bytes.
  RepeatedBytes(int32_t times, Isa isa);

  int32_t times() const { return times_; }
  // to[i * times ...] = from[i], `times` times, for each i < n. Pointers need no alignment; what is
  // written does not lie in what is read.
  void Run(const uint8_t* from, int64_t n, uint8_t* to) const {
    function_(from, n, times_, order_, to);
  }

 private:
  int32_t times_;
  Order order_{};  // of byte b of the result: which byte it is, b < kBlock * times
  Function* function_;
};

}  // namespace fuselite::kernels
