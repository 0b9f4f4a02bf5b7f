"""The interpreter that a program makes: the host's with the delegate applied, or our own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from fuselite import _hosts, _library
from fuselite._delegate import Delegate

if TYPE_CHECKING:
    import os

    import numpy as np

    from fuselite._own import OwnInterpreter
    from fuselite._reports import Explanation


class Interpreter(_library.Owner):
    """Runs a .tflite model fast on the CPU, with the methods of LiteRT's Interpreter.

    ::

        interpreter = fuselite.Interpreter("model.tflite", num_threads=4)
        interpreter.allocate_tensors()
        interpreter.set_tensor(interpreter.get_input_details()[0]["index"], image)
        interpreter.invoke()
        scores = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])

    The host is the package that the program imported already, else the first installed one of ai_edge_litert,
    tflite_runtime and tensorflow, else the interpreter that comes with fuselite; ``host="fuselite"`` asks for that one.
    Options are those of docs/options.md; what begins with ``experimental_`` goes to the host. A wrong option raises
    ValueError, which names the nearest valid one. Methods of the host that are not listed here work too.

    One thread at a time may use an interpreter; any number of interpreters may run in as many threads.
    """

    def __init__(
        self,
        model_path: str | os.PathLike[str] | None = None,
        model_content: bytes | None = None,
        *,
        num_threads: int | None = None,
        host: str | None = None,
        **options: Any,
    ) -> None:
        for_host = {key: options.pop(key) for key in list(options) if key.startswith("experimental_")}
        if num_threads is not None:
            for_host["num_threads"] = options["num_threads"] = num_threads
        self._delegate = Delegate(**options)
        for_host["experimental_delegates"] = [*(for_host.get("experimental_delegates") or ()), self._delegate]
        self._host_name, module = _hosts.load(host)
        interpreter_class: type[OwnInterpreter]  # every host's has its methods
        if module is not None:
            interpreter_class = module.Interpreter
        else:
            from fuselite._own import OwnInterpreter

            interpreter_class = OwnInterpreter
        self._interpreter = interpreter_class(model_path=model_path, model_content=model_content, **for_host)
        # Called once a run: without a function of ours in between.
        for name in ("invoke", "set_tensor", "get_tensor"):
            setattr(self, name, getattr(self._interpreter, name))

    @property
    def host(self) -> str:
        """Whose interpreter it is: "ai_edge_litert", "tflite_runtime", "tensorflow" or "fuselite"."""
        return self._host_name

    @property
    def delegate(self) -> Delegate:
        """The delegate that was applied."""
        return self._delegate

    def explain(self) -> Explanation:
        """What became of each node, and what it was compiled to; after allocate_tensors()."""
        from fuselite._reports import Explanation

        return Explanation.from_json(self._delegate.explain_as("json"))

    def allocate_tensors(self) -> None:
        """Prepares for invoke(); again after resize_tensor_input()."""
        self._interpreter.allocate_tensors()

    def invoke(self) -> None:
        """Runs the model."""
        self._interpreter.invoke()

    def set_tensor(self, tensor_index: int, value: np.ndarray) -> None:
        """Copies `value` into a tensor, whose type and shape it must have."""
        self._interpreter.set_tensor(tensor_index, value)

    def get_tensor(self, tensor_index: int, subgraph_index: int = 0) -> np.ndarray:
        """A copy of a tensor's value."""
        return self._interpreter.get_tensor(tensor_index, subgraph_index)

    def tensor(self, tensor_index: int) -> Callable[[], np.ndarray]:
        """A function that gives an array which looks into the interpreter's memory. Do not keep the array."""
        return self._interpreter.tensor(tensor_index)

    def resize_tensor_input(self, input_index: int, tensor_size: Any, strict: bool = False) -> None:
        """Gives an input another shape; allocate_tensors() must follow."""
        self._interpreter.resize_tensor_input(input_index, tensor_size, strict)

    def get_input_details(self) -> list[dict[str, Any]]:
        """Name, index, shape, dtype and quantization of each input."""
        return self._interpreter.get_input_details()

    def get_output_details(self) -> list[dict[str, Any]]:
        """The same of each output."""
        return self._interpreter.get_output_details()

    def get_tensor_details(self, *args: Any, **kwargs: Any) -> list[dict[str, Any]]:
        """The same of every tensor."""
        return self._interpreter.get_tensor_details(*args, **kwargs)

    def get_signature_list(self) -> dict[str, dict[str, list[str]]]:
        """The names of inputs and outputs by signature."""
        return self._interpreter.get_signature_list()

    def get_signature_runner(self, signature_key: str | None = None) -> Callable[..., dict[str, np.ndarray]]:
        """A function that runs a signature: named inputs to named outputs."""
        return self._interpreter.get_signature_runner(signature_key)

    def reset_all_variables(self) -> None:
        """Sets the model's variables to what they begin with."""
        self._interpreter.reset_all_variables()

    def __getattr__(self, name: str) -> Any:
        if name == "_interpreter":  # not made yet: the constructor failed
            raise AttributeError(name)
        return getattr(self._interpreter, name)
