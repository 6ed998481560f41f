"""torch.amp.GradScaler: 166 bad steps in a row, and the next good step makes every parameter NaN.

    python examples/python/findings/scale_zero.py

Each skipped step halves the scale, without a floor: from 2^16 it is 0 after 166 steps. The loss is
then multiplied by 0 and the gradients by 1/0 = Inf. The zeros pass the check for Inf and NaN, which
runs before 0 * Inf = NaN.
"""

import numpy as np
import torch

import samebits as sb


def bad_steps_until_zero(scaler):
    """Run steps with NaN gradients until the scale is 0, at most 400; return their number."""
    parameter = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([parameter], lr=0.1)
    for step in range(400):
        if scaler.get_scale() == 0:
            return step
        train(scaler, optimizer, parameter, float("nan"))
    return None


def train(scaler, optimizer, parameter, factor):
    """Do one step with the loss factor * sum(parameter)."""
    optimizer.zero_grad()
    scaler.scale((parameter * factor).sum()).backward()
    scaler.step(optimizer)
    scaler.update()


def parameters_after_a_good_step(scaler):
    """Return the parameters [3] after one step with finite gradients."""
    parameter = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.SGD([parameter], lr=0.1)
    train(scaler, optimizer, parameter, 1.0)
    return parameter.detach()


def native_scale_after(steps):
    """Return the scale of samebits' own policy after bad steps."""
    scaler = sb.LossScaler("native")
    for _ in range(steps):
        scaler.unscale([np.float32([np.nan])])
        scaler.step()
        scaler.update()
    return scaler.get_scale()


def main():
    scaler = torch.amp.GradScaler("cpu")
    print("bad steps until the scale is 0:", bad_steps_until_zero(scaler))
    print("parameters after the next good step:", parameters_after_a_good_step(scaler).tolist())
    print("scale afterwards:", scaler.get_scale())
    print("scale of samebits' native policy after 400 bad steps:", native_scale_after(400))


if __name__ == "__main__":
    main()
