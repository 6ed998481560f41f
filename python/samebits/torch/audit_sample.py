"""One operator that an audit has chosen: recomputes it, and says where and how it differs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest
from typing import Any

import torch

from samebits.errors import InvalidArgument, Unsupported
from samebits.torch.aten.products import rules_of_product
from samebits.torch.aten.registry import require
from samebits.torch.copies import restored
from samebits.torch.differences import Difference, difference
from samebits.torch.operators import Operator
from samebits.torch.other_rules import other_rules
from samebits.torch.recompute import Conditions, recompute_recorded
from samebits.torch.tiles import Place

#: Rows and columns of the parts of a product's tile by which a rule is searched if none gives the whole tile.
_PART = 16


@dataclass(frozen=True)
class Finding:
    """A part of an operator's results that differs from its rule.

    Attributes
    ----------
    step, number : int
        The step, and the operator's place in it.
    operator, module : str
    result : int
        Which of the tensors that the operator wrote.
    tile : list of int
        The place of the recomputed part's first element.
    where : Difference, optional
        The elements that differ, in coordinates of the whole result, and the bit if it is one; None if no rule
        says which elements are right.
    follows : str
        Another known rule that gives this part, or an empty text: suspect the device.
    item : int, optional
        The tensor of an operator of lists.
    sure : bool
        False of a product whose shape has given no equal tile yet: its kernel may be one without a known rule.
    """

    step: int
    number: int
    operator: str
    module: str
    result: int
    tile: list[int]
    where: Difference | None
    follows: str = ""
    item: int | None = None
    sure: bool = True

    def __str__(self) -> str:
        module = f" ({self.module})" if self.module else ""
        item = "" if self.item is None else f", tensor {self.item}"
        where = f"{self.where}" if self.where is not None else "all results of the tile"
        verdict = (f"follows {self.follows}" if self.follows else "no known rule: suspect this device" if self.sure
                   else "no known rule yet for this shape: another kernel, or a wrong result")
        return (f"differs: step {self.step}, {self.operator} #{self.number}{module}{item}, result {self.result}, tile "
                f"at {self.tile}: {where}; {verdict}")


@dataclass
class Sample:
    """Copies of an operator's arguments and results."""

    step: int
    number: int
    operator: Operator
    module: str
    how: Conditions
    args: Any
    kwargs: Any
    size: int  # bytes
    tile: Place
    written: Any = field(default_factory=list)
    results: Any = field(default_factory=list)
    ready: list[Any] = field(default_factory=list)  # events of GPUs

    def judged(self, rules: dict[str, list[str]]) -> Finding | None:
        """Recompute the operator; return where it differs. `rules`: those of products that were seen."""
        for event in self.ready:
            event.synchronize()
        if self.tile.alike:
            return self._product(rules)
        wrong = self._wrong_by(None)
        if wrong is None:
            return None
        for name, rule in other_rules(self.operator.name, self.how).items():
            try:
                if self._wrong(rule) is None:
                    return self._finding(*wrong, name)
            except Exception:  # noqa: BLE001, S112 - a rule that does not apply
                continue
        return self._finding(*wrong)

    def _wrong(self, rule: Callable[[Any, Any], Any]) -> tuple[int, Difference] | None:
        """Return the first result that differs from a rule, and where."""
        args, kwargs = restored(self.args), restored(self.kwargs)
        found = rule(args, kwargs)
        written = self.operator.written(args, kwargs)
        pairs = [*zip(restored(self.written), written, strict=True), *_pairs(restored(self.results), found)]
        compared = [(i, *pair) for i, pair in enumerate(pairs) if pair[1] is not None]  # None: no rule
        require(bool(compared), self.operator.name)
        for i, given, right in compared:
            alike = given.dtype == right.dtype and given.numel() == right.numel()
            require(alike, f"{self.operator.name} with other results than its rule's")
            if where := difference(given, right.reshape(given.shape), self.tile.origin, self.tile.shape):
                return i, where
        return None

    def _finding(self, result: int, where: Difference | None, follows: str = "", sure: bool = True) -> Finding:
        return Finding(self.step, self.number, self.operator.name, self.module, result, self.tile.origin, where,
                       follows, self.tile.item, sure)

    def _product(self, rules: dict[str, list[str]]) -> Finding | None:
        """Recompute a tile of a product by the rules of its shape, or search its rule."""
        args, given = restored(self.args), restored(self.results)
        known = rules.setdefault(self.tile.alike, [])
        if any(self._wrong_by(rule) is None for rule in [*known]):
            return None
        found = self._search(args, given, slice(None), slice(None))
        if found:
            known[:0] = found  # of a small tile several may fit; a library may also choose by addresses
            return None
        if known:
            return self._finding(*self._closest(known))
        others = [*{rule for seen in [*rules.values()] for rule in seen}, *self._rules_of_parts(args, given)]
        return self._finding(*self._closest(others), sure=False)

    def _wrong_by(self, product: str | None) -> tuple[int, Difference] | None:
        how = replace(self.how, product=product)
        return self._wrong(partial(recompute_recorded, self.operator.name, how=how))

    def _closest(self, rules: list[str]) -> tuple[int, Difference | None]:
        """Return where the tile differs by the rule that most of its results follow."""
        found = [wrong for rule in rules if (wrong := self._wrong_by(rule)) is not None]
        return min(found, key=lambda wrong: wrong[1].count, default=(0, None))

    def _rules_of_parts(self, args: Any, given: torch.Tensor) -> Iterator[str]:
        """Yield rules of parts on the tile's diagonal: a wrong block spares some of them."""
        for row in range(0, given.shape[-2], _PART):
            col = row % given.shape[-1]
            yield from self._search(args, given, slice(row, row + _PART), slice(col, col + _PART))[:1]

    def _search(self, args: Any, given: torch.Tensor, rows: slice, cols: slice) -> list[str]:
        """Return the rules of a part of the tile."""
        require(self.kwargs.get("beta", 1) == 1 == self.kwargs.get("alpha", 1), "addmm with beta or alpha")
        try:
            return rules_of_product(self.operator.short, args, given.flatten(0, -2)[rows, cols], rows, cols)
        except InvalidArgument as error:
            raise Unsupported(f"not covered: {self.operator.name} of {given.dtype}: {error}") from None


def _pairs(given: Any, found: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each result with the recomputed one; None without a rule."""
    if isinstance(given, list | tuple):
        if not given:
            return
        results = [None] * len(given) if found is None else found
        for one, other in zip_longest(given, [*results][: len(given)]):
            yield from _pairs(one, other)
    elif isinstance(given, torch.Tensor):
        yield given, found
