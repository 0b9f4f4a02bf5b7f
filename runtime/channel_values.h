// Numbers of a tensor, or of each of its channels.
#pragma once

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace fuselite {

namespace internal {
// Zeros of which no memory is taken as long as they are only read. More channels have few layers.
inline constexpr size_t kSharedZeros = 8192;
template <class T>
inline constinit T shared_zeros[kSharedZeros] = {};
}  // namespace internal

// A sequence that never changes: one number lies in place, more lie in memory that copies share.
// Descriptions of tensors are copied from stage to stage while a model is opened; copies of the
// numbers of 31,000 channels were a tenth of the time that EfficientNet-B0 takes for it. Zeros, as
// the zero points of channels always are, lie in one place for all.
template <class T>
class ChannelValues {
 public:
  using value_type = T;
  using const_iterator = const T*;
  using iterator = const_iterator;
  using const_reference = const T&;
  using size_type = size_t;

  ChannelValues() = default;
  ChannelValues(std::initializer_list<T> values)
      : ChannelValues(std::span<const T>(values.begin(), values.size())) {}
  ChannelValues(std::vector<T> values) : size_(values.size()) {
    if (size_ == 1) one_ = values[0];
    if (size_ > 1 && !TakeZeros(values)) {
      const auto owner = std::make_shared<const std::vector<T>>(std::move(values));
      many_ = {owner, owner->data()};
    }
  }
  explicit ChannelValues(std::span<const T> values) : size_(values.size()) {
    if (size_ == 1) one_ = values[0];
    if (size_ > 1 && !TakeZeros(values)) {
      const auto owner = std::make_shared<const std::vector<T>>(values.begin(), values.end());
      many_ = {owner, owner->data()};
    }
  }
  static ChannelValues Repeated(size_t count, T value) {
    if (count == 1) return {value};
    if (value == T{} && count <= internal::kSharedZeros) return Zeros(count);
    return ChannelValues(std::vector<T>(count, value));
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T* data() const { return many_ != nullptr ? many_.get() : &one_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  const T& operator[](size_t i) const { return data()[i]; }

  friend bool operator==(const ChannelValues& a, const ChannelValues& b) {
    return a.size_ == b.size_ &&
           (a.data() == b.data() || std::equal(a.begin(), a.end(), b.begin()));
  }

 private:
  static ChannelValues Zeros(size_t count) {
    ChannelValues zeros;
    zeros.size_ = count;
    if (count > 1) zeros.many_ = {std::shared_ptr<const void>(), internal::shared_zeros<T>};
    return zeros;
  }
  bool TakeZeros(std::span<const T> values) {
    const auto zero = [](const T& value) { return value == T{}; };
    if (values.size() > internal::kSharedZeros || !std::ranges::all_of(values, zero)) return false;
    *this = Zeros(values.size());
    return true;
  }

  size_t size_ = 0;
  T one_{};
  std::shared_ptr<const T> many_;  // the first of two or more
};

}  // namespace fuselite
