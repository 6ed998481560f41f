"""What an audit has found: `AuditReport`."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from samebits.torch.audit_sample import Finding

__all__: list[str] = []


@dataclass
class AuditReport:
    """What an audit has seen so far.

    Attributes
    ----------
    steps, operators : int
        Steps of optimizers that have ended; operators that ran in audited steps.
    chosen, tiles, equal : int
        Operators that were chosen; parts that were recomputed; those that were equal, bit for bit.
    findings : list of Finding
        Parts that differ from the rule, also those that follow another known rule.
    not_covered : dict
        Chosen operators without a rule: how many, by name.
    dropped : int
        Chosen operators that were not copied, because `max_bytes` were waiting.
    bytes : int
        Bytes that were copied.
    seconds, worker_seconds, wall_seconds : float
        Time that the program's thread spent on the audit's own work, time of the workers, time in the block.
    """

    steps: int = 0
    operators: int = 0
    chosen: int = 0
    tiles: int = 0
    equal: int = 0
    findings: list[Finding] = field(default_factory=list)
    not_covered: Counter[str] = field(default_factory=Counter)
    dropped: int = 0
    bytes: int = 0
    seconds: float = 0.0
    worker_seconds: float = 0.0
    wall_seconds: float = 0.0

    @property
    def suspect(self) -> list[Finding]:
        """The findings that follow no known rule, and are sure."""
        return [finding for finding in self.findings if finding.sure and not finding.follows]

    def __str__(self) -> str:
        lines = [f"{self.tiles} tiles of {self.operators} operators in {self.steps} steps recomputed: "
                 f"{self.equal} equal, bit for bit"]
        lines += [f"  {finding}" for finding in self.findings]
        lines += [f"  {n} not covered: {name}" for name, n in sorted(self.not_covered.items())]
        if self.dropped:
            lines.append(f"  {self.dropped} dropped: too many bytes were waiting")
        share = self.seconds / self.wall_seconds if self.wall_seconds else 0.0
        lines.append(f"  cost: {100 * share:.1f} % of the program's time, {self.worker_seconds:.1f} s of workers, "
                     f"{self.bytes / 1e6:.1f} MB copied")
        return "\n".join(lines)
