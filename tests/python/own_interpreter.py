"""Our own interpreter through the C interface of libfuselite.so, for tests."""

import ctypes
import os
import pathlib

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = pathlib.Path(os.environ.get("FUSELITE_BUILD", ROOT / "build" / "release")) / "lib" / "libfuselite.so"

UNSUPPORTED, STRING = 2, 5
TYPES = {
    1: np.float32,
    2: np.int32,
    3: np.uint8,
    4: np.int64,
    6: np.bool_,
    7: np.int16,
    9: np.int8,
    10: np.float16,
    8: np.complex64,
    11: np.float64,
    12: np.complex128,
    13: np.uint64,
    16: np.uint32,
    17: np.uint16,
}


class Tensor(ctypes.Structure):
    _fields_ = [
        ("type", ctypes.c_int),
        ("rank", ctypes.c_int32),
        ("dims", ctypes.c_int32 * 16),
        ("scale", ctypes.c_float),
        ("zero_point", ctypes.c_int32),
        ("name", ctypes.c_char_p),
        ("data", ctypes.c_void_p),
        ("bytes", ctypes.c_size_t),
        ("scale_count", ctypes.c_size_t),
        ("scales", ctypes.POINTER(ctypes.c_float)),
        ("zero_points", ctypes.POINTER(ctypes.c_int32)),
        ("quantized_dimension", ctypes.c_int32),
        ("dims_signature", ctypes.c_int32 * 16),
        ("is_variable", ctypes.c_int32),
        ("is_constant", ctypes.c_int32),
    ]

    @property
    def shape(self):
        return tuple(self.dims[: self.rank])


