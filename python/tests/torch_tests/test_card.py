"""`samebits.torch.check_card` on a GPU that computes by the rules, with exchanged kernels."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
import torch
from emulated_gpu import FP32_PRODUCT, TENSOR_CORE_PRODUCT, EmulatedGpu, Kernel, Training, run_by_rule
from pages import EXAMPLES
from test_kernel_rules import GROUPS, by_rule

import samebits
import samebits.torch as sbt
from samebits.torch import card, kernel_rules
from samebits.torch.recompute import overload_of

STEP = EXAMPLES / "gpt_step.sbt"


@pytest.fixture(scope="module")
def step() -> sbt.Trace:
    """A step that an H200 computed."""
    return sbt.Trace.load(STEP)


def emulate(patch: pytest.MonkeyPatch, gpu: EmulatedGpu) -> None:
    """Run the operators of checks on an emulated card."""
    def run(operator: str, args: list[Any], kwargs: dict[str, Any]) -> Any:
        with gpu:
            return overload_of(operator)(*args, **kwargs)

    patch.setattr(card, "run_there", run)


def checked(recording: Any, patch: pytest.MonkeyPatch, *given: Any, kernels: dict[str, Kernel] | None = None,
            product: str | None = None) -> sbt.CardCheck:
    """Check an emulated card by a recording alone."""
    emulate(patch, EmulatedGpu(kernels, product))
    return sbt.check_card(recording, *given, device="cpu", groups=[])


def test_a_healthy_card(step: sbt.Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The operators of an H200's step, and the calls with sums of an H200."""
    found = checked(STEP, monkeypatch)
    assert (found.operators, found.findings, found.not_covered) == (len(step.operators), [], {}), found
    monkeypatch.setattr(card, "results_there", lambda case, device: by_rule(case))
    found = sbt.check_card(device="cpu", groups=GROUPS)
    assert (found.calls, found.findings) == (315, []), found
    assert str(found).startswith("0 operators and 315 calls in ")
    assert str(found).endswith(" s: 315 equal, bit for bit; 0 wrong")


