"""Does this GPU compute rightly? A health check for a scheduler, and a training loop that stops on a wrong bit.

::

    python gpu_health_check.py [RECORDING]

prints one line of JSON. Exit status: 0: every bit is right; 1: the GPU computes wrongly; 2: it cannot be judged.
RECORDING is a step that samebits.torch.record wrote, such as gpt_step.sbt beside this file; with one of your own
training the check runs your kernels on your shapes.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable
from typing import Any

import samebits
import samebits.torch as sbt


def health(recording: str | None = None, device: str = "cuda", **options: Any) -> dict[str, Any]:
    """Return a node's state: healthy, wrong (with the operators and calls that are), or unknown (with the reason)."""
    node = {"host": socket.gethostname(), "device": device}
    try:
        card = sbt.check_card(recording, device=device, **options)
    except (samebits.Error, OSError, RuntimeError) as error:
        return {**node, "state": "unknown", "why": str(error)}
    node |= {"compared": card.operators + card.calls, "seconds": round(card.seconds, 1)}
    if card.wrong:
        return {**node, "state": "wrong", "where": [str(finding) for finding in card.wrong]}
    if card.not_covered:
        return {**node, "state": "unknown", "why": f"not compared: {', '.join(card.not_covered)}"}
    return {**node, "state": "healthy"}


class WrongBits(RuntimeError):
    """A device returned a result that follows no known rule."""


def train(step: Callable[[], Any], steps: int, share: float = 0.01, every: int = 16) -> sbt.AuditReport:
    """Run steps of a training, and stop soon after a device has computed wrongly."""
    suspects: list[sbt.Finding] = []

    def seen(finding: sbt.Finding) -> None:  # on a worker's thread
        if finding.sure and not finding.follows:
            suspects.append(finding)

    with sbt.audit(share=share, every=every, on_finding=seen) as audit:
        for _ in range(steps):
            step()
            if suspects:
                raise WrongBits(f"{socket.gethostname()}: {suspects[0]}")
    report = audit.report()
    if suspects:
        raise WrongBits(f"{socket.gethostname()}: {suspects[0]}")
    return report


def main() -> int:
    state = health(*sys.argv[1:2])
    print(json.dumps(state))
    return {"healthy": 0, "wrong": 1, "unknown": 2}[state["state"]]


if __name__ == "__main__":
    sys.exit(main())
