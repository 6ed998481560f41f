"""samebits.torch.optim beside torchao's own low-bit optimizers: their states in, and back.

torchao's step is made for torch.compile; here it runs as it is written.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from tensors import bits, same

import samebits as sb
from samebits.torch import optim

torchao_optim = pytest.importorskip("torchao.optim", reason="torchao is not installed")
subclass_fp8 = pytest.importorskip("torchao.optim.subclass_fp8", reason="torchao has no torchao.optim.subclass_fp8")

KEYS = ("exp_avg", "exp_avg_sq")
# torchao has blocks in the first alone: others are small, or no multiple of 256.
SHAPES = ((64, 128), (100,), (4099,))
DTYPES = [torch.float32, torch.bfloat16]


@pytest.fixture(autouse=True)
def eager() -> Iterator[None]:
    with torch.compiler.set_stance("force_eager"):
        yield


def random(shape: tuple[int, ...], seed: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def set_gradients(params: list[Any], seed: int) -> None:
    for i, p in enumerate(params):
        p.grad = (random(tuple(p.shape), 100 * seed + i) * 1e-3).to(p.dtype).to(p.device)


def stepped(name: str, dtype: torch.dtype, device: str) -> tuple[list[Any], Any]:
    """Return parameters and an optimizer of torchao after two steps."""
    params = [torch.nn.Parameter(random(s, i).to(dtype).to(device)) for i, s in enumerate(SHAPES)]
    optimizer = getattr(torchao_optim, name)(params, lr=0.01, bf16_stochastic_round=dtype is torch.bfloat16)
    for seed in (1, 2):
        set_gradients(params, seed)
        optimizer.step()
    return params, optimizer


def copies(params: list[Any]) -> list[Any]:
    return [torch.nn.Parameter(p.detach().clone()) for p in params]


def imported(params: list[Any], theirs: Any, kind: Any = optim.AdamW, **options: Any) -> Any:
    """Return an optimizer of this library with the state of one of torchao."""
    options.setdefault("weights", "direct")
    ours = kind(copies(params), **options)
    ours.load_state_dict(theirs.state_dict())
    return ours


def own_params(optimizer: Any) -> list[Any]:
    return list(optimizer.param_groups[0]["params"])


def numbers(state: Any) -> torch.Tensor:
    """Return the numbers of a state of torchao."""
    return state.dequantize().float() if hasattr(state, "dequantize") else state.float()


@pytest.mark.parametrize("dtype", DTYPES, ids=["fp32", "bf16"])
@pytest.mark.parametrize("name, kind", [("AdamWFp8", "OptimStateFp8"), ("AdamW8bit", "OptimState8bit"),
                                        ("AdamW4bit", "OptimState4bit"), ("_AdamW", "Tensor")])
def test_values_are_those_of_torchao(device: str, name: str, kind: str, dtype: torch.dtype) -> None:
    """The last one has stochastic rounding alone."""
    params, theirs = stepped(name, dtype, device)
    ours = imported(params, theirs)
    assert float(ours.param_groups[0]["lr"]) == np.float32(0.01)
    for p, q in zip(params, own_params(ours), strict=True):
        assert int(ours.state[q]["step"]) == 2
        assert all(same(ours.state[q][key], numbers(theirs.state[p][key])) for key in KEYS)
    assert type(theirs.state[params[0]]["exp_avg"]).__name__ == kind
    if name == "AdamWFp8":
        with pytest.raises(sb.InvalidArgument, match="exp_avg: block must be 128.*block of 256"):
            imported(params, theirs, states="e4m3", block=128)


@pytest.mark.parametrize("dtype", DTYPES, ids=["fp32", "bf16"])
@pytest.mark.parametrize("name,kind", [("AdamWFp8", optim.AdamW), ("AdamFp8", optim.Adam)])
def test_fp8_blocks_keep_their_bits_both_ways(device: str, name: str, kind: Any, dtype: torch.dtype) -> None:
    params, theirs = stepped(name, dtype, device)
    ours = imported(params, theirs, kind, states="e4m3", block=256)
    blocks, mine = theirs.state[params[0]], ours.state[own_params(ours)[0]]
    for key in KEYS:
        assert same(mine[key], blocks[key].codes)
        assert same(mine[key + "_scale"], blocks[key].scale)

    again = getattr(torchao_optim, name)(copies(params), lr=0.5)
    again.load_state_dict(ours.torch_state_dict("torchao"))
    returned = again.state[own_params(again)[0]]
    for key in KEYS:
        assert type(returned[key]) is subclass_fp8.OptimStateFp8
        assert returned[key].dtype is dtype
        assert same(returned[key].codes, blocks[key].codes)
        assert same(returned[key].scale, blocks[key].scale)
        mine[key].zero_()  # the exported state is a copy
        assert same(returned[key].codes, blocks[key].codes)


@pytest.mark.parametrize("dtype", DTYPES, ids=["fp32", "bf16"])
def test_torchao_goes_on_from_an_exported_state(device: str, dtype: torch.dtype) -> None:
    """Small parameters have other states there: torchao casts them to the parameter's dtype."""
    params, theirs = stepped("AdamWFp8", dtype, device)
    ours = imported(params, theirs, states="e4m3", block=256)
    again = torchao_optim.AdamWFp8(copies(params), lr=0.5)
    again.load_state_dict(ours.torch_state_dict("torchao"))
    for now in (params, own_params(again)):
        set_gradients(now, 3)
    theirs.step()
    again.step()
    p, q = params[0], own_params(again)[0]
    assert int(again.state[q]["step"]) == 3 and float(again.param_groups[0]["lr"]) == np.float32(0.01)
    if dtype is torch.float32:  # else its stochastic rounding draws other random numbers
        assert same(p, q)
    for key in KEYS:
        assert same(theirs.state[p][key].codes, again.state[q][key].codes)
        assert same(theirs.state[p][key].scale, again.state[q][key].scale)
    assert all(s.grad is not None and not torch.equal(s, r)
               for s, r in zip(own_params(again), own_params(ours), strict=True))