def flip(x: torch.Tensor, element: int, bit: int) -> None:
    integer = {2: torch.int16, 4: torch.int32, 8: torch.int64}[x.element_size()]
    x.as_strided((x.untyped_storage().nbytes() // x.element_size(),), (1,), 0).view(integer)[element] ^= 1 << bit


#: Kernels that are exchanged together.
WRONG = [["mm", "gelu", "_softmax", "cat", "_foreach_norm"], ["addmm", "add", "native_layer_norm", "sum"],
         ["bmm", "div", "gelu_backward", "_log_softmax", "embedding_dense_backward"],
         ["native_layer_norm_backward", "nll_loss_forward", "_foreach_sqrt", "_to_copy", "linalg_vector_norm", "add_"]]


@pytest.mark.parametrize("names", WRONG)
def test_wrong_kernels_are_named(names: list[str], step: sbt.Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    """They flip a bit of the last result in each call; nothing else is reported."""
    def wrong(func: Any, args: Any, kwargs: Any) -> Any:
        result = run_by_rule(func, args, kwargs)
        y = result[-1] if isinstance(result, list | tuple) else result
        flip(y, y.storage_offset() + y.numel() - 1, 3)
        return result

    found = checked(step, monkeypatch, kernels=dict.fromkeys(names, wrong))
    calls = [i for i, entry in enumerate(step.operators) if entry["op"].split(".")[1] in names]
    assert {step.operators[i]["op"].split(".")[1] for i in calls} == {*names}
    assert [finding.unit.split()[:2] for finding in found.findings] == [
        [step.operators[i]["op"], f"#{i}"] for i in calls], found
    assert all(finding.where is not None and finding.where.bit == 3 for finding in found.findings)
    assert found.wrong == found.findings and found.operators == len(step.operators)
    assert f"{len(calls)} wrong\n  wrong: aten." in str(found)


def test_another_kernel_of_the_library_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    trace = Training(3).recorded()
    found = checked(trace, monkeypatch, product=FP32_PRODUCT + " slices=2 slice_tile=8")
    assert len(found.findings) == 1 and found.wrong == [], found
    assert found.findings[0].follows.startswith(FP32_PRODUCT + " slices=2"), found


def test_recordings_with_hashes_need_the_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    training = Training(4)
    before = [p.detach().clone() for p in training.model.parameters()]
    trace = training.recorded(keep="hashes")
    found = checked(trace, monkeypatch, before, training.words, training.targets)
    assert found.operators == len(trace.operators) and found.findings == []
    with pytest.raises(samebits.InvalidArgument, match="the recording has no values"):
        checked(trace, monkeypatch)


def test_what_cannot_be_compared_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    kernels: dict[str, Kernel] = {"cos": lambda f, a, k: a[0] * 0.5, "randint": lambda f, a, k: f(*a, **k)}
    with EmulatedGpu(kernels), sbt.record() as recorder:
        x = torch.ones(4)[torch.randint(4, (3,))]
        torch.cos(x) * 2
    found = checked(recorder.trace, monkeypatch, kernels=kernels)
    assert (found.findings, found.not_covered) == ([], {}) and found.operators == len(recorder.trace.operators) - 1
    with EmulatedGpu(kernels), sbt.record(keep="hashes") as other:
        torch.randint(4, (3,)) + 1
    found = checked(other.trace, monkeypatch, kernels=kernels)
    assert [*found.not_covered] == ["aten.randint.default: random numbers that the recording has not kept",
                                    "operators with operands that are not known"]
    found = checked(recorder.trace, monkeypatch, kernels={"cos": lambda f, a, k: a[0] * 0.25})
    assert found.findings[0].detail == "result 0 differs, and has no rule: not covered: aten.cos"
    assert found.not_covered["operators with operands that are not known"] == 1


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "sigmoid", "erf", "rsqrt", "silu", "softplus"])
def test_a_function_unit_that_is_wrong_once_is_named(name: str) -> None:
    """One result of 65,536 is wrong in its last bit."""
    def wrong(func: Any, args: Any, kwargs: Any) -> Any:
        y = sbt.recompute(func, args, kwargs)
        if y.dtype == torch.float32:
            flip(y, 777, 0)
        return y

    with EmulatedGpu({name: wrong}):
        found = sbt.check_card(device="cpu", groups=["functions"])
    assert [str(finding) for finding in found.wrong] == [
        f"functions fp32: {name}: 1 of 65536 results differ from the rule"], found


def test_products_are_compared_with_rules() -> None:
    """They have no sums: the library chooses their kernels."""
    case = next(iter(kernel_rules.GROUPS["products"](torch.bfloat16)))
    result = sbt.CardCheck()
    with EmulatedGpu():
        card._check_call("product", case, None, "cpu", result)
    assert (result.calls, result.findings) == (1, [])

    def wrong(_func: Any, args: Any, _kwargs: Any) -> Any:
        y = samebits.matmul(args[1], args[2], rule=TENSOR_CORE_PRODUCT, c=args[0].expand(len(args[1]), -1).contiguous(),
                            out=args[1].dtype)
        y[1:9, 1:9] *= -1
        return y

    with EmulatedGpu({"addmm": wrong}):
        card._check_call("product", case, None, "cpu", result)
    assert (result.calls, [str(finding) for finding in result.wrong][0][:9]) == (2, "product: "), result


def test_wrong_arguments_and_dropout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dropout draws numbers and computes with them; pure draws are taken from the recording."""
    with sbt.record() as recorder:
        torch.native_dropout(torch.ones(8), 0.5, True)
        torch.rand(3)
    found = sbt.check_card(recorder.trace, device="cpu", groups=[])
    assert dict(found.not_covered) == {"aten.native_dropout.default": 1} and not found.findings
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(samebits.Unsupported, match="^device cuda: torch finds no GPU"):
        sbt.check_card()
    with pytest.raises(samebits.InvalidArgument, match="^groups: one of elementwise"):
        sbt.check_card(groups=["function"])


def test_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """`python -m samebits check-card`: its exit status says what a health check needs."""
    from samebits import __main__ as command

    found = sbt.CardCheck(operators=3, calls=2, seconds=1.0)
    taken: list[Any] = []

    def check(*recordings: str) -> sbt.CardCheck:
        taken.append(recordings)
        return found

    monkeypatch.setattr(card, "check_card", check)
    assert command.run(["check-card", "step.sbt"]) == 0 and command.run(["check-card"]) == 0
    assert taken == [("step.sbt",), ()]
    found.findings.append(card.CardFinding("functions fp32: exp", "1 of 65536 results differ from the rule"))
    assert command.run(["check-card"]) == 1
    assert capsys.readouterr().out.endswith("  wrong: functions fp32: exp: 1 of 65536 results differ from the rule\n")
    monkeypatch.undo()
    (tmp_path / "none").write_text("")
    assert command.run(["check-card", str(tmp_path / "none")]) == 3


def test_the_example(monkeypatch: pytest.MonkeyPatch) -> None:
    example = runpy.run_path(str(EXAMPLES / "gpu_health_check.py"))
    trace, healthy = Training(5).recorded(), EmulatedGpu()
    emulate(monkeypatch, healthy)
    state = example["health"](trace, "cpu", groups=[])
    assert state["state"] == "healthy" and state["compared"] == len(trace.operators)
    gpu = EmulatedGpu({"gelu": lambda f, a, k: sbt.recompute(f, a, k) * 2})
    emulate(monkeypatch, gpu)
    state = example["health"](trace, "cpu", groups=[])
    assert state["state"] == "wrong" and state["where"][0].startswith("aten.gelu.default #")
    assert example["health"]("no file", "cpu")["state"] == "unknown"

    training = Training(6)
    with healthy:
        assert example["train"](training.step, 3, share=1.0, every=1).steps == 3
    with gpu, pytest.raises(example["WrongBits"], match="aten.gelu.default"):
        example["train"](training.step, 3, share=1.0, every=1)


@pytest.mark.skipif(not torch.__version__.startswith("2.11."), reason="the rules are PyTorch 2.11's")
def test_a_card(cuda: str) -> None:
    found = sbt.check_card(STEP, device=cuda)
    print(found)
    assert found.wrong == [] and found.operators + sum(found.not_covered.values()) >= 328 and found.calls > 315
