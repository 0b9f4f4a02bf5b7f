"""Shrinks a random graph on which the delegate fails to the few operators that still show it."""

import os
import signal
import sys

import flatbuffers
import numpy as np
import random_check
import running
from ai_edge_litert import schema_py_generated as schema

LIMIT_S = 60  # of one attempt


class Case:
    """A model of the schema's objects, and the values of its inputs by the tensor's index."""

    def __init__(self, model, feeds):
        self.bytes, self.feeds = bytes(model), feeds
        self.model = schema.ModelT.InitFromPackedBuf(self.bytes)

    @classmethod
    def of(cls, subject):
        """A random_check.Subject as it is."""
        inputs = schema.ModelT.InitFromPackedBuf(subject.model).subgraphs[0].inputs
        return cls(subject.model, dict(zip(map(int, inputs), subject.inputs)))

    @property
    def graph(self):
        return self.model.subgraphs[0]

    @property
    def inputs(self):
        return [self.feeds[int(i)] for i in self.graph.inputs]

    def with_ends(self, operators, outputs, feeds):
        """Of these operators (indices, in order) what the outputs need, with `feeds` beside the inputs that it has;
        None where nothing is left."""
        needed, kept = set(outputs), []
        for i in reversed(operators):
            operator = self.graph.operators[i]
            # An operator without outputs is there for what it does to a state.
            if len(operator.outputs) == 0 or needed & set(map(int, operator.outputs)):
                needed |= set(map(int, operator.inputs))
                kept.append(operator)
        made = {int(o) for operator in kept for o in operator.outputs}
        if not kept or not set(outputs) & made:
            return None
        variant = schema.ModelT.InitFromPackedBuf(self.bytes)
        known = self.feeds | feeds
        graph = variant.subgraphs[0]
        graph.operators, graph.outputs = kept[::-1], outputs
        graph.inputs = [i for i in known if i in needed and i not in made]
        variant.signatureDefs = None
        _forget_unread(variant, needed | made)
        builder = flatbuffers.Builder(1024)
        builder.Finish(variant.Pack(builder), b"TFL3")
        return Case(builder.Output(), {i: known[i] for i in graph.inputs})

    def names(self):
        """The operators, in order."""
        return [operator_name(self.model, operator) for operator in self.graph.operators]


def operator_name(model, operator):
    code = model.operatorCodes[operator.opcodeIndex]
    if code.builtinCode == schema.BuiltinOperator.CUSTOM:
        return code.customCode.decode()
    return next(name for name, value in vars(schema.BuiltinOperator).items() if value == code.builtinCode)


def _forget_unread(model, used):
    """Drops the bytes of constants that no operator reads any more. Further subgraphs keep theirs."""
    read = {tensor.buffer for i, tensor in enumerate(model.subgraphs[0].tensors) if i in used}
    read |= {tensor.buffer for graph in model.subgraphs[1:] for tensor in graph.tensors}
    for i in range(len(model.buffers)):
        if i not in read:
            model.buffers[i] = schema.BufferT()
    for i, tensor in enumerate(model.subgraphs[0].tensors):
        if i not in used:
            tensor.buffer = 0


def shrink(case, fails):
    """The smallest case found for which `fails` holds, as it does for `case`: with one output, without the operators
    behind it, and with the reference's values in place of those before it."""
    values = _reference_values(case)
    case = _smaller_tail(case, fails)
    while (smaller := _without_one(case, values, fails)) is not None:
        case = smaller
    return case


def _smaller_tail(case, fails):
    """The shortest beginning that fails at a single output."""
    operators = case.graph.operators
    for last in range(len(operators)):
        for output in map(int, operators[last].outputs):
            smaller = case.with_ends(list(range(last + 1)), [output], {})
            if smaller is not None and fails(smaller):
                return smaller
    return case


def _without_one(case, values, fails):
    """The case without one of its operators, whose outputs become inputs; None where none can be spared."""
    everything = range(len(case.graph.operators))
    for i in everything:
        outputs = list(map(int, case.graph.operators[i].outputs))
        if not outputs or any(o not in values for o in outputs):
            continue
        feeds = {o: values[o] for o in outputs}
        ends = [int(o) for o in case.graph.outputs if int(o) not in outputs]
        smaller = case.with_ends([o for o in everything if o != i], ends, feeds) if ends else None
        if smaller is not None and fails(smaller):
            return smaller
    return None


def _reference_values(case):
    """What each tensor of the main graph holds behind LiteRT's reference kernels, where numpy has its type and it is no
    state."""
    reference = running.interpret(case.bytes, experimental_preserve_all_tensors=True)
    running.run(reference, case.inputs)
    values = {}
    for detail in reference.get_tensor_details():
        i = detail["index"]
        if i >= len(case.graph.tensors) or case.graph.tensors[i].isVariable:
            continue
        try:
            values[i] = np.array(reference.get_tensor(i))
        except ValueError:  # a type without values, or a tensor that was never made
            continue
    return values


def differs(delegate_path, settings, places=None):
    """For shrink(): whether the delegate's outputs differ from the reference's, or its process ends, with one of the
    `settings` (a host and options). What LiteRT's reference refuses does not count."""

    def fails(case):
        child = os.fork()
        if child == 0:
            _end_with(lambda: _judge(case, delegate_path, settings, places))
        _, status = os.waitpid(child, 0)
        return status != 0

    return fails


def _end_with(judge):
    """Ends this process: with 0 where `judge` finds nothing."""
    signal.alarm(LIMIT_S)
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())
    status = 2
    try:
        status = int(judge())
    finally:
        os._exit(status)


def _judge(case, delegate_path, settings, places):
    try:
        expected = random_check.outputs_of(running.interpret(case.bytes), case.inputs)
    except (RuntimeError, ValueError):
        return False
    for host, options in settings:
        actual, _ = random_check.compared(case.bytes, case.inputs, delegate_path, host, options)
        if actual is None:
            continue
        bound, _ = random_check.bound_of(options)
        if any(random_check.difference(a, e, 0.0, places, bound) for a, e in zip(actual, expected, strict=True)):
            return True
    return False


def save(case, directory, name):
    """NAME.tflite and NAME.npz, whose arrays input0, input1 ... are the inputs in order; the model's path."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{name}.tflite"
    path.write_bytes(case.bytes)
    np.savez(directory / f"{name}.npz", **{f"input{i}": value for i, value in enumerate(case.inputs)})
    return path


def shrink_graph(seed, type_name, delegate_path, steps, directory):
    """Shrinks the graph of random_check.check() with these arguments, saves it, and says in a line what is left."""
    subject = random_check.subject(seed, type_name, steps)
    case = Case.of(subject)
    fails = differs(delegate_path, subject.settings, subject.graph.places)
    if not fails(case):
        return "does not fail by itself"
    smaller = shrink(case, fails)
    path = save(smaller, directory, f"{type_name}-{seed}")
    return f"{' '.join(smaller.names())} of {len(case.names())} operators, in {path}"
