/* The operator Atan: the arc tangent of each element of a float32 tensor. */
#ifndef ATAN_OPERATOR_H_
#define ATAN_OPERATOR_H_

#include <fuselite/custom_operators.h>

/* The caller's, for TfLiteOperatorDelete(). */
TfLiteOperator* AtanOperatorCreate(void);

#endif
