"""The shortest way to run a .tflite model fast from Python: LiteRT with the delegate.

    pip install ai-edge-litert numpy
    python examples/python/run_model.py build/release/partitioner/libfuselite_delegate.so model.tflite
"""

import sys
import time

import numpy as np
from ai_edge_litert.interpreter import Interpreter, load_delegate


def main():
    library, model = sys.argv[1:3]
    interpreter = Interpreter(model, experimental_delegates=[load_delegate(library)], num_threads=2)
    interpreter.allocate_tensors()
    for detail in interpreter.get_input_details():
        interpreter.set_tensor(detail["index"], np.zeros(detail["shape"], detail["dtype"]))
    interpreter.invoke()
    start = time.perf_counter()
    interpreter.invoke()
    print(f"{(time.perf_counter() - start) * 1e3:.2f} ms")
    for detail in interpreter.get_output_details():
        print(detail["name"], interpreter.get_tensor(detail["index"]).shape)


if __name__ == "__main__":
    main()
