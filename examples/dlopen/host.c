/* A program that knows a delegate by the path of its library alone, as TensorFlow Lite's tools do
 * with
 * --external_delegate_path: the library may be libfuselite_delegate.so or any other delegate's.
 *
 *   host MODEL.tflite LIBRARY [KEY=VALUE ...]
 *   host model.tflite /usr/lib/x86_64-linux-gnu/libfuselite_delegate.so num_threads=2
 */
#include <dlfcn.h>
#include <fuselite/interpreter.h>
#include <stdio.h>
#include <string.h>

struct TfLiteDelegate;

/* The two functions that every external delegate exports. */
typedef struct TfLiteDelegate* (*CreateDelegate)(char** keys, char** values, size_t count,
                                                 void (*report_error)(const char*));
typedef void (*DestroyDelegate)(struct TfLiteDelegate* delegate);

typedef struct Plugin {
  CreateDelegate create;
  DestroyDelegate destroy;
} Plugin;

enum { kMaxOptions = 16 };

static void Report(const char* message) { fprintf(stderr, "host: %s\n", message); }

static int Fail(const char* message) {
  Report(message);
  return 1;
}

/* The library stays loaded: its threads may outlive the delegate. */
static int LoadPlugin(const char* path, Plugin* plugin) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) return Fail(dlerror());
  *(void**)&plugin->create = dlsym(library, "tflite_plugin_create_delegate");
  *(void**)&plugin->destroy = dlsym(library, "tflite_plugin_destroy_delegate");
  if (!plugin->create || !plugin->destroy) return Fail("the library is no external delegate");
  return 0;
}

static int RunOnce(const char* path, struct TfLiteDelegate* delegate) {
  FuseliteModel* model = FuseliteModelLoadFile(path);
  FuseliteInterpreter* interpreter = model ? FuseliteInterpreterCreate(model, NULL) : NULL;
  FuseliteModelDelete(model);
  const int failed = !interpreter ||
                     FuseliteInterpreterApplyDelegate(interpreter, delegate) != kFuseliteOk ||
                     FuseliteInterpreterAllocate(interpreter) != kFuseliteOk ||
                     FuseliteInterpreterInvoke(interpreter) != kFuseliteOk;
  if (failed) {
    Report(FuseliteLastError());
  } else {
    FuseliteTensor output;
    FuseliteInterpreterTensor(interpreter, FuseliteInterpreterOutput(interpreter, 0), &output);
    printf("%s: %zu bytes\n", output.name, output.bytes);
  }
  FuseliteInterpreterDelete(interpreter);
  return failed;
}

int main(int argc, char** argv) {
  if (argc < 3 || argc - 3 > kMaxOptions) {
    fprintf(stderr, "usage: host MODEL.tflite LIBRARY [KEY=VALUE ...]\n");
    return 2;
  }
  char* keys[kMaxOptions];
  char* values[kMaxOptions];
  size_t count = 0;
  for (int i = 3; i < argc; ++i, ++count) {
    keys[count] = argv[i];
    values[count] = strchr(argv[i], '=');
    if (!values[count]) return Fail("an option is KEY=VALUE");
    *values[count]++ = '\0';
  }
  Plugin plugin;
  if (LoadPlugin(argv[2], &plugin)) return 1;
  struct TfLiteDelegate* delegate = plugin.create(keys, values, count, Report);
  if (!delegate) return 1;
  const int failed = RunOnce(argv[1], delegate);
  plugin.destroy(delegate);
  return failed;
}
