"""What a process writes at its end."""

from __future__ import annotations

import subprocess
import sys

import pytest

HOOKS = """
import torch
import samebits.torch as sbt

model = torch.nn.Linear(8, 8)
optimizers = {p: sbt.optim.AdamW([p]) for p in model.parameters()}
scaler = sbt.GradScaler("cpu")

def step(p):
    scaler.step(optimizers[p])
    optimizers[p].zero_grad()

for p in model.parameters():
    p.register_post_accumulate_grad_hook(step)
scaler.scale(model(torch.ones(4, 8)).sum()).backward()
scaler.update()
print("done")
"""


@pytest.mark.parametrize("within", ["module", "function"])
def test_optimizers_in_hooks_of_the_backward_pass_are_no_leaks(within: str) -> None:
    program = HOOKS
    if within == "function":
        program = "def main():\n" + "".join(f"    {x}\n" for x in HOOKS.splitlines()) + "main()\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("done\n", "")
