"""Item ids of lm-evaluation-harness samples: `task/doc_id`, checked against the content hash."""

from collections.abc import Sequence
from pathlib import Path

from irtjax.errors import InputError
from irtjax.io.files import Place, joined_places, quoted

__all__ = ["ItemNames"]


class ItemNames:
    """The items seen so far, by task and content hash, each named by its first `task/doc_id`.

    An item is its content: a document that another run counts differently is the same item.
    Two documents of one run are two items even when their contents are equal, because the
    benchmark counts both.
    """

    def __init__(self) -> None:
        self._hash: dict[str, str] = {}
        self._place: dict[str, Place] = {}
        self._name: dict[str, str] = {}
        self._same_content: dict[tuple[str, str], list[str]] = {}

    def hash_of(self, item: str) -> str:
        """The content hash of an item, empty when no file gave one."""
        return self._hash.get(item, "")

    def items_of(
        self,
        task: str,
        doc_ids: Sequence[str],
        hashes: Sequence[str],
        lines: Sequence[int],
        path: Path,
    ) -> list[str]:
        """The item of each sample of one run.

        Raises:
            InputError: a document id with two hashes.
        """
        labels = [f"{task}/{doc_id}" for doc_id in doc_ids]
        own = set(labels)
        taken: set[str] = set()
        items = []
        for label, content, line in zip(labels, hashes, lines, strict=True):
            if label not in self._name:
                self._add(label, task, content, own, taken)
                self._place[label] = Place("line", line, str(path))
            known = self._hash.setdefault(label, content) if content else ""
            if known != content:
                raise InputError(
                    f"item {quoted(label)} has two content hashes, {known[:12]} and "
                    f"{content[:12]} "
                    f"({joined_places(self._place[label], Place('line', line, str(path)))}): the "
                    "runs used two versions of the task; read one version"
                )
            taken.add(self._name[label])
            items.append(self._name[label])
        return items

    def _add(self, label: str, task: str, content: str, own: set[str], taken: set[str]) -> None:
        """Name a new document: as an item of equal content from another run, or by itself."""
        same = self._same_content.setdefault((task, content), []) if content else []
        free = [item for item in same if item not in own and item not in taken]
        self._name[label] = free[0] if free else label
        if not free:
            same.append(label)
