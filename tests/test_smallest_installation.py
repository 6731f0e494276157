"""What the README shows works where only the wheel and its required dependencies are installed."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
# Packages of the extras, which are not installed here.
OPTIONAL = ("pandas", "polars", "matplotlib", "lightgbm", "xgboost", "tensorboard", "mlflow", "onnx")
WITHOUT_PANDAS = "as_frame=True"  # an example that has it needs pandas

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.name != "posix", reason="makes links to the packages of this environment"),
]


def required_distributions(name: str, found: dict[str, metadata.Distribution]) -> None:
    """The distributions that ``name`` needs without extras, and those that they need, into ``found``."""
    for text in metadata.distribution(name).requires or []:
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            key = re.sub(r"[-_.]+", "-", requirement.name).lower()
            if key not in found:
                found[key] = metadata.distribution(requirement.name)
                required_distributions(requirement.name, found)


def link_packages(site_packages: Path) -> None:
    """Make the required dependencies of seqatt importable, and no other package of this environment."""
    found: dict[str, metadata.Distribution] = {}
    required_distributions("seqatt", found)
    for distribution in found.values():
        for file in distribution.files or []:
            shared = (
                len(file.parts) > 1
                and not (Path(distribution.locate_file(file.parts[0])) / "__init__.py").exists()
            )
            parts = file.parts[: 2 if shared and file.suffix != ".pth" else 1]
            source, link = Path(distribution.locate_file("/".join(parts))), site_packages.joinpath(*parts)
            if parts[0] != ".." and not link.exists() and source.exists():
                link.parent.mkdir(exist_ok=True)
                link.symlink_to(source)


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> Iterator[Path]:
    """The folder ``bin`` of an environment with the wheel of this source."""
    folder = tmp_path_factory.mktemp("smallest")
    source = folder / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", source / "src", ignore=ignored)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    wheel = [*pip, "wheel", "--no-deps", "--no-index", "--no-build-isolation", "-w", folder, source]
    made = subprocess.run(wheel, capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"no wheel can be built here: {made.stderr[-300:]}")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "env"], check=True)
    binaries = folder / "env" / "bin"
    (site_packages,) = (folder / "env" / "lib").glob("python*/site-packages")
    link_packages(site_packages)
    (built,) = folder.glob("*.whl")
    install = [*pip, "--python", binaries / "python", "install", "--quiet", "--no-deps", "--no-index", built]
    subprocess.run(install, check=True)
    yield binaries
    shutil.rmtree(folder)


def run(environment: Path, line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    variables |= {"PATH": f"{environment}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(
        shlex.split(line), cwd=folder, env=variables, capture_output=True, text=True, check=False, timeout=300
    )


def code_blocks(language: str) -> list[str]:
    return re.findall(
        rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL
    )


def test_the_environment_has_seqatt_and_no_optional_package(environment, tmp_path):
    code = f"""
import importlib.util, pathlib, seqatt
assert pathlib.Path({str(environment.parent)!r}) in pathlib.Path(seqatt.__file__).parents, seqatt.__file__
found = [name for name in {OPTIONAL!r} if importlib.util.find_spec(name)]
assert not found, found
"""
    done = run(environment, f"python -c {shlex.quote(code)}", tmp_path)
    assert done.returncode == 0, done.stderr


def test_every_command_of_the_readme_works_in_the_smallest_installation(environment, tmp_path):
    blocks = [block.replace("\\\n", "") for block in code_blocks("console")]
    lines = [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]
    lines = [line for line in lines if not line.startswith(("make ", "pip "))]
    assert "seqatt demo" in lines
    assert any(line.startswith("seqatt select") for line in lines)
    for line in lines:
        done = run(environment, line, tmp_path)
        assert done.returncode == 0, f"{line}: {done.stderr}"
        assert "Traceback" not in done.stderr
    assert (tmp_path / "run" / "selection.json").exists()


def test_every_python_example_of_the_readme_works_or_says_that_it_needs_pandas(environment, tmp_path):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for number, code in enumerate(code_blocks("python")):
        if WITHOUT_PANDAS in code:
            before = readme[: readme.index(code)].splitlines()[-6:]
            assert any("seqatt[pandas]" in line or ".[pandas]" in line for line in before), code
            continue
        (tmp_path / f"example{number}.py").write_text(code, encoding="utf-8")
        done = run(environment, f"python example{number}.py", tmp_path)
        assert done.returncode == 0, done.stderr


def test_a_report_needs_nothing_but_the_wheel(environment, tmp_path):
    rows = "\n".join(f"{i},{i % 3},{i % 2}" for i in range(60))
    (tmp_path / "table.csv").write_text(f"a,b,target\n{rows}\n")
    line = "seqatt select table.csv -t target -k 1 --method random --out run --report run/report.html"
    done = run(environment, line, tmp_path)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "prefers-color-scheme" in page
    assert "aria-sort" in page


MISSING = {
    "seqatt compare wine.csv -t target -k 2 --methods random --seeds 1 --out out": "seqatt[plot]",
    "seqatt select hf://datasets/some/file.csv -t y -k 2": "seqatt[remote]",
    "seqatt select wine.csv -t target -k 2 --method boosting --set library=lightgbm": "seqatt[boosting]",
    "python -c 'import seqatt.datasets as d; d.load(\"wine\").frame()'": "seqatt[pandas]",
    "python -c 'import seqatt; seqatt.callbacks.MLflowCallback()'": "seqatt[mlflow]",
    "python -c 'import seqatt; seqatt.callbacks.TensorBoardCallback(1)'": "seqatt[tensorboard]",
    'python -c \'import seqatt; seqatt.ray.select("wine.csv", target="target", k=1)\'': "seqatt[ray]",
}


def test_a_missing_extra_is_named_in_one_line(environment, tmp_path):
    rows = "\n".join(f"{i},{i % 3},{i % 2}" for i in range(60))
    (tmp_path / "wine.csv").write_text(f"a,b,target\n{rows}\n")
    for line, extra in MISSING.items():
        done = run(environment, line, tmp_path)
        last = done.stderr.strip().splitlines()[-1] if done.stderr.strip() else ""
        assert extra in last, f"{line}: {done.stderr}"
        if line.startswith("seqatt"):
            assert "Traceback" not in done.stderr
