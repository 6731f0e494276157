"""The paper's figures for the Criteo log: AUC and log loss by method, for k = 5, 10, ..., 35.

From the two tables of its appendix on large-scale experiments: 39 features, more than three billion examples,
one pass, hidden layers of 768, 256 and 128 units, three trials. "Strong" and "weak" are penalties of 0.1 and
0.0001; batch-wise attention is that of Liao, Latty and Yang (2021).
"""

from __future__ import annotations

from experiments.paper import MeanStd

K = (5, 10, 15, 20, 25, 30, 35)


def _parse(text: str) -> dict[int, MeanStd]:
    """Mean and standard deviation per k; the text has them in units of 1e-5."""
    pairs = [entry.split("±") for entry in text.split(",")]
    return {k: (int(mean) / 1e5, int(std) / 1e5) for k, (mean, std) in zip(K, pairs, strict=True)}


AUC: dict[str, dict[int, MeanStd]] = {
    "Sequential Attention": _parse("67232±15, 70167±60, 72659±36, 72997±66, 73281±30, 73420±46, 73495±40"),
    "CMIM": _parse("63950±76, 69402±52, 72014±67, 72232±103, 72339±42, 72622±49, 73225±24"),
    "group LASSO, strong": _parse("68342±585, 71942±59, 72392±27, 72624±330, 73072±193, 73425±81, 73058±350"),
    "group LASSO, weak": _parse("50161±227, 64262±187, 65977±125, 72085±106, 73253±91, 73390±26, 73512±58"),
    "Sequential LASSO, strong": _parse(
        "60278±4473, 62263±6097, 66203±4319, 70252±1985, 71764±987, 72267±663, 73029±509"
    ),
    "Sequential LASSO, weak": _parse(
        "67710±873, 70964±385, 72264±213, 72668±307, 73084±70, 72988±434, 73361±37"
    ),
    "batch-wise attention": _parse(
        "58300±6360, 68103±137, 69762±654, 71395±467, 72057±444, 72487±223, 73078±102"
    ),
}
LOG_LOSS: dict[str, dict[int, MeanStd]] = {
    "Sequential Attention": _parse("14123±5, 13883±9, 13671±7, 13633±8, 13613±13, 13596±1, 13585±2"),
    "CMIM": _parse("14323±10, 13965±8, 13745±8, 13726±10, 13718±9, 13685±4, 13617±6"),
    "group LASSO, strong": _parse("14036±46, 13747±15, 13693±5, 13693±57, 13648±51, 13593±15, 13666±73"),
    "group LASSO, weak": _parse("14519±0, 14339±19, 14227±21, 13718±4, 13604±4, 13594±5, 13580±12"),
    "Sequential LASSO, strong": _parse(
        "14375±163, 14263±304, 14166±322, 13891±187, 13760±99, 13751±95, 13661±96"
    ),
    "Sequential LASSO, weak": _parse("14073±61, 13826±32, 13713±21, 13672±35, 13628±10, 13670±80, 13603±10"),
    "batch-wise attention": _parse("14415±146, 14082±11, 13947±50, 13806±48, 13756±43, 13697±15, 13635±5"),
}
