"""Batches of text: the pages of this project, byte by byte.

The pages ship with the example and are the same under every version of Python, which the sources of
Python's library are not. They change with the project, so results name the text by its SHA-256.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import torch

PAGES = Path(__file__).resolve().parents[2] / "docs"
HELD_OUT = 64  # sequences of the validation loss


class Text:
    """Training and validation batches of a text, on the CPU."""

    def __init__(self, context: int, words: int = 256) -> None:
        # docs/training.md has results of this program, so it is no part of the text.
        pages = [p for p in sorted(PAGES.glob("*.md")) if p.name != "training.md"]
        text = b"".join(p.read_bytes() for p in pages)
        self.sha256 = hashlib.sha256(text).hexdigest()
        tokens = torch.frombuffer(bytearray(text), dtype=torch.uint8).long()
        held_out = HELD_OUT * (context + 1)
        #: Whole sequences from the middle of the text, which no training batch contains.
        begin = (len(tokens) - held_out) // 2
        self.validation = tokens[begin:begin + held_out].view(HELD_OUT, context + 1)
        self.parts = [tokens[:begin], tokens[begin + held_out:]]
        self.context, self.words = context, words

    def batch(self, step: int, sequences: int, seed: int) -> torch.Tensor:
        """Return tokens [sequences, context + 1]; they depend on these arguments alone."""
        random = torch.Generator().manual_seed(1_000_003 * seed + step)
        if self.words != 256:  # a vocabulary that the text does not have, for measuring times
            return torch.randint(self.words, (sequences, self.context + 1), generator=random)
        rows = []
        for part in torch.randint(2, (sequences,), generator=random).tolist():
            begins = len(self.parts[part]) - self.context
            at = int(torch.randint(begins, (1,), generator=random))
            rows.append(self.parts[part][at:at + self.context + 1])
        return torch.stack(rows)
