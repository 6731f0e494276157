"""Makes small files in the formats of the publishers."""

from __future__ import annotations

import gzip
import io
import struct
import zipfile
from collections.abc import Sequence

import numpy as np
import xlwt


def zip_archive(files: dict[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def idx_file(values: np.ndarray) -> bytes:
    header = bytes([0, 0, 8, values.ndim]) + struct.pack(f">{values.ndim}I", *values.shape)
    return gzip.compress(header + values.astype(np.uint8).tobytes(), compresslevel=1)


def workbook(
    mice: Sequence[str], proteins: Sequence[str], values: np.ndarray, classes: Sequence[str]
) -> bytes:
    """Data_Cortex_Nuclear.xls; a missing value is an empty cell."""
    book = xlwt.Workbook()
    sheet = book.add_sheet("Hoja1")
    header = ["MouseID", *proteins, "Genotype", "Treatment", "Behavior", "class"]
    rows = [
        [mouse, *numbers, "Control", "Memantine", "C/S", label]
        for mouse, numbers, label in zip(mice, values.tolist(), classes, strict=True)
    ]
    for i, row in enumerate([header, *rows]):
        for j, value in enumerate(row):
            if value == value:
                sheet.write(i, j, value)
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def compress(data: bytes, max_bits: int = 16) -> bytes:
    """Unix compress: LZW with codes of 9 bits and more, packed in groups of eight, least significant bit first."""
    table = {bytes([i]): i for i in range(256)}
    codes: list[tuple[int, int]] = []
    width, prefix, next_code = 9, b"", 257  # 256 clears the table
    for byte in data:
        longer = prefix + bytes([byte])
        if longer in table:
            prefix = longer
            continue
        codes.append((table[prefix], width))
        prefix = bytes([byte])
        if next_code < 1 << max_bits:
            table[longer] = next_code
            next_code += 1
            if next_code > 1 << width and width < max_bits:
                while len([c for c in codes if c[1] == width]) % 8:
                    codes.append((0, width))
                width += 1
    codes.append((table[prefix], width))
    packed = used = 0
    for code, bits in codes:
        packed |= code << used
        used += bits
    return b"\x1f\x9d" + bytes([0x80 | max_bits]) + packed.to_bytes((used + 7) // 8, "little")


def fixed_width(value: float) -> str:
    """A number as the source prints it: sixteen characters, three digits of exponent."""
    digits, exponent = f"{value: .7e}".split("e")
    return f"{digits}e{exponent[0]}0{exponent[1:]}".rjust(16)


def activity_files(values: np.ndarray, labels: np.ndarray) -> dict[str, bytes]:
    """The files of the activity data set: 12 training rows, the others are test rows."""

    def text(rows) -> bytes:
        return "".join(f"{row}\n" for row in rows).encode()

    files = {
        "features.txt": text(["1 tBodyAcc-mean()-X", "2 angle(X,gravityMean)", "3 angle(X,gravityMean)"]),
        "activity_labels.txt": text(f"{i} {word}" for i, word in enumerate("ABCDEF", 1)),
        "features_info.txt": b"about the features",
    }
    for side, rows in (("train", slice(0, 12)), ("test", slice(12, None))):
        files[f"{side}/X_{side}.txt"] = text("".join(map(fixed_width, row)) for row in values[rows])
        files[f"{side}/y_{side}.txt"] = text(labels[rows] + 1)
        files[f"{side}/subject_{side}.txt"] = text(labels[rows] + (1 if side == "train" else 20))
    folder = {f"UCI HAR Dataset/{name}": content for name, content in files.items()}
    return folder | {"__MACOSX/UCI HAR Dataset/train/._X_train.txt": b"\0"}
