"""torch.optim.SGD(fused=True) under a GradScaler rounds three of four elements in another way.

    python examples/python/findings/fused_sgd_places.py

A GradScaler sets the optimizer's attribute grad_scale, which selects another kernel. That kernel
computes parameter - lr * gradient. The compiler made a fused multiply-add of one of four copies of
an unrolled loop, and a product and a difference of the others. So equal numbers at different places
of a tensor get different bits. Needs a GPU.
"""

import torch

START, RATE, GRADIENT = 1.0, 0.1, 0.3  # one rounding and two give different parameters


def step(count, offset=0, scaler=False, device="cuda"):
    """Return `count` equal elements after one step."""
    parameter = torch.nn.Parameter(torch.full((count + offset,), START, device=device)[offset:])
    parameter.grad = torch.full((count + offset,), GRADIENT, device=device)[offset:]
    optimizer = torch.optim.SGD([parameter], lr=RATE, fused=True)
    if scaler:  # as a GradScaler with a scale of 1 does
        optimizer.grad_scale = torch.ones((), device=device)
        optimizer.found_inf = torch.zeros((), device=device)
    optimizer.step()
    return parameter.detach().cpu()


def rounded_twice(parameter):
    """Return the places where the product was rounded; all others are fused multiply-adds."""
    start, rate, gradient = (torch.tensor(x).double() for x in (START, RATE, GRADIENT))
    once = (start - rate * gradient).float()  # exact before it is rounded
    twice = (start - (rate * gradient).float().double()).float()
    assert once != twice and bool(((parameter == once) | (parameter == twice)).all())
    return (parameter == twice).nonzero().flatten()


def main():
    if not torch.cuda.is_available():
        print("no GPU: torch.optim.SGD(fused=True) has other kernels on the CPU")
        return
    for label, arguments in (("4096 elements, aligned", (4096,)),
                             ("the same with grad_scale", (4096, 0, True)),
                             ("4095 elements, grad_scale", (4095, 0, True)),
                             ("not aligned, grad_scale", (4096, 1, True))):
        places = rounded_twice(step(*arguments))
        print(f"{label:26} {len(places):5} of {arguments[0]} equal elements are rounded twice; "
              f"the first at {places[:6].tolist()}")


if __name__ == "__main__":
    main()
