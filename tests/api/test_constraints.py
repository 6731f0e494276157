"""Features that may not be selected, and quotas: through every front, and refused where they contradict themselves."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from tests.support.command import run

import seqatt
from seqatt.checkpoints.training import CheckpointHook

FAST = {"epochs": 30}
LAB = {"lab": {"features": ["c", "e", "f"], "least": 0, "most": 1}}


def planted(rows: int = 300) -> tuple[pd.DataFrame, np.ndarray]:
    """Five features matter, c, e and f most; the columns are not in alphabetical order."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(rows, 12)), columns=list("zbcdefghijkl"))
    return X, X[list("cefhk")].to_numpy() @ np.array([2.0, 1.5, 1.2, 1.0, 0.8]) + 0.2 * rng.normal(size=rows)


def test_forbidden_features_take_no_part_and_the_answer_is_that_of_a_table_without_them():
    X, y = planted()
    selection = seqatt.select(X, y, 3, forbid=["c", "z"], **FAST)
    without = seqatt.select(X.drop(columns=["c", "z"]), y, 3, **FAST)
    assert selection.features == without.features
    assert sorted(selection.features) == ["e", "f", "h"]
    assert selection.scores.tolist() == without.scores.tolist()
    assert selection.importance == without.importance
    assert [list(X.columns)[i] for i in selection.indices] == selection.features
    assert selection.names == list(X.columns)
    assert len(selection.support) == len(selection.ranking) == 12
    assert sorted(selection.ranking[[0, 2]]) == [11, 12]
    assert selection.transform(X).columns.tolist() == selection.features
    assert selection.settings["forbid"] == ["c", "z"]


def test_only_candidates_are_selected_beside_kept_features():
    X, y = planted()
    selection = seqatt.select(X, y, 3, candidates=["h", "k", "b"], keep=["z"], method="f_test")
    assert selection.features == ["z", "h", "k"]
    assert selection.settings["candidates"] == ["h", "k", "b"]
    both = seqatt.select(X, y, 2, candidates=["h", "k", "b", "c"], forbid={"c"}, method="f_test")
    assert both.features == ["h", "k"]


def test_positions_masks_and_arrays_name_features_too():
    X, y = planted()
    array = X.to_numpy()
    mask = X.columns.isin(list("cef"))
    for forbidden in ([2, 4, 5], mask, ["x2", "x4", "x5"]):
        selection = seqatt.select(array, y, 2, forbid=forbidden, method="f_test")
        assert selection.indices.tolist() == [7, 10]
        assert selection.transform(array).shape == (300, 2)


def test_with_groups_the_names_are_those_of_groups():
    X, y = planted()
    groups = {"pair": ["c", "e"], "other": ["b", "z"]}
    selection = seqatt.select(X, y, 2, groups=groups, forbid=["pair"], method="forest", n_estimators=50)
    assert sorted(selection.features) == ["f", "h"]
    quotas = {"q": {"features": ["other", "d"], "least": 1}}
    selection = seqatt.select(X, y, 3, groups=groups, quotas=quotas, method="forest", n_estimators=50)
    assert {"other", "d"} & set(selection.features)


def test_categories_and_missing_values_survive_excluded_neighbours():
    rng = np.random.default_rng(0)
    X, y = planted(200)
    X["few"] = np.array(["u", "v", None], dtype=object)[rng.integers(3, size=200)]
    X["many"] = np.char.add("m", rng.integers(30, size=200).astype(str))
    X.loc[rng.random(200) < 0.1, "h"] = np.nan
    for method in ("sequential_attention", "cmim", "mutual_information", "forest"):
        options = {"missing_indicator": True, "method": method} | ({"epochs": 5} if "att" in method else {})
        ours = seqatt.select(X, y, 5, forbid=["e", "few", "z"], **options)
        without = seqatt.select(X.drop(columns=["e", "few", "z"]), y, 5, **options)
        assert ours.features == without.features
        assert ours.scores.tolist() == pytest.approx(without.scores.tolist())  # products of other shapes


