"""Runs models in LiteRT, with its reference kernels or with the delegate, on seeded inputs."""

import json

import numpy as np
from ai_edge_litert import interpreter as litert

Resolver = litert.OpResolverType


def reference(model, shapes=None):
    """An interpreter with LiteRT's portable kernels: what everything is compared with."""
    return _prepared(litert.Interpreter(str(model), experimental_op_resolver_type=Resolver.BUILTIN_REF), shapes)


def delegated(model, delegate, shapes=None, **options):
    """An interpreter with the delegate on top of LiteRT's own kernels."""
    interpreter = litert.Interpreter(
        str(model),
        experimental_op_resolver_type=Resolver.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
        experimental_delegates=[delegate],
        **options,
    )
    return _prepared(interpreter, shapes)


def interpret(content, delegates=(), kernels=Resolver.BUILTIN_REF, **options):
    """An interpreter of a model's bytes, with these of LiteRT's kernels beside the delegates."""
    interpreter = litert.Interpreter(
        model_content=bytes(content),
        experimental_op_resolver_type=kernels,
        experimental_delegates=list(delegates),
        **options,
    )
    return _prepared(interpreter, None)


def _prepared(interpreter, shapes):
    for detail, shape in zip(interpreter.get_input_details(), shapes or []):
        interpreter.resize_tensor_input(detail["index"], shape)
    interpreter.allocate_tensors()
    return interpreter


def random_inputs(interpreter, seed):
    """Floats in [-1, 1], 8-bit integers over their range, other integers 0 or 1."""
    rng = np.random.default_rng(seed)
    inputs = []
    for detail in interpreter.get_input_details():
        shape, dtype = detail["shape"], detail["dtype"]
        if np.issubdtype(dtype, np.floating):
            inputs.append(rng.uniform(-1, 1, shape).astype(dtype))
        elif np.issubdtype(dtype, np.integer) and dtype().itemsize == 1:
            inputs.append(rng.integers(np.iinfo(dtype).min, np.iinfo(dtype).max + 1, shape).astype(dtype))
        else:
            inputs.append(rng.integers(0, 2, shape).astype(dtype))
    return inputs


def quantize(real, detail):
    """`real` as the input that `detail` describes: itself for float models."""
    if detail["dtype"] == np.float32:
        return real
    scale, zero_point = detail["quantization"]
    info = np.iinfo(detail["dtype"])
    return np.clip(np.round(real / scale) + zero_point, info.min, info.max).astype(detail["dtype"])


def run(interpreter, inputs):
    """The outputs, as copies. Variables start at zero."""
    interpreter.reset_all_variables()
    return invoke(interpreter, inputs)


def invoke(interpreter, inputs):
    """The outputs, as copies. Variables are as the last invoke has left them."""
    for detail, value in zip(interpreter.get_input_details(), inputs):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def largest_difference(actual, expected):
    """Over all outputs; fails where shapes or types differ."""
    worst = 0.0
    for a, e in zip(actual, expected, strict=True):
        assert a.shape == e.shape and a.dtype == e.dtype
        if a.size:
            assert np.isfinite(a.astype(np.float64)).all() == np.isfinite(e.astype(np.float64)).all()
            worst = max(worst, float(np.max(np.abs(a.astype(np.float64) - e.astype(np.float64)))))
    return worst


def delegate_kernels(interpreter):
    """How many partitions the delegate has."""
    return sum(op["op_name"] == "DELEGATE" for op in interpreter._get_ops_details())


def explanation(path):
    """What explain_file holds, of the main graph."""
    return json.loads(path.read_text())["graphs"][0]
