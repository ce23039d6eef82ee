"""Reads the profile of a device: how it comes to torch, what it lacks by design, and how to ask who it is.

Profiles that come with the suite are known by their names. `profile.schema.json` says what a profile may hold.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from conformance.language.errors import CaseFileError, Problem, did_you_mean
from conformance.language.files import SUFFIXES
from conformance.language.patterns import pattern_problem
from conformance.language.schema import load_schema, problems_of, reporter
from conformance.language.yaml import Node, content_of, read_document, read_text

SHIPPED_PROFILES = Path(__file__).parent.parent / "profiles"
SCHEMA = "profile.schema.json"
GROUPS = {"double": ("float64", "complex128"), "complex": ("complex64", "complex128")}  # names of several features


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What is known of a device; all is empty where no profile was given.

    `setup`, `synchronize`, `hardware`, `version` and `commit` name an attribute as `module:attribute`. `issues` is the
    path of a list of known issues, or the node of its entries; `file` is what messages call the profile.
    """

    device: str = ""
    modules: tuple[str, ...] = ()
    setup: str = ""
    synchronize: str = ""
    hardware: str = ""
    version: str = ""
    commit: str = ""
    absent: tuple[str, ...] = ()
    not_implemented: tuple[str, ...] = ()
    seconds: float | None = None
    sandbox: tuple[str, ...] | None = None
    issues: Path | Node | None = field(default=None, compare=False)
    file: str = ""

    def told(self) -> dict[str, Any]:
        """Return what the worker is told of the device."""
        names = (
            "device",
            "setup",
            "synchronize",
            "hardware",
            "version",
            "commit",
            "absent",
            "not_implemented",
            "sandbox",
        )
        return {name: getattr(self, name) for name in names}


NO_PROFILE = Profile()


def shipped_profiles() -> dict[str, Path]:
    """Return the profiles that come with the suite, by name."""
    return {path.stem: path for path in sorted(SHIPPED_PROFILES.glob("*.yaml"))}


def find_profile(given: str, directory: Path) -> Profile:
    """Return the profile that comes with the suite under a name, or that of a file, as seen from `directory`.

    Raise CaseFileError for a name that is unknown, and for a file that can't be read or is no profile.
    """
    shipped = shipped_profiles()
    path = shipped.get(given, directory / given)
    try:
        return load_profile(path, path.name if given in shipped else given)
    except OSError as error:
        known = f"there are {', '.join(shipped)}, and files of your own"
        hint = known if Path(given).suffix in SUFFIXES else did_you_mean(given, shipped) or known
        problem = Problem(file=given, line=1, column=1, message=f"can't be read: {error.strerror}", hint=hint)
        raise CaseFileError([problem]) from None


def load_profile(path: Path, name: str) -> Profile:
    """Return the profile in a file; `name` is what messages call it.

    Raise CaseFileError with all that is wrong with it, OSError where it can't be read.
    """
    root = read_document(read_text(content_of(path), name), name)
    problems = problems_of(root, load_schema(SCHEMA), name)
    if problems:
        raise CaseFileError(problems)
    report = reporter(name, problems)
    given: dict[str, Node] = root.value
    for index, node in enumerate(given["not_implemented"].value if "not_implemented" in given else ()):
        found = pattern_problem(node.value)
        if found is not None:
            report(node, f"not_implemented[{index}]", *found)
    if problems:
        raise CaseFileError(problems)
    issues = given.get("known_issues")
    plain = {key: node.plain for key, node in given.items() if key != "known_issues"}
    absent = [feature for each in plain.get("absent", ()) for feature in GROUPS.get(each, (each,))]
    return Profile(
        device=plain["device"], modules=tuple(plain.get("import", ())), hardware=plain.get("name", ""),
        absent=tuple(dict.fromkeys(absent)), not_implemented=tuple(plain.get("not_implemented", ())),
        seconds=plain.get("seconds"), file=name, sandbox=tuple(plain["sandbox"]) if "sandbox" in plain else None,
        issues=path.parent / issues.value if issues is not None and type(issues.value) is str else issues,
        **{key: plain.get(key, "") for key in ("setup", "synchronize", "version", "commit")},
    )  # fmt: skip
