"""torch.optim.SGD(fused=True) with momentum reads unwritten memory if the first step is skipped.

    python examples/python/findings/fused_sgd_momentum.py

The first step allocates the momentum without writing it, because the kernel would write it. If
GradScaler found Inf, the kernel returns at once; the second step then reads the momentum. Torch's
mode for deterministic results fills new memory with NaN, which shows the error in each run.
"""

import torch


def after_a_skipped_step(device, **options):
    """Return a parameter after a step that GradScaler skips and one with gradient 1."""
    parameter = torch.nn.Parameter(torch.zeros(3, device=device))
    optimizer = torch.optim.SGD([parameter], lr=1.0, momentum=0.9, **options)
    scaler = torch.amp.GradScaler(device, init_scale=1.0)
    for gradient in (float("inf"), 1.0):
        scaler.scale(torch.ones((), device=device))
        parameter.grad = torch.full_like(parameter, gradient * scaler.get_scale())
        scaler.step(optimizer)
        scaler.update()
    return parameter.tolist()


def main():
    torch.use_deterministic_algorithms(True)  # fills new memory with NaN
    try:
        for device in ["cpu"] + ["cuda"] * torch.cuda.is_available():
            print(f"{device}, foreach=True: {after_a_skipped_step(device, foreach=True)}")
            print(f"{device}, fused=True:   {after_a_skipped_step(device, fused=True)}")
    finally:
        torch.use_deterministic_algorithms(False)


if __name__ == "__main__":
    main()
