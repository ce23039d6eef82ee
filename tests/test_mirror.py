"""Holds that tests mirror the package: the tests of a module stand in its room's folder, in a file of its name."""

from __future__ import annotations

from loops import each
from places import ROOT

PACKAGE, TESTS = ROOT / "conformance", ROOT / "tests"
MODULES = sorted(path.relative_to(PACKAGE).with_suffix("").as_posix() for path in PACKAGE.rglob("*.py"))

# The tests of these stand elsewhere, by what the module is.
ELSEWHERE = {
    # Records without behaviour of their own, which are read, written and refused as parts of a report or a case.
    "model/case": "language/test_reader.py",
    "model/graph": "results/test_store.py",
    "model/mode": "language/test_modes.py",
    "model/report": "results/test_store.py",
    "model/rule": "language/test_rules.py",
    # Parts of one reading, of which only the whole is promised: a text comes to a case, or to a message.
    "language/misreading": "language/test_bad_cases.py",
    "language/parsing": "language/test_grammar.py",
    # A draft is promised as a whole: a source comes to a draft, that to a case, and each ? to what it is.
    "language/drafting/assertions": "cli/test_draft.py",
    "language/drafting/bodies": "cli/test_draft.py",
    "language/drafting/functions": "cli/test_draft.py",
    "language/drafting/rewriting": "cli/test_draft.py",
    "language/drafting/slots": "cli/test_draft.py",
    "language/drafting/standins": "language/test_drafting.py",
    "language/drafting/sources": "cli/test_draft.py",
    "language/drafting/statements": "cli/test_draft.py",
    # What an editor is told comes from all of these.
    "language/editing/completion": "language/test_editing.py",
    "language/editing/names": "language/test_editing.py",
    "language/editing/parts": "language/test_editing.py",
    "language/editing/place": "language/test_editing.py",
    "cli/protocol": "cli/test_language_server.py",
    "language/observed": "cli/test_confirm.py",
    "language/unconfirmed": "cli/test_observe.py",
    "execution/filling": "cli/test_draft.py",
    "execution/observing": "cli/test_observe.py",
    "language/patterns": "language/test_strictness.py",
    "language/sameness": "language/test_strictness.py",
    "language/agreement": "language/test_expansion.py",
    "language/spellings": "language/test_expansion.py",
    "language/steps": "language/test_reader.py",
    "render/page/builds": "render/page/test_matrix.py",
    "render/page/over_time": "render/page/test_browser.py",
    "render/upgrade": "cli/test_upgrade.py",
    "render/script/carried": "render/script/test_script.py",
    "render/script/names": "render/script/test_script.py",
    "render/script/steps": "render/script/test_script.py",
    # Seen in a run alone: what a worker does between reading a request and answering it, and what pytest calls.
    "worker/beside": "worker/test_limited.py",
    "worker/build": "execution/test_workers.py",
    "worker/features": "worker/test_probing.py",
    "worker/reach": "execution/test_reach.py",
    "worker/state": "worker/test_isolation.py",
    "worker/operation": "worker/test_derivatives.py",
    "worker/watched": "worker/test_tracer.py",
    "worker/trial": "worker/test_derivatives.py",
    "worker/ways": "worker/test_derivatives.py",
    "worker/ways_twice": "worker/test_derivatives.py",
    "worker/engine": "worker/test_isolation.py",
    "worker/factories": "worker/test_namespace.py",
    "worker/functions": "worker/test_namespace.py",
    "worker/fork_server": "execution/test_fork_server.py",
    "worker/main": "execution/test_workers.py",
    "worker/runner": "worker/test_checks.py",
    "worker/case_run": "worker/test_checks.py",
    "worker/standalone": "render/script/test_script_outcomes.py",
    "worker/landlock": "worker/test_confinement.py",
    "execution/worker_process": "execution/test_workers.py",
    "pytest_plugin/distributed": "pytest_plugin/test_gateways.py",
    "pytest_plugin/items": "pytest_plugin/test_plugin.py",
    "pytest_plugin/protocol": "pytest_plugin/test_plugin.py",
    "pytest_plugin/session": "pytest_plugin/test_plugin.py",
    "results/retry": "execution/test_retries.py",
    "render/explanation": "cli/test_authoring.py",
    # What is tried on the shipped cases, and on a case of a test by the command that does.
    "execution/faults": "test_planted_faults.py",
    "execution/attempt": "cli/test_authoring.py",
    "execution/mutation": "test_shipped_cases.py",
    "render/failure": "pytest_plugin/test_plugin.py",
    "render/page/expected": "render/page/test_tables.py",
    # A command is a few lines that read, call and print: all are given to the command line, and judged by what comes.
    **dict.fromkeys(
        [f"cli/{name}" for name in "attempt check explain list mutate new similar try_".split()],
        "cli/test_authoring.py",
    ),
    "cli/badge": "cli/test_main.py",
    "cli/bisect": "releases/test_bisect.py",
    "cli/cases": "cli/test_main.py",
    "cli/coverage": "execution/test_reach.py",
    "cli/diff": "cli/test_main.py",
    "cli/history": "cli/test_main.py",
    "cli/input": "cli/test_main.py",
    "cli/known_issues": "cli/test_main.py",
    "cli/merge": "cli/test_main.py",
    "cli/output": "cli/test_main.py",
    "cli/placeholder": "releases/test_catalogue.py",
    "cli/report": "cli/test_main.py",
    "cli/rules": "cli/test_main.py",
    "cli/run": "cli/test_main.py",
    "cli/show": "cli/test_main.py",
    "cli/summary": "cli/test_main.py",
    # Both are about environments with a release of torch, one as it is made and one as it is searched.
    "releases/environment": "releases/test_catalogue.py",
    "releases/trial": "releases/test_bisect.py",
}


@each("module", [module for module in MODULES if not module.rpartition("/")[2].startswith("_")])
def test_a_module_has_its_tests(module: str) -> None:
    room, _, name = module.rpartition("/")
    own = f"{room}/test_{name}.py"
    assert (TESTS / ELSEWHERE.get(module, own)).is_file(), f"write tests/{own}, or say where its tests are"
    assert module not in ELSEWHERE or not (TESTS / own).exists(), f"{module} has tests of its own: strike it here"


def test_the_list_of_those_elsewhere_names_modules_that_there_are() -> None:
    assert ELSEWHERE.keys() - set(MODULES) == set()
