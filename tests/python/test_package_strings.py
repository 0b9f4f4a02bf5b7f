"""Strings through the Python package, in LiteRT's interpreter and in our own."""

import graphs
import numpy as np
import pytest
import test_strings
from test_package import HOSTS, fuselite
from test_strings import STRING


def repeated():
    """The model that gives [2, 3] strings twice, side by side, as [2, 6]; its signature names x and y."""
    g = graphs.Graph()
    x = test_strings.string_input(g, (2, 3))
    y = g.op("TILE", [x, g.constant(np.array([1, 2], np.int32))], (2, 6), tensor_type=STRING)
    return graphs.with_signature(g.build([y]), "main", {"x": x}, {"y": y})


def ends(interpreter):
    return (details()[0]["index"] for details in (interpreter.get_input_details, interpreter.get_output_details))


WORDS = [[b"the", b"", "f\u00f6x"], [b"over", b"zero\0", b"a much longer word"]]
EXPECTED = [[b"the", b"", "f\u00f6x".encode()], [b"over", b"zero\0", b"a much longer word"]]


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("value", [
    np.array(WORDS, object), np.array([row[::-1] for row in WORDS], object)[:, ::-1],
    np.array([["the", "", "f\u00f6x"], ["over", "zero", "a much longer word"]]),
    np.array([[b"the", b"", "f\u00f6x".encode()], [b"over", b"zero", b"a much longer word"]]),
])  # fmt: skip
def test_strings_go_in_and_come_out(host, value):
    interpreter = fuselite.Interpreter(model_content=repeated(), host=host)
    interpreter.allocate_tensors()
    x, y = ends(interpreter)
    assert interpreter.get_input_details()[0]["dtype"] == np.bytes_
    expected = np.array(EXPECTED, object)
    if value.dtype.kind != "O":
        expected[1, 1] = b"zero"  # numpy's own strings end where their zero bytes begin
    interpreter.set_tensor(x, value)
    interpreter.invoke()
    for index, wanted in ((x, expected), (y, np.tile(expected, (1, 2)))):
        strings = interpreter.get_tensor(index)
        assert strings.dtype == object and strings.shape == wanted.shape
        assert strings.tolist() == wanted.tolist()


@pytest.mark.parametrize("host", HOSTS)
def test_inputs_of_strings_are_resized(host):
    interpreter = fuselite.Interpreter(model_content=repeated(), host=host)
    x, y = ends(interpreter)
    for shape in ((0, 3), (1, 1), (3, 2)):
        interpreter.resize_tensor_input(x, shape)
        interpreter.allocate_tensors()
        value = np.full(shape, b"word", object)
        interpreter.set_tensor(x, value)
        interpreter.invoke()
        strings = interpreter.get_tensor(y)
        assert strings.shape == (shape[0], 2 * shape[1]) and strings.tolist() == np.tile(value, (1, 2)).tolist()


@pytest.mark.parametrize("host", HOSTS)
def test_signatures_take_strings(host):
    runner = fuselite.Interpreter(model_content=repeated(), host=host).get_signature_runner("main")
    for value in (np.array(WORDS, object), np.array([["a"]], object)):
        assert runner(x=value)["y"].shape == (value.shape[0], 2 * value.shape[1])
    assert runner(x=np.array([["a", b"b"]], object))["y"].tolist() == [[b"a", b"b"] * 2]


@pytest.mark.parametrize("host", HOSTS)
def test_a_single_string_and_a_constant(host):
    g = graphs.Graph()
    x, words = test_strings.string_input(g, ()), test_strings.string_constant(g, [b"the", b"fox"], (1, 2))
    y = g.op("EQUAL", [x, words], (1, 2), "EqualOptions", dtype=np.bool_)
    interpreter = fuselite.Interpreter(model_content=g.build([y]), host=host)
    interpreter.allocate_tensors()
    interpreter.set_tensor(x.index, np.array(b"the"))
    interpreter.invoke()
    assert interpreter.get_tensor(y.index).tolist() == [[True, False]]
    single = interpreter.get_tensor(x.index)
    assert single.shape == () and single.item() == b"the"
    assert interpreter.get_tensor(words.index).tolist() == [[b"the", b"fox"]]
    if host == "fuselite":
        with pytest.raises(ValueError, match='"t1" is a constant of the file'):
            interpreter.set_tensor(words.index, np.array([[b"a", b"b"]], object))


def test_what_is_no_string_is_refused():
    """LiteRT 2.3.0 ends the process where strings are read that nobody has given yet."""
    interpreter = fuselite.Interpreter(model_content=repeated(), host="fuselite")
    x, y = ends(interpreter)
    with pytest.raises(ValueError, match=r'^fuselite: call allocate_tensors\(\) before "t0" is given strings$'):
        interpreter.set_tensor(x, np.array(WORDS, object))
    interpreter.allocate_tensors()
    for index in (x, y):
        with pytest.raises(ValueError, match=f"^fuselite: tensor {index} has no strings: "):
            interpreter.get_tensor(index)
        with pytest.raises(ValueError, match=f"^fuselite: tensor {index} holds strings, into which no array looks"):
            interpreter.tensor(index)()
    for value, told in [
        (np.zeros((2, 3), np.int64), '"t0" takes strings, not int64'),
        (np.array(WORDS, object).T, r'"t0" has shape \(2, 3\), not \(3, 2\)'),
        (np.array([[b"a", 7, None]] * 2, object), "a string is bytes or text, not 7"),
        ([b"a"], r'"t0" has shape \(2, 3\), not \(1,\)'),
    ]:
        with pytest.raises(ValueError, match=f"^fuselite: {told}$"):
            interpreter.set_tensor(x, value)
    with pytest.raises(ValueError, match='^fuselite: "t2" is no input: strings can be given to inputs alone$'):
        interpreter.set_tensor(y, np.array([[b"a"] * 6] * 2, object))
    interpreter.set_tensor(x, WORDS)  # lists are taken, too
    interpreter.invoke()
    assert interpreter.get_tensor(y)[:, :3].tolist() == EXPECTED
    interpreter.resize_tensor_input(x, [1, 1])
    interpreter.allocate_tensors()
    with pytest.raises(ValueError, match=f"^fuselite: tensor {x} has no strings: "):
        interpreter.get_tensor(x)
