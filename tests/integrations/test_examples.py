"""The examples of docs/how_to/training_loops.md run with the real libraries."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "how_to" / "training_loops.md"
PACKAGES = {"lightning": "pytorch_lightning", "transformers": "accelerate", "skorch": "skorch"}


@pytest.mark.filterwarnings("ignore")  # of the libraries themselves, which differ between releases
@pytest.mark.parametrize("name", PACKAGES)
def test_the_example_selects_three_features(name, tmp_path, monkeypatch, capsys):
    pytest.importorskip(PACKAGES[name], reason=f"needs {name}: pip install 'seqatt[{name}]'")
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(rf"```python {name}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(code, PAGE.name, "exec"), {"__name__": "example"})
    names = re.findall(r"'([a-z0-9_/]+)'", capsys.readouterr().out.strip().splitlines()[-1])
    assert len(names) == 3
    assert set(names) & {"proline", "flavanoids", "color_intensity"}
