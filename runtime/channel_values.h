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

// A sequence that never changes: one number lies in place, more lie in memory that copies share.
// Descriptions of tensors are copied from stage to stage while a model is opened; copies of the
// numbers of 31,000 channels were a tenth of the time that EfficientNet-B0 takes for it.
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
    if (size_ > 1) many_ = std::make_shared<const std::vector<T>>(std::move(values));
  }
  explicit ChannelValues(std::span<const T> values) : size_(values.size()) {
    if (size_ == 1) one_ = values[0];
    if (size_ > 1) {
      many_ = std::make_shared<const std::vector<T>>(values.begin(), values.end());
    }
  }
  static ChannelValues Repeated(size_t count, T value) {
    return count == 1 ? ChannelValues{value} : ChannelValues(std::vector<T>(count, value));
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const T* data() const { return many_ != nullptr ? many_->data() : &one_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  const T& operator[](size_t i) const { return data()[i]; }

  friend bool operator==(const ChannelValues& a, const ChannelValues& b) {
    return a.size_ == b.size_ &&
           (a.data() == b.data() || std::equal(a.begin(), a.end(), b.begin()));
  }

 private:
  size_t size_ = 0;
  T one_{};
  std::shared_ptr<const std::vector<T>> many_;  // two or more
};

}  // namespace fuselite