def test_torchao_takes_a_state_that_began_here(device: str) -> None:
    params = [torch.nn.Parameter(random(s, i).to(device)) for i, s in enumerate(SHAPES)]
    ours = optim.AdamW(params, lr=0.01, states="e4m3", block=256)
    set_gradients(params, 1)
    ours.step()
    exported = ours.torch_state_dict("torchao")
    kinds = [type(exported["state"][i]["exp_avg"]) for i in range(3)]
    assert kinds == [subclass_fp8.OptimStateFp8, torch.Tensor, torch.Tensor]
    again = torchao_optim.AdamWFp8(copies(params), lr=0.5)
    again.load_state_dict(exported)
    values = ours.torch_state_dict()["state"]
    for i, q in enumerate(own_params(again)):
        assert float(again.state[q]["step"]) == 1.0
        for key in KEYS:
            assert same(numbers(again.state[q][key]), values[i][key])
    set_gradients(own_params(again), 2)
    again.step()
    assert all(float(again.state[q]["step"]) == 2.0 for q in own_params(again))


def blocks_of_the_contract(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return codes and scales of e4m3_scaled: contract §12."""
    amax = x.view(-1, 256).abs().amax(-1)
    inverse = torch.full_like(amax, 448.0) / amax
    codes = (x.view(-1, 256) * inverse[:, None]).clamp(-448, 448).to(torch.float8_e4m3fn)
    return codes.view(-1), torch.ones_like(inverse) / inverse


@pytest.mark.parametrize("dtype", DTYPES, ids=["fp32", "bf16"])
def test_a_step_from_fp8_blocks_is_the_step_from_their_values(device: str, dtype: torch.dtype) -> None:
    params, theirs = stepped("AdamWFp8", dtype, device)
    blocks = imported(params, theirs, states="e4m3", block=256)
    values = imported(params, theirs)
    for ours in (blocks, values):
        set_gradients(own_params(ours), 3)
        ours.step()
    p, q = own_params(blocks)[0], own_params(values)[0]
    assert same(p, q) and not torch.equal(p, params[0])
    for key in KEYS:
        codes, scales = blocks_of_the_contract(values.state[q][key].cpu())
        state = blocks.state[p]
        assert same(state[key].view(-1), codes)
        assert same(state[key + "_scale"], scales)


def test_how_blocks_differ_from_those_of_torchao() -> None:
    """The page docs/optimizers.md says so: scales by one unit in the last place, few codes."""
    x = random((4096, 256), 7).bfloat16().float()
    x *= torch.exp2(torch.arange(4096) % 31 - 30.0)[:, None]
    codes, scales = blocks_of_the_contract(x.view(-1))
    its_codes, its_scales = subclass_fp8.quantize_fp8(x.view(-1), 256)
    steps = scales.view(torch.int32) - its_scales.view(torch.int32)
    share = float((steps != 0).float().mean())
    assert int(steps.abs().max()) == 1 and 0.3 < share < 0.45
    assert same(its_scales, x.abs().amax(-1) / torch.full((4096,), 448.0))
    changed = bits(codes).int() - bits(its_codes).int()
    assert int(changed.abs().max()) == 1 and 0 < float((changed != 0).float().mean()) < 1e-3

    tiny = torch.full((256,), 1e-18)  # as the squares of gradients near 1e-9
    assert not subclass_fp8.quantize_fp8(tiny, 256)[0].float().any()
    tiny_codes, tiny_scales = blocks_of_the_contract(tiny)
    assert bool((tiny_codes.float() == 448).all()) and float(tiny_scales[0]) > 0


def test_quantized_parameters_are_refused() -> None:
    blocks = subclass_fp8.OptimStateFp8.zeros((512,), 256, dtype=torch.float32)
    p = torch.nn.Parameter(blocks, requires_grad=False)
    optimizer = optim.AdamW([p])
    p.grad = torch.ones(512)
    with pytest.raises(sb.InvalidArgument, match="memory of the CPU or of CUDA .* OptimStateFp8"):
        optimizer.step()
