"""`samebits.torch.pin`: what it sets, restores and refuses."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

import samebits
import samebits.torch as sbt
from samebits.torch.pin import _SETTINGS

pytestmark = pytest.mark.usefixtures("cublas_workspace")


def state() -> dict[str, Any]:
    return {name: get() for name, get, _, _ in _SETTINGS}


def test_settings_hold_in_the_block_and_are_restored() -> None:
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.use_deterministic_algorithms(True, warn_only=True)
    before = state()
    try:
        with pytest.raises(ZeroDivisionError), sbt.pin() as pinned:
            assert state() == pinned.settings == {name: value for name, _, _, value in _SETTINGS}
            assert not torch.is_deterministic_algorithms_warn_only_enabled()
            1 / 0
        assert state() == before and before != pinned.settings
    finally:
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.use_deterministic_algorithms(False)


def test_a_call_holds_until_it_is_restored() -> None:
    before = state()
    pinned = sbt.pin(torch.nn.Linear(2, 2), cudnn_attention=True)
    try:
        assert torch.backends.cuda.cudnn_sdp_enabled()
        assert "torch.backends.cuda.enable_cudnn_sdp = True" in str(pinned).splitlines()
        assert state() == pinned.settings
    finally:
        pinned.restore()
    pinned.restore()
    assert state() == before


def test_refusals_name_the_reason_and_set_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = state()

    def refused(*modules: torch.nn.Module) -> str:
        with pytest.raises(samebits.Unsupported) as caught:
            sbt.pin(*modules)
        assert state() == before
        return str(caught.value)

    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU())
    model[0].compile()
    assert "0 is compiled by torch.compile" in refused(model)
    assert "OptimizedModule is compiled" in refused(torch.compile(torch.nn.Linear(2, 2)))
    with monkeypatch.context() as patch:
        patch.setattr(torch, "__version__", "2.12.1")
        assert "torch 2.12.1: the rules are those of torch 2.11" in refused()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_properties",
                        lambda: SimpleNamespace(major=9, minor=0, name="NVIDIA H200"))
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    assert refused().startswith("not pinned: CUBLAS_WORKSPACE_CONFIG is None: set it to :4096:8 or :16:8")
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    sbt.pin().restore()
    monkeypatch.setattr(torch.cuda, "get_device_properties",
                        lambda: SimpleNamespace(major=10, minor=0, name="NVIDIA B200"))
    assert "NVIDIA B200: the rules are those of H100 and H200" in refused()


def test_a_setting_that_cannot_be_read_is_named() -> None:
    """PyTorch refuses to read allow_tf32 where fp32_precision was set otherwise."""
    before = torch.backends.cuda.matmul.fp32_precision
    torch.backends.cuda.matmul.fp32_precision = "tf32"
    try:
        with pytest.raises(samebits.Unsupported, match="^torch.backends.cuda.matmul.allow_tf32 cannot be pinned"):
            sbt.pin()
        assert not torch.are_deterministic_algorithms_enabled()  # set before that setting, and restored
    finally:
        torch.backends.cuda.matmul.fp32_precision = before
