"""What tests of CUDA graphs, and of calls that wait for no GPU, share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from tensors import same


@contextmanager
def no_waits(device: str) -> Iterator[None]:
    """Refuse waits for the GPU; of the CPU there are none."""
    if device == "cuda":
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        if device == "cuda":
            torch.cuda.set_sync_debug_mode("default")


def captured(warm_up: Callable[[], object], call: Callable[[], Any]) -> tuple[torch.cuda.CUDAGraph, Any]:
    """Return the graph of a call and the call's results, after a warm-up on another stream."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        warm_up()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        results = call()
    return graph, results


def trained_twice(make: Callable[[], tuple[Any, Any, Any]], inputs: torch.Tensor) -> tuple[Any, Any]:
    """Train in eager steps, and anew in replays of a graph from the fourth input on; weights must be equal.

    `make` returns a model, its optimizer and a scaler. Returns the two scalers.
    """
    def step(model: Any, optimizer: Any, scaler: Any, x: torch.Tensor) -> None:
        optimizer.zero_grad()
        scaler.scale(model(x).square().sum()).backward()
        scaler.step(optimizer)
        scaler.update()

    def warm_up() -> None:
        for given in inputs[:3]:
            x.copy_(given)
            step(*replayed, x)
        replayed[1].zero_grad()  # gradients of a graph lie in the graph's own memory

    eager, replayed = make(), make()
    for x in inputs:
        step(*eager, x)
    x = torch.zeros_like(inputs[0])
    graph, _ = captured(warm_up, lambda: step(*replayed, x))
    for given in inputs[3:]:
        x.copy_(given)
        graph.replay()
    torch.cuda.synchronize()
    assert all(same(p, q) for p, q in zip(eager[0].parameters(), replayed[0].parameters(), strict=True))
    return eager[2], replayed[2]
