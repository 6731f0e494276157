"""The call path from the public interface to the arithmetic is short enough to follow in a debugger."""

from __future__ import annotations

import sys
from pathlib import Path

import torch

import seqatt

MAX_FRAMES = 10
PACKAGE = str(Path(seqatt.__file__).parent)


def package_frames() -> list[str]:
    """The functions of the package on the stack, outermost first."""
    frames, frame = [], sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename.startswith(PACKAGE):
            frames.append(f"{Path(frame.f_code.co_filename).relative_to(PACKAGE)}:{frame.f_code.co_name}")
        frame = frame.f_back
    return frames[::-1]


def test_from_select_to_the_first_matrix_product_there_are_at_most_ten_frames(problem, monkeypatch):
    paths: list[list[str]] = []
    bmm = torch.bmm

    def spy(*arguments, **options):
        paths.append(package_frames())
        return bmm(*arguments, **options)

    monkeypatch.setattr(torch, "bmm", spy)
    seqatt.select(*problem, 2, epochs=2, univariate_test=0, ensemble=1, device="cpu")
    assert paths[0][0] == "api/select.py:select"
    assert len(paths[0]) <= MAX_FRAMES, "\n".join(paths[0])
