"""`env`, `container` and `conda` of a task: read, and written again."""

from __future__ import annotations

import re
from collections.abc import Mapping

from foreplan.formats.fields import (
    as_placeholder,
    check_fields,
    mapping,
    name,
    named,
    required,
    shown,
    string,
    unknown,
    wrong,
)
from foreplan.model.surroundings import APPTAINER, BARE, ENGINES, Surroundings

AROUND_FIELDS = ("env", "container", "conda")
_FIELDS = frozenset(AROUND_FIELDS)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OWN = "FOREPLAN_"  # variables that foreplan itself sets begin so


def surroundings_from_fields(
    fields: Mapping[object, object], *place: str | int
) -> Surroundings | None:
    """What fields say of it; None if nothing. An empty field undoes what the defaults say."""
    if _FIELDS.isdisjoint(fields):
        return None
    env = _variables(fields.get("env"), *place, "env")
    container, engine = _container(fields.get("container"), *place, "container")
    conda = _conda(fields.get("conda"), *place, "conda")
    if container is not None and conda is not None:
        raise wrong("a task has a container or a conda environment, not both", *place)
    found = Surroundings(env, container, engine, conda)
    return None if found == BARE else found


def surroundings_fields(around: Surroundings) -> dict[str, object]:
    """The same as fields."""
    fields: dict[str, object] = {"env": dict(around.env)} if around.env else {}
    if around.container is not None:
        both = {"image": around.container, "engine": around.engine}
        fields["container"] = around.container if around.engine is None else both
    return fields if around.conda is None else fields | {"conda": around.conda}


def filled_around(
    body: Mapping[object, object], defaults: Mapping[object, object]
) -> dict[object, object]:
    """What of the defaults a task has: variables that it does not set, one place to run in."""
    own = {key for key in ("container", "conda") if key in body}
    kept = {key: v for key, v in defaults.items() if not (own and key in ("container", "conda"))}
    both = [kept.get("env"), body.get("env")]
    if all(isinstance(part, Mapping) for part in both):
        kept["env"] = {k: v for part in both if isinstance(part, Mapping) for k, v in part.items()}
        return kept | {key: v for key, v in body.items() if key != "env"}
    return kept | dict(body)


def _variables(section: object, *place: str | int) -> tuple[tuple[str, str], ...]:
    found: dict[str, str] = {}
    for variable, value in named(section, "the variable", *place).items():
        if not _VARIABLE.fullmatch(variable):
            raise wrong(f"{shown(variable)} is no name of a variable", *place)
        if variable.startswith(_OWN):
            raise wrong(f"{variable} is set by foreplan itself: choose another name", *place)
        if not isinstance(value, str | int) or isinstance(value, bool):
            raise wrong(
                f"expected text, not {as_placeholder(value) or shown(value)}: quote it",
                *place,
                variable,
            )
        found[variable] = name(value, *place, variable) if isinstance(value, int) else value
        if "\0" in found[variable]:
            raise wrong("a variable cannot hold a null character", *place, variable)
    return tuple(sorted(found.items()))


def _container(value: object, *place: str | int) -> tuple[str | None, str | None]:
    if value is None:
        return None, None
    engine = None
    if isinstance(value, Mapping):
        fields = mapping(value, *place)
        check_fields(fields, ("image", "engine"), *place)
        value = required(fields, "image", *place)
        if "engine" in fields:
            engine = string(fields["engine"], *place, "engine")
            if engine not in ENGINES:
                raise unknown("engine", engine, ENGINES, *place, "engine")
    image = _word(string(value, *place), "image", *place)
    if engine is not None and engine not in Surroundings(container=image).engines:
        others = " or ".join(APPTAINER)
        raise wrong(f"{engine} cannot run {shown(image)}: {others} can", *place)
    return image, engine


def _conda(value: object, *place: str | int) -> str | None:
    if value is None:
        return None
    environment = _word(string(value, *place), "environment", *place)
    if environment.endswith((".yaml", ".yml")):
        raise wrong(
            "expected the name or the prefix of a conda environment that is there, not a file "
            f"to make one from: {shown(environment)}",
            *place,
        )
    return environment


def _word(value: str, what: str, *place: str | int) -> str:
    """A word that a program can be given, and does not take for an option."""
    if not value or value.startswith("-") or any(c.isspace() or c == "\0" for c in value):
        raise wrong(f"{shown(value)} is no name of an {what}", *place)
    return value
