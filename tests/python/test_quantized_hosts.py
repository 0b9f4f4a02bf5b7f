"""What hosts do to quantized models: threads, resized inputs, the interpreter's switches. The outputs keep the bits of
LiteRT's reference kernels.

Models of FUSELITE_MODELS; where it is not set, the forms of networks that `fuselite zoo` writes."""

import os
import threading

import conftest
import model_matrix
import numpy as np
import own_interpreter
import pytest
import running
from ai_edge_litert import interpreter as litert

RUNS = 20  # of each thread: a race in a few milliseconds shows within these
# Shapes that the model takes; the graph's own is the first again.
RESIZABLE = {
    "ad01_int8": [[4, 640], [1, 640], [7, 640]],
    "digits_int8": [[3, 32, 32, 3], [1, 32, 32, 3], [2, 64, 48, 3]],
    "hello_world_int8": [[3, 1], [1, 1], [17, 1]],
    "keras_efficientnet_b0_int8": [[1, 160, 128, 3], [1, 224, 224, 3]],
    "keras_mlp_int8": [[3, 256], [1, 256], [16, 256]],
    "keras_mobilenet_v1_int8": [[1, 128, 160, 3], [1, 97, 101, 3]],
    "keras_mobilenet_v2_int8": [[1, 160, 160, 3], [1, 224, 224, 3]],
    "keras_mobilenet_v3_large_int8": [[1, 128, 128, 3], [1, 224, 224, 3]],
    "kws_int8": [[2, 49, 10, 1], [1, 49, 10, 1]],
    "mobilenet_v1_0.25_128_quant": [[1, 160, 160, 3], [1, 128, 128, 3]],
    "resnet8_cifar10_int8": [[2, 32, 32, 3], [1, 32, 32, 3]],
    "vww_96_int8": [[3, 96, 96, 3], [1, 96, 96, 3]],
}
CONCURRENT = [
    "keras_lstm_mnist_ptq",
    "keras_mobilenet_v2_int8",
    "keras_vit_tiny_int8",
    "mobilenet_v2_1.0_224_quant",
    "vww_96_int8",
]
SWITCHED = [
    "deeplabv3_mnv2_dm05_pascal_quant",
    "keras_efficientnet_b0_int8",
    "keras_lstm_mnist_ptq",
    "keras_unet_256_int8",
    "keras_vit_tiny_int8",
    "mobilenet_v1_0.25_128_quant",
    "movenet_single_pose_lightning_ptq",
    "vww_96_int8",
]
SHARED = ["keras_mobilenet_v2_int8", "vww_96_int8", "keras_mobilenet_v2_int8"]
SPLIT = ["keras_mobilenet_v1_int8", "mobilenet_v1_0.25_128_quant", "vww_96_int8"]
if not os.environ.get("FUSELITE_MODELS"):
    RESIZABLE = {
        "mobilenet_v1_int8": [[1, 128, 160, 3], [1, 97, 101, 3]],
        "mobilenet_v1_uint8": [[1, 64, 96, 3], [3, 33, 33, 3]],
        "mobilenet_v2_int8": [[1, 160, 160, 3], [2, 65, 63, 3]],
    }
    CONCURRENT = SWITCHED = conftest.ZOO_INTEGER
    SHARED = ["mobilenet_v2_int8", "transformer_int8", "mobilenet_v2_int8"]
    SPLIT = list(RESIZABLE)


@pytest.fixture(scope="session")
def models(networks):
    return networks


def path_of(models, name):
    path = models / f"{name}.tflite"
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    return path


def reference(path, seed, shapes=None):
    """Inputs of the seed and the outputs of LiteRT's reference kernels."""
    interpreter = running.reference(path, shapes)
    inputs = running.random_inputs(interpreter, seed)
    return inputs, running.run(interpreter, inputs)


