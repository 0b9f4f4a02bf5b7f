// What it costs at the moment to hand work from one running thread to another.
#pragma once

#include <atomic>
#include <cstdint>

namespace fuselite {

// Measured by two threads of a region that throw a number to and fro. On one virtual machine a
// throw takes 37 ns in one minute and 150 in the next, when its two cores have come to lie apart.
class HandOver {
 public:
  // Between two cores of a Zen 4 that share a cache.
  static constexpr double kUsualNs = 40;

  // One thread's part: the nanoseconds of a throw, the least of several tries, 20 us in all; 0
  // where the other thread does not come soon.
  double Serve();
  // The other one's, which may come late, until the first has ended.
  void Return();

 private:
  alignas(64) std::atomic<uint32_t> number_{0};  // odd ones are for the thread that returns
  alignas(64) std::atomic<bool> ready_{false};
  std::atomic<bool> over_{false};
};

}  // namespace fuselite
