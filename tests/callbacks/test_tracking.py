"""TensorBoard and MLflow get what happens, read back by the packages themselves."""

from __future__ import annotations

import warnings

import pytest
from tests.support.problems import linear_problem

import seqatt
from seqatt.callbacks import MLflowCallback, TensorBoardCallback

QUICK = {"epochs": 10, "ensemble": 1}


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    """MLflow with a store of files, which its small package has and which it asks to allow by this variable."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow = pytest.importorskip("mlflow", reason="needs MLflow: pip install 'seqatt[mlflow]'")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # MLflow recommends a database
        mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
        yield mlflow
        while mlflow.active_run() is not None:
            mlflow.end_run()


@pytest.fixture
def read_events(tmp_path):
    pytest.importorskip("tensorboard", reason="needs TensorBoard: pip install 'seqatt[tensorboard]'")
    from tensorboard.backend.event_processing.event_accumulator import HISTOGRAMS, EventAccumulator

    def read(folder):
        events = EventAccumulator(str(folder), {HISTOGRAMS: 0})
        events.Reload()
        return events

    return read


def test_tensorboard_gets_scalars_scores_and_names(problem, tmp_path, read_events):
    selection = seqatt.select(*problem, 2, callbacks=[TensorBoardCallback(tmp_path / "run")], **QUICK)
    events = read_events(tmp_path / "run")
    losses = {event.step: event.value for event in events.Scalars("selection/loss")}
    trained = {i: entry["loss"] for i, entry in enumerate(selection.history, 1) if entry["steps"]}
    assert {step: losses[step] for step in trained} == pytest.approx(trained)
    assert events.Scalars("selection/features")[-1].value == 2
    assert len(events.Histograms("selection/scores")) > 1
    (result,) = events.Tensors("result/text_summary")
    assert all(f"`{name}`" in result.tensor_proto.string_val[0].decode() for name in selection.features)


def test_tensorboard_has_a_plot_per_repeat_and_closes_its_file_after_an_error(problem, tmp_path, read_events):
    class Faulty(seqatt.Callback):
        def on_phase_end(self, state):
            if state.part == "repeat 2 of 2":
                raise ZeroDivisionError

    callback = TensorBoardCallback(tmp_path)
    with pytest.raises(ZeroDivisionError):
        seqatt.select(*problem, 2, repeats=2, callbacks=[callback, Faulty()], **QUICK)
    assert callback._writer is None
    tags = read_events(tmp_path).Tags()["scalars"]
    assert {"repeat 1 of 2/loss", "repeat 2 of 2/loss"} <= set(tags)


def test_mlflow_gets_a_run_of_its_own(mlflow, tmp_path):
    X, y = linear_problem("binary")
    selection = seqatt.select(X, y, 2, callbacks=[MLflowCallback("wine")], **QUICK)
    assert mlflow.active_run() is None
    (run,) = mlflow.search_runs(output_format="list")
    assert (run.info.run_name, run.info.status) == ("wine", "FINISHED")
    settings = {"method": "sequential_attention", "seed": "0", "k": "2", "epochs": "10", "ensemble": "1"}
    assert settings.items() <= run.data.params.items()
    assert run.data.tags["features"] == ", ".join(selection.features)
    history = mlflow.MlflowClient().get_metric_history(run.info.run_id, "selection/loss")
    trained = {i: entry["loss"] for i, entry in enumerate(selection.history, 1) if entry["steps"]}
    losses = {metric.step: metric.value for metric in history}
    assert {step: losses[step] for step in trained} == trained
    path = mlflow.artifacts.download_artifacts(run_id=run.info.run_id, artifact_path="selection.json")
    assert seqatt.Selection.load(path).features == selection.features


def test_mlflow_logs_to_the_active_run_and_leaves_it_open(mlflow):
    problem = linear_problem("binary")
    with mlflow.start_run() as active:
        seqatt.select(*problem, 2, method="forest", callbacks=[MLflowCallback()])
        assert mlflow.active_run().info.run_id == active.info.run_id
    (run,) = mlflow.search_runs(output_format="list")
    assert run.data.params["method"] == "forest"


def test_an_error_fails_the_run_of_mlflow(mlflow):
    class Faulty(seqatt.Callback):
        def on_phase_end(self, state):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        seqatt.select(*linear_problem("binary"), 2, callbacks=[MLflowCallback(), Faulty()], **QUICK)
    assert mlflow.active_run() is None
    (run,) = mlflow.search_runs(output_format="list")
    assert run.info.status == "FAILED"


@pytest.mark.parametrize(
    ("make", "package"), [(lambda: TensorBoardCallback("runs"), "tensorboard"), (MLflowCallback, "mlflow")]
)
def test_a_missing_package_is_named_with_its_extra(monkeypatch, make, package):
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(ImportError, match=rf"seqatt\[{package}\]"):
        make()
