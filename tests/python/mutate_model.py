"""Changes what a .tflite file says, at random: shapes, types, quantization, constants, wiring, order, options, bytes."""

import math

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

INT32 = 2**31
SMALL = [0, 1, 2, 3, 4, 7, 8, -1]
EXTREME = [0, -1, -2, 127, 255, 65536, 2**24, INT32 - 1, -INT32]
FLOATS = [0.0, -0.0, -1.0, 0.5, 1e-42, 1e30, math.inf, -math.inf, math.nan]
TYPES = [value for name, value in vars(schema.TensorType).items() if not name.startswith("_")]
BUILTINS = [value for name, value in vars(schema.BuiltinOperator).items() if not name.startswith("_")]


class ModelChanger:
    """Random changes of one model, drawn from `rng`."""

    def __init__(self, file, rng):
        self.model, self.rng = schema.ModelT.InitFromPackedBuf(file, 0), rng
        # Lists that can be changed in place; an absent one reads as an empty one.
        for graph in self.model.subgraphs:
            for name in ("inputs", "outputs", "operators", "tensors"):
                setattr(graph, name, self._listed(getattr(graph, name)))
            for operator in graph.operators:
                operator.inputs, operator.outputs = self._listed(operator.inputs), self._listed(operator.outputs)
            for tensor in graph.tensors:
                tensor.shape = self._listed(tensor.shape)

    def change(self):
        graph = self._pick(self.model.subgraphs)
        kinds = [
            self._shape,
            self._type,
            self._quantization,
            self._buffer,
            self._data,
            self._operands,
            self._code,
            self._options,
            self._ends,
            self._order,
        ]
        self._pick(kinds)(graph)

    def bytes(self):
        builder = flatbuffers.Builder(1024)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        file = bytearray(builder.Output())
        if self._chance(0.1):
            for _ in range(self.rng.integers(1, 6)):
                file[self.rng.integers(len(file))] = self.rng.integers(256)
        if self._chance(0.02):
            del file[self.rng.integers(len(file)) :]
        return bytes(file)

    @staticmethod
    def _listed(values):
        return [] if values is None else list(values)

    def _chance(self, probability):
        return self.rng.random() < probability

    def _pick(self, values):
        return values[self.rng.integers(len(values))]

    def _index(self, values):
        """A place in the list; now and then one that it has not."""
        if not values or self._chance(0.08):
            return int(self._pick([-1, -2, len(values), len(values) + 1, INT32 - 1]))
        return int(self.rng.integers(len(values)))

    def _list(self, values, draw):
        """Changes, removes, doubles or adds one element."""
        at, kind = int(self.rng.integers(max(1, len(values)))), self.rng.integers(4)
        if not values or kind == 3:
            values.insert(at, draw())
        elif kind == 0:
            values[at] = draw()
        elif kind == 1:
            del values[at]
        else:
            values.insert(at, values[at])

    def _shape(self, graph):
        tensor = self._pick(graph.tensors)
        if self._chance(0.15):
            tensor.shapeSignature = [-1 if self._chance(0.5) else d for d in tensor.shape]
        else:
            self._list(tensor.shape, lambda: int(self._pick(SMALL if self._chance(0.85) else EXTREME)))

    def _type(self, graph):
        self._pick(graph.tensors).type = int(self._pick(TYPES))

    def _quantization(self, graph):
        tensor = self._pick(graph.tensors)
        if tensor.quantization is None or tensor.quantization.scale is None:
            tensor.quantization = schema.QuantizationParametersT()
            tensor.quantization.scale, tensor.quantization.zeroPoint = [0.5], [0]
            return
        q, kind = tensor.quantization, self.rng.integers(4)
        q.scale, q.zeroPoint = self._listed(q.scale), self._listed(q.zeroPoint)
        if kind == 0:
            self._list(q.scale, lambda: float(self._pick(FLOATS) if self._chance(0.6) else self.rng.uniform(0.001, 4)))
        elif kind == 1:
            self._list(q.zeroPoint, lambda: int(self._pick([-129, 256, 2**40, -(2**63), *range(-128, 256)])))
        elif kind == 2:
            q.quantizedDimension = int(self._pick([-1, 0, 1, 2, 3, 4, INT32 - 1]))
        else:
            tensor.quantization = None

    def _buffer(self, graph):
        self._pick(graph.tensors).buffer = max(0, self._index(self.model.buffers))

    def _data(self, graph):
        """A constant shorter, longer, empty, or of other values."""
        constants = [buffer for buffer in self.model.buffers if buffer.data is not None and len(buffer.data)]
        if not constants:
            return self._buffer(graph)
        buffer = self._pick(constants)
        data, kind = np.array(buffer.data, np.uint8), self.rng.integers(5)
        if kind == 0:
            data = data[: self.rng.integers(data.size)]
        elif kind == 1:
            data = np.append(data, np.zeros(self.rng.integers(1, 64), np.uint8))
        elif kind == 2:
            data[self.rng.integers(data.size)] = self.rng.integers(256)
        elif kind == 3 and data.size >= 4:
            at = 4 * self.rng.integers(data.size // 4)
            data[at : at + 4] = np.array([self._pick(EXTREME)], np.int64).astype(np.int32).view(np.uint8)
        elif data.size >= 4:
            at = 4 * self.rng.integers(data.size // 4)
            data[at : at + 4] = np.array([self._pick(FLOATS)], np.float32).view(np.uint8)
        buffer.data = data

    def _operands(self, graph):
        if not graph.operators:
            return
        operator = self._pick(graph.operators)
        self._list(operator.inputs if self._chance(0.7) else operator.outputs, lambda: self._index(graph.tensors))

    def _code(self, graph):
        code, kind = self._pick(self.model.operatorCodes), self.rng.integers(3)
        if kind == 0:
            code.version = int(self.rng.integers(-1, 12))
        elif kind == 1 or not graph.operators:
            code.builtinCode = int(self._pick(BUILTINS))
            code.deprecatedBuiltinCode = min(code.builtinCode, 127)
        else:
            self._pick(graph.operators).opcodeIndex = max(0, self._index(self.model.operatorCodes))

    def _options(self, graph):
        if not graph.operators:
            return
        operator = self._pick(graph.operators)
        if self._chance(0.1):
            other = self._pick(graph.operators)
            operator.builtinOptionsType, operator.builtinOptions = other.builtinOptionsType, other.builtinOptions
            return
        options = operator.builtinOptions or operator.builtinOptions2
        names = sorted(vars(options)) if options is not None else []
        if not names or self._chance(0.1):
            operator.builtinOptionsType, operator.builtinOptions = 0, None
            return
        name = self._pick(names)
        value = getattr(options, name)
        if isinstance(value, bool):
            setattr(options, name, not value)
        elif isinstance(value, int):
            setattr(options, name, int(self._pick(SMALL if self._chance(0.7) else EXTREME)))
        elif isinstance(value, float):
            setattr(options, name, float(self._pick(FLOATS)))
        elif value is not None and not isinstance(value, (bytes, str)):
            values = self._listed(value)
            self._list(values, lambda: int(self._pick(SMALL + EXTREME)))
            setattr(options, name, values)

    def _ends(self, graph):
        self._list(graph.inputs if self._chance(0.4) else graph.outputs, lambda: self._index(graph.tensors))

    def _order(self, graph):
        self.rng.shuffle(graph.operators) if self._chance(0.5) else self._list(
            graph.operators, lambda: self._pick(graph.operators or [schema.OperatorT()])
        )


def changed(file, rng):
    """The model after one to four changes that the format can hold."""
    while True:
        changer = ModelChanger(file, rng)
        try:
            for _ in range(1 + int(rng.geometric(0.6))):
                changer.change()
            return changer.bytes()
        except (TypeError, OverflowError, ValueError, AttributeError, flatbuffers.builder.BuilderNotFinishedError):
            continue  # no number of the field's type, or no list where one is needed
        except Exception as error:  # flatbuffers' own checks of ranges
            if "range" not in str(error) and "bounds" not in str(error):
                continue


def known_outputs(file):
    """Places of the main graph's outputs whose values the model says; none where a graph of it leaves something to chance."""
    model = schema.ModelT.InitFromPackedBuf(file, 0)
    graphs = [_Values(model, graph) for graph in model.subgraphs]
    if not all(values.said for values in graphs):
        return []
    outputs = ModelChanger._listed(model.subgraphs[0].outputs)
    return [i for i, output in enumerate(outputs) if output in graphs[0].known]


class _Values:
    """Which tensors of a graph are made from inputs and constants, each by one node and before it is read."""

    def __init__(self, model, graph):
        listed, tensors = ModelChanger._listed, graph.tensors or []
        constant = [self._is_constant(model, tensor) for tensor in tensors]
        inputs = [i for i in listed(graph.inputs) if 0 <= i < len(tensors)]
        self.said = not any(constant[i] for i in inputs)
        self.known = set(inputs) | {i for i, tensor in enumerate(tensors) if tensor.isVariable or constant[i]}
        written = set(self.known)
        for operator in listed(graph.operators):
            sound = all(i == -1 or i in self.known for i in listed(operator.inputs))
            self.said &= sound and not self._reads_several_scales(model, tensors, operator)
            for output in listed(operator.outputs):
                self.said &= output not in written
                written.add(output)
                if sound:
                    self.known.add(output)

    @staticmethod
    def _is_constant(model, tensor):
        data = model.buffers[tensor.buffer].data if tensor.buffer < len(model.buffers) else None
        return data is not None and len(data) > 0

    @staticmethod
    def _reads_several_scales(model, tensors, operator):
        """BATCH_MATMUL of integers with a scale for each channel, for which LiteRT multiplies by 0."""
        code = model.operatorCodes[operator.opcodeIndex] if operator.opcodeIndex < len(model.operatorCodes) else None
        if code is None or code.builtinCode != schema.BuiltinOperator.BATCH_MATMUL:
            return False
        scales = [tensors[i].quantization.scale for i in operator.inputs if tensors[i].quantization is not None]
        return any(scale is not None and len(scale) > 1 for scale in scales)