def with_reference_kernels(path, delegate, **switches):
    """The delegate in a host whose own kernels are the references, for graphs of which the host keeps a part: LiteRT's
    optimized kernels have other bits."""
    interpreter = litert.Interpreter(
        str(path),
        experimental_op_resolver_type=running.Resolver.BUILTIN_REF,
        experimental_delegates=[delegate],
        **switches,
    )
    interpreter.allocate_tensors()
    return interpreter


def same(actual, expected):
    return all(np.array_equal(a, e) for a, e in zip(actual, expected, strict=True))


def invoke_in_threads(runners, cases):
    """One thread for each runner, all at once; how many runs of each gave other outputs than its case's."""
    wrong, start = [0] * len(runners), threading.Barrier(len(runners))

    def work(i):
        inputs, expected = cases[i]
        start.wait()
        for _ in range(RUNS):
            wrong[i] += not same(runners[i].run(inputs), expected)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(runners))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return wrong


@pytest.mark.parametrize("host", model_matrix.HOSTS)
@pytest.mark.parametrize("name", CONCURRENT)
def test_two_interpreters_at_once(name, host, models, delegate_path):
    path = path_of(models, name)
    cases = [reference(path, seed) for seed in range(2)]
    runners = [model_matrix.Runner(host, path, delegate_path, {"num_threads": 2}) for _ in cases]
    assert invoke_in_threads(runners, cases) == [0, 0]


def test_two_interpreters_at_once_share_a_delegate(models, load_delegate):
    class Shared:
        """An interpreter with the one delegate."""

        def __init__(self, path, delegate):
            self.interpreter = running.delegated(path, delegate)

        def run(self, inputs):
            return running.run(self.interpreter, inputs)

    delegate = load_delegate(num_threads=2)
    paths = [path_of(models, name) for name in SHARED]
    cases = [reference(path, seed) for seed, path in enumerate(paths)]
    assert invoke_in_threads([Shared(path, delegate) for path in paths], cases) == [0, 0, 0]


@pytest.mark.parametrize("fusion", model_matrix.SWITCH)
@pytest.mark.parametrize("name", RESIZABLE)
def test_inputs_resized_between_invokes(name, fusion, models, load_delegate, delegate_path):
    path = path_of(models, name)
    interpreter = running.delegated(path, load_delegate(num_threads=2, fusion=fusion))
    own = own_interpreter.Interpreter(path, own_interpreter.Delegate(delegate_path, num_threads=2, fusion=fusion))
    original = [int(d) for d in interpreter.get_input_details()[0]["shape"]]
    for seed, shape in enumerate([original, *RESIZABLE[name], original]):
        inputs, expected = reference(path, seed, [shape])
        interpreter.resize_tensor_input(interpreter.get_input_details()[0]["index"], shape)
        interpreter.allocate_tensors()
        assert running.delegate_kernels(interpreter) == 1
        assert same(running.run(interpreter, inputs), expected), ("litert", shape)
        own.resize(0, shape)
        own.allocate()
        assert same(own.run(inputs), expected), ("own", shape)


@pytest.mark.parametrize(
    "switch",
    ["experimental_preserve_all_tensors", "experimental_disable_delegate_clustering"],
)
@pytest.mark.parametrize("name", SWITCHED)
def test_the_interpreters_switches(name, switch, models, load_delegate):
    path = path_of(models, name)
    interpreter = with_reference_kernels(path, load_delegate(num_threads=2), **{switch: True})
    assert running.delegate_kernels(interpreter) >= 1
    for seed in (0, 1, 0):
        inputs, expected = reference(path, seed)
        actual = running.run(interpreter, inputs)
        if name.startswith("movenet"):  # ends in float arithmetic
            assert running.largest_difference(actual, expected) <= 1e-5
        else:
            assert same(actual, expected)


@pytest.mark.parametrize("name", SPLIT)
def test_operators_left_to_the_host_in_between(name, models, load_delegate):
    path = path_of(models, name)
    inputs, expected = reference(path, 0)
    interpreter = with_reference_kernels(path, load_delegate(ops_deny="DEPTHWISE_CONV_2D"))
    assert running.delegate_kernels(interpreter) > 5
    assert same(running.run(interpreter, inputs), expected)
