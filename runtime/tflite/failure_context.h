// How a delegate tells fuselite's interpreter of which kind an error is, for which TfLiteStatus has
// no words: an external context that hosts do not know, and that our interpreter answers. So it
// works across libraries, and for each graph by itself.
#pragma once

#include "runtime/support/status.h"
#include "runtime/tflite/abi.h"

namespace fuselite {

// A TfLiteExternalContext with more behind it.
struct FailureContext {
  // What is asked for. Hosts answer null for numbers that are no type of theirs; this one fits in
  // the bits of their enumeration, beyond which they may compute nonsense.
  static constexpr auto kAsked = static_cast<tflite::TfLiteExternalContextType>(7);
  // What ours says of itself, so that a future host's seventh type is not taken for it.
  static constexpr auto kAnswered = static_cast<tflite::TfLiteExternalContextType>(0x46757365);

  tflite::TfLiteExternalContext base{kAnswered, nullptr};
  // The function of `context` that is called will return kTfLiteError for a failure of this kind: a
  // StatusCode. Its text goes to ReportError as in other hosts.
  void (*Tell)(tflite::TfLiteContext* context, int code) = nullptr;
};

// Tells the host, if it is one that listens: whether it is. To be called just before the error is
// returned to it.
inline bool TellFailure(tflite::TfLiteContext* context, StatusCode code) {
  if (context->GetExternalContext == nullptr) return false;
  tflite::TfLiteExternalContext* const external =
      context->GetExternalContext(context, FailureContext::kAsked);
  if (external == nullptr || external->type != FailureContext::kAnswered) return false;
  reinterpret_cast<FailureContext*>(external)->Tell(context, static_cast<int>(code));
  return true;
}

}  // namespace fuselite
