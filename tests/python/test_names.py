"""Dims and coords of every kind, on their way to ArviZ, to files and back; data that a run folder finds again."""

import datetime
import json

import numpy as np
import pytest
from conftest import FAKES, run

import hone

QUICK = dict(budget=1, draws=100, starts=1, steps=2, progress=False)
DAYS = ["2024-01-01", "2024-01-02", "2024-01-05"]


def three(z):
    return -0.5 * (z * z).sum(-1), -z


def fitted(coords, dims=("year",)):
    return hone.fit(three, names={"a": 3}, dims={"a": list(dims)}, coords={"year": coords}, **QUICK)


@pytest.mark.parametrize("coords, expected", [
    (np.arange(3), [0, 1, 2]), (list(np.arange(3)), [0, 1, 2]), (range(2001, 2004), [2001, 2002, 2003]),
    (("x", "y", "z"), ["x", "y", "z"]), (np.array([0.5, 1.5, 2.5], np.float32), [0.5, 1.5, 2.5]), ([True, False, True], [True, False, True]),
    (np.array(DAYS, "datetime64[D]"), np.array(DAYS, "datetime64[D]")),
    ([datetime.date.fromisoformat(day) for day in DAYS], np.array(DAYS, "datetime64[D]")),
    ([("a", 1), ("a", 2), ("b", 1)], ["('a', 1)", "('a', 2)", "('b', 1)"]), (["a", None, 3.5], ["a", "None", "3.5"])])
def test_coords_come_back_from_a_folder(tmp_path, coords, expected):
    pytest.importorskip("xarray")
    r = fitted(coords)
    assert r.to_datatree()["posterior"]["year"].values.tolist() == np.asarray(
        expected, r.to_datatree()["posterior"]["year"].dtype).tolist()
    again = hone.load(r.save(tmp_path / "run"))
    assert again.to_datatree().identical(r.to_datatree())
    assert again.coords["year"].dtype.kind == r.coords["year"].dtype.kind


def test_dates_of_pandas_come_back(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("xarray")
    for coords in (pandas.date_range("2024-01-01", periods=3), list(pandas.to_datetime(DAYS)), pandas.Series(DAYS)):
        r = fitted(coords)
        again = hone.load(r.save(tmp_path / f"run{type(coords).__name__}"))
        assert again.to_datatree().identical(r.to_datatree())


@pytest.mark.parametrize("coords, message", [
    ("abc", "expected a list of values"), ({"a": 1}, "expected a list of values"), (3, "expected a list of values"),
    (np.zeros((3, 2)), r"expected one value per place, found shape \(3, 2\)"),
    (np.zeros((3, 2), object), r"expected one value per place, found shape \(3, 2\)"), ([1, 2], "has length 3 here, but coords")])
def test_bad_coords_are_named(coords, message):
    with pytest.raises((TypeError, ValueError), match=message):
        fitted(coords)


def test_a_dimension_is_no_variable():
    with pytest.raises(ValueError, match=r"dims\['a'\]: 'a' is the name of a variable; give the dimension another one"):
        fitted([1, 2, 3], dims=["a"])


def test_data_of_a_relative_path_are_found_again(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "here" / "d.json").write_text(json.dumps({"N": 3, "y": [1.0, 2.0, 3.0]}))
    model = FAKES / "libfake_threads.so"
    run("fit", model, "--data", "d.json", "--out", "program", "--quiet", "--budget", 1, "--draws", 100, check=False)
    hone.fit(model, data="d.json", **QUICK).save("python")
    monkeypatch.chdir(tmp_path)
    for name in ("program", "python"):
        r = hone.load(tmp_path / "here" / name)
        assert r.data == {"N": 3, "y": [1.0, 2.0, 3.0]}
        assert "constant_data" in r.to_datatree().children


@pytest.mark.parametrize("original", ["gone", "changed"])
def test_a_saved_copy_of_the_data_is_what_counts(tmp_path, monkeypatch, original):
    monkeypatch.chdir(tmp_path)
    data = {"N": 3, "y": [1.0, 2.0, 3.0]}
    (tmp_path / "data.json").write_text(json.dumps(data))
    hone.fit(FAKES / "libfake_threads.so", data="data.json", **QUICK).save("run")
    if original == "gone":
        (tmp_path / "data.json").unlink()
    else:
        (tmp_path / "data.json").write_text(json.dumps({"N": 1, "y": [9.0]}))
    r = hone.load("run")
    assert r.data == data
    assert hone.load(r.save("again")).data == data


def test_a_result_lists_its_variables():
    r = hone.fit(three, names={"a": 2, "b": ()}, **QUICK)
    assert list(r) == ["a", "b"]
    assert "a" in r and "a.2" in r and "a[2]" in r and "a.3" not in r and "c" not in r and 1 not in r
