#include "runtime/support/status.h"

namespace fuselite {

std::string_view StatusCodeName(StatusCode code) {
  switch (code) {
    case StatusCode::kOk: return "ok";
    case StatusCode::kInvalidArgument: return "invalid argument";
    case StatusCode::kUnsupported: return "unsupported";
    case StatusCode::kDynamicShape: return "dynamic shape";
    case StatusCode::kNotFound: return "not found";
    case StatusCode::kOutOfMemory: return "out of memory";
    case StatusCode::kIo: return "i/o error";
    case StatusCode::kCancelled: return "cancelled";
    case StatusCode::kDeadlineExceeded: return "deadline exceeded";
    case StatusCode::kInternal: return "internal error";
    case StatusCode::kOverBudget: return "over budget";
  }
  return "unknown";
}

Status::Status(StatusCode code, std::string message) {
  if (code != StatusCode::kOk) {
    error_ = std::make_unique<const Error>(Error{code, std::move(message)});
  }
}

Status::Status(const Status& other)
    : error_(other.error_ ? std::make_unique<const Error>(*other.error_) : nullptr) {}

Status& Status::operator=(const Status& other) {
  if (this != &other) {
    error_ = other.error_ ? std::make_unique<const Error>(*other.error_) : nullptr;
  }
  return *this;
}

const std::string& Status::message() const {
  static const std::string kEmpty;
  return error_ ? error_->message : kEmpty;
}

std::string Status::ToString() const {
  if (ok()) return "ok";
  return std::string(StatusCodeName(code())) + ": " + message();
}

Status Status::In(std::string_view where) const {
  if (ok()) return *this;
  return Status(code(), std::string(where) + ": " + message());
}

}  // namespace fuselite