def load_library():
    library = ctypes.CDLL(str(LIBRARY))
    pointer, size, text = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p
    signatures = {
        "FuseliteVersion": (text, []),
        "FuseliteLastError": (text, []),
        "FuseliteLastStatus": (ctypes.c_int, []),
        "FuseliteModelLoadFile": (pointer, [text]),
        "FuseliteModelLoadMemory": (pointer, [text, size]),
        "FuseliteModelDelete": (None, [pointer]),
        "FuseliteInterpreterCreate": (pointer, [pointer, pointer]),
        "FuseliteInterpreterDelete": (None, [pointer]),
        "FuseliteInterpreterApplyDelegate": (ctypes.c_int, [pointer, pointer]),
        "FuseliteInterpreterInputCount": (size, [pointer]),
        "FuseliteInterpreterOutputCount": (size, [pointer]),
        "FuseliteInterpreterInput": (ctypes.c_int32, [pointer, size]),
        "FuseliteInterpreterOutput": (ctypes.c_int32, [pointer, size]),
        "FuseliteInterpreterTensor": (ctypes.c_int, [pointer, ctypes.c_int32, pointer]),
        "FuseliteInterpreterResizeInput": (ctypes.c_int, [pointer, size, pointer, size]),
        "FuseliteInterpreterAllocate": (ctypes.c_int, [pointer]),
        "FuseliteInterpreterInvoke": (ctypes.c_int, [pointer]),
        "FuseliteInterpreterResetVariables": (None, [pointer]),
        "FuseliteInterpreterCopyIn": (ctypes.c_int, [pointer, size, pointer, size]),
        "FuseliteInterpreterCopyOut": (ctypes.c_int, [pointer, size, pointer, size]),
    }
    for name, (result, arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class Error(Exception):
    """A call failed; `status` is its FuseliteStatus."""

    def __init__(self, library):
        super().__init__(library.FuseliteLastError().decode(errors="replace"))
        self.status = library.FuseliteLastStatus()


class Delegate:
    """The delegate of the library at `path`, for an Interpreter: Delegate(path, jit="off")."""

    def __init__(self, path, **options):
        self.library, self.handle = ctypes.CDLL(str(path)), None
        text, size = ctypes.c_char_p, ctypes.c_size_t
        report = ctypes.CFUNCTYPE(None, text)
        create, self.destroy = self.library.tflite_plugin_create_delegate, self.library.tflite_plugin_destroy_delegate
        create.restype = ctypes.c_void_p
        create.argtypes = [ctypes.POINTER(text), ctypes.POINTER(text), size, report]
        self.destroy.restype, self.destroy.argtypes = None, [ctypes.c_void_p]
        keys, values = ((text * len(options))(*(str(part).encode() for part in parts)) for parts in (options, options.values()))
        errors = []
        self.handle = create(keys, values, len(options), report(lambda message: errors.append(message.decode())))
        if not self.handle:
            raise ValueError("; ".join(errors))

    def __del__(self):
        if self.handle:
            self.destroy(self.handle)


def check_model(file):
    """Raises what the loader says of these bytes."""
    library = load_library()
    model = library.FuseliteModelLoadMemory(file, len(file))
    if not model:
        raise Error(library)
    library.FuseliteModelDelete(model)


class Interpreter:
    """One model (its path or bytes), run by the references of our own operators, or by a Delegate."""

    def __init__(self, model, delegate=None):
        self.library = load_library()
        self.handle, self.delegate = None, delegate
        if isinstance(model, bytes):
            model = self.library.FuseliteModelLoadMemory(model, len(model))
        else:
            model = self.library.FuseliteModelLoadFile(str(model).encode())
        if not model:
            raise Error(self.library)
        self.handle = self.library.FuseliteInterpreterCreate(model, None)
        self.library.FuseliteModelDelete(model)
        if not self.handle:
            raise Error(self.library)
        if delegate is not None:
            self._check(self.library.FuseliteInterpreterApplyDelegate(self.handle, delegate.handle))
        self.allocate()

    def __del__(self):
        if self.handle:
            self.library.FuseliteInterpreterDelete(self.handle)

    def _check(self, status):
        if status != 0:
            raise Error(self.library)

    def allocate(self):
        self._check(self.library.FuseliteInterpreterAllocate(self.handle))

    def _tensor(self, index):
        tensor = Tensor()
        self._check(self.library.FuseliteInterpreterTensor(self.handle, index, ctypes.byref(tensor)))
        return tensor

    def inputs(self):
        count = self.library.FuseliteInterpreterInputCount(self.handle)
        return [self._tensor(self.library.FuseliteInterpreterInput(self.handle, i)) for i in range(count)]

    def outputs(self):
        count = self.library.FuseliteInterpreterOutputCount(self.handle)
        return [self._tensor(self.library.FuseliteInterpreterOutput(self.handle, i)) for i in range(count)]

    def resize(self, i, shape):
        dims = (ctypes.c_int32 * len(shape))(*shape)
        self._check(self.library.FuseliteInterpreterResizeInput(self.handle, i, dims, len(shape)))

    def set_input(self, i, value):
        value = np.ascontiguousarray(value)
        self._check(self.library.FuseliteInterpreterCopyIn(self.handle, i, value.ctypes.data, value.nbytes))

    def output(self, i):
        tensor = self._tensor(self.library.FuseliteInterpreterOutput(self.handle, i))
        value = np.empty(tensor.shape, TYPES[tensor.type])
        self._check(self.library.FuseliteInterpreterCopyOut(self.handle, i, value.ctypes.data, tensor.bytes))
        return value

    def output_bytes(self, i):
        tensor = self._tensor(self.library.FuseliteInterpreterOutput(self.handle, i))
        value = ctypes.create_string_buffer(tensor.bytes)
        self._check(self.library.FuseliteInterpreterCopyOut(self.handle, i, value, tensor.bytes))
        return value.raw

    def invoke(self):
        self._check(self.library.FuseliteInterpreterInvoke(self.handle))

    def reset_variables(self):
        self.library.FuseliteInterpreterResetVariables(self.handle)

    def run(self, values):
        """The outputs for `values`, one for each input."""
        for i, value in enumerate(values):
            self.set_input(i, value)
        self.invoke()
        return [self.output(i) for i in range(len(self.outputs()))]
