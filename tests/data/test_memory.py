"""Sizes of memory, as users write them and as the machine has them."""

from __future__ import annotations

import pytest

from seqatt.data.memory import available_memory, parse_size


@pytest.mark.parametrize(
    ("size", "size_in_bytes"),
    [
        (0, 0),
        (2_000, 2_000),
        ("2GB", 2 * 10**9),
        ("1.5 MiB", 3 << 19),
        ("3GiB", 3 << 30),
        ("7k", 7_000),
        ("12", 12),
    ],
)
def test_a_size_is_a_number_of_bytes_or_a_number_with_a_unit(size, size_in_bytes):
    assert parse_size("memory", size) == size_in_bytes


@pytest.mark.parametrize("size", ["much", "-1", "2 XB", True, "GB", "1e3MB"])
def test_anything_else_is_an_error_that_names_the_option(size):
    with pytest.raises(ValueError, match="memory: must be a number of bytes or a size such as"):
        parse_size("memory", size)


def test_some_memory_is_available():
    assert available_memory() > 1 << 20
