"""Loss scalers and their tests: `pytest examples/python/prove_your_loss_scaler.py`.

MyScaler follows the rule of torch.amp.GradScaler on NumPy arrays. ForgetfulScaler has an error;
docs/python_testing.md shows what the test then reports. Where torch is installed, its own scaler is
tested too.
"""

import numpy as np
import pytest

from samebits.testing import check_loss_scaler


class MyScaler:
    def __init__(self, init_scale, growth_factor, backoff_factor, growth_interval):
        self.scale = np.float32(init_scale)
        self.growth, self.backoff = growth_factor, backoff_factor
        self.interval, self.good_steps = growth_interval, 0

    def __call__(self, gradients):
        """Unscale the gradients in place, set the next scale; return whether to step."""
        finite = all(np.isfinite(g).all() for g in gradients)
        for g in gradients:
            g *= np.float32(1) / self.scale
        if finite:
            self.after_good_step()
        else:
            self.after_bad_step()
        return finite

    def after_good_step(self):
        self.good_steps += 1
        if self.good_steps == self.interval:
            grown = np.float32(float(self.scale) * self.growth)
            self.scale, self.good_steps = grown if np.isfinite(grown) else self.scale, 0

    def after_bad_step(self):
        self.scale, self.good_steps = np.float32(float(self.scale) * self.backoff), 0


class ForgetfulScaler(MyScaler):
    def after_bad_step(self):
        self.scale = np.float32(float(self.scale) * self.backoff)  # the error: good_steps stays


def test_loss_scaler():
    check_loss_scaler(MyScaler, "torch")


def test_torchs_own_loss_scaler():
    torch = pytest.importorskip("torch")
    check_loss_scaler(lambda **settings: torch.amp.GradScaler("cpu", **settings), "torch")
