"""A corpus of attempts to leave the case language, by class: places, and ways to Python's own functions.

An attempt is the text of a step. Where nothing stands in its way it does a deed, which prints `gained` when it is done:
it reads a file, writes one, starts a process or makes a socket; or it has a function called that a case should not.
`walls.py` makes the attempts, with the case language, with the kernel, with both, and with neither.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import escape_files as files
import escape_hooks as hooks
import escape_places as places

# In the texts these stand for a directory of the attempt and for the text of the deed.
PLACE, CODE = "PLACE", "CODE"
DEEDS = {
    "read": "print('gained', open('PLACE/secret').read())",
    "write": "print('gained', open('PLACE/made', 'w').write('x'))",
    "process": "print('gained', __import__('os').posix_spawn('/bin/true', ['true'], {}))",
    "socket": "print('gained', __import__('socket').socket().fileno())",
}
CALL = "call"  # what is gained is that a function of the case is called, which is no deed for the kernel


@dataclass(frozen=True, slots=True, kw_only=True)
class Escape:
    """An attempt: the text of a step, or for YAML that of a whole file beside the code that it brings."""

    kind: str
    name: str
    text: str
    deed: str
    file: str = ""  # the text of a case file with @ for a payload, if the attempt isn't a step
    payload: str = ""

    @property
    def id(self) -> str:
        return f"{self.kind}: {self.name}"

    def at(self, place: str) -> tuple[str, str]:
        """Return the text of the step and of the file, with the deed and its directory in them."""
        code = repr(DEEDS.get(self.deed, "")).replace(PLACE, place)
        text, payload = (each.replace(CODE, code).replace(PLACE, place) for each in (self.text, self.payload))
        return text, self.file.replace("@", payload if payload.startswith("!!") else json.dumps(payload))


EVAL = "['__builtins__']['eval'](CODE)"
# Expressions that do the deed, none of whose names and attributes is of the language.
REACHES = {
    "eval": "eval(CODE)",
    "exec": "exec(CODE)",
    "__builtins__": "__builtins__['eval'](CODE)",
    "__import__": "__import__('builtins').eval(CODE)",
    "getattr": "getattr(torch, 'sys').modules['builtins'].eval(CODE)",
    "globals": f"globals(){EVAL}",
    "vars": f"vars(torch){EVAL}",
    "a module in a namespace": "torch.sys.modules['builtins'].eval(CODE)",
    "the globals of a function": f"checkpoint.__globals__{EVAL}",
    "the globals of its own function": f"(lambda: 0).__globals__{EVAL}",
    "the frame of a generator": "(x for x in [1]).gi_frame.f_builtins['eval'](CODE)",
}
SUBCLASSES = (
    "[c for c in {}.__mro__[-1].__subclasses__() if c.__name__ == 'catch_warnings'][0].__init__.__globals__" + EVAL
)
WALKS = {
    "its class and all classes": SUBCLASSES.format("{}.__class__"),
    "all classes by __getattribute__": SUBCLASSES.format("{}.__getattribute__('__class__')"),
    "what restores it": "{}.__reduce_ex__(2)[0].__globals__" + EVAL,
    "the globals of its class": "{}.__class__.__init__.__globals__" + EVAL,
}


def in_places() -> Iterator[Escape]:
    """Yield each place where an expression can stand with some of the reaches, each in turn."""
    reaches, deeds = itertools.cycle(REACHES.items()), itertools.cycle(DEEDS)
    for place, template in places.PLACES.items():
        for name, reach in itertools.islice(reaches, 2):
            yield Escape(kind="a place", name=f"{place}: {name}", text=template.replace("@", reach), deed=next(deeds))


def of_late_names() -> Iterator[Escape]:
    """Yield uses of a builtin of Python under a name that the case sets, but not there."""
    deeds = itertools.cycle(DEEDS)
    for (name, template), builtin in itertools.product(places.LATE.items(), ("eval", "exec")):
        yield Escape(kind="a late name", name=f"{builtin}: {name}", text=template.replace("NAME", builtin),
                     deed=next(deeds))  # fmt: skip


def by_walks() -> Iterator[Escape]:
    """Yield walks from objects of the language along their attributes."""
    deeds = itertools.cycle(DEEDS)
    for name, (owner, walks) in places.OBJECTS.items():
        for walk in [list(WALKS)[int(number)] for number in walks]:
            text = f"log({WALKS[walk].replace('{}', owner)})"
            yield Escape(kind="a walk", name=f"{name}: {walk}", text=text, deed=next(deeds))


def by_dunders() -> Iterator[Escape]:
    """Yield classes whose methods Python would call by itself, and those that copies and pickle would."""
    for name, trigger in hooks.DUNDERS.items():
        text = f"class A(object):\n    def {name}(self, *args, **kwargs):\n        log('gained')\n{trigger}"
        yield Escape(kind="a method of Python's", name=name, text=text, deed=CALL)
    ways = hooks.WAYS_TO_GIVE.items()
    for (way, template), hook, made in itertools.product(ways, hooks.OF_COPIES, ("copy.copy", "deepcopy", "pickled")):
        if hook in hooks.NOT_OF[made]:
            continue
        text = template.replace("HOOK", hook).replace("COPY", made).replace("GIVEN", hooks.OF_COPIES[hook])
        yield Escape(kind="a copy", name=f"{hook} {way}, {made}", text=text, deed=CALL)


def written_down() -> Iterator[Escape]:
    """Yield the attempts that are no combinations, by class."""
    deeds = itertools.cycle(DEEDS)
    for kind, attempts in hooks.SINGLE.items():
        for name, text in attempts.items():
            yield Escape(kind=kind, name=name, text=text, deed=next(deeds) if CODE in text else CALL)


def from_yaml() -> Iterator[Escape]:
    """Yield case files with code, tags and ends of texts in each of their fields."""
    deeds = itertools.cycle(DEEDS)
    for field, (template, _, payloads) in files.FIELDS.items():
        for name in payloads:
            yield Escape(kind="YAML", name=f"{field}: {name}", text="eval(CODE)", deed=next(deeds), file=template,
                         payload=files.PAYLOADS[name])  # fmt: skip


def corpus() -> dict[str, Escape]:
    """Return all attempts by their ids."""
    parts: tuple[Any, ...] = (in_places(), of_late_names(), by_walks(), by_dunders(), written_down(), from_yaml())
    found = list(itertools.chain(*parts))
    assert len({each.id for each in found}) == len(found)
    return {each.id: each for each in found}
