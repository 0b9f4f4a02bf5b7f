/* The delegate's C interface: for C and C++ programs that use TensorFlow Lite's or LiteRT's own
 * interpreter.
 *
 *   FuseliteDelegateOptions options = FuseliteDelegateOptionsDefault();
 *   options.num_threads = 4;
 *   TfLiteDelegate* delegate = FuseliteDelegateCreate(&options);
 *   if (TfLiteInterpreterModifyGraphWithDelegate(...)) ...
 *   FuseliteDelegateDelete(delegate);  // after the interpreters that use it
 *
 * Python and tools load the library as an external delegate, by tflite_plugin_create_delegate.
 */
#ifndef FUSELITE_DELEGATE_H_
#define FUSELITE_DELEGATE_H_

/* NOLINTBEGIN(modernize-*): this is C. */
#include <stddef.h>
#include <stdint.h>

#include "fuselite/common.h"

#ifdef __cplusplus
extern "C" {
#endif

struct TfLiteDelegate;

/* What a member leaves unset is read from the environment (FUSELITE_NUM_THREADS, ...), else it has
 * its default: docs/options.md. Numbers and switches are unset when negative, strings when null.
 * Strings are copied. */
typedef struct FuseliteDelegateOptions {
  size_t struct_size; /* sizeof(FuseliteDelegateOptions), set by FuseliteDelegateOptionsDefault() */
  int32_t num_threads;
  int32_t jit;    /* 1 or 0 */
  int32_t fusion; /* 1 or 0 */
  int32_t max_partitions;
  int32_t min_nodes_per_partition;
  int32_t verbose;       /* 1 or 0 */
  const char* isa;       /* "avx2", ... */
  const char* precision; /* "strict", "default", "fast" */
  const char* ops_deny;  /* "CONV_2D,SOFTMAX" */
  const char* explain_file;
  const char* profile_file;
  /* Called with one line of text where FuseliteDelegateCreate() fails; may be null. */
  void (*report_error)(const char* message);
  /* What the host calls the delegate's nodes, in its profile for instance; null:
   * "FuseliteDelegate". For hosts that treat delegates by their names. */
  const char* node_name;
  const char* max_memory;        /* "2G" */
  const char* max_multiply_adds; /* "1e12" */
  const char* cache_dir;
  const char* cache_mode; /* "off", "read", "readwrite" */
} FuseliteDelegateOptions;

/* Everything unset. */
FUSELITE_EXPORT FuseliteDelegateOptions FuseliteDelegateOptionsDefault(void);

/* Null where an option is wrong or struct_size was not set. `options` may be null. The result may
 * serve several interpreters, and must outlive them. */
FUSELITE_EXPORT struct TfLiteDelegate* FuseliteDelegateCreate(
    const FuseliteDelegateOptions* options);

/* `delegate` may be null. */
FUSELITE_EXPORT void FuseliteDelegateDelete(struct TfLiteDelegate* delegate);

/* Ends the runs of this delegate that are under way, at their next step: the interpreter's invoke
 * returns kTfLiteCancelled. For any thread, a timer's for instance, while the delegate lives. */
FUSELITE_EXPORT void FuseliteDelegateCancel(struct TfLiteDelegate* delegate);

/* What became of the nodes of the models that the delegate was applied to: taken or why not, and
 * the steps they were compiled to. `format`: "text", "json" or "dot" (Graphviz). The text is the
 * caller's, for FuseliteFree(); null for an unknown format and where memory is short. For any
 * thread while the delegate lives. */
FUSELITE_EXPORT char* FuseliteDelegateExplain(struct TfLiteDelegate* delegate, const char* format);

/* Frees what a function of this library says is the caller's. `memory` may be null. */
FUSELITE_EXPORT void FuseliteFree(void* memory);

/* What hosts look up in an external delegate's library. Keys and values are those of
 * docs/options.md. */
FUSELITE_EXPORT struct TfLiteDelegate* tflite_plugin_create_delegate(
    char** keys, char** values, size_t count, void (*report_error)(const char*));
FUSELITE_EXPORT void tflite_plugin_destroy_delegate(struct TfLiteDelegate* delegate);

#ifdef __cplusplus
}
#endif

/* NOLINTEND(modernize-*) */
#endif /* FUSELITE_DELEGATE_H_ */
