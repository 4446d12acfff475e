"""Progress as a notebook shows it, and as a line."""

import time

import pytest

import hone
from hone._fit import _budget
from hone._progress import Total, Work

CELLS = {
    "a bar": "work = Work('fit', 100, None)\nwith work:\n    work.tell('refining', 50)\n    assert work._notebook",
    "what is said": "work = Work('train', 100, None)\nwork.say('stopping with what there is')",
    "silence": "work = Work('fit', 100, False)\nassert work.tell is None\nwork.say('nobody hears this')",
    "a fit": "hone.fit(lambda z: (-0.5 * (z * z).sum(-1), -z), dim=2, seed=1).verdict",
}


def test_progress_in_a_notebook():
    """Also while a cell runs: the bar is taken away when the work ends, what is said stays."""
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient").NotebookClient
    pytest.importorskip("ipykernel")
    cells = ["import hone\nfrom hone._progress import Work", *CELLS.values()]
    shown = []

    class Listening(client):
        def process_message(self, message, cell, index):
            if message["msg_type"] in ("display_data", "update_display_data"):
                shown.append((index, message["content"]["data"]["text/plain"]))
            return super().process_message(message, cell, index)

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    Listening(notebook, timeout=120, kernel_name="python3").execute()
    lines = {name: [text for index, text in shown if index == k + 1] for k, name in enumerate(CELLS)}
    assert [line.split("  ")[:2] for line in lines["a bar"]] == [["fit", "██████████░░░░░░░░░░"], [""]]
    assert lines["what is said"] == ["stopping with what there is"] and lines["silence"] == []
    assert any("░" in line for line in lines["a fit"]) and lines["a fit"][-1] == ""
    assert "use-q" in notebook.cells[-1]["outputs"][-1]["data"]["text/plain"]
    assert not any(output.output_type == "error" for cell in notebook.cells for output in cell["outputs"])


@pytest.mark.parametrize("budget, total", [
    (None, Total(4_000_000, is_limit=True)), (1000, Total(1000, is_limit=True)), (2.5, Total(2.5, is_limit=True)),
    ("1e6", Total(1_000_000, is_limit=True)), ("30s", Total(30, in_seconds=True, is_limit=True)), ("soon", Total(None))])
def test_what_a_budget_says_of_the_bar(budget, total):
    assert _budget(budget)[1] == total


def test_a_bar_of_seconds(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    work = Work("fit", Total(30, in_seconds=True, is_limit=True), True)
    now[0] += 15
    assert work._line("refining", 123) == "fit  ██████████░░░░░░░░░░  50 %  15 s, at most 15 s left  refining"
    now[0] += 20
    assert "100 %  35 s  refining" in work._line("refining", 456)


def test_a_fit_without_a_budget_has_a_bar(capfd):
    hone.fit(lambda z: (-0.5 * (z * z).sum(-1), -z), dim=2, seed=1, progress=True)
    assert "░" in capfd.readouterr().err
