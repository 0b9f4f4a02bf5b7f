"""Decoders are taken whole; fed 64 tokens of a text, each next token that LiteRT's own kernels choose clearly is ours, too.

Every engine has its own cache, which it filled from the same prompt and goes on with, so that errors add up as they do
when text is generated. Where LiteRT's two best logits are closer than twice the error, either may win.
"""

import json
import os

import numpy as np
import pytest
import running
from ai_edge_litert import interpreter as litert

PROMPT, TOKENS = 64, 64
PLAIN = running.Resolver.BUILTIN_WITHOUT_DEFAULT_DELEGATES
# The decoders of the zoo, and those of FUSELITE_MODELS where it is set.
ZOO = ["decoder_small", "decoder_small_dequantized", "decoder_small_blockwise"]
CONVERTED = ["llama_q8", "llama_q8_wo", "llama_q4_block32"] if os.environ.get("FUSELITE_MODELS") else []
# The decomposition of its attention, which LiteRT's own kernels run, multiplies by keys that nobody has transposed, since
# its 256 positions and 256 channels let the converter take either for the other. XNNPACK and fuselite compute what the
# composite's name says.
WRONG_IN_LITERT = ["gemma3_q8"] if CONVERTED else []


@pytest.fixture(scope="session")
def decoder_file(tool, tmp_path_factory, request):
    """decoder_file("llama_q8"): where the decoder is."""
    folder = tmp_path_factory.mktemp("decoders")

    def path_of(name):
        if name not in ZOO:
            return request.getfixturevalue("models") / "torch" / f"llm_{name}_ekv256.tflite"
        tool("zoo", name, "-o", folder / f"{name}.tflite")
        return folder / f"{name}.tflite"

    return path_of


class Decoder:
    """One engine with its cache."""

    def __init__(self, path, *delegates, resolver=PLAIN):
        self.interpreter = litert.Interpreter(
            str(path), experimental_op_resolver_type=resolver, experimental_delegates=list(delegates)
        )
        self.interpreter.allocate_tensors()
        self.prefill, self.decode = map(self.interpreter.get_signature_runner, (f"prefill_{PROMPT}", "decode"))
        details = self.decode.get_input_details().items()
        self.cache = {name: np.zeros(d["shape"], np.float32) for name, d in details if name.startswith("kv_cache")}

    def run(self, signature, tokens, first):
        positions = np.arange(first, first + len(tokens), dtype=np.int32)
        outputs = signature(tokens=np.array([tokens], np.int32), input_pos=positions, **self.cache)
        self.cache = {name: outputs[name] for name in self.cache}
        return outputs.get("logits")

    def logits(self, tokens):
        """Of every token behind the prompt."""
        self.run(self.prefill, tokens[:PROMPT], 0)
        return np.stack([self.run(self.decode, [t], PROMPT + i)[0, 0] for i, t in enumerate(tokens[PROMPT:])])


@pytest.mark.parametrize("name", ZOO + CONVERTED + WRONG_IN_LITERT)
def test_each_signature_is_one_partition(name, decoder_file, load_delegate, tmp_path):
    path = tmp_path / "explain.json"
    decoder = Decoder(decoder_file(name), load_delegate(explain_file=path))
    decoder.run(decoder.prefill, np.ones(PROMPT, np.int32), 0)
    decoder.run(decoder.decode, [1], PROMPT)
    # The signatures' graphs come first; those behind them are decompositions of composites, which nobody runs.
    for graph in json.loads(path.read_text())["graphs"][:2]:
        left = [(node["op"], node["reason"]) for node in graph["nodes"] if not node["claimed"]]
        assert (left, len(graph["partitions"])) == ([], 1)
        assert graph["partitions"][0]["compiled"]


@pytest.mark.parametrize("name", ZOO + CONVERTED)
def test_the_clear_tokens_are_the_same(name, decoder_file, load_delegate):
    path = decoder_file(name)
    tokens = np.random.default_rng(5).integers(1, 2000, PROMPT + TOKENS)
    expected = Decoder(path).logits(tokens)
    ours = Decoder(path, load_delegate(num_threads=2)).logits(tokens)
    error = np.max(np.abs(ours - expected))
    # An activation that is quantized at run time can lie between two codes, and all that follows is then off by what
    # one code is worth. XNNPACK's kernels show how much that makes.
    xnnpacks_error = np.max(np.abs(Decoder(path, resolver=running.Resolver.AUTO).logits(tokens) - expected))
    assert error <= max(xnnpacks_error, 1e-5)
    second, first = np.sort(expected, axis=1)[:, -2:].T
    clear = first - second > 2 * error
    same = np.argmax(ours, axis=1) == np.argmax(expected, axis=1)
    assert same[clear].all()
    assert np.mean(clear) > 0.4
    assert np.mean(same) > 0.9
