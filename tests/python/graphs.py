"""Writes models of a few operators through LiteRT's own schema, for tests on random graphs."""

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

TYPES = {
    np.dtype(np.float16): schema.TensorType.FLOAT16,
    np.dtype(np.float32): schema.TensorType.FLOAT32,
    np.dtype(np.int8): schema.TensorType.INT8,
    np.dtype(np.uint8): schema.TensorType.UINT8,
    np.dtype(np.int16): schema.TensorType.INT16,
    np.dtype(np.int32): schema.TensorType.INT32,
    np.dtype(np.int64): schema.TensorType.INT64,
    np.dtype(np.bool_): schema.TensorType.BOOL,
    np.dtype(np.complex64): schema.TensorType.COMPLEX64,
    np.dtype(np.complex128): schema.TensorType.COMPLEX128,
    np.dtype(np.float64): schema.TensorType.FLOAT64,
    np.dtype(np.uint16): schema.TensorType.UINT16,
    np.dtype(np.uint32): schema.TensorType.UINT32,
    np.dtype(np.uint64): schema.TensorType.UINT64,
}


def quantize(tensor, scale, zero_point, axis=0):
    """Gives the schema's tensor scales and zero points: one, or one for each index of an axis."""
    quantization = schema.QuantizationParametersT()
    quantization.scale = [float(np.float32(s)) for s in np.atleast_1d(scale)]
    points = np.atleast_1d(zero_point)
    quantization.zeroPoint = [int(z) for z in np.broadcast_to(points, len(quantization.scale))]
    quantization.quantizedDimension = axis
    tensor.quantization = quantization


def with_signature(model, key, inputs, outputs):
    """The model with a signature: names to values of its first graph."""
    model, signature = schema.ModelT.InitFromPackedBuf(model, 0), schema.SignatureDefT()

    def tensor_map(name, value):
        entry = schema.TensorMapT()
        entry.name, entry.tensorIndex = name, value.index
        return entry

    signature.signatureKey, signature.subgraphIndex = key, 0
    signature.inputs, signature.outputs = ([tensor_map(*pair) for pair in ends.items()] for ends in (inputs, outputs))
    model.signatureDefs = [signature]
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


class Value:
    """A tensor of the graph: its place in the model, shape, numpy type, and scale and zero point (None for floats)."""

    def __init__(self, index, shape, dtype, scale, zero_point):
        self.index, self.shape, self.dtype = index, tuple(int(d) for d in shape), np.dtype(dtype)
        self.scale, self.zero_point = scale, zero_point


