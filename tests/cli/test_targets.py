"""Kinds of targets, groups of rows and times on the command line."""

import json

import numpy as np
import pandas as pd
import pytest
from tests.support.command import run


@pytest.fixture
def csv(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(240, 6)), columns=[f"x{i}" for i in range(6)])
    time, limit = (
        10 * rng.weibull(1.5, 240) * np.exp(-1.2 * frame.x0 + 1.2 * frame.x1),
        rng.exponential(8, 240),
    )
    frame["weeks"], frame["died"] = np.minimum(time, limit), (time <= limit).astype(int)
    frame["site"], frame["day"] = [f"site {i % 12}" for i in range(240)], np.arange(240)
    frame["clicks"] = rng.poisson(np.exp(frame.x2))
    path = tmp_path / "data.csv"
    frame.to_csv(path, index=False)
    return path


def select(csv, *arguments):
    result = run("select", str(csv), "-k", "2", "--epochs", "10", "--json", *arguments)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_times_and_events_are_two_columns_of_the_target(csv):
    given = (
        "--target",
        "weeks,died",
        "--task",
        "survival",
        "--ignore",
        "day,clicks",
        "--groups-of-rows",
        "site",
    )
    result = select(csv, *given, "--holdout", "0.25")
    assert sorted(result["features"]) == ["x0", "x1"]
    assert result["settings"]["groups_of_rows"] == "site"
    assert result["settings"]["rows"] == 180  # nine of twelve sites of 20 rows
    assert min(result["holdout"]["selected"]["concordance"]) > 0.7


def test_the_latest_rows_are_held_out(csv):
    given = "--target", "clicks", "--task", "quantile", "--quantile", "0.8", "--ignore", "site,weeks,died"
    result = select(csv, *given, "--time", "day", "--holdout", "0.25")
    assert result["features"][0] == "x2"
    assert "day" not in result["names"]
    assert (result["settings"]["time"], result["settings"]["quantile"]) == ("day", 0.8)
    assert "pinball" in result["holdout"]["selected"]


def test_a_reconstruction_has_no_target(csv):
    result = select(
        csv, "--task", "reconstruction", "--ignore", "site,weeks,died,day,clicks", "--holdout", "0.25"
    )
    assert len(result["features"]) == 2
    assert "r2" in result["holdout"]["selected"]
    missing = run("select", str(csv), "-k", "2")
    assert missing.returncode == 2
    assert "--target" in missing.stderr


def test_methods_are_compared_on_later_rows(csv):
    given = "--target", "weeks,died", "--task", "survival", "--ignore", "clicks,site", "--time", "day"
    result = run(
        "compare", str(csv), "-k", "2", "--methods", "f_test,random", "--seeds", "1", "--json", *given
    )
    assert result.returncode == 0, result.stderr
    compared = json.loads(result.stdout)
    assert compared["settings"]["metric"] == "concordance"
    assert compared["settings"]["features"] == 6
