"""samebits.torch.optim beside the layout of TransformerEngine's FusedAdam.

TransformerEngine needs CUDA to install. `FusedAdamStates` repeats the formulas by which its optimizer
stores, saves and loads states: transformer_engine/pytorch/optimizers/fused_adam.py and
transformer_engine/common/multi_tensor/adam.cu, commit d0067d0 of 2026-08-22.
"""

from __future__ import annotations

import sys
from itertools import product
from typing import Any

import pytest
import torch
from tensors import same

import samebits as sb
from samebits.torch import optim

KEYS = ("exp_avg", "exp_avg_sq")
FORMATS = ["fp32", "bf16", "fp16", "fp8"]


def bits(t: torch.Tensor) -> torch.Tensor:
    return t.detach().view({1: torch.uint8, 2: torch.int16, 4: torch.int32}[t.itemsize])


def random(seed: int, scale: float = 1.0) -> torch.Tensor:
    return torch.randn(1000, generator=torch.Generator().manual_seed(seed)) * scale


class FusedAdamStates:
    """The states of one parameter of FusedAdam.

    fp16 and FP8 states have one scale for a tensor: largest magnitude / 32752 and / 448. FP8 numbers
    are multiplied by 1 / scale, and read with the reciprocal of that factor.
    """

    def __init__(self, formats: dict[str, str]) -> None:
        self.formats = formats
        self.stored: dict[str, tuple[torch.Tensor, torch.Tensor | None]] = {}

    def set(self, key: str, values: torch.Tensor) -> None:
        kind = self.formats[key]
        if kind == "int16" or kind == "fp32":
            assert values.dtype is (torch.int16 if kind == "int16" else torch.float32)
            self.stored[key] = values.clone(), None
        elif kind == "bf16":
            self.stored[key] = values.bfloat16(), None
        else:
            scale = values.abs().max() / (448.0 if kind == "fp8" else torch.tensor(32752.0))
            factor = torch.ones(()) / scale
            scaled = values * factor
            if kind == "fp8":
                codes = scaled.clamp(-448, 448).to(torch.float8_e4m3fn)
                self.stored[key] = codes, torch.ones(()) / factor
            else:
                self.stored[key] = scaled.half(), scale

    def get(self, key: str) -> torch.Tensor:
        codes, scale = self.stored[key]
        if codes.dtype is torch.int16:
            return codes.clone()
        return codes.float() if scale is None else codes.float() * scale

    def state_dict(self) -> dict[str, torch.Tensor]:
        """Return what state_dict() has: fp32 numbers, and remainders in int16."""
        return {key: self.get(key) for key in self.stored}

    def load_state_dict(self, saved: dict[str, torch.Tensor]) -> None:
        for key, values in saved.items():
            self.set(key, values if self.formats[key] == "int16" else values.float())


