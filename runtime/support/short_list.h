// Lists of mostly few elements.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <type_traits>
#include <vector>

namespace fuselite {

// A list of elements that are copied as bytes. The first `kInPlace` take no memory of their own:
// what is described in thousands while a model is opened, a copy's dimensions or a value's readers,
// mostly has a few.
template <class T, size_t kInPlace>
class ShortList {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  using value_type = T;
  using iterator = T*;
  using const_iterator = const T*;

  T* begin() { return many_.empty() ? few_.data() : many_.data(); }
  const T* begin() const { return many_.empty() ? few_.data() : many_.data(); }
  T* end() { return begin() + size(); }
  const T* end() const { return begin() + size(); }
  T& operator[](size_t i) { return begin()[i]; }
  const T& operator[](size_t i) const { return begin()[i]; }
  T& back() { return end()[-1]; }
  const T& back() const { return end()[-1]; }

  size_t size() const { return many_.empty() ? count_ : many_.size(); }
  bool empty() const { return size() == 0; }

  void push_back(const T& value) { insert(end(), value); }
  void pop_back() { erase(end() - 1, end()); }
  void clear() { erase(begin(), end()); }
  // Puts `value`, which is none of the list's own elements, before the element `at`.
  void insert(T* at, const T& value) {
    if (many_.empty() && count_ < kInPlace) {
      std::copy_backward(at, end(), end() + 1);
      *at = value;
      ++count_;
      return;
    }
    const auto index = at - begin();
    if (many_.empty()) many_.assign(begin(), end());
    count_ = 0;
    many_.insert(many_.begin() + index, value);
  }
  void erase(T* first, T* last) {
    std::copy(last, end(), first);
    const size_t left = size() - static_cast<size_t>(last - first);
    many_.empty() ? void(count_ = left) : many_.resize(left);
  }

 private:
  std::array<T, kInPlace> few_{};
  size_t count_ = 0;  // of those in few_, while many_ is empty
  std::vector<T> many_;
};

}  // namespace fuselite