def test_files_read_batch_by_batch_do_not_read_forbidden_columns_and_meet_quotas(tmp_path):
    X, y = planted(2000)
    X["code"] = np.char.add("m", np.random.default_rng(1).integers(30, size=2000).astype(str))
    X.assign(y=y).to_parquet(tmp_path / "t.parquet", row_group_size=200)
    options = {"target": "y", "memory": 1000, "log1p": ["z"], "groups": {"pair": ["b", "d"]}}
    for more in ({}, {"method": "cmim"}):
        given = {"forbid": ["z", "code"], "quotas": LAB, "keep": ["pair"]} | more
        selection = seqatt.select(tmp_path / "t.parquet", k=4, **options, **given)
        assert selection.settings["reading"] == "batches"
        assert selection.features[0] == "pair"
        assert set(selection.features[1:]) == {"c", "h", "k"}
        assert len(selection.names) == 12
        assert selection.ranking[[0, 11]].tolist() == [11, 12]


@pytest.mark.parametrize("method", ["sequential_attention", "greedy", "cmim", "linear_omp", "f_test"])
def test_the_best_features_that_quotas_allow_are_selected(method):
    X, y = planted()
    options = {"epochs": 60} if method == "sequential_attention" else {}
    chosen = seqatt.select(X, y, 3, quotas=LAB, method=method, **options).features
    assert set(chosen) == {"c", "h", "k"}
    least = {"useless": {"features": ["b", "d", "g"], "least": 2}}
    chosen = seqatt.select(X, y, 4, quotas=least, method=method, **options).features
    assert {"c", "e"} < set(chosen)
    assert len({"b", "d", "g"} & set(chosen)) == 2


def test_a_number_that_is_found_meets_quotas_and_keeps_features():
    X, y = planted()
    found = seqatt.select(X, y, "auto", max_k=8, keep=["z"], quotas=LAB, forbid=["k"], epochs=20)
    assert found.features[0] == "z"
    assert len({"c", "e", "f"} & set(found.features)) == 1
    assert "k" not in found.features
    assert found.curve["sizes"][0] == 2
    assert found.curve["chosen"] == len(found.features) <= 8
    noise = np.random.default_rng(3).normal(size=300)
    least = {"b": {"features": ["b", "d", "g"], "least": 2}}
    nothing = seqatt.select(X, noise, "auto", max_k=5, quotas=least, method="f_test")
    assert len(nothing.features) == nothing.curve["chosen"] == 2


def test_repeats_keep_features_and_meet_quotas_and_count_all_features(tmp_path):
    X, y = planted()
    selection = seqatt.select(X, y, 4, repeats=4, keep=["z"], quotas=LAB, forbid=["b"], method="f_test")
    assert selection.features == ["z", "c", "h", "k"]
    assert len(selection.frequency) == 12
    assert selection.frequency[[0, 1]].tolist() == [1.0, 0.0]
    selection.save(tmp_path / "s.json")
    again = seqatt.Selection.load(tmp_path / "s.json")
    assert again.stability == selection.stability
    assert again.settings == selection.settings


def test_false_discoveries_are_controlled_among_the_features_that_are_left():
    X, y = planted(400)
    found = seqatt.select(X, y, fdr=0.2, forbid=["c"], method="forest", n_estimators=50)
    assert "c" not in found.features
    assert "e" in found.features
    assert len(found.false_discoveries["statistics"]) == 12
    assert found.false_discoveries["statistics"][2] == 0


