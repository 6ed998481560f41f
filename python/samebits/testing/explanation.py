"""The explanation of a failure: usual errors that give all results seen."""

from __future__ import annotations

from dataclasses import dataclass

_MAX_NAMED = 3  # sentences in one text


@dataclass(frozen=True)
class Explanation:
    """The usual errors that give all results seen, and the number of these results."""

    sentences: tuple[str, ...]
    results: int
    wrong: int

    @property
    def text(self) -> str:
        """Line of the failure text that begins with "looks like: "."""
        evidence = f"all {self.results} results seen, {self.wrong} wrong"
        if not self.sentences:
            return f"looks like: none of the usual errors (none fits {evidence})"
        named = "; or ".join(self.sentences[:_MAX_NAMED])
        return f"looks like: {named} (fits {evidence})"
