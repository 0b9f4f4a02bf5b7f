"""The interpreter that comes with fuselite, with the methods of LiteRT's: for where no such package is installed."""

from __future__ import annotations

import ctypes
import operator
import os
import weakref
from collections.abc import Iterable
from typing import Any, Callable

import numpy as np

from fuselite import _library, _strings

_STRING = 5
_TYPES: dict[int, Any] = {
    1: np.float32, 2: np.int32, 3: np.uint8, 4: np.int64, _STRING: np.bytes_, 6: np.bool_, 7: np.int16,
    8: np.complex64, 9: np.int8, 10: np.float16, 11: np.float64, 12: np.complex128, 13: np.uint64, 16: np.uint32,
    17: np.uint16,
}  # fmt: skip
_UNSUPPORTED, _NOT_FOUND, _INVALID_ARGUMENT = 2, 4, 1


class _Model(_library.Owner):
    """A loaded model, shared by the interpreters of its signatures."""

    def __init__(self, library: ctypes.CDLL, path: Any, content: bytes | None) -> None:
        self.handle, self.library = None, library
        if content is not None:
            if not isinstance(content, (bytes, bytearray, memoryview)):
                raise TypeError(f"fuselite: model_content is the bytes of a .tflite file, not a {type(content).__name__}")
            self.handle = library.FuseliteModelLoadMemory(bytes(content), len(content))
        else:
            self.handle = library.FuseliteModelLoadFile(os.fsencode(path))
        if not self.handle:
            raise ValueError(f"fuselite: {_library.last_error(library)}")

    def signatures(self) -> dict[str, dict[str, list[str]]]:
        """The names of inputs and outputs by signature."""

        def names(function: Callable[..., bytes | None], signature: int) -> list[str]:
            found: list[str] = []
            while (name := function(self.handle, signature, len(found))) is not None:
                found.append(name.decode(errors="replace"))
            return found

        library, result = self.library, {}
        for i in range(library.FuseliteModelSignatureCount(self.handle)):
            key = library.FuseliteModelSignatureKey(self.handle, i).decode(errors="replace")
            result[key] = {
                "inputs": names(library.FuseliteModelSignatureInputName, i),
                "outputs": names(library.FuseliteModelSignatureOutputName, i),
            }
        return result

    def __del__(self) -> None:
        if self.handle:
            self.library.FuseliteModelDelete(self.handle)


def _check_subgraph(index: int) -> None:
    if index != 0:
        raise ValueError(f"fuselite: only subgraph 0, the one that runs, can be looked at, not {index}")


