"""Roles and aliases: which column of a table holds the model, the item, the response."""

from collections.abc import Sequence

from irtjax.errors import InputError
from irtjax.io.files import quoted

__all__ = [
    "ALIASES",
    "BENCHMARK",
    "BENCHMARK_ALIASES",
    "CANONICAL",
    "ID_NAMES",
    "check_names",
    "listed",
    "resolve_roles",
    "roles_found",
]

CANONICAL = {"model": "model_id", "item": "item_id", "response": "response"}
ALIASES = {
    "model": ("model", "model_name", "subject_id", "student_id", "source"),
    "item": ("item", "question_id", "example_id", "doc_id"),
    "response": ("correct", "is_correct", "resp", "score", "outcome", "acc"),
}
BENCHMARK = "benchmark"
BENCHMARK_ALIASES = ("dataset", "task", "subject", "category")
ID_NAMES = frozenset(
    name for role in ("model", "item") for name in (CANONICAL[role], *ALIASES[role])
)
_LISTED = 8


def listed(names: Sequence[object]) -> str:
    """Some names in words, the first eight and how many more."""
    shown = ", ".join(quoted(name) for name in names[:_LISTED])
    more = len(names) - _LISTED
    return shown + (f" and {more:,} more" if more > 0 else "")


def check_names(names: Sequence[str], path: object) -> None:
    """Refuse a header with a repeated name."""
    first: dict[str, int] = {}
    for number, name in enumerate(names, 1):
        if name in first:
            raise InputError(
                f"{path} has two columns named {quoted(name)} (columns {first[name]} and "
                f"{number}); give each column its own name"
            )
        first[name] = number


def roles_found(names: Sequence[str]) -> set[str]:
    """The roles for which a table has a canonical name or an alias."""
    have = set(names)
    return {role for role in CANONICAL if have & {CANONICAL[role], *ALIASES[role]}}


def resolve_roles(
    names: Sequence[str],
    path: object,
    overrides: dict[str, str | None],
    roles: Sequence[str] = ("model", "item", "response"),
) -> dict[str, str]:
    """The column of each role: the one asked for, else the canonical name, else the only alias.

    Args:
        names: the columns of the table.
        path: the file, for messages.
        overrides: role to the column that the user named, if any.
        roles: the roles that are needed.

    Raises:
        InputError: no column for a role, two aliases, one column for two roles.
    """
    chosen = {role: _resolve(role, names, path, overrides.get(role)) for role in roles}
    for k, role in enumerate(roles):
        for other in roles[:k]:
            if chosen[role] == chosen[other]:
                raise InputError(
                    f"column {quoted(chosen[role])} of {path} is named for {other} and {role}; "
                    f"correct --{other}-column or --{role}-column"
                )
    return chosen


def _resolve(role: str, names: Sequence[str], path: object, override: str | None) -> str:
    if override is not None:
        if override not in names:
            raise InputError(
                f"{path} has no column {quoted(override)} (--{role}-column); "
                f"columns: {listed(names)}"
            )
        return override
    if CANONICAL[role] in names:
        return CANONICAL[role]
    candidates = [name for name in names if name in ALIASES[role]]
    if len(candidates) > 1:
        raise InputError(
            f"{path} has {len(candidates)} columns for the {role}, "
            f"{' and '.join(quoted(name) for name in candidates)}; "
            f"say which with --{role}-column"
        )
    if not candidates:
        known = ", ".join((CANONICAL[role], *ALIASES[role]))
        raise InputError(
            f"{path} has no column for the {role} ({known}); name it with --{role}-column; "
            f"columns: {listed(names)}"
        )
    return candidates[0]
