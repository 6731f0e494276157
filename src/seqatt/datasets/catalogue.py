"""``CATALOGUE``: all data sets by name: six of the paper, wide and noisy ones, and those of scikit-learn."""

from __future__ import annotations

import difflib
from typing import Any

from seqatt.datasets.entry import DatasetEntry, PublisherFile
from seqatt.datasets.wide import WIDE

UCI = "https://archive.ics.uci.edu/static/public"
MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist"
FASHION = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"
_BUNDLED = "scikit-learn, a copy of the UCI set (CC BY 4.0)"


def _idx_files(folder: str, *checksums: str) -> tuple[PublisherFile, ...]:
    """Images and labels of the training rows, then of the test rows, as MNIST is published."""
    files = ("images-idx3-ubyte.gz", "labels-idx1-ubyte.gz")
    urls = [f"{folder}/{rows}-{file}" for rows in ("train", "t10k") for file in files]
    return tuple(map(PublisherFile, urls, checksums))


def _bundled(
    name: str, title: str, rows: int, features: int, classes: int, citation: str, **more: Any
) -> DatasetEntry:
    """A data set that scikit-learn includes."""
    about: dict[str, Any] = {"licence": _BUNDLED, "citation": citation, "bundled": True} | more
    return DatasetEntry(name, title, rows=(rows,), features=features, classes=classes, **about)


PAPER = (
    DatasetEntry(
        "mice_protein",
        "Mice Protein Expression",
        rows=(1080,),
        features=77,
        classes=8,
        splits=("rows", "groups"),
        licence="CC BY 4.0",
        citation="C. Higuera, K. Gardiner, K. Cios: Self-organizing feature maps identify proteins critical "
        "to learning in a mouse model of Down syndrome. PLoS ONE, 2015. UCI repository, id 342.",
        originals=(PublisherFile(f"{UCI}/342/mice+protein+expression.zip"),),
        parser="mice_protein",
        needs=("xlrd",),
    ),
    DatasetEntry(
        "mnist",
        "MNIST handwritten digits",
        rows=(60000, 10000),
        features=784,
        classes=10,
        splits=("official",),
        licence="CC BY-SA 3.0 (as commonly stated)",
        citation="Y. LeCun, C. Cortes, C. Burges: The MNIST database of handwritten digits, 1998.",
        image_shape=(28, 28),
        originals=_idx_files(
            MNIST,
            "sha256:440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            "sha256:3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            "sha256:8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            "sha256:f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        ),
        parser="mnist",
    ),
    DatasetEntry(
        "fashion_mnist",
        "Fashion-MNIST",
        rows=(60000, 10000),
        features=784,
        classes=10,
        splits=("official",),
        licence="MIT",
        citation="H. Xiao, K. Rasul, R. Vollgraf: Fashion-MNIST: a novel image dataset for benchmarking "
        "machine learning algorithms. arXiv:1708.07747, 2017.",
        image_shape=(28, 28),
        originals=_idx_files(
            FASHION,
            "md5:8d4fb7e6c68d591d4c3dfef9ec88bf0d",
            "md5:25c81989df183df01b3e8a0aad5dffbe",
            "md5:bef4ecab320f06d8554ea6380940ec79",
            "md5:bb300cfdad3c16e7a12a480ee83cd310",
        ),
        parser="fashion_mnist",
    ),
    DatasetEntry(
        "isolet",
        "ISOLET spoken letters",
        rows=(6238, 1559),
        features=617,
        classes=26,
        splits=("official",),
        licence="CC BY 4.0",
        citation="R. Cole, M. Fanty: Spoken letter recognition. NIPS, 1990. UCI repository, id 54.",
        originals=(PublisherFile(f"{UCI}/54/isolet.zip"),),
        parser="isolet",
        needs=("unlzw3",),
    ),
    DatasetEntry(
        "coil20",
        "COIL-20 objects, 20 x 20 pixels",
        rows=(1440,),
        features=400,
        classes=20,
        licence="for research use",
        citation="S. Nene, S. Nayar, H. Murase: Columbia Object Image Library (COIL-20). "
        "Technical report CUCS-005-96, 1996.",
        image_shape=(20, 20),
        originals=(
            PublisherFile(
                "https://www.cs.columbia.edu/CAVE/databases/SLAM_coil-20_coil-100/coil-20/coil-20-proc.zip"
            ),
        ),
        parser="coil20",
        needs=("PIL",),
    ),
    DatasetEntry(
        "activity",
        "Human Activity Recognition Using Smartphones",
        rows=(7352, 2947),
        features=561,
        classes=6,
        splits=("official",),
        licence="CC BY 4.0 at UCI; the authors' own readme forbids commercial use",
        citation="D. Anguita, A. Ghio, L. Oneto, X. Parra, J. Reyes-Ortiz: A public domain dataset for human "
        "activity recognition using smartphones. ESANN, 2013. UCI repository, id 240.",
        originals=(PublisherFile(f"{UCI}/240/human+activity+recognition+using+smartphones.zip"),),
        parser="activity",
    ),
)

SCIKIT_LEARN = (
    _bundled(
        "iris", "Iris flowers", 150, 4, 3,
        "R. A. Fisher: The use of multiple measurements in taxonomic problems. Annals of Eugenics, 1936.",
    ),
    _bundled(
        "wine", "Wine cultivars", 178, 13, 3,
        "S. Aeberhard, M. Forina: Wine. UCI repository, id 109, 1992.",
    ),
    _bundled(
        "breast_cancer", "Breast Cancer Wisconsin (diagnostic)", 569, 30, 2,
        "W. Wolberg, O. Mangasarian, N. Street, W. Street: Breast Cancer Wisconsin (Diagnostic). "
        "UCI repository, id 17, 1993.",
    ),
    _bundled(
        "digits", "Handwritten digits, 8 x 8 pixels", 1797, 64, 10,
        "E. Alpaydin, C. Kaynak: Optical recognition of handwritten digits. UCI repository, id 80, 1998.",
        image_shape=(8, 8),
    ),
    _bundled(
        "diabetes", "Diabetes progression", 442, 10, 0,
        "B. Efron, T. Hastie, I. Johnstone, R. Tibshirani: Least angle regression. "
        "Annals of Statistics, 2004.",
        licence="shipped with scikit-learn; the source states none",
    ),
)  # fmt: skip

CATALOGUE = {entry.name: entry for entry in (*PAPER, *WIDE, *SCIKIT_LEARN)}


def find_entry(name: str) -> DatasetEntry:
    """The entry of a data set; the error for an unknown name suggests a similar one."""
    if name in CATALOGUE:
        return CATALOGUE[name]
    close = difflib.get_close_matches(str(name).lower().replace("-", "_"), CATALOGUE, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"the names are {', '.join(CATALOGUE)}"
    raise ValueError(f"name: there is no data set {name!r}; {hint}")
