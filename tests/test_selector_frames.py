"""Selectors on data frames of every kind: extension types of pandas, columns of a MultiIndex, ``set_output``."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from tests.support.problems import linear_problem

import seqatt
from seqatt import FeatureSelector, OMPSelector

X, Y = linear_problem("binary", rows=200, features=6)
NOISE = np.random.default_rng(1).normal(size=200)


def with_missing(values, dtype: str) -> pd.Series:
    """A column of an extension type, every 17th value of which is pd.NA."""
    column = pd.Series(values).astype(dtype)
    column[::17] = pd.NA
    return column


COLUMNS = {
    "Int64": with_missing((X[:, 1] * 10).astype(int), "Int64"),
    "UInt8": pd.Series(Y * 3).astype("UInt8"),
    "boolean": with_missing(Y.astype(bool), "boolean"),
    "Float64": with_missing(X[:, 4], "Float64"),
    "string[pyarrow]": with_missing(np.where(Y, "u", "v"), "string[pyarrow]"),
    "string[python]": with_missing(np.where(Y, "u", "v"), "string[python]"),
    "category": pd.Series(pd.Categorical(np.where(Y, "u", "v"))),
    "category of numbers": pd.Series(pd.Categorical(Y)),
    "category of intervals": pd.Series(pd.cut(X[:, 1], 4)),
    "double[pyarrow]": pd.Series(X[:, 1]).astype("double[pyarrow]"),
    "dictionary[pyarrow]": pd.Series(np.where(Y, "u", "v").astype(object)).astype(
        pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string()))
    ),
    "bool[pyarrow]": pd.Series(Y.astype(bool)).astype("bool[pyarrow]"),
    "Sparse": pd.Series(pd.arrays.SparseArray(np.where(X[:, 1] > 0, X[:, 1], 0.0))),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_a_column_of_any_extension_type_is_selected_and_keeps_its_type(kind):
    frame = pd.DataFrame({"noise": NOISE, "signal": COLUMNS[kind], "more": NOISE[::-1]})
    fitted = FeatureSelector(1, method="f_test").fit(frame, Y)
    assert fitted.selection_.features == seqatt.select(frame, Y, 1, method="f_test").features == ["signal"]
    assert fitted.transform(frame)["signal"].dtype == frame["signal"].dtype


@pytest.mark.parametrize(
    "kind", ["Int64", "boolean", "Float64", "string[pyarrow]", "category", "int64[pyarrow]"]
)
def test_a_target_of_an_extension_type_is_the_plain_target(kind):
    labels = pd.Series(np.where(Y, "u", "v") if "string" in kind else Y).astype(kind)
    expected = FeatureSelector(2, method="f_test").fit(X, Y).selection_.features
    assert FeatureSelector(2, method="f_test").fit(X, labels).selection_.features == expected


@pytest.fixture
def two_levels() -> pd.DataFrame:
    levels = [("lab" if i < 3 else "image", name) for i, name in enumerate("abcdef")]
    return pd.DataFrame(X, columns=pd.MultiIndex.from_tuples(levels))


def test_columns_of_a_multiindex_stay_a_multiindex(two_levels):
    fitted = FeatureSelector(2, method="f_test").fit(two_levels, Y)
    out = fitted.transform(two_levels)
    assert isinstance(out.columns, pd.MultiIndex)
    assert out.columns.tolist() == [("lab", "b"), ("image", "e")]
    assert fitted.get_feature_names_out().tolist() == ["('lab', 'b')", "('image', 'e')"]
    assert make_pipeline(OMPSelector(2), LogisticRegression()).fit(two_levels, Y).score(two_levels, Y) > 0.9


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_set_output_names_the_columns_of_a_multiindex(two_levels, kind):
    out = FeatureSelector(2, method="f_test").set_output(transform=kind).fit_transform(two_levels, Y)
    assert list(out.columns) == ["('lab', 'b')", "('image', 'e')"]


def test_columns_in_another_order_are_refused_whatever_their_names_are(two_levels):
    for frame in (two_levels, pd.DataFrame(X)):
        fitted = FeatureSelector(2, method="f_test").fit(frame, Y)
        with pytest.raises(ValueError, match=r"X: column 0 is .*, but was .* in fit; pass the same columns"):
            fitted.transform(frame.iloc[:, ::-1])


def test_set_output_of_a_pipeline_and_a_column_transformer_keeps_types():
    frame = pd.DataFrame({"a": X[:, 1], "b": NOISE, "i": COLUMNS["Int64"], "s": COLUMNS["string[pyarrow]"]})
    pipeline = make_pipeline(FeatureSelector(3, method="f_test"), FeatureSelector(2, method="f_test"))
    out = pipeline.set_output(transform="pandas").fit_transform(frame, Y)
    assert list(out.columns) == pipeline.get_feature_names_out().tolist()
    assert all(out[name].dtype == frame[name].dtype for name in out.columns)
    parts = ColumnTransformer(
        [
            ("numbers", FeatureSelector(1, method="f_test"), ["a", "b"]),
            ("rest", FeatureSelector(1, method="f_test"), ["i", "s"]),
        ]
    ).set_output(transform="pandas")
    assert list(parts.fit_transform(frame, Y).columns) == ["numbers__a", "rest__s"]
