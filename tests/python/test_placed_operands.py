"""Operators whose operands lie inside larger tensors: the conformance vectors with a SLICE before every input and a
CONCATENATION after every output, which the delegate replaces by rows at a distance.
"""

import flatbuffers
import graphs
import numpy as np
import running
import vectors
from ai_edge_litert import schema_py_generated as schema

BEFORE, WIDER = 1, 3  # elements before the operand's rows, and how many more the larger rows have
NUMPY = {code: dtype for dtype, code in graphs.TYPES.items()}
STATEFUL = ("LSTM", "SVDF", "RNN")


class Wrapped:
    """A model of one graph, changed in place; `inputs` are the values to run it with."""

    def __init__(self, blob, inputs):
        self.model = schema.ModelT.InitFromObj(schema.Model.GetRootAs(blob, 0))
        self.graph = self.model.subgraphs[0]
        self.graph.inputs, self.graph.outputs = list(self.graph.inputs), list(self.graph.outputs)
        self.inputs = list(inputs)

    def wrap_inputs(self):
        pairs = [self._slice(index, value) for index, value in zip(self.graph.inputs, self.inputs, strict=True)]
        self.graph.inputs, self.inputs = map(list, zip(*pairs)) if pairs else ([], [])

    def wrap_weights(self):
        """Constants become inputs, where the operator may take those."""
        for operator in list(self.graph.operators):
            for index in operator.inputs:
                if index >= 0 and index not in self.graph.inputs and self._may_vary(index):
                    tensor = self.graph.tensors[index]
                    data = self.model.buffers[tensor.buffer].data
                    tensor.buffer = 0
                    value = np.frombuffer(bytes(bytearray(data)), NUMPY[tensor.type]).reshape(tensor.shape)
                    source, value = self._slice(index, value)
                    self.graph.inputs.append(source)
                    self.inputs.append(value)

    def wrap_outputs(self):
        for place, index in enumerate(list(self.graph.outputs)):
            shape = self._shape(index)
            if not shape or self.graph.tensors[index].type == schema.TensorType.BOOL:
                continue
            rest = self._like(index, [*shape[:-1], WIDER])
            whole = self._like(index, [*shape[:-1], shape[-1] + WIDER])
            options = schema.ConcatenationOptionsT()
            options.axis = len(shape) - 1
            operator = self._operator("CONCATENATION", [index, rest], whole, "ConcatenationOptions", options)
            self.graph.operators = [*self.graph.operators, operator]
            self.graph.inputs.append(rest)
            self.inputs.append(np.zeros([*shape[:-1], WIDER], NUMPY[self.graph.tensors[index].type]))
            self.graph.outputs[place] = whole

    def build(self):
        self.model.signatureDefs = self.model.metadata = self.model.metadataBuffer = None
        builder = flatbuffers.Builder(1024)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        return bytes(builder.Output())

    def _shape(self, index):
        shape = self.graph.tensors[index].shape
        return [] if shape is None or not np.prod(shape) else [int(d) for d in shape]

    def _may_vary(self, index):
        tensor = self.graph.tensors[index]
        data = self.model.buffers[tensor.buffer].data
        scales = None if tensor.quantization is None else tensor.quantization.scale
        is_number = tensor.type in (schema.TensorType.FLOAT32, schema.TensorType.INT8, schema.TensorType.UINT8)
        return data is not None and len(data) and self._shape(index) and is_number and (scales is None or len(scales) < 2)

    def _like(self, index, shape, dtype=None):
        tensor = schema.TensorT()
        tensor.name, tensor.shape, tensor.buffer = f"wrapped{len(self.graph.tensors)}", [int(d) for d in shape], 0
        tensor.type = self.graph.tensors[index].type if dtype is None else dtype
        tensor.quantization = self.graph.tensors[index].quantization if dtype is None else None
        self.graph.tensors.append(tensor)
        return len(self.graph.tensors) - 1

    def _indices(self, values):
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(np.array(values, np.int32).tobytes(), np.uint8)
        self.model.buffers.append(buffer)
        index = self._like(0, [len(values)], schema.TensorType.INT32)
        self.graph.tensors[index].buffer = len(self.model.buffers) - 1
        return index

    def _operator(self, name, inputs, output, options_type, options):
        code = schema.OperatorCodeT()
        code.builtinCode = getattr(schema.BuiltinOperator, name)
        code.deprecatedBuiltinCode, code.version = code.builtinCode, 2
        self.model.operatorCodes.append(code)
        operator = schema.OperatorT()
        operator.opcodeIndex = len(self.model.operatorCodes) - 1
        operator.inputs, operator.outputs = inputs, [output]
        operator.builtinOptionsType, operator.builtinOptions = getattr(schema.BuiltinOptions, options_type), options
        return operator

    def _slice(self, index, value):
        """Makes tensor `index` a slice of a larger one: that one, and its value."""
        if not self._shape(index):
            return index, value
        shape = [*value.shape[:-1], value.shape[-1] + WIDER]
        larger = np.ones(shape, value.dtype)
        larger[..., BEFORE : BEFORE + value.shape[-1]] = value
        source = self._like(index, shape)
        begin = self._indices([0] * (len(shape) - 1) + [BEFORE])
        operands = [source, begin, self._indices(value.shape)]
        operator = self._operator("SLICE", operands, index, "SliceOptions", schema.SliceOptionsT())
        self.graph.operators = [operator, *self.graph.operators]
        return source, larger


def run(model, inputs, delegates=()):
    return running.run(running.interpret(model, delegates), inputs)


def agree(actual, expected, row):
    if expected.dtype.kind != "f":
        return np.array_equal(actual, expected)
    largest = np.abs(expected[np.isfinite(expected)]).max(initial=1)
    return np.allclose(actual, expected, rtol=float(row["rtol"]), atol=1e-5 * largest, equal_nan=True)


def test_vectors_inside_larger_tensors(load_delegate, conformance):
    rows = [row for row in vectors.rows(conformance) if row["litert_ref"] == "yes"]
    compared, different = 0, []
    for row in rows:
        inputs, _ = vectors.load(conformance, row)
        blob = (conformance / f"{row['name']}.tflite").read_bytes()
        if any(word in row["tfl_ops"] for word in ("IF", "WHILE", *STATEFUL)):
            continue
        for weights in (False, True):
            wrapped = Wrapped(blob, inputs)
            wrapped.wrap_inputs()
            if weights:
                wrapped.wrap_weights()
            wrapped.wrap_outputs()
            model = wrapped.build()
            try:
                expected = run(model, wrapped.inputs)
            except RuntimeError:
                continue  # some of LiteRT's kernels want constants here
            actual = run(model, wrapped.inputs, [load_delegate()])
            compared += 1
            if not all(agree(y, e, row) for y, e in zip(actual, expected, strict=True)):
                different.append((row["name"], row["tfl_ops"], "weights" if weights else "inputs"))
    assert different == []
    assert compared >= len(rows)
