"""The delegate loads into LiteRT, and refuses options that it does not know by naming them."""

import re

import pytest


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"num_threads": 2},
        {"isa": "scalar", "jit": "off", "fusion": "off"},
        {"precision": "strict", "max_partitions": 4, "min_nodes_per_partition": 2},
        {"jit": True, "fusion": False},
    ],
)
def test_loads(load_delegate, options):
    assert load_delegate(**options)


@pytest.mark.parametrize(
    "key, nearest",
    [("num_thread", "num_threads"), ("fussion", "fusion"), ("explainfile", "explain_file")],
)
def test_unknown_key_is_refused_and_the_nearest_named(load_delegate, key, nearest):
    with pytest.raises(ValueError, match=rf"\b{key}\b.*\b{nearest}\b"):
        load_delegate(**{key: "1"})


@pytest.mark.parametrize(
    "key, value",
    [
        ("num_threads", "many"),
        ("num_threads", "-3"),
        ("isa", "avx1024"),
        ("jit", "perhaps"),
        ("precision", "exact"),
        ("max_partitions", "1.5"),
    ],
)
def test_bad_value_is_refused_and_named(load_delegate, key, value):
    with pytest.raises(ValueError, match=rf"\b{key}\b") as error:
        load_delegate(**{key: value})
    assert value in str(error.value)
    # LiteRT puts its own line first; ours is one line.
    assert len(str(error.value).strip().splitlines()) == 2


def test_bad_value_in_the_environment_is_refused_and_named(load_delegate, monkeypatch):
    monkeypatch.setenv("FUSELITE_ISA", "avx1024")
    with pytest.raises(ValueError, match=re.compile("FUSELITE_ISA.*avx1024|avx1024.*FUSELITE_ISA")):
        load_delegate()
