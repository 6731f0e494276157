PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.ready
PORT ?= 8000
PAPER := accuracy methods masks adaptivity remarks efficiency speed suite budget pixels marginal wide spurious criteo sizes size_peers nested

.PHONY: setup demo test test-all test-fast test-gpu test-ray test-tracking test-integrations test-browser test-wheel
.PHONY: check format docs docs-serve dist bench paper $(PAPER:%=paper-%) clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "seqatt needs Python 3.11 or newer")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,bench]'
	@touch $(STAMP)

demo: $(STAMP)
	@$(BIN)/seqatt demo

# A process for each core, one thread in each: threads that wait for each other take the cores from the rest.
test: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal -m "not exhaustive"

# Also the tests marked exhaustive: long forms of others.
test-all: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal

# The inner loop: everything but the tests marked slow.
test-fast: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal -m "not slow and not exhaustive"

# The tests that need a CUDA device, by a Python that has torch with CUDA and pytest: no .venv is made. Only the files
# that have such tests are collected, so that nothing else has to be installed there.
test-gpu:
	$(PYTHON) -c 'import torch; assert torch.cuda.is_available(), "test-gpu: no CUDA device here"'
	PYTHONPATH=src $(PYTHON) -m pytest -m gpu $$(grep -rl 'mark\.gpu' --include='test_*.py' tests)

# Apart: Ray is a large download, and starting its processes takes longer than all that they do.
test-ray: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[ray]'
	$(BIN)/python -m pytest tests/test_ray.py

# Apart: the trainers of other libraries are large. Each is tested as it is installed.
test-integrations: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[lightning,transformers,skorch]'
	$(BIN)/python -m pytest tests/integrations

# Apart: callbacks that write to TensorBoard and MLflow.
test-tracking: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[tensorboard,mlflow]'
	$(BIN)/python -m pytest tests/callbacks/test_tracking.py

# Apart: reports and the site in a real Chromium, and reports in a notebook. Playwright and Jupyter are large; Chromium is
# not installed here. The pages of the site are those of the last make docs.
test-browser: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[browser]'
	$(BIN)/python -m pytest tests/report tests/docs/test_site_in_browser.py

# Apart: an empty environment takes half a minute to fill.
test-wheel: dist
	$(BIN)/python tools/check_wheel.py

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/check_layout.py
	$(BIN)/python benchmarks/speed_check.py

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The site, strictly: a broken link is an error. GALLERY=0 does not run the examples, and leaves out their pictures.
GALLERY ?= 1
docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	$(BIN)/python -m sphinx -q -W --keep-going -D plot_gallery=$(GALLERY) -d build/doctrees docs site
	@echo 'built site/index.html'

docs-serve: docs
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory site $(PORT)

dist: $(STAMP)
	rm -rf dist
	$(BIN)/python -m build --outdir dist .

bench: $(STAMP)
	$(BIN)/python benchmarks/bench.py

# The paper's tables: stopped at any time, the same command goes on. Data sets come from SEQATT_DATA_DIR,
# the cache or their sources (docs/datasets.md).
paper: $(STAMP)
	$(BIN)/python -m experiments

$(PAPER:%=paper-%): paper-%: $(STAMP)
	$(BIN)/python -m experiments $*

clean:
	rm -rf .venv build dist site docs/gallery docs/reference/generated
