"""Imported by fuselite-enable.pth when Python starts and FUSELITE_ENABLE is set: makes fuselite the default.

Options come from the environment (FUSELITE_NUM_THREADS=2). Loads nothing before the program makes an interpreter.
"""

import os

if os.environ.get("FUSELITE_ENABLE", "").lower() in ("1", "on", "true", "yes"):
    from fuselite import _default

    _default._enable({})