class OwnInterpreter(_library.Owner):
    """One running instance of a model. One thread at a time may use it."""

    _handle: Any = None  # where the constructor was called wrongly, too

    def __init__(
        self,
        model_path: Any = None,
        model_content: bytes | None = None,
        experimental_delegates: Iterable[Any] | None = None,
        num_threads: int | None = None,
        experimental_preserve_all_tensors: bool = False,
        _model: _Model | None = None,
        _signature: str | None = None,
    ) -> None:
        self._library = _library.load()
        if _model is None:
            if (model_path is None) == (model_content is None):
                raise ValueError("fuselite: give either model_path or model_content")
            _model = _Model(self._library, model_path, model_content)
        if num_threads is not None and (not isinstance(num_threads, int) or num_threads < 1):
            raise ValueError("fuselite: num_threads is a whole number, at least 1")
        self._model = _model
        self._delegates = list(experimental_delegates or [])
        self._views: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()
        self._runners: dict[str, OwnInterpreter] = {}
        self._arguments: dict[str, Any] = {
            "num_threads": num_threads,
            "experimental_preserve_all_tensors": experimental_preserve_all_tensors,
        }
        options = _library.InterpreterOptions(
            ctypes.sizeof(_library.InterpreterOptions), num_threads or 1, experimental_preserve_all_tensors,
            _signature.encode() if _signature else None,
        )  # fmt: skip
        self._handle = self._library.FuseliteInterpreterCreate(_model.handle, ctypes.byref(options))
        if not self._handle:
            raise self._error()
        for delegate in self._delegates:
            pointer = delegate._get_native_delegate_pointer()
            self._check_run(self._library.FuseliteInterpreterApplyDelegate(self._handle, pointer))
        self._allocated = False

    def __del__(self) -> None:
        if self._handle:
            self._library.FuseliteInterpreterDelete(self._handle)
            self._handle = None

    def _error(self) -> Exception:
        kind = ValueError if self._library.FuseliteLastStatus() in (_INVALID_ARGUMENT, _NOT_FOUND) else RuntimeError
        return kind(f"fuselite: {_library.last_error(self._library)}")

    def _check(self, status: int) -> None:
        if status != 0:
            raise self._error()

    def _check_run(self, status: int) -> None:
        """Raises RuntimeError whatever the reason, as LiteRT's interpreter does where it prepares and runs a model."""
        if status != 0:
            raise RuntimeError(f"fuselite: {_library.last_error(self._library)}")

    def _ensure_safe(self) -> None:
        """Memory may move: no array that looks into it may be left."""
        if len(self._views) > 0:
            raise RuntimeError(
                "fuselite: an array that tensor() gave is still alive and would point to freed memory: "
                "keep the function that tensor() returns, not its result"
            )

    def _check_index(self, index: Any) -> int:
        """Of a tensor: ctypes would cut off what has more than 32 bits."""
        try:
            index = operator.index(index)
        except TypeError:
            raise TypeError(f"fuselite: a tensor's index is a whole number, not {index!r}") from None
        count = self._library.FuseliteInterpreterTensorCount(self._handle)
        if not 0 <= index < count:
            raise ValueError(f"fuselite: there is no tensor {index}, the model has {count}")
        return index

    def _tensor(self, index: Any) -> _library.Tensor:
        index, tensor = self._check_index(index), _library.Tensor()
        self._check(self._library.FuseliteInterpreterTensor(self._handle, index, ctypes.byref(tensor)))
        return tensor

    def _indices(self, ends: str) -> list[int]:
        count = getattr(self._library, f"FuseliteInterpreter{ends}Count")(self._handle)
        at = getattr(self._library, f"FuseliteInterpreter{ends}")
        return [at(self._handle, i) for i in range(count)]

    def _details(self, index: int) -> dict[str, Any]:
        tensor = self._tensor(index)
        count = tensor.scale_count
        return {
            "name": tensor.name.decode(errors="replace"),
            "index": index,
            "shape": np.array(tensor.dims[: tensor.rank], np.int32),
            "shape_signature": np.array(tensor.dims_signature[: tensor.rank], np.int32),
            "dtype": _TYPES.get(tensor.type, np.void),
            "quantization": (tensor.scale, tensor.zero_point) if count == 1 else (0.0, 0),
            "quantization_parameters": {
                "scales": np.array(tensor.scales[:count], np.float32),
                "zero_points": np.array(tensor.zero_points[:count], np.int32),
                "quantized_dimension": tensor.quantized_dimension,
            },
            "sparsity_parameters": {},
        }

    def allocate_tensors(self) -> None:
        """Prepares for invoke(); again after resize_tensor_input()."""
        self._ensure_safe()
        self._check_run(self._library.FuseliteInterpreterAllocate(self._handle))
        self._allocated = True

    def invoke(self) -> None:
        """Runs the model."""
        self._ensure_safe()
        if not self._allocated:
            raise RuntimeError("fuselite: call allocate_tensors() before invoke()")
        self._check_run(self._library.FuseliteInterpreterInvoke(self._handle))

    def get_input_details(self) -> list[dict[str, Any]]:
        """Name, index, shape, dtype and quantization of each input."""
        return [self._details(index) for index in self._indices("Input")]

    def get_output_details(self) -> list[dict[str, Any]]:
        """The same of each output."""
        return [self._details(index) for index in self._indices("Output")]

    def get_tensor_details(self, subgraph_index: int = 0) -> list[dict[str, Any]]:
        """The same of every tensor."""
        _check_subgraph(subgraph_index)
        return [self._details(i) for i in range(self._library.FuseliteInterpreterTensorCount(self._handle))]

    def resize_tensor_input(self, input_index: int, tensor_size: Any, strict: bool = False) -> None:
        """Gives an input another shape; `strict`: only where the model leaves a dimension open."""
        self._ensure_safe()
        inputs = self._indices("Input")
        if input_index not in inputs:
            raise ValueError(f"fuselite: tensor {input_index} is no input")
        shape = [int(size) for size in tensor_size]
        if strict:
            signature = self._details(input_index)["shape_signature"].tolist()
            if len(signature) != len(shape) or any(s not in (-1, n) for s, n in zip(signature, shape)):
                raise ValueError(f"fuselite: the model fixes the shape {signature}, which {shape} is not")
        most = np.iinfo(np.int32).max
        if any(size > most for size in shape):
            raise ValueError(f"fuselite: {shape} has a dimension of more than {most}")
        dims = (ctypes.c_int32 * len(shape))(*shape)
        place = inputs.index(input_index)
        self._check(self._library.FuseliteInterpreterResizeInput(self._handle, place, dims, len(shape)))
        self._allocated = False

    def _memory(self, index: int) -> _library.Tensor:
        tensor = self._tensor(index)
        if tensor.type not in _TYPES:
            raise ValueError(f"fuselite: tensor {index} has a type that numpy does not know")
        if not tensor.data and tensor.bytes > 0:
            raise ValueError(
                f"fuselite: tensor {index} has no value: call allocate_tensors(), or make the interpreter with "
                "experimental_preserve_all_tensors=True where it is an intermediate one"
            )
        return tensor

    def set_tensor(self, tensor_index: int, value: Any) -> None:
        """Copies `value` into a tensor, whose type and shape it must have. Strings, bytes or text, go to inputs alone."""
        tensor = self._memory(tensor_index)
        name, dtype, shape = tensor.name.decode(errors="replace"), _TYPES[tensor.type], tuple(tensor.dims[: tensor.rank])
        if tensor.type == _STRING:
            # As objects, which keep zero bytes at their ends.
            array = value if isinstance(value, np.ndarray) else np.array(value, object)
            given, takes, fits = array.shape, "strings", array.dtype.kind in "OSU"
        else:
            array = np.ascontiguousarray(value)
            given, takes, fits = np.shape(value), str(np.dtype(dtype)), array.dtype == dtype
        if not fits:
            raise ValueError(f'fuselite: "{name}" takes {takes}, not {array.dtype}')
        if given != shape:
            raise ValueError(f'fuselite: "{name}" has shape {shape}, not {given}')
        if tensor.is_constant:
            raise ValueError(f'fuselite: "{name}" is a constant of the file')
        if tensor.type == _STRING:
            self._set_strings(tensor_index, name, array)
        else:
            ctypes.memmove(tensor.data, array.ctypes.data, tensor.bytes)

    def _set_strings(self, index: int, name: str, array: np.ndarray) -> None:
        inputs = self._indices("Input")
        if index not in inputs:
            raise ValueError(f'fuselite: "{name}" is no input: strings can be given to inputs alone')
        if not self._allocated:
            raise ValueError(f'fuselite: call allocate_tensors() before "{name}" is given strings')
        table = _strings.to_table(array)
        self._check(self._library.FuseliteInterpreterCopyIn(self._handle, inputs.index(index), table.ctypes.data, table.nbytes))

    def get_tensor(self, tensor_index: int, subgraph_index: int = 0) -> np.ndarray:
        """A copy of a tensor's value; strings are bytes objects."""
        _check_subgraph(subgraph_index)
        tensor = self._memory(tensor_index)
        shape = tuple(tensor.dims[: tensor.rank])
        if tensor.type == _STRING:
            strings = _strings.from_table(ctypes.string_at(tensor.data, tensor.bytes) if tensor.data else b"", shape)
            if strings is None:
                raise ValueError(
                    f"fuselite: tensor {tensor_index} has no strings: set_tensor() gives them to inputs, invoke() to other tensors"
                )
            return strings
        value = np.empty(shape, _TYPES[tensor.type])
        if tensor.bytes > 0:
            ctypes.memmove(value.ctypes.data, tensor.data, min(tensor.bytes, value.nbytes))
        return value

    def tensor(self, tensor_index: int) -> Callable[[], np.ndarray]:
        """A function that gives an array which looks into the interpreter's memory. Do not keep the array."""
        self._check_index(tensor_index)

        def view() -> np.ndarray:
            tensor = self._memory(tensor_index)
            if tensor.type == _STRING:
                raise ValueError(f"fuselite: tensor {tensor_index} holds strings, into which no array looks: use get_tensor()")

            class Memory(ctypes.c_byte * tensor.bytes):  # type: ignore[misc]
                """A class of its own, so that it can be watched and can hold the interpreter."""

            memory = Memory.from_address(tensor.data)
            memory.interpreter = self
            self._views[id(memory)] = memory
            shape = tuple(tensor.dims[: tensor.rank])
            array = np.frombuffer(memory, _TYPES[tensor.type]).reshape(shape)
            array.flags.writeable = not tensor.is_constant
            return array

        return view

    def reset_all_variables(self) -> None:
        """Sets variable tensors to what they begin with; resource variables keep their values, as in LiteRT."""
        self._library.FuseliteInterpreterResetVariables(self._handle)

    def get_signature_list(self) -> dict[str, dict[str, list[str]]]:
        """The names of inputs and outputs by signature."""
        return self._model.signatures()

    def get_signature_runner(self, signature_key: str | None = None) -> SignatureRunner:
        """A function that runs a signature: named inputs to named outputs."""
        signatures = self.get_signature_list()
        if signature_key is None:
            if not signatures:
                raise ValueError("fuselite: the model has no signatures; use allocate_tensors() and invoke()")
            if len(signatures) != 1:
                raise ValueError(f"fuselite: the model has {len(signatures)} signatures: {', '.join(signatures)}; name one")
            (signature_key,) = signatures
        if signature_key not in signatures:
            raise ValueError(f"fuselite: the model has no signature '{signature_key}'; it has {', '.join(signatures) or 'none'}")
        names = signatures[signature_key]
        runner: OwnInterpreter | None = self
        if not self._runs(signature_key, **names):
            runner = self._runners.get(signature_key)
        if runner is None:
            # A signature of another subgraph has an instance of its own.
            runner = self._runners[signature_key] = OwnInterpreter(
                experimental_delegates=self._delegates, _model=self._model, _signature=signature_key, **self._arguments
            )
        return SignatureRunner(runner, signature_key, **names)

    def _runs(self, signature: str, inputs: list[str], outputs: list[str]) -> bool:
        """Whether the signature is of the subgraph that this interpreter runs."""
        library, key = self._library, signature.encode()
        return all(library.FuseliteInterpreterSignatureInput(self._handle, key, n.encode()) >= 0 for n in inputs) and all(
            library.FuseliteInterpreterSignatureOutput(self._handle, key, n.encode()) >= 0 for n in outputs
        )


