"""The shortest way to run a .tflite model fast from Python.

pip install fuselite ai-edge-litert
python examples/python/run_model.py model.tflite
"""

import sys
import time

import fuselite
import numpy as np


def main():
    if len(sys.argv) != 2:
        print("usage: run_model.py MODEL.tflite", file=sys.stderr)
        sys.exit(2)
    interpreter = fuselite.Interpreter(sys.argv[1], num_threads=2)
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