def test_cmim_takes_account_of_kept_features():
    """A copy of a kept feature adds nothing beside it."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 600))
    X = pd.DataFrame({"a": a, "copy": a + 1e-3 * rng.normal(size=600), "b": b, "n": rng.normal(size=600)})
    y = (2 * a + b > 0).astype(int)
    assert seqatt.select(X, y, 2, keep=["a"], method="cmim").features == ["a", "b"]


def test_the_command_line_takes_names_with_commas_files_and_quotas(tmp_path):
    X, y = planted()
    X = X.rename(columns={"z": "z, total"})
    X.assign(y=y).to_csv(tmp_path / "t.csv", index=False)
    (tmp_path / "names.txt").write_text("z, total\nb\n")
    (tmp_path / "quotas.json").write_text(json.dumps(LAB))
    command = ["select", tmp_path / "t.csv", "-t", "y", "--method", "f_test", "--json"]

    def features(*options):
        return json.loads(run(*command, *options).stdout)["features"]

    assert features("-k", 3, "--keep", '"z, total",b') == ["z, total", "b", "c"]
    assert features("-k", 3, "--keep", f"@{tmp_path / 'names.txt'}") == ["z, total", "b", "c"]
    assert features("-k", 3, "--keep", '"z, total"', "--keep", "b") == ["z, total", "b", "c"]
    assert features("-k", 2, "--forbid", "c,e", "--forbid", "f") == ["h", "k"]
    assert features("-k", 2, "--candidates", "h,b") == ["h", "b"]
    assert features("-k", 3, "--quota", "lab::1=c,e,f", "--quota", "b:1:=b,d") == ["c", "h", "b"]
    assert features("-k", 3, "--quota", tmp_path / "quotas.json") == ["c", "h", "k"]
    for options, message in (
        (["--quota", "lab=c"], "is not of the form NAME:LEAST:MOST"),
        (["--quota", "lab:0:1=c", "--quota", "lab:0:1=e"], "'lab' is given twice"),
        (["--keep", "@nowhere"], "cannot read nowhere"),
    ):
        done = run(*command, "-k", 2, *options)
        assert done.returncode == 2
        assert message in " ".join(done.stderr.replace("│", "").split())


def test_the_terminal_and_the_report_say_what_was_asked_for(tmp_path):
    X, y = planted()
    X.assign(y=y).to_csv(tmp_path / "t.csv", index=False)
    page = tmp_path / "report.html"
    asked = ["--forbid", "b,d", "--keep", "z", "--quota", "lab:0:1=c,e,f", "--report", page]
    done = run("select", tmp_path / "t.csv", "-t", "y", "-k", 3, "--method", "f_test", *asked)
    sentence = "Kept: z. Forbidden: 2 features. Quota lab: 1 of 3 features, at most 1."
    assert sentence in " ".join(done.stdout.split())
    assert sentence in page.read_text()


def test_selectors_take_constraints_and_are_cloned():
    X, y = planted()
    selector = seqatt.SequentialAttentionSelector(3, forbid=["c"], quotas=LAB, **FAST)
    selector = clone(selector).fit(X, y)
    assert "c" not in selector.selection_.features
    assert len({"e", "f"} & set(selector.selection_.features)) == 1
    assert selector.support_.sum() == 3
    other = seqatt.FeatureSelector(2, method="f_test", options={"candidates": ["b", "k"]}).fit(X, y)
    assert other.get_feature_names_out().tolist() == ["b", "k"]


def test_compared_methods_have_constraints_of_their_own_for_every_k():
    X, y = planted()
    options = {"f_test": {"quotas": {"q": {"features": ["b", "d"], "least": 1}}, "forbid": ["c"]}}
    comparison = seqatt.compare(X, y, [2, 3], methods=["f_test", "random"], seeds=[0], options=options)
    runs = {r.k: r.features for r in comparison.runs if r.method == "f_test"}
    for k in (2, 3):
        assert len(runs[k]) == k
        assert len({"b", "d"} & set(runs[k])) == 1
        assert "c" not in runs[k]


def test_a_run_with_quotas_is_resumed_bit_for_bit(tmp_path, monkeypatch):
    X, y = planted()
    options = {"quotas": LAB, "forbid": ["z"], "epochs": 20}
    whole = seqatt.select(X, y, 4, **options)
    chunks = 0

    def stop(hook, group):
        nonlocal chunks
        chunks += 1
        if chunks == 9:
            raise RuntimeError("killed")
        after_chunk(hook, group)

    after_chunk = CheckpointHook.after_chunk
    monkeypatch.setattr(CheckpointHook, "after_chunk", stop)
    files = {"checkpoint": tmp_path / "run", "checkpoint_every": 0}
    with pytest.raises(RuntimeError, match="killed"):
        seqatt.select(X, y, 4, **options, **files)
    resumed = seqatt.select(X, y, 4, **options, **files, resume=True)
    assert resumed.features == whole.features
    assert resumed.scores.tolist() == whole.scores.tolist()
    with pytest.raises(ValueError, match="belongs to another run"):
        seqatt.select(X, y, 4, **options | {"quotas": {}}, **files, resume=True)


def test_a_module_made_for_all_columns_is_refused_and_a_function_makes_a_smaller_one():
    X, y = planted(60)
    made = []

    def make(columns, outputs):
        made.append(columns)
        return torch.nn.Linear(columns, outputs)

    assert len(seqatt.select(X, y, 2, forbid=["c"], model=make, epochs=2).features) == 2
    assert set(made) == {11}
    with pytest.raises(
        ValueError, match="model: the module was made for all columns, and 1 features may not"
    ):
        seqatt.select(X, y, 2, forbid=["c"], model=torch.nn.Linear(12, 1), epochs=2)


def quota(features: str, least: int = 0, most: int | None = None) -> dict:
    return {"features": list(features), "least": least, "most": most}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"forbid": ["zz"]}, "forbid: 'zz' is not a feature of X, which has 12; did you mean 'z'?"),
        ({"forbid": 3}, "forbid: must be positions or names"),
        ({"forbid": ["z"], "keep": ["z"]}, "forbid: 'z' is in keep too; leave it out of one of them"),
        ({"candidates": [False] * 12}, "candidates: has no feature; leave it out if all may be selected"),
        ({"candidates": np.zeros(12, dtype=bool)}, "candidates: has no feature; leave it out if all may be"),
        ({"forbid": list("zbcdefghijkl")}, "forbid: leave no feature of 12 to select; exclude fewer"),
        (
            {"candidates": ["b", "c", "d"]},
            r"k: 4 features requested, but at most 3 can be selected \(9 are excluded\)",
        ),
        ({"quotas": [1]}, "quotas: must be a dict such as"),
        ({"quotas": {"a": ["b"]}}, "quotas: 'a' must have 'features', as in"),
        (
            {"quotas": {"a": {"features": ["b"], "mots": 2}}},
            "quotas: 'a' has no option 'mots'; did you mean 'most'?",
        ),
        ({"quotas": {"a": {"features": "bc"}}}, "quotas: the features of 'a' must be a list, got 'bc'"),
        ({"quotas": {"a": quota("bq", 1)}}, "quotas: 'q' is not a feature of X"),
        ({"quotas": {"a": quota("bcd", 2, 1)}}, "quotas: 'a' needs at least 2 and allows at most 1 features"),
        ({"quotas": {"a": quota("bc", -1)}}, "quotas: 'least' of 'a': must be a whole number of at least 0"),
        ({"quotas": {"a": quota("bc", 3)}}, "quotas: 'a' needs at least 3 of 2 features; lower 'least'"),
        (
            {"quotas": {"a": quota("bc", 2)}, "forbid": ["c"]},
            "quotas: 'a' needs at least 2 of 2 features, 1 of which are excluded",
        ),
        ({"quotas": {"a": quota("bc"), "d": quota("cd")}}, "quotas: 'c' is in both 'a' and 'd'"),
        (
            {"quotas": {"a": quota("bcd", 2), "e": quota("efg", 2)}, "keep": ["h"]},
            r"k: 4 is less than the 5 features that are needed \('a' needs 2 and 'e' needs 2 and keep has 1 others\)",
        ),
        (
            {"quotas": {"a": quota("bcdefg", most=1), "b": quota("hijk", most=0)}},
            r"k: 4 features requested, but at most 3 can be selected \('a' allows 1 and 'b' allows 0 and 2 are in no",
        ),
        (
            {"quotas": {"a": quota("bcd", most=1)}, "keep": ["b", "c"]},
            "keep: has 2 features of the quota 'a', which allows at most 1",
        ),
        ({"quotas": {"a": quota("bc")}, "fdr": 0.1}, "quotas: cannot be combined with fdr"),
        (
            {"quotas": {"a": quota("bcdef", 5)}, "k": "auto", "max_k": 4},
            "max_k: 4 is less than the 5 features",
        ),
    ],
)
def test_contradictions_are_refused_with_the_arithmetic(options, message):
    X, y = planted(100)
    with pytest.raises((TypeError, ValueError), match=message):
        seqatt.select(X, y, **{"k": 4} | options)


def test_a_column_of_a_group_is_no_feature_and_the_group_is_named():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 4)), columns=list("abcd"))
    with pytest.raises(ValueError, match=r"forbid: 'a' is a column of the group 'pair', .* name the group"):
        seqatt.select(frame, frame["d"] * 2, 1, groups={"pair": ["a", "b"]}, forbid=["a"], method="f_test")