class SignatureRunner:
    """Runs one signature: ``runner(x=array)`` gives a dictionary of arrays. Inputs may have other shapes each time."""

    def __init__(self, interpreter: OwnInterpreter, key: str, inputs: list[str], outputs: list[str]) -> None:
        self._interpreter = interpreter
        library, handle = interpreter._library, interpreter._handle
        self._inputs = {name: library.FuseliteInterpreterSignatureInput(handle, key.encode(), name.encode()) for name in inputs}
        self._outputs = {
            name: library.FuseliteInterpreterSignatureOutput(handle, key.encode(), name.encode()) for name in outputs
        }

    def __call__(self, **inputs: Any) -> dict[str, np.ndarray]:
        if set(inputs) != set(self._inputs):
            raise ValueError(f"fuselite: the signature takes {', '.join(self._inputs)}, not {', '.join(inputs) or 'nothing'}")
        interpreter = self._interpreter
        resized = not interpreter._allocated
        for name, value in inputs.items():
            index = self._inputs[name]
            shape = np.shape(value)
            if tuple(interpreter._details(index)["shape"]) != shape:
                interpreter.resize_tensor_input(index, shape)
                resized = True
        if resized:
            interpreter.allocate_tensors()
        for name, value in inputs.items():
            interpreter.set_tensor(self._inputs[name], value)
        interpreter.invoke()
        return {name: interpreter.get_tensor(index) for name, index in self._outputs.items()}

    def get_input_details(self) -> dict[str, dict[str, Any]]:
        """Details of each input, by its name in the signature."""
        return {name: self._interpreter._details(index) for name, index in self._inputs.items()}

    def get_output_details(self) -> dict[str, dict[str, Any]]:
        """The same of each output."""
        return {name: self._interpreter._details(index) for name, index in self._outputs.items()}
