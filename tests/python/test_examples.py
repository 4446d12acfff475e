"""The examples run, and their pictures are there."""

import subprocess
import sys

import pytest
from conftest import SOURCE

FOLDER = SOURCE / "examples" / "python"


@pytest.mark.parametrize("name, needs, picture", [
    ("stan", "xarray", "schools.png"), ("jax_density", "jax", "ridge.png"), ("pymc_model", "pymc", "rates.png"),
    ("vae", "sklearn", "stripes.png")])
def test_example(tmp_path, name, needs, picture):
    pytest.importorskip(needs, reason=f"{needs} is not installed")
    pytest.importorskip("matplotlib")
    done = subprocess.run([sys.executable, FOLDER / f"{name}.py", tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / picture).stat().st_size > 10_000
    assert "verdict:" in done.stdout or name == "vae"


def test_notebook():
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient").NotebookClient
    notebook = nbformat.read(FOLDER / "posterior.ipynb", as_version=4)
    assert all(cell.outputs for cell in notebook.cells if cell.cell_type == "code"), "a reader sees what it shows"
    assert "/tmp" not in (FOLDER / "posterior.ipynb").read_text()
    client(notebook, timeout=300, kernel_name="python3").execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("verdict" in output.get("data", {}).get("text/html", "") for output in outputs)
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert not any(output.output_type == "error" for output in outputs)
