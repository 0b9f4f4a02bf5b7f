// The boundary to C: what is called by the host reports errors and lets no exception out.
#pragma once

#include <utility>

#include "runtime/support/caught.h"
#include "runtime/support/status.h"
#include "runtime/tflite/abi.h"
#include "runtime/tflite/failure_context.h"

namespace fuselite::partitioner {

// Runs `body`, which returns a Status. `report` gets the error's code and its text as one line.
template <class Body, class Report>
bool Guard(Body&& body, Report&& report) noexcept {
  try {
    const Status status = body();
    if (!status.ok()) report(status.code(), status.message().c_str());
    return status.ok();
  } catch (...) {
    const CaughtError error = DescribeCaught();
    report(error.code, error.text);
  }
  return false;
}

// Does as above; errors go to the host, named with `where`. A run that somebody ended is no error
// to report.
template <class Body>
tflite::TfLiteStatus GuardKernel(tflite::TfLiteContext* context, const char* where,
                                 Body&& body) noexcept {
  bool cancelled = false;
  const auto report = [&](StatusCode code, const char* message) {
    cancelled = code == StatusCode::kCancelled;
    if (cancelled) return;
    // LiteRT writes a sentence of its own right behind this one.
    const char* const end = TellFailure(context, code) ? "" : ".";
    context->ReportError(context, "fuselite: %s: %s%s", where, message, end);
  };
  if (Guard(std::forward<Body>(body), report)) return tflite::kTfLiteOk;
  return cancelled ? tflite::kTfLiteCancelled : tflite::kTfLiteError;
}

}  // namespace fuselite::partitioner
