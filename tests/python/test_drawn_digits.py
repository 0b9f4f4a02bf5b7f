"""A network that was trained on drawn digits: with the delegate it reads as many right as with LiteRT's own kernels."""

import drawn_digits
import numpy as np
import pytest
import running


def right(model, delegates, images, labels):
    """How many images are read as their labels."""
    interpreter = running.interpret(model, delegates)
    assert running.delegate_kernels(interpreter) == len(delegates)
    detail = interpreter.get_input_details()[0]
    return sum(
        int(running.run(interpreter, [running.quantize(image, detail)[None]])[0].argmax()) == label
        for image, label in zip(images, labels, strict=True)
    )


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint8])
def test_reads_as_many_digits_as_litert(dtype, load_delegate):
    images, labels = drawn_digits.draw(500, 3)
    model = drawn_digits.network(dtype)
    expected = right(model, [], images, labels)
    assert expected >= 450
    assert right(model, [load_delegate()], images, labels) == expected
