"""The engines that run a model, each with the same methods: feed, run, reset, outputs, and what its inputs and outputs are."""

import pathlib

import numpy as np


class LiteRT:
    """LiteRT's interpreter; `plain`: with no default delegate, `reference`: with the portable kernels."""

    def __init__(self, model, threads, plain=False, reference=False, delegates=(), batch=1):
        from ai_edge_litert.interpreter import Interpreter, OpResolverType

        kind = OpResolverType.AUTO
        if plain:
            kind = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        if reference:
            kind = OpResolverType.BUILTIN_REF
        self.interpreter = Interpreter(
            str(model), num_threads=threads, experimental_op_resolver_type=kind, experimental_delegates=list(delegates)
        )
        for detail in self.interpreter.get_input_details() if batch > 1 else []:
            self.interpreter.resize_tensor_input(detail["index"], _batched(list(detail["shape"]), batch))
        self.interpreter.allocate_tensors()
        self.run = self.interpreter.invoke
        self.reset = self.interpreter.reset_all_variables

    def input_types(self):
        """(shape, type) of each input."""
        return [(list(d["shape"]), np.dtype(d["dtype"])) for d in self.interpreter.get_input_details()]

    def output_shapes(self):
        return [list(map(int, d["shape"])) for d in self.interpreter.get_output_details()]

    def feed(self, values):
        for detail, value in zip(self.interpreter.get_input_details(), values, strict=True):
            self.interpreter.set_tensor(detail["index"], value)

    def outputs(self):
        return [self.interpreter.get_tensor(d["index"]) for d in self.interpreter.get_output_details()]


class OpenVINO:
    """OpenVINO's CPU plug-in, told to compute in float32; with one stream to answer fast, with more to serve as many callers."""

    def __init__(self, model, threads, batch=1, streams=1):
        import openvino

        self._tensor = openvino.Tensor
        settings = {
            "INFERENCE_NUM_THREADS": threads,
            "INFERENCE_PRECISION_HINT": "f32",
            "NUM_STREAMS": streams,
            "PERFORMANCE_HINT": "LATENCY" if streams == 1 else "THROUGHPUT",
        }
        core = openvino.Core()
        network = str(model)
        if batch > 1:
            network = core.read_model(network)
            network.reshape({port: _batched(self._shape(port), batch) for port in network.inputs})
        self._compiled = core.compile_model(network, "CPU", settings)
        self._request = self._compiled.create_infer_request()
        self.run = self._request.infer
        self.reset = self._request.reset_state

    @staticmethod
    def _shape(port):
        """That of an input, with 1 where a dimension is open."""
        return [d.get_length() if d.is_static else 1 for d in port.partial_shape]

    def input_types(self):
        """As LiteRT's."""
        return [(self._shape(port), np.dtype(port.element_type.to_dtype())) for port in self._compiled.inputs]

    def output_shapes(self):
        return [list(self._request.get_output_tensor(i).shape) for i in range(len(self._compiled.outputs))]

    def feed(self, values):
        for i, value in enumerate(values):
            self._request.set_input_tensor(i, self._tensor(value))

    def fed_runners(self, count):
        """The calls of as many requests, with random values in their inputs, after their first run."""
        runners = []
        for _ in range(count):
            self._request = self._compiled.create_infer_request()
            self.feed(random_values(self.input_types()))
            self._request.infer()
            runners.append(self._request.infer)
        return runners

    def outputs(self):
        return [np.array(self._request.get_output_tensor(i).data) for i in range(len(self._compiled.outputs))]


def _batched(shape, batch):
    """The shape of an input for so many samples."""
    if shape[:1] != [1]:
        raise RuntimeError(f"an input of shape {shape} has no batch to resize")
    return [batch, *shape[1:]]


def import_package(name):
    """What a program has done before it opens its first model."""
    if name == "openvino":
        import openvino  # noqa: F401
    else:
        import ai_edge_litert.interpreter  # noqa: F401


def make(name, model, threads, delegate, options, batch=1):
    """The engine of that name. `delegate`: the library's path, `options`: of it, `batch`: the samples of a run."""
    if name == "openvino":
        return OpenVINO(model, threads, batch)
    if name == "xnnpack":
        return LiteRT(model, threads, batch=batch)
    from ai_edge_litert.interpreter import load_delegate

    loaded = load_delegate(str(delegate), {"num_threads": str(threads), **options})
    return LiteRT(model, threads, plain=name == "fuselite", delegates=[loaded], batch=batch)


def open_each(names, open_one):
    """What `open_one(name)` gives for each engine, and why others give nothing."""
    opened, failed = {}, {}
    for name in names:
        try:
            opened[name] = open_one(name)
        except Exception as error:  # whatever an engine throws is a result of the comparison
            failed[name] = " ".join(str(error).split())[:200]
    return opened, failed


def reference(model):
    """LiteRT's portable kernels; its optimized ones where these lack an operator."""
    try:
        made = LiteRT(model, 1, reference=True)
        made.feed(random_values(made.input_types()))
        made.run()
        return made
    except (RuntimeError, ValueError):
        return LiteRT(model, 1, plain=True)


def random_values(types, seed=0):
    """Floats in [-1, 1], 8-bit integers over their range, zeros for others: indices must be in range."""
    rng = np.random.default_rng(seed)
    values = []
    for shape, dtype in types:
        if dtype.kind == "f":
            values.append(rng.uniform(-1, 1, shape).astype(dtype))
        elif dtype.kind in "iu" and dtype.itemsize == 1:
            limits = np.iinfo(dtype)
            values.append(rng.integers(limits.min, limits.max + 1, shape).astype(dtype))
        else:
            values.append(np.zeros(shape, dtype))
    return values


def arithmetic(model):
    """What most products of the model compute in: float, int8, uint8 or dynamic range."""
    interpreter = LiteRT(pathlib.Path(model), 1, plain=True).interpreter
    counts = {}
    for op in interpreter._get_ops_details():
        if not any(part in op["op_name"] for part in ("CONV", "FULLY_CONNECTED", "BATCH_MATMUL", "LSTM")):
            continue
        tensors = [i for i in op["inputs"] if i >= 0]
        activation, weights = (np.dtype(interpreter._get_tensor_details(i, 0)["dtype"]) for i in _operands(op, tensors))
        kind = "float"
        if activation in (np.int8, np.int16):
            kind = "int8"
        elif activation == np.uint8:
            kind = "uint8"
        elif weights == np.int8:
            kind = "dynamic range"
        counts[kind] = counts.get(kind, 0) + 1
    return max(counts, key=counts.get, default="float")


def _operands(op, tensors):
    """The activations and the weights; TRANSPOSE_CONV has its shape in front."""
    return reversed(tensors[1:3]) if op["op_name"] == "TRANSPOSE_CONV" else tensors[:2]
