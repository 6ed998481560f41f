"""Tests of `samebits.testing.check_loss_scaler`: planted errors, right scalers, texts, refusals."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import samebits as sb
from planted import SEEDS, failure_of, repeated, results_per_error
from planted_loss_scalers import PLANTED, UNNAMED, Scaler, planted
from samebits.testing import Trace, check_loss_scaler


failure = partial(failure_of, check_loss_scaler)


@pytest.mark.parametrize("says", PLANTED)
def test_planted_error_is_found_shrunk_named_and_repeated(says: str, record_property: Any) -> None:
    for seed in SEEDS:
        text = failure(PLANTED[says], examples=48, examples_seed=seed)
        named = "none of the usual errors" if says in UNNAMED else says
        assert named in text.split("looks like: ")[1], text
        assert "(smallest run found)" in text
        steps = int(text.split(" is wrong")[0].split(" of ")[-1])
        assert steps <= 5, text
        record_property("cases", results_per_error(text))
    assert repeated(text, check_loss_scaler, PLANTED[says])[:-2] == text.splitlines()[:-2]


@pytest.mark.parametrize(("policy", "source"), [("torch", "fp16"), ("torch", "bf16"), *(
    (policy, "fp32") for policy in ("torch", "apex", "apex_amp", "megatron", "deepspeed", "native"))])
def test_right_scalers_pass(policy: str, source: str) -> None:
    check_loss_scaler(lambda **s: sb.LossScaler(policy, **s), policy, source=source, examples=48)
    if policy == "torch":
        check_loss_scaler(Scaler, source=source, examples=32)


def test_the_rule_of_another_library_is_named() -> None:
    def make_scaler(**settings: Any) -> Any:
        return sb.LossScaler("apex", hysteresis=2, **settings)

    text = failure(lambda **s: sb.LossScaler("megatron", initial_scale=s.pop("init_scale"), **s),
                   settings={"init_scale": 65536.0})
    assert "looks like: the rule of megatron instead of torch" in text
    assert "looks like: none of the usual errors" in failure(make_scaler)
    text = failure(lambda **s: sb.LossScaler("torch", **{k: s[k] for k in s if k != "hysteresis"}),
                   "apex", settings={"hysteresis": 2})
    assert "policy apex, " in text and "the rule of torch instead of apex" in text


def test_errors_of_several_optimizers_are_named() -> None:
    class TwoOptimizers(sb.LossScaler):
        def __init__(self, **settings: Any) -> None:
            super().__init__("torch", **settings)

        def step(self, run: Any = None, optimizer: str = "") -> bool:
            applied = super().step(run, optimizer)
            if optimizer == "0":
                self.first = applied
            return applied and self.first

    text = failure(TwoOptimizers)
    assert "gradients with Inf in tensor 0 of optimizer 0" in text or "with NaN in tensor" in text
    assert "expected: optimizer 0 skipped, optimizer 1 stepped" in text


def test_text_of_a_wrong_gradient() -> None:
    text = failure(PLANTED["unscaled by the scale instead of 1 / scale"])
    lines = text.splitlines()
    assert lines[3] == ("  gradient  optimizer 0, tensor 0[0]: 0x3F800000 = 1   "
                        "got 0x47800000 = 65536   expected 0x37800000 = 1.52587890625e-05")


def test_settings_are_fixed() -> None:
    seen = set()

    class Fixed(Scaler):
        def __init__(self, **settings: Any) -> None:
            super().__init__(**settings)
            seen.add((self.interval, self.growth, float(self.scale)))

    check_loss_scaler(Fixed, settings={"growth_interval": 2, "growth_factor": 4.0}, examples=16)
    assert {s[:2] for s in seen} == {(2, 4.0)} and len(seen) > 1


def test_large_intervals() -> None:
    short = Trace({"init_scale": 8.0, "growth_factor": 2.0, "backoff_factor": 0.5,
                   "growth_interval": 200}, [[[[0x3F800000]]]] * 201)
    check_loss_scaler(Scaler, only=short)
    late = PLANTED["growth one step too late"]
    text = failure(late, only=short)
    assert "step 199 of 201 is wrong" in text and "  ...       193 steps before" in text


def test_wrong_scalers_are_reported() -> None:
    def raises(self: Any, gradients: Any) -> bool:
        if any(np.isnan(g).any() for g in gradients):
            raise OverflowError("NaN")
        return nothing(gradients)

    def nothing(gradients: Any) -> bool:
        return False

    text = failure(planted(__call__=raises))
    assert "policy torch: make_scaler raised OverflowError: NaN\n  in a call with 1 step\n" in text
    assert "only=Trace(" in text
    assert "returned int; expected a scaler with torch's scale, unscale_" in failure(lambda **settings: 3)
    assert "raised TypeError" in failure(lambda scale: scale)


def test_refusals() -> None:
    with pytest.raises(sb.InvalidArgument, match="policy: 'pytorch' is not one of torch"):
        check_loss_scaler(Scaler, "pytorch")
    with pytest.raises(sb.InvalidArgument, match="'interval' is not a setting of policy torch"):
        check_loss_scaler(lambda **s: sb.LossScaler(), settings={"interval": 3}, examples=1)


def test_runs_depend_on_the_seed_alone() -> None:
    def recorded(seed: int) -> list[bytes]:
        found: list[bytes] = []

        class Recorded(Scaler):
            def __call__(self, gradients: Any) -> bool:
                found.extend(g.tobytes() for g in gradients)
                return super().__call__(gradients)

        check_loss_scaler(Recorded, examples=2, examples_seed=seed)
        return found

    assert recorded(1) == recorded(1) != recorded(2)