class Graph:
    """Add inputs, constants and operators, then build(outputs)."""

    def __init__(self):
        self.tensors, self.buffers, self.operators, self.codes, self.inputs = [], [schema.BufferT()], [], {}, []
        self.text = []
        self.int4 = {}  # the values of constants of that type, by the tensor's index

    def _tensor(self, shape, dtype, scale, zero_point, axis=0, buffer=0):
        tensor = schema.TensorT()
        tensor.name = f"t{len(self.tensors)}"
        tensor.shape = [int(d) for d in shape]
        tensor.type = TYPES[np.dtype(dtype)]
        tensor.buffer = buffer
        if scale is not None:
            quantize(tensor, scale, zero_point, axis)
        self.tensors.append(tensor)
        return Value(len(self.tensors) - 1, shape, dtype, scale, zero_point)

    def input(self, shape, dtype=np.float32, scale=None, zero_point=0, axis=0):
        value = self._tensor(shape, dtype, scale, zero_point, axis)
        self.inputs.append(value)
        return value

    def variable(self, shape, dtype=np.float32, scale=None, zero_point=0):
        """A state that starts at zero and that operators read and write."""
        value = self._tensor(shape, dtype, scale, zero_point)
        self.tensors[value.index].isVariable = True
        return value

    def constant(self, data, scale=None, zero_point=0, axis=0):
        data = np.asarray(data, order="C")
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(data.tobytes(), np.uint8)
        self.buffers.append(buffer)
        return self._tensor(data.shape, data.dtype, scale, zero_point, axis, len(self.buffers) - 1)

    def constant_int4(self, data, scale, axis=0, bits=4):
        """Values of 4 bits, from -8 to 7, or of 2, from -2 to 1; the first in the lowest bits of a byte."""
        count = 8 // bits
        parts = np.zeros((data.size + count - 1) // count * count, np.uint8)
        parts[: data.size] = data.reshape(-1).astype(np.uint8) & ((1 << bits) - 1)
        shifted = parts.reshape(-1, count) << (np.arange(count, dtype=np.uint8) * bits)
        value = self.constant(np.bitwise_or.reduce(shifted, axis=1), scale, 0, axis)
        tensor = self.tensors[value.index]
        tensor.shape = [int(d) for d in data.shape]
        tensor.type = schema.TensorType.INT4 if bits == 4 else schema.TensorType.INT2
        self.int4[value.index] = data
        return Value(value.index, data.shape, np.int8, scale, 0)

    def constant_in_blocks(self, data, scales, bits=4):
        """Weights of 8, 4 or 2 bits, [units, depth]; `scales` [units, blocks] of the same depth, of float16 or float32."""
        scale, codes = self.constant(scales), data.astype(np.uint8) & ((1 << bits) - 1)
        parts = codes.reshape(-1, 8 // bits)
        packed = sum(parts[:, i].astype(np.uint16) << (i * bits) for i in range(8 // bits))
        value = self.constant(packed.astype(np.uint8))
        tensor = self.tensors[value.index]
        tensor.shape = [int(d) for d in data.shape]
        tensor.type = {8: schema.TensorType.INT8, 4: schema.TensorType.INT4, 2: schema.TensorType.INT2}[bits]
        blocks = schema.BlockwiseQuantizationT()
        blocks.scales, blocks.zeroPoints, blocks.blockSize = scale.index, -1, data.shape[1] // scales.shape[1]
        tensor.quantization = schema.QuantizationParametersT()
        tensor.quantization.detailsType = schema.QuantizationDetails.BlockwiseQuantization
        tensor.quantization.details = blocks
        return Value(value.index, data.shape, np.int8, None, 0)

    def op(
        self,
        name,
        /,
        inputs,
        shapes,
        options=None,
        version=1,
        dtype=None,
        scale=None,
        zero_point=0,
        like=None,
        tensor_type=None,
        custom_options=None,
        intermediates=(),
        **fields,
    ):
        """Adds operator `name` ("ADD", "custom Atan") with the options' `fields`; one output for each of `shapes`, returned as one value or
        a list. Type, scale and zero point of the outputs: those given, else of the value `like`, else of the first
        input. `tensor_type`: the schema's, where numpy has none. `custom_options`: the bytes of a custom operator's.
        `intermediates`: scales and zero points of values that never become tensors."""
        like = like or (inputs[0] if inputs else None)
        if dtype is None:
            dtype, scale, zero_point = (
                (like.dtype, like.scale, like.zero_point) if scale is None else (like.dtype, scale, zero_point)
            )
        many = isinstance(shapes, list)
        outputs = [self._tensor(shape, dtype, scale, zero_point) for shape in (shapes if many else [shapes])]
        for output in outputs if tensor_type is not None else []:
            self.tensors[output.index].type = tensor_type
        operator = schema.OperatorT()
        operator.opcodeIndex = self.codes.setdefault((name, version), len(self.codes))
        operator.inputs = [-1 if value is None else value.index for value in inputs]
        operator.outputs = [value.index for value in outputs]
        if intermediates:
            operator.intermediates = [self._tensor((), np.int16, *q).index for q in intermediates]
        if options:
            table = getattr(schema, options + "T")()
            for field, content in fields.items():
                assert hasattr(table, field), (options, field)
                setattr(table, field, content)
            if hasattr(schema.BuiltinOptions, options):
                operator.builtinOptionsType = getattr(schema.BuiltinOptions, options)
                operator.builtinOptions = table
            else:
                operator.builtinOptions2Type = getattr(schema.BuiltinOptions2, options)
                operator.builtinOptions2 = table
        if custom_options is not None:
            operator.customOptions = np.frombuffer(custom_options, np.uint8)
        self.operators.append(operator)
        self.text.append(
            f"{name}({', '.join('-' if v is None else f't{v.index}{list(v.shape)}' for v in inputs)}) -> "
            f"{', '.join(f't{v.index}{list(v.shape)}' for v in outputs)} {fields or ''}"
        )
        return outputs if many else outputs[0]

    def build(self, outputs, change=None, others=()):
        """The model's bytes. `change` maps the values of each float constant, for a variant of the model. `others`:
        further subgraphs, each a Graph and its outputs."""
        buffers = list(self.buffers)
        for tensor in self.tensors:
            if change and tensor.buffer and tensor.type == schema.TensorType.FLOAT32:
                data = change(np.frombuffer(buffers[tensor.buffer].data.tobytes(), np.float32))
                buffers[tensor.buffer] = schema.BufferT()
                buffers[tensor.buffer].data = np.frombuffer(data.tobytes(), np.uint8)
        model = schema.ModelT()
        model.version, model.buffers, model.operatorCodes = 3, buffers, []
        model.subgraphs = [self._subgraph(outputs)]
        codes = list(self.codes)
        for graph, its_outputs in others:
            for tensor in graph.tensors:
                tensor.buffer += len(buffers) - 1 if tensor.buffer else 0
            for operator in graph.operators:
                operator.opcodeIndex += len(codes)
            buffers += graph.buffers[1:]
            codes += list(graph.codes)
            model.subgraphs.append(graph._subgraph(its_outputs))
        for name, version in codes:
            code = schema.OperatorCodeT()
            code.builtinCode = getattr(schema.BuiltinOperator, name, schema.BuiltinOperator.CUSTOM)
            if code.builtinCode == schema.BuiltinOperator.CUSTOM:
                code.customCode = name.removeprefix("custom ")
            code.deprecatedBuiltinCode = min(code.builtinCode, 127)
            code.version = version
            model.operatorCodes.append(code)
        builder = flatbuffers.Builder(1024)
        builder.Finish(model.Pack(builder), b"TFL3")
        return bytes(builder.Output())

    def _subgraph(self, outputs):
        graph = schema.SubGraphT()
        graph.tensors, graph.operators = self.tensors, self.operators
        graph.inputs = [value.index for value in self.inputs]
        graph.outputs = [value.index for value in outputs]
        return graph
