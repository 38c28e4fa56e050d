"""Display of documents in a notebook that Jupyter executes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

nbclient = pytest.importorskip("nbclient", reason="needs nbclient, which runs notebooks")
nbformat = pytest.importorskip("nbformat", reason="needs nbformat, which writes notebooks")
pytest.importorskip("ipykernel", reason="needs ipykernel, which runs their cells")
pytestmark = pytest.mark.slow


def test_a_notebook_displays_a_document_in_colour(tmp_path: Path, monkeypatch) -> None:
    kernel = tmp_path / "kernels" / "here" / "kernel.json"
    kernel.parent.mkdir(parents=True)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    kernel.write_text(json.dumps({"argv": command, "display_name": "here"}), encoding="utf-8")
    for name in ("JUPYTER_PATH", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "IPYTHONDIR"):
        monkeypatch.setenv(name, str(tmp_path))
    load = "import herdner\ntagger = herdner.load('en')"
    tag = "tagger.tag('Ada Lovelace met <b>Charles Babbage</b> in London. Lovelace left.')"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in (load, tag)])
    nbclient.NotebookClient(
        notebook, kernel_name="here", timeout=120, resources={"metadata": {"path": tmp_path}}
    ).execute()
    first, second = notebook.cells
    assert first.outputs == []
    (shown,) = second.outputs
    assert shown.output_type == "execute_result"
    html = shown.data["text/html"]
    assert html.count("<mark") >= 4
    assert "&lt;b&gt;" in html
    assert "<b>Charles" not in html
    assert "Ada Lovelace" in shown.data["text/plain"]
