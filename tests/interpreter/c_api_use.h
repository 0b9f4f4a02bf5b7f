/* A program in plain C that uses the C interface, so that the header is known to be C. */
#ifndef FUSELITE_TESTS_INTERPRETER_C_API_USE_H_
#define FUSELITE_TESTS_INTERPRETER_C_API_USE_H_

#include <stddef.h>  // NOLINT(modernize-deprecated-headers): this is C

#ifdef __cplusplus
extern "C" {
#endif

/* Runs the model of `size` bytes on `count` values in place; 0 on success. */
int RunModelFromC(const void* model, size_t size, float* values, size_t count);

#ifdef __cplusplus
}
#endif

#endif
