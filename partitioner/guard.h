// The boundary to C: what is called by the host reports errors and lets no exception out.
#pragma once

#include <exception>
#include <new>
#include <utility>

#include "runtime/status.h"
#include "runtime/tflite_abi.h"

namespace fuselite::partitioner {

// Runs `body`, which returns a Status. `report` gets the error as one line.
template <class Body, class Report>
bool Guard(Body&& body, Report&& report) noexcept {
  try {
    const Status status = body();
    if (!status.ok()) report(status.message().c_str());
    return status.ok();
  } catch (const std::bad_alloc&) {
    report("out of memory");
  } catch (const std::exception& error) {
    report(error.what());
  } catch (...) {
    report("an unknown exception");
  }
  return false;
}

// Does as above; errors go to the host, named with `where`. A run that somebody ended is no error
// to report.
template <class Body>
tflite::TfLiteStatus GuardKernel(tflite::TfLiteContext* context, const char* where,
                                 Body&& body) noexcept {
  const auto report = [&](const char* message) {
    context->ReportError(context, "fuselite: %s: %s", where, message);
  };
  bool cancelled = false;
  const auto run = [&]() -> Status {
    Status status = body();
    cancelled = status.code() == StatusCode::kCancelled;
    return cancelled ? Status() : std::move(status);
  };
  const bool ok = Guard(run, report);
  return cancelled ? tflite::kTfLiteCancelled : ok ? tflite::kTfLiteOk : tflite::kTfLiteError;
}

}  // namespace fuselite::partitioner
