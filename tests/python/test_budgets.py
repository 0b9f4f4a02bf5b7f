"""What a model may ask for: max_memory and max_multiply_adds, in every way in."""

import numpy as np
import pytest
from ai_edge_litert import interpreter as litert


@pytest.mark.parametrize(("option", "value"), [("max_memory", "64K"), ("max_multiply_adds", "1M")])
def test_litert_is_told_what_was_asked_and_allowed(load_delegate, mobilenet, option, value):
    interpreter = None
    with pytest.raises((RuntimeError, ValueError), match=option):
        interpreter = litert.Interpreter(str(mobilenet), experimental_delegates=[load_delegate(**{option: value})], num_threads=1)
        interpreter.allocate_tensors()
    del interpreter


def test_a_budget_that_suffices_changes_nothing(load_delegate, mobilenet):
    outputs = []
    for options in ({}, {"max_memory": "1G", "max_multiply_adds": "1e12"}):
        interpreter = litert.Interpreter(str(mobilenet), experimental_delegates=[load_delegate(**options)])
        interpreter.allocate_tensors()
        given = interpreter.get_input_details()[0]
        interpreter.set_tensor(given["index"], np.full(given["shape"], 0.25, given["dtype"]))
        interpreter.invoke()
        outputs.append(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]))
    np.testing.assert_array_equal(*outputs)


def test_a_batch_beyond_the_budget_is_refused_and_the_next_one_runs(load_delegate, mobilenet):
    delegate = load_delegate(max_multiply_adds="1G")
    interpreter = litert.Interpreter(str(mobilenet), experimental_delegates=[delegate])
    index = interpreter.get_input_details()[0]["index"]
    for batch, fits in ((1, True), (8, False), (2, True)):
        interpreter.resize_tensor_input(index, [batch, *interpreter.get_input_details()[0]["shape"][1:]])
        if fits:
            interpreter.allocate_tensors()
            interpreter.invoke()
        else:
            with pytest.raises(RuntimeError, match="max_multiply_adds allows 1 G"):
                interpreter.allocate_tensors()


def test_the_command_line_refuses_in_one_line(tool, mobilenet):
    for command in ("run", "benchmark", "diff"):
        error = tool(command, mobilenet, "--max_multiply_adds", "1M", status=1)
        assert "max_multiply_adds allows 1 M" in error
    # The delegate and its host are held to the same budget: the host refuses on its own, too.
    error = tool("run", mobilenet, "--use_fuselite=false", "--max_memory", "64K", status=1)
    assert "max_memory allows 65.5 kB" in error


def test_the_command_line_never_asks_for_more_than_the_machine_has(tool, mobilenet):
    error = tool("run", mobilenet, "--shape", "100000,224,224,3", status=1)
    assert "max_memory allows" in error
