"""Optional libraries: the advice names an extra of pyproject.toml that installs them."""

import re
import subprocess
import sys

import pytest
from data import ELSEWHERE, REPOSITORY
from packaging.requirements import Requirement

from herdner.base.extras import EXTRAS, MissingExtra, check_extra, import_extra

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PACKAGES = {
    "PIL": "pillow",
    "stdnum": "python-stdnum",
    "markdown_it": "markdown-it-py",
    "pysat": "python-sat",
    "sklearn": "scikit-learn",
}


def test_each_extra_installs_the_modules_that_the_advice_is_for():
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for extra, modules in EXTRAS.items():
        requirements = [Requirement(each) for each in project["optional-dependencies"][extra]]
        packages = {name for each in requirements for name in (each.name, *each.extras)}
        assert {PACKAGES.get(module, module.replace("_", "-")) for module in modules} <= packages
    (everything,) = project["optional-dependencies"]["all"]
    assert set(Requirement(everything).extras) == set(EXTRAS) - {"jax", "presidio", "sat"}


def test_the_installation_page_lists_the_extras_of_the_project() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    page = (REPOSITORY / "docs" / "pages" / "install.md").read_text(encoding="utf-8")
    _, table = page.split("| extra | adds |\n|---|---|\n")
    listed = [extra for row in table.splitlines() for extra in re.findall(r"`([^`]+)`", row.split("|")[1])]
    assert sorted(listed) == sorted(project["optional-dependencies"])


def test_a_missing_library_is_an_error_that_names_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for function in (check_extra, import_extra):
        with pytest.raises(MissingExtra, match=re.escape("figures need it: pip install '.[evaluate]'")):
            function("matplotlib.pyplot", "figures need it")


def test_without_scikit_learn_the_help_and_a_star_import_work() -> None:
    program = "import sys; sys.modules['sklearn'] = None; from herdner import *; load; import herdner; help(herdner)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ELSEWHERE)
    assert (run.returncode, run.stderr) == (0, "")
    assert "Help on package herdner" in run.stdout
