#include "tests/partitioner/c_api_user.h"

#include "fuselite/delegate.h"

int CreateAndDeleteFromC(int threads) {
  FuseliteDelegateOptions options = FuseliteDelegateOptionsDefault();
  options.num_threads = threads;
  struct TfLiteDelegate* delegate = FuseliteDelegateCreate(&options);
  FuseliteDelegateDelete(delegate);
  return delegate != 0;
}
