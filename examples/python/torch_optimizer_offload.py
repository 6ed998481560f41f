"""An optimizer on the CPU for a model on the GPU: the bits of an optimizer on the GPU.

    python examples/python/torch_optimizer_offload.py

The GPU keeps bf16 weights alone. Master weights and states, twelve bytes for each parameter, stay in
host memory. Each step copies gradients to the host and weights back. The last line compares all
weights with those of a run whose optimizer works on the GPU; without a GPU both run on the CPU.
"""

import torch

from samebits.torch.optim import AdamW


class OffloadedAdamW:
    """AdamW whose master weights and states lie in host memory."""

    def __init__(self, parameters, **options):
        self.parameters = list(parameters)
        pinned = torch.cuda.is_available()
        self.on_host = [torch.nn.Parameter(torch.empty_like(p, device="cpu", pin_memory=pinned))
                        for p in self.parameters]
        for p, host in zip(self.parameters, self.on_host):
            host.data.copy_(p.detach())
            host.grad = torch.empty_like(host, pin_memory=pinned)
        self.adamw = AdamW(self.on_host, **options)

    @torch.no_grad()
    def step(self):
        for p, host in zip(self.parameters, self.on_host):
            host.grad.copy_(p.grad, non_blocking=True)
        if torch.cuda.is_available():
            torch.cuda.synchronize()  # the gradients have arrived
        self.adamw.step()
        for p, host in zip(self.parameters, self.on_host):
            p.copy_(host, non_blocking=True)


def train(offload, device, steps=5):
    """Return a small model after some steps."""
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 200), torch.nn.Linear(200, 10))
    model.to(device, torch.bfloat16)
    optimizer = (OffloadedAdamW if offload else AdamW)(model.parameters(), lr=0.01)
    make = torch.Generator().manual_seed(1)
    for _ in range(steps):
        # Gradients as a backward pass might write them: the same in both runs.
        for p in model.parameters():
            p.grad = torch.randn(p.shape, generator=make).bfloat16().to(device)
        optimizer.step()
    return model


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    pairs = list(zip(train(True, device).parameters(), train(False, device).parameters()))
    differ = sum(int((a.view(torch.int16) != b.view(torch.int16)).sum()) for a, b in pairs)
    elements = sum(a.numel() for a, _ in pairs)
    print(f"optimizer on the CPU beside one on {device}: {differ} of {elements} weights differ")


if __name__ == "__main__":
    main()
