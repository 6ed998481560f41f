"""measure_layers: errors of single layers by emulation, and the precisions chosen by them."""

from __future__ import annotations

import copy
import math
from pathlib import Path

import pytest
import torch

import samebits as sb
import samebits.torch as sbt
from samebits.torch.layer_errors import _emulated


def whole(*shape: int) -> torch.Tensor:
    """Whole numbers of at most 5 bits: E4M3 rounds half of them, and their sums are exact."""
    make = torch.Generator().manual_seed(sum(shape))
    return torch.randint(-31, 32, shape, generator=make).float()


@pytest.mark.parametrize("recipe", ["DEEPGEMM_UE8M0", "MXFP8_FLOOR"])
def test_a_layer_has_the_bits_of_float8_linear(recipe: str) -> None:
    """Sums are exact, so rounded operands alone make the results. Scales are powers of two."""
    linear = torch.nn.Linear(32, 48)
    linear.weight.data, linear.bias.data = whole(48, 32), whole(48)
    x, dy = whole(2, 16, 32).requires_grad_(), whole(2, 16, 48)
    inputs = [x, linear.weight, linear.bias]
    with _emulated({"": linear}, {"": recipe}):
        y = linear(x)
        found = [y, *torch.autograd.grad(y, inputs, dy)]
    layer = sbt.Float8Linear.from_linear(linear, recipe)
    y = layer(x)
    expected = [y, *torch.autograd.grad(y, inputs, dy)]
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    assert not torch.equal(y, linear(x))  # something was rounded


def model_of() -> tuple[torch.nn.Sequential, torch.Tensor]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.GELU(), torch.nn.Linear(96, 64),
                                torch.nn.GELU(), torch.nn.Linear(64, 12), torch.nn.Linear(12, 9))
    return model, torch.randn(32, 64)


def test_errors_are_those_of_single_layers() -> None:
    model, x = model_of()
    errors = sbt.measure_layers(model, lambda: model(x).square().mean(), ["fp32", "bf16", "TE_CURRENT"])
    found = {(row.layer, row.format): row for row in errors.rows}
    assert list(found) == [(n, f) for n in "02" for f in ("fp32", "bf16", "TE_CURRENT")] + [
        (n, f) for n in "45" for f in ("fp32", "bf16")]
    assert all(found[n, "fp32"].loss == found[n, "fp32"].gradient == 0 for n in "0245")
    for n in "02":
        assert 0 < 4 * found[n, "bf16"].gradient < found[n, "TE_CURRENT"].gradient < 0.1
    assert errors.unfit["4"] == "12: no multiple of 8, which tensor cores need in bf16 and fp16 for " \
        "their full speed; FP8 needs multiples of 16"
    assert errors.unfit["5"].startswith("9 and 12: ")
    assert all(p.grad is None for p in model.parameters())
    assert all("forward" not in m.__dict__ for m in model)
    for name, why in errors.unfit.items():
        assert f"{name}: {why}" in repr(errors)


def test_the_whole_model_stays_within_the_budget(tmp_path: Path) -> None:
    model, x = model_of()

    def loss() -> torch.Tensor:
        return model(x).square().mean()

    errors = sbt.measure_layers(model, loss, ["bf16", "TE_CURRENT"])
    assert errors.choose(math.inf).layers == {"0": "TE_CURRENT", "2": "TE_CURRENT", "4": "bf16", "5": "bf16"}
    chosen = [errors.choose(budget) for budget in (1e-5, 1e-3)]
    assert chosen[0].layers != chosen[1].layers
    for precision, budget in zip(chosen, (1e-5, 1e-3), strict=True):
        exact = float(loss().detach())
        with _emulated(dict(model.named_modules()), precision.layers):
            assert abs(float(loss().detach()) / exact - 1) <= budget
    path = tmp_path / "map.json"
    errors.choose(math.inf).save(path)
    sbt.convert_linears(model, sbt.load_precision_map(path), verbose=False)
    assert sbt.float8_layers(model) == {"0": "TE_CURRENT", "2": "TE_CURRENT"}


def test_under_autocast_operands_are_those_of_autocast() -> None:
    model, x = model_of()

    def loss() -> torch.Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return model(x).float().square().mean()

    rows = sbt.measure_layers(model, loss, ["TE_CURRENT"]).rows
    assert [row.layer for row in rows] == ["0", "2"]
    assert all(0.001 < row.gradient < 0.5 for row in rows)


def test_wrong_arguments_are_refused() -> None:
    model, x = model_of()
    frozen = copy.deepcopy(model).requires_grad_(False)
    errors = sbt.measure_layers(model, lambda: model(x).square().mean(), ["bf16"])
    for call, message in (
            (lambda: sbt.measure_layers(model, lambda: model(x).mean(), ["FP9"]), "'FP9' is not one of"),
            (lambda: sbt.measure_layers(model, lambda: model(x).mean() * math.inf), "finite loss"),
            (lambda: sbt.measure_layers(torch.nn.Sequential(torch.nn.GELU()), lambda: x.mean()), "no torch.nn.Linear"),
            (lambda: errors.choose(-1.0), "budget"),
            (lambda: sbt.measure_layers(model, lambda: model(x).mean() * 0 + 1), "gradients that are not all 0"),
            (lambda: sbt.measure_layers(frozen, lambda: frozen(x).mean()), "gradients that are not all 0")):
        with pytest.raises(sb.InvalidArgument, match=message):
            call()


def test_a_table_without_rows_and_a_layer_with_a_forward_of_its_own() -> None:
    model, x = torch.nn.Sequential(torch.nn.Linear(16, 12)), torch.randn(4, 16)
    own = model[0].forward = lambda y: torch.nn.functional.linear(y, model[0].weight, model[0].bias)
    assert sbt.measure_layers(model, lambda: model(x).square().mean(), ["bf16"]).rows
    assert model[0].__dict__["forward"] is own
    errors = sbt.measure_layers(model, lambda: model(x).square().mean(), ["TE_CURRENT"])
    assert repr(errors).startswith("layer  format      loss  gradient\n0: 12: no multiple of 8")
