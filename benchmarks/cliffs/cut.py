"""Cuts the operators out of models, each into a model of its own: the shapes and parameters that nets really have."""

import copy
import pathlib

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from case import Case

NAMES = {code: name for name, code in vars(schema.BuiltinOperator).items() if not name.startswith("_")}
TYPES = {code: name.lower() for name, code in vars(schema.TensorType).items() if not name.startswith("_")}
# Not computed by a kernel alone, or nothing to compute.
PASSED_OVER = {"CUSTOM", "STABLEHLO_COMPOSITE", "DELEGATE", "IF", "WHILE", "CALL_ONCE", "VAR_HANDLE", "RESHAPE", "SHAPE"}


def _sized(tensor):
    return tensor.shape is not None and all(d > 0 for d in tensor.shape)


def _single(model, graph, operator):
    """The operator's own model; None where a shape is not known."""
    cut = schema.ModelT()
    cut.version, cut.buffers = 3, [schema.BufferT()]
    sub = schema.SubGraphT()
    sub.tensors, sub.inputs, places = [], [], {-1: -1}
    for index in [*operator.inputs, *operator.outputs]:
        if index in places:
            continue
        tensor = copy.copy(graph.tensors[index])
        # Scales of blocks are a tensor that no operand names.
        if tensor.quantization and isinstance(tensor.quantization.details, schema.BlockwiseQuantizationT):
            return None
        buffer = model.buffers[tensor.buffer]
        places[index] = len(sub.tensors)
        tensor.buffer = 0
        if buffer.data is not None and len(buffer.data):
            tensor.buffer = len(cut.buffers)
            cut.buffers.append(buffer)
        elif not _sized(tensor):
            return None
        elif index in operator.inputs and not tensor.isVariable:
            sub.inputs.append(places[index])
        sub.tensors.append(tensor)
    own = copy.copy(operator)
    own.opcodeIndex = 0
    own.inputs = [places[i] for i in operator.inputs]
    own.outputs = [places[i] for i in operator.outputs]
    sub.operators, sub.outputs = [own], list(own.outputs)
    cut.subgraphs, cut.operatorCodes = [sub], [model.operatorCodes[operator.opcodeIndex]]
    if not sub.inputs:
        return None
    builder = flatbuffers.Builder(1024)
    builder.Finish(cut.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _describe(graph, operator):
    """Types, shapes and parameters in one line, which also tells equal operators."""
    operands = []
    for index in operator.inputs:
        tensor = graph.tensors[index] if index >= 0 else None
        shape = "x".join(map(str, tensor.shape)) if tensor and tensor.shape is not None else ""
        operands.append(f"{TYPES[tensor.type]}:{shape}" if tensor else "-")
    fields = vars(operator.builtinOptions) if operator.builtinOptions else {}
    return " ".join(operands + [f"{k}={v}" for k, v in fields.items() if isinstance(v, (int, float)) and v])


def _load(path):
    """A model, with the constants that large ones have behind the flatbuffer."""
    content = path.read_bytes()
    model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(content, 0))
    for buffer in model.buffers:
        if buffer.offset > 1:
            buffer.data = np.frombuffer(content, np.uint8, buffer.size, buffer.offset)
            buffer.offset = buffer.size = 0
    return model


def operators_of(paths):
    """A case for each different operator of the models."""
    seen = set()
    for path in map(pathlib.Path, paths):
        model = _load(path)
        for graph in model.subgraphs:
            for operator in graph.operators or []:
                code = model.operatorCodes[operator.opcodeIndex]
                name = NAMES[max(code.builtinCode, code.deprecatedBuiltinCode)]
                text = _describe(graph, operator)
                key = (name, text, str([_constant(model, graph, i) for i in operator.inputs[1:]]))
                if name in PASSED_OVER or key in seen:
                    continue
                seen.add(key)
                content = _single(model, graph, operator)
                if content is not None:
                    yield Case(name, f"{text} ({path.stem})", content)


def _constant(model, graph, index):
    """A small constant's values: an axis, a permutation, paddings."""
    data = model.buffers[graph.tensors[index].buffer].data if index >= 0 else None
    return bytes(bytearray(data)) if data is not None and len(data) <= 64 else None


def seeded(detail, rng, integers):
    """A value for an input: floats in [-1, 1], bytes over their range, truth values, wide integers in a range."""
    shape, dtype = detail["shape"], np.dtype(detail["dtype"])
    if dtype.kind in "fc":
        return rng.uniform(-1, 1, shape).astype(dtype)
    if dtype == np.bool_:
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu" and dtype.itemsize <= 2:
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max + 1, shape).astype(dtype)
    return rng.integers(*integers, shape).astype(dtype)
