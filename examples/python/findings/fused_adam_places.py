"""torch.optim.Adam(fused=True) with weight decay rounds each fourth element in another way.

    python examples/python/findings/fused_adam_places.py

The kernel adds weight_decay * parameter to the gradient. The compiler made a fused multiply-add of
three of four copies of an unrolled loop, and a product and a sum of the fourth. So equal numbers at
different places of a tensor get different bits. Needs a GPU.
"""

import torch


def step(count, offset=0, scaler=False):
    """Return the first state of `count` equal elements after one step."""
    device = "cuda"
    parameter = torch.nn.Parameter(torch.full((count + offset,), 0.3, device=device)[offset:])
    parameter.grad = torch.full((count + offset,), 0.1, device=device)[offset:]
    optimizer = torch.optim.Adam([parameter], weight_decay=0.1, fused=True)
    if scaler:  # the kernel that divides by a loss scale has a fused multiply-add everywhere
        optimizer.grad_scale = torch.ones((), device=device)
        optimizer.found_inf = torch.zeros((), device=device)
    optimizer.step()
    return optimizer.state[parameter]["exp_avg"]


def places(state):
    """Return the places whose bits differ from those of the majority."""
    values, counts = state.unique(return_counts=True)
    common = values[counts.argmax()]
    return (state != common).nonzero().flatten()


def main():
    if not torch.cuda.is_available():
        print("no GPU: torch.optim.Adam(fused=True) takes other steps on the CPU")
        return
    for label, arguments in (("4096 elements, aligned", (4096,)), ("4095 elements", (4095,)),
                             ("4096 elements, not aligned", (4096, 1)),
                             ("with grad_scale", (4096, 0, True))):
        odd = places(step(*arguments))
        print(f"{label:28} {len(odd):5} of {arguments[0]} equal elements differ; "
              f"the first at {odd[:4].tolist()}")


if __name__ == "__main__":
    main()
