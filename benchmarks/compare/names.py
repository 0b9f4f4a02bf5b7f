"""What the engines are called."""

DESCRIPTIONS = {
    "xnnpack": "LiteRT with its default delegate",
    "openvino": "OpenVINO, one stream, float32 arithmetic",
    "fuselite": "LiteRT with fuselite, its own kernels for what is left",
    "fuselite+xnnpack": "LiteRT with fuselite, XNNPACK for what is left",
}
ENGINES = tuple(DESCRIPTIONS)
PEERS = ("xnnpack", "openvino")
OURS = "fuselite"
