"""Wide and noisy data sets that are common in the literature on feature selection."""

from __future__ import annotations

from seqatt.datasets.entry import DatasetEntry, PublisherFile

SCIKIT_FEATURE = "https://raw.githubusercontent.com/jundongl/scikit-feature/master/skfeature/data"
_SURVEY = (
    "as distributed by J. Li et al.: Feature selection: a data perspective. ACM Computing Surveys, 2017."
)


def _matlab(file: str, title: str, rows: int, features: int, classes: int) -> DatasetEntry:
    return DatasetEntry(
        file.lower(),
        title,
        rows=(rows,),
        features=features,
        classes=classes,
        licence="for research use; rights are with the original authors",
        citation=f"{title}, {_SURVEY}",
        folder="extra",
        originals=(PublisherFile(f"{SCIKIT_FEATURE}/{file}.mat"),),
        parser="matlab",
    )


WIDE = (
    _matlab("ALLAML", "Leukaemia (ALL/AML) gene expression", 72, 7129, 2),
    _matlab("arcene", "Arcene mass spectra, training and validation rows of NIPS 2003", 200, 10000, 2),
    _matlab("colon", "Colon tumours, discretised", 62, 2000, 2),
    _matlab("GLIOMA", "Glioma gene expression", 50, 4434, 4),
    _matlab("leukemia", "Leukaemia, discretised", 72, 7070, 2),
    _matlab("lung_discrete", "Lung cancer, discretised", 73, 325, 7),
    _matlab("lymphoma", "Lymphoma, discretised", 96, 4026, 9),
    _matlab("nci9", "NCI cancer cell lines, discretised", 60, 9712, 9),
    _matlab("orlraws10P", "ORL faces of ten people", 100, 10304, 10),
    _matlab("PCMAC", "PC and Mac newsgroups, words", 1943, 3289, 2),
    _matlab("pixraw10P", "PIX faces of ten people", 100, 10000, 10),
    _matlab("RELATHE", "Religion and atheism newsgroups, words", 1427, 4322, 2),
    _matlab("warpAR10P", "AR faces of ten people", 130, 2400, 10),
    _matlab("Yale", "Yale faces", 165, 1024, 15),
    DatasetEntry(
        "sylva",
        "Sylva forest cover, WCCI 2006",
        rows=(13086,),
        features=216,
        classes=2,
        licence="unknown",
        citation="I. Guyon et al.: Performance prediction challenge. WCCI, 2006.",
        folder="extra",
    ),
    DatasetEntry(
        "california_housing",
        "California housing",
        rows=(20640,),
        features=8,
        classes=0,
        licence="the source states none",
        citation="R. Pace, R. Barry: Sparse spatial autoregressions. "
        "Statistics and Probability Letters, 1997.",
        folder="extra",
    ),
    DatasetEntry(
        "higgs_7500",
        "HIGGS, a subset of 7,500 rows",
        rows=(7000, 500),
        features=28,
        classes=2,
        splits=("official",),
        licence="CC BY 4.0",
        citation="P. Baldi, P. Sadowski, D. Whiteson: Searching for exotic particles in high-energy physics "
        "with deep learning. Nature Communications, 2014. UCI repository, id 280; an example of LightGBM.",
        folder="extra",
    ),
)
