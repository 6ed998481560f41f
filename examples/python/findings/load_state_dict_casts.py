"""Optimizer.load_state_dict casts every state of a floating-point parameter to its dtype.

    python examples/python/findings/load_state_dict_casts.py

An optimizer of a bf16 model that keeps fp32 master weights or 8-bit states in `state` finds bf16
numbers there after a checkpoint. Only `step` is spared.
"""

import torch


def states_after_a_checkpoint():
    """Return (before, after): the dtype and first element of each state of a bf16 parameter."""
    parameter = torch.nn.Parameter(torch.tensor([0.1, 0.2]).bfloat16())
    optimizer = torch.optim.SGD([parameter], lr=0.1)
    optimizer.state[parameter] = {"step": torch.tensor(3.0), "master": torch.tensor([0.1, 0.2]),
                                  "codes": torch.tensor([201, 7], dtype=torch.uint8)}
    resumed = torch.optim.SGD([parameter], lr=0.1)
    resumed.load_state_dict(optimizer.state_dict())
    return tuple({name: (str(value.dtype), value.flatten()[0].item())
                  for name, value in o.state[parameter].items()} for o in (optimizer, resumed))


def main():
    before, after = states_after_a_checkpoint()
    for name, (dtype, value) in before.items():
        print(f"{name:8} {dtype:15} {value:<22} -> {after[name][0]:15} {after[name][1]}")


if __name__ == "__main__":
    main()