def split(master: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return bf16 weights and int16 remainders: a negative remainder rounds the weight up."""
    number = bits(master)
    low = (number & 0xFFFF).to(torch.int16)
    high = (number >> 16) + (low < 0).int()
    return high.to(torch.int16).view(torch.bfloat16), low


def joined(weights: torch.Tensor, low: torch.Tensor) -> torch.Tensor:
    high = bits(weights).int() - (low < 0).int()
    return ((high << 16) | (low.int() & 0xFFFF)).view(torch.float32)


def saved(states: FusedAdamStates, steps: int = 7) -> dict[str, Any]:
    group = {"params": [0], "lr": 0.125, "bias_correction": True, "betas": (0.8, 0.9), "eps": 1e-6,
             "weight_decay": 0.25, "step": steps}
    return {"state": {0: states.state_dict()}, "param_groups": [group]}


def recorded(formats: dict[str, str]) -> FusedAdamStates:
    """Return states of a parameter whose master weights are random(0)."""
    states = FusedAdamStates(formats)
    for key in KEYS:
        states.set(key, random(1, 1e-3) if key == "exp_avg" else random(2, 1e-4) ** 2)
    if "master_param" in formats:
        whole = random(0)
        states.set("master_param", split(whole)[1] if formats["master_param"] == "int16" else whole)
    return states


def loaded(theirs: FusedAdamStates, device: str, dtype: torch.dtype = torch.bfloat16,
           **options: Any) -> tuple[torch.nn.Parameter, Any]:
    remainders = theirs.formats.get("master_param") == "int16"
    weights = split(random(0))[0] if remainders else random(0).to(dtype)
    p = torch.nn.Parameter(weights.to(device))
    optimizer = optim.AdamW([p], **options)
    optimizer.load_state_dict(saved(theirs))
    return p, optimizer


@pytest.mark.parametrize("first,second", list(product(FORMATS, FORMATS)))
def test_states_of_every_format_keep_their_values(device: str, first: str, second: str) -> None:
    states = recorded({"exp_avg": first, "exp_avg_sq": second})
    p, ours = loaded(states, device, torch.float32)
    group = ours.param_groups[0]
    assert (group["lr"], group["betas"], group["eps"], group["weight_decay"]) == (0.125, (0.8, 0.9), 1e-6, 0.25)
    assert int(ours.state[p]["step"]) == 7
    assert all(same(ours.state[p][key], states.get(key)) for key in KEYS) and bool(states.get(KEYS[0]).any())
    if first == second == "bf16":
        p, ours = loaded(states, device, states="bf16")
        assert all(same(ours.state[p][key], states.stored[key][0]) for key in KEYS)
    if first == second != "bf16" and first != "fp8":
        states = recorded({"exp_avg": first, "exp_avg_sq": second, "master_param": first})
        p, ours = loaded(states, device, weights="master32")
        assert same(ours.state[p]["master"], states.get("master_param"))


def test_remainders_are_the_low_part_of_split16(device: str) -> None:
    states = recorded({"exp_avg": "fp32", "exp_avg_sq": "fp32", "master_param": "int16"})
    p, ours = loaded(states, device, weights="split16")
    assert torch.equal(ours.state[p]["low"].cpu(), states.get("master_param"))
    assert torch.equal(bits(joined(p.detach().cpu(), ours.state[p]["low"].cpu())), bits(random(0)))
    whole, other = loaded(states, device, weights="master32")
    assert torch.equal(bits(other.state[whole]["master"]).cpu(), bits(random(0)))
    for parameter, optimizer in ((p, ours), (whole, other)):
        parameter.grad = random(3).bfloat16().to(device)
        optimizer.step()
    after = joined(p.detach().cpu(), ours.state[p]["low"].cpu())
    assert torch.equal(bits(after), bits(other.state[whole]["master"].cpu()))
    assert not torch.equal(after, random(0))


@pytest.mark.parametrize("weights,master", [("master32", "fp32"), ("split16", "int16"),
                                            ("direct", None), ("stochastic", None)])
@pytest.mark.parametrize("states", ["fp32", "bf16"])
def test_an_exported_state_comes_back(device: str, weights: str, master: str | None, states: str) -> None:
    """Through FusedAdam with the same formats, and on: the steps of an uninterrupted run."""
    p = torch.nn.Parameter(random(0).bfloat16().to(device))
    ours = optim.AdamW([p], lr=0.01, weights=weights, states=states, seed=3)
    for seed in (1, 2):
        p.grad = random(seed).bfloat16().to(device)
        ours.step()
    exported = ours.torch_state_dict("transformer_engine")
    group = exported["param_groups"][0]
    assert group == {"params": [0], "lr": 0.01, "betas": (0.9, 0.999), "eps": 1e-8,
                     "weight_decay": 0.01, "bias_correction": True, "step": 2}
    formats = {"exp_avg": states, "exp_avg_sq": states}
    if master is not None:
        formats["master_param"] = master
    theirs = FusedAdamStates(formats)
    theirs.load_state_dict({key: value.cpu() for key, value in exported["state"][0].items()})
    assert theirs.state_dict().keys() == exported["state"][0].keys()
    q = torch.nn.Parameter(p.detach().clone())
    again = optim.AdamW([q], weights=weights, states=states, seed=3)
    again.load_state_dict({**exported, "state": {0: theirs.state_dict()}})
    for parameter, optimizer in ((p, ours), (q, again)):
        parameter.grad = random(5).bfloat16().to(device)
        optimizer.step()
    assert torch.equal(bits(p), bits(q))
    for key, value in ours.state[p].items():
        assert torch.equal(value, again.state[q][key]), key


@pytest.mark.parametrize("weights", ["kahan", "master16_scaled"])
def test_other_master_weights_are_exported_in_fp32(device: str, weights: str) -> None:
    p = torch.nn.Parameter(random(0).bfloat16().to(device))
    ours = optim.AdamW([p], lr=0.01, weights=weights)
    p.grad = random(1).bfloat16().to(device)
    ours.step()
    master = ours.torch_state_dict("transformer_engine")["state"][0]["master_param"]
    state = ours.state[p]
    expected = p.detach().float() + state["low"].float() if weights == "kahan" else (
        state["master"].float() * state["master_scale"].repeat_interleave(128)[:1000])
    assert master.dtype is torch.float32 and torch.equal(master, expected)


def test_nan_weights_stay_nan() -> None:
    """A NaN may lie in the remainder alone: FusedAdam's split of 7FFFFFFF is -0 with remainder -1."""
    states = FusedAdamStates({"exp_avg": "fp32", "exp_avg_sq": "fp32", "master_param": "int16"})
    nan = torch.tensor([0x7FFFFFFF, 0x7F800001], dtype=torch.int32).view(torch.float32)
    weights, low = split(nan)
    assert bits(weights)[0] == -0x8000 and low[0] == -1
    for key in KEYS:
        states.set(key, torch.zeros(2))
    states.set("master_param", low)
    p = torch.nn.Parameter(weights)
    ours = optim.AdamW([p], weights="split16")
    ours.load_state_dict(saved(states))
    p.grad = torch.ones_like(p)
    ours.step()
    assert bool(p.isnan().all())


def test_counts_of_a_group_must_be_equal(device: str) -> None:
    params = [torch.nn.Parameter(torch.ones(n, device=device)) for n in (3, 4, 5)]
    ours = optim.AdamW([{"params": params[:2]}, {"params": params[2:]}])
    for last in (3, 2):
        for p in params[:last]:
            p.grad = torch.ones_like(p)
        ours.step()
        params[2].grad = None
    exported = ours.torch_state_dict("transformer_engine")
    assert [g["step"] for g in exported["param_groups"]] == [2, 1]
    params[0].grad = None
    ours.step()
    with pytest.raises(sb.InvalidArgument, match=r"parameters of group 0 were stepped \[2, 3\] times"):
        ours.torch_state_dict("transformer_engine")


def test_layouts_that_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    p = torch.nn.Parameter(torch.ones(3))
    exported = optim.AdamW([p]).torch_state_dict("transformer_engine")
    assert exported["state"] == {} and "step" not in exported["param_groups"][0]  # before the first step
    with pytest.raises(sb.InvalidArgument, match="layout: 'apex' is not one of"):
        optim.AdamW([p]).torch_state_dict("apex")
    for layout in ("transformer_engine", "torchao"):
        with pytest.raises(sb.InvalidArgument, match=f"{layout} has Adam and AdamW alone"):
            optim.LAMB([p]).torch_state_dict(layout)
        with pytest.raises(sb.InvalidArgument, match=f"{layout} has no maximize"):
            optim.AdamW([p], maximize=True).torch_state_dict(layout)
    for name in ("torchao", "torchao.optim", "torchao.optim.subclass_fp8"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(sb.InvalidArgument, match="layout: torchao needs the package torchao"):
        optim.AdamW([p]).torch_state_dict("torchao")
