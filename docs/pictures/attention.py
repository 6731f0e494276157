"""Draws attention.webp: where the attention is on MNIST in every phase of a selection, and attention.png, its end.

pip install 'seqatt[bench,data]'
python docs/pictures/attention.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib import font_manager
from PIL import Image, ImageDraw, ImageFont

import seqatt

SIDE, CELL, CAPTION = 28, 13, 44  # pixels of MNIST, of a cell, of the lines below the image
PAPER, INK = (255, 255, 255), (60, 60, 60)
SELECTED, BEST, DROPPED = np.array([0, 114, 178]), np.array([230, 159, 0]), np.array([150, 150, 150])
MILLISECONDS, LAST = 200, 4000  # per frame; of the last one
HERE = Path(__file__).parent


def backdrop(X: np.ndarray) -> np.ndarray:
    """The mean image, in light grey."""
    mean = np.asarray(X, dtype=np.float64).mean(axis=0).reshape(SIDE, SIDE)
    grey = np.round(8 * mean / mean.max()) / 8  # few colours, so that frames compress well
    return 255.0 - 36.0 * grey[:, :, None].repeat(3, axis=2)


def paint(pixels: np.ndarray, index: int, colour: np.ndarray, strength: float = 1.0) -> None:
    row, column = divmod(index, SIDE)
    pixels[row, column] = strength * colour + (1 - strength) * 255


def draw(pixels: np.ndarray, lines: tuple[str, str], font: ImageFont.FreeTypeFont) -> Image.Image:
    size = SIDE * CELL
    frame = Image.new("RGB", (size, size + CAPTION), PAPER)
    image = Image.fromarray(pixels.round().astype(np.uint8))
    frame.paste(image.resize((size, size), Image.Resampling.NEAREST))
    pen = ImageDraw.Draw(frame)
    for number, line in enumerate(lines):
        pen.text((6, size + 4 + 19 * number), line, fill=INK, font=font)
    return frame


def main() -> None:
    X, y, *_ = seqatt.datasets.load("mnist").split()
    selection = seqatt.select(X, y, k=50)
    index = {name: position for position, name in enumerate(selection.names)}
    font = ImageFont.truetype(font_manager.findfont("DejaVu Sans"), 14)
    base, selected, frames = backdrop(X), set(), []
    for number, phase in enumerate(selection.history, 1):
        pixels = base.copy()
        scores = phase["scores"] or {}
        low, high = (min(scores.values()), max(scores.values())) if scores else (0.0, 1.0)
        for name, score in scores.items():
            strength = 0.15 + 0.85 * (score - low) / max(high - low, 1e-12)
            paint(pixels, index[name], BEST, round(8 * strength) / 8)
        selected |= {index[name] for name in phase["taken"]}
        for position in selected:
            paint(pixels, position, SELECTED)
        for name in phase["dropped"]:
            paint(pixels, index[name], DROPPED)
        selected -= {index[name] for name in phase["dropped"]}
        if phase["taken"]:
            done = f"{len(phase['taken'])} with the most attention selected"
        elif phase["dropped"]:
            done = f"{len(phase['dropped'])} that are missed least dropped"
        else:
            done = "training on all pixels" if number == 1 else "put in order"
        heading = f"phase {number} of {len(selection.history)}: {len(selected)} pixels"
        frames.append(draw(pixels, (heading, done), font))
    durations = [MILLISECONDS] * (len(frames) - 1) + [LAST]
    frames[0].save(
        HERE / "attention.webp",
        save_all=True,
        append_images=frames[1:],
        duration=durations,
        loop=0,
        lossless=True,
        method=6,
    )
    frames[-1].save(HERE / "attention.png", optimize=True)


if __name__ == "__main__":
    main()
