"""What the engines and the loads are called."""

DESCRIPTIONS = {
    "xnnpack": "LiteRT with its default delegate",
    "openvino": "OpenVINO, one stream, float32 arithmetic",
    "fuselite": "LiteRT with fuselite, its own kernels for what is left",
    "fuselite+xnnpack": "LiteRT with fuselite, XNNPACK for what is left",
}
ENGINES = tuple(DESCRIPTIONS)
PEERS = ("xnnpack", "openvino")
OURS = "fuselite"
LOADS = {  # KIND=NUMBER, and the key and unit of its figures
    "batch": {"per_second": "samples per second"},
    "interpreters": {"per_second": "runs per second"},
    "rate": {"median_ms": "ms, median", "p95_ms": "ms, 95th percentile"},
}


def parse_load(text):
    """(kind, number) of KIND=NUMBER; ValueError says what is wrong with it."""
    kind, _, number = text.partition("=")
    if kind not in LOADS or not number.isdecimal() or int(number) < 1:
        raise ValueError(f"load '{text}' is none of {', '.join(f'{kind}=NUMBER' for kind in LOADS)}")
    return kind, int(number)
