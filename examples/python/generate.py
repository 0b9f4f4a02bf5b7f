"""Generates text, as token ids, with a decoder that has a cache: LiteRT runs it, fuselite computes.

    pip install fuselite ai-edge-litert
    fuselite zoo decoder -o decoder.tflite
    python examples/python/generate.py decoder.tflite 1,2,3 16

The model has a signature "decode" for the next token, and one "prefill_N" or more for N tokens of a prompt at once; both
take "tokens", "input_pos" and the cache, and give the cache that comes next.
"""

import sys
import time

import fuselite
import numpy as np


class Decoder:
    def __init__(self, path, num_threads=1):
        self.interpreter = fuselite.Interpreter(path, num_threads=num_threads)
        self.decode = self.interpreter.get_signature_runner("decode")
        self.prefills = {}  # by the number of tokens
        for key in self.interpreter.get_signature_list():
            if key.startswith("prefill"):
                runner = self.interpreter.get_signature_runner(key)
                self.prefills[runner.get_input_details()["tokens"]["shape"][-1]] = runner
        details = self.decode.get_input_details()
        self.cache = {n: np.zeros(d["shape"], d["dtype"]) for n, d in details.items() if n.startswith("kv_cache")}
        self.capacity = max(next(iter(self.cache.values())).shape[:-1])
        self.position = 0

    def run(self, runner, length, tokens):
        """The outputs; what is left of the length is filled with token 0, whose places are overwritten later."""
        padded = np.zeros((1, length), np.int32)
        padded[0, : len(tokens)] = tokens
        positions = self.position + np.arange(length, dtype=np.int32)
        outputs = runner(tokens=padded, input_pos=positions, **self.cache)
        self.cache = {name: outputs[name] for name in self.cache}
        self.position += len(tokens)
        return outputs

    def prefill(self, tokens):
        while tokens:
            fitting = [n for n in sorted(self.prefills) if self.position + n <= self.capacity]
            if not fitting:
                self.run(self.decode, 1, tokens[:1])
                tokens = tokens[1:]
                continue
            length = next((n for n in fitting if n >= len(tokens)), fitting[-1])
            self.run(self.prefills[length], length, tokens[:length])
            tokens = tokens[length:]

    def next(self, token):
        return int(np.argmax(self.run(self.decode, 1, [token])["logits"].reshape(-1)))


def main():
    if len(sys.argv) != 4:
        print("usage: generate.py DECODER.tflite TOKEN,TOKEN,... STEPS", file=sys.stderr)
        sys.exit(2)
    path, prompt, steps = sys.argv[1], [int(token) for token in sys.argv[2].split(",")], int(sys.argv[3])
    decoder = Decoder(path)
    decoder.prefill(prompt[:-1])
    made, token, start = [], prompt[-1], time.perf_counter()
    for _ in range(steps):
        token = decoder.next(token)
        made.append(token)
    seconds = time.perf_counter() - start
    print(",".join(map(str, made)))
    print(f"{steps / seconds:.1f} tokens/s")


if __name__ == "__main__":
    main()
