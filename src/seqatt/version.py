"""The version of the package, and the environment of a result; imports nothing, so that every module can import it."""

__version__ = "0.1.0"


def describe_environment(device: str) -> dict[str, str]:
    """Versions, platform and device, on which the result may depend."""
    import platform

    import numpy as np
    import torch

    return {
        "seqatt": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "platform": platform.platform(terse=True),
        "device": device,
    }
