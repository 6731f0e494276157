"""What is known of a data set before it is opened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SplitKind = Literal["official", "rows", "groups"]


@dataclass(frozen=True)
class PublisherFile:
    """A file as its publisher offers it; ``checksum`` is "sha256:..." or "md5:...", None if not known."""

    url: str
    checksum: str | None = None

    @property
    def file(self) -> str:
        return self.url.rsplit("/", 1)[1]


@dataclass(frozen=True)
class DatasetEntry:
    """A row of the catalogue.

    ``rows`` is (all,), or (training, test) where the source fixes a split; ``classes`` is 0 for a
    numeric target; ``splits`` are the kinds of split on offer, the default first.
    """

    name: str
    title: str
    rows: tuple[int, ...]
    features: int
    classes: int
    licence: str
    citation: str
    splits: tuple[SplitKind, ...] = ("rows",)
    folder: str = ""
    image_shape: tuple[int, int] | None = None
    originals: tuple[PublisherFile, ...] = ()
    parser: str = ""
    needs: tuple[str, ...] = ()
    bundled: bool = False

    @property
    def file(self) -> str:
        """Where its arrays are, below a folder of data sets."""
        return f"{self.folder}/{self.name}.npz" if self.folder else f"{self.name}.npz"

    @property
    def keys(self) -> tuple[str, ...]:
        """The arrays its file must hold."""
        data = ("X_train", "y_train", "X_test", "y_test") if len(self.rows) == 2 else ("X", "y")
        return (*data, "feature_names", "target_names")
