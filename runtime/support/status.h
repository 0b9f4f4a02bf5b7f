// Errors as values: what went wrong, where, and what to do about it, in one line.
//
// Nothing in the library aborts, prints or throws into its host; every function that can fail
// returns a Status or a Result<T>.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace fuselite {

enum class StatusCode {
  kOk,
  kInvalidArgument,  // the caller's or the model's fault: malformed, out of range, inconsistent
  kUnsupported,      // well-formed, but nobody here computes it; the reason says what is missing
  kDynamicShape,     // a shape depends on values that exist only at run time
  kNotFound,         // a file, a name or an index that does not exist
  kOutOfMemory,
  kIo,
  kCancelled,
  kDeadlineExceeded,
  kInternal,    // a fault of fuselite
  kOverBudget,  // more than the user allows a model to ask for: runtime/memory/budget.h
};

std::string_view StatusCodeName(StatusCode code);

// A code and one line of text. The success value is cheap: no allocation.
class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(StatusCode code, std::string message);
  Status(const Status& other);
  Status& operator=(const Status& other);
  Status(Status&&) noexcept = default;
  Status& operator=(Status&&) noexcept = default;

  bool ok() const { return error_ == nullptr; }
  StatusCode code() const { return error_ ? error_->code : StatusCode::kOk; }
  // Without the code's name; empty for success.
  const std::string& message() const;
  // "invalid argument: ...", or "ok".
  std::string ToString() const;
  // This error with `where` and ": " put in front of its message.
  Status In(std::string_view where) const;

 private:
  struct Error {
    StatusCode code;
    std::string message;
  };
  std::unique_ptr<const Error> error_;
};

// Builds a message from parts: numbers, strings and whatever std::ostream prints.
namespace internal {
template <class... Parts>
std::string Join(const Parts&... parts);
}  // namespace internal

// Cold, as all errors are: the compiler moves what leads to them out of the way of the code that
// runs, of which opening a model maps the less.
template <class... Parts>
[[gnu::cold, gnu::noinline]] Status InvalidArgument(const Parts&... parts) {
  return Status(StatusCode::kInvalidArgument, internal::Join(parts...));
}
template <class... Parts>
[[gnu::cold, gnu::noinline]] Status Unsupported(const Parts&... parts) {
  return Status(StatusCode::kUnsupported, internal::Join(parts...));
}
template <class... Parts>
[[gnu::cold, gnu::noinline]] Status DynamicShape(const Parts&... parts) {
  return Status(StatusCode::kDynamicShape, internal::Join(parts...));
}
template <class... Parts>
[[gnu::cold, gnu::noinline]] Status NotFound(const Parts&... parts) {
  return Status(StatusCode::kNotFound, internal::Join(parts...));
}
template <class... Parts>
[[gnu::cold, gnu::noinline]] Status OutOfMemory(const Parts&... parts) {
  return Status(StatusCode::kOutOfMemory, internal::Join(parts...));
}
template <class... Parts>
[[gnu::cold, gnu::noinline]] Status IoError(const Parts&... parts) {
  return Status(StatusCode::kIo, internal::Join(parts...));
}
template <class... Parts>
[[gnu::cold, gnu::noinline]] Status Internal(const Parts&... parts) {
  return Status(StatusCode::kInternal, internal::Join(parts...));
}

// A value, or the reason why there is none. Reading the value of an error is undefined.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  // `status` is an error; a success without a value becomes one.
  Result(Status status)  // NOLINT(google-explicit-constructor)
      : status_(status.ok() ? Internal("a result without a value") : std::move(status)) {}

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return *std::move(value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return *std::move(value_); }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace fuselite

// Leaves the enclosing function with the error of `expr`, if it has one.
#define FUSELITE_RETURN_IF_ERROR(expr)                                         \
  do {                                                                         \
    if (::fuselite::Status fl_status = (expr); !fl_status.ok()) [[unlikely]] { \
      return fl_status;                                                        \
    }                                                                          \
  } while (false)

// FUSELITE_ASSIGN_OR_RETURN(auto model, Load(path)): declares or assigns the value, or leaves.
#define FUSELITE_ASSIGN_OR_RETURN(lhs, expr) \
  FUSELITE_ASSIGN_OR_RETURN_IMPL(FUSELITE_CONCAT(fl_result_, __LINE__), lhs, expr)
#define FUSELITE_ASSIGN_OR_RETURN_IMPL(result, lhs, expr) \
  auto result = (expr);                                   \
  if (!result.ok()) [[unlikely]]                          \
    return result.status();                               \
  lhs = std::move(result).value()
#define FUSELITE_CONCAT(a, b) FUSELITE_CONCAT_IMPL(a, b)
#define FUSELITE_CONCAT_IMPL(a, b) a##b

#include "runtime/support/status_join.h"
