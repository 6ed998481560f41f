"""`samebits.torch.record`, `replay` and `explain` on a GPU that computes by the rules."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from emulated_gpu import FP32_PRODUCT, EmulatedGpu, Training, half, recorded
from pages import EXAMPLES

import samebits
import samebits.torch as sbt
from samebits.torch.replay import Player
from samebits.torch.trace import hash_of


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("optimizer", ["foreach", "fused"])
def test_steps_are_equal(dtype: torch.dtype, optimizer: str, tmp_path: Path) -> None:
    training = Training(dtype=dtype, **{optimizer: True})
    for _ in range(2):
        training.recorded(tmp_path / "step.sbt")
        replay = sbt.replay(tmp_path / "step.sbt")
        assert replay.equal, replay
        assert str(replay) == f"{len(replay.steps)} operators: {len(replay.steps)} equal, bit for bit"
    names = {step.operator.split(".")[1] for step in replay.steps}
    assert {"addmm", "bmm", "_softmax", "gelu", "native_layer_norm_backward", "embedding_dense_backward",
            "nll_loss_forward", "nll_loss_backward", "_foreach_norm"} <= names
    assert ("_fused_adamw_" if optimizer == "fused" else "_foreach_lerp_") in names
    assert any(step.module == "Gpt.blocks.0.up backward" for step in replay.steps)


def test_a_recorded_program_computes_the_same() -> None:
    losses = []
    for recorded in (False, True):
        training = Training()
        with EmulatedGpu():
            if recorded:
                with sbt.record():
                    losses.append(training.step())
            else:
                losses.append(training.step())
        losses.append(hash_of(training.model.blocks[0].up.weight))  # type: ignore[union-attr, arg-type]
    assert losses[0] == losses[2] and losses[1] == losses[3]


def test_hashes_need_the_sources() -> None:
    training = Training()
    before = [p.detach().clone() for p in training.model.parameters()]
    trace = training.recorded(keep="hashes")
    kept = {name: x.numel() for name, x in trace.tensors.items() if name.startswith("block")}
    assert max(kept.values()) <= 64 and len(kept) < sum("source" in block for block in trace.blocks) - 15
    with pytest.raises(samebits.InvalidArgument, match=r"^words\.weight: the recording has no values"):
        sbt.replay(trace)
    replay = sbt.replay(trace, before, training.words, training.targets)
    assert replay.equal, replay


def test_each_operator_is_compared() -> None:
    """A wrong result of any operator is seen, at this operator."""
    trace = Training().recorded()
    player = Player(trace, ())
    for i, entry in enumerate(trace.operators):
        if not entry["wrote"]:
            assert player.step(i).state == "equal"
            continue
        right, entry["wrote"][-1][1] = entry["wrote"][-1][1], "f" * 16
        seen = player.step(i)
        assert (seen.state, seen.detail) == ("differs", f"result {len(entry['wrote']) - 1}"), seen
        entry["wrote"][-1][1] = right
        player.memory._wrong.discard(entry["wrote"][-1][0][0])


def test_what_has_no_rule_is_named() -> None:
    x = torch.ones(3, 4)
    traces = [recorded(lambda: (torch.cos(x) + 1).sum(), {"cos": half}, keep=keep) for keep in ("sources", "all")]
    first, second = (sbt.replay(trace) for trace in traces)
    assert (first.steps[0].operator, first.steps[0].detail) == ("aten.cos.default", "aten.cos")
    assert [step.state for step in first.steps] == ["not covered", "follows", "follows"]
    assert [step.state for step in second.steps] == ["not covered", "equal", "equal"]
    assert str(second) == "3 operators: 2 equal, bit for bit\n  1 not covered: aten.cos"


def test_a_part_does_not_make_a_wrong_block_right() -> None:
    def program() -> None:
        y = torch.cos(torch.ones(3, 4))
        y[0].zero_()
        y + 1

    steps = sbt.replay(recorded(program, {"cos": half})).steps
    assert [step.state for step in steps] == ["equal", "not covered", "follows", "follows"]


def test_writes_that_no_operator_makes_are_named() -> None:
    w = torch.nn.Parameter(torch.randn(20, generator=torch.Generator().manual_seed(0)))
    with EmulatedGpu(), sbt.record(names={"w": w}) as recorder:
        w * 2
        w.detach().numpy()[3] = 5.0  # as a kernel that bypasses PyTorch's dispatcher
        torch.autograd.graph.increment_version(w)
        w * 3
    seen = sbt.replay(recorder.trace).steps[-1]
    assert (seen.operator, seen.state) == ("aten.mul.Tensor", "not covered")
    assert seen.detail == "w was written by no operator that PyTorch's dispatcher sees"


@pytest.mark.parametrize("options", [{}, {"weights": "stochastic"}, {"weights": "master32"}, {"weights": "kahan"},
                                     {"states": "dynamic8", "block": 256}, {"scaler": "amp"}, {"scaler": "native"}])
def test_steps_of_own_optimizers(options: dict[str, Any]) -> None:
    from samebits.torch.optim import AdamW

    training = Training(dtype=torch.bfloat16)
    if "weights" in options:
        training.model.bfloat16()
    policy = options.pop("scaler", None)
    training.optimizer = AdamW(training.model.parameters(), lr=1e-3, **options)
    scaler = torch.amp.GradScaler("cpu", enabled=policy == "amp", init_scale=8.0, growth_interval=1)
    if policy == "native":
        scaler = sbt.GradScaler("cpu", policy="native", max_norm=1.0)
    for _ in range(3):
        with EmulatedGpu(), sbt.record(names=training.model) as recorder:
            training.scaled_step(scaler)
        replay = sbt.replay(recorder.trace)
        assert replay.equal, str(replay)
        step = next(step for step in replay.steps if step.operator == "samebits.optimizer_step")
        assert step.elements >= 3 * sum(p.numel() for p in training.model.parameters())


@pytest.mark.parametrize("foreach", [True, False])
@pytest.mark.parametrize("policy", ["native", "apex", "clips"])
def test_own_scalers_and_clipping_with_optimizers_of_pytorch(policy: str, foreach: bool) -> None:
    """Scales change within a recording, by kernels that no operator calls; one step is skipped."""
    training = Training(dtype=torch.bfloat16, foreach=foreach)
    options = {} if policy == "clips" else {"policy": policy, "growth_interval": 1, "init_scale": 2.0**10}
    scaler = sbt.GradScaler("cpu", max_norm=0.01, enabled=policy != "clips", **options)
    with EmulatedGpu(), sbt.record(names=training.model) as recorder:
        for step in range(4):
            training.scaled_step(scaler, torch.inf if step == 2 else 1.0, policy == "clips")
    replay = sbt.replay(recorder.trace)
    assert replay.equal, str(replay)
    assert [step.operator for step in replay.steps].count("samebits.unscale") == 4


def test_unscaling_in_a_nested_recording() -> None:
    """The outer one sees writes that no operator makes, and blames none; scales and decisions are small and kept."""
    training = Training(dtype=torch.bfloat16)
    scaler = sbt.GradScaler("cpu", init_scale=2.0**10)
    with EmulatedGpu(), sbt.record(names=training.model) as outer, sbt.record(names=training.model) as inner:
        for factor in (torch.inf, 1.0):
            training.scaled_step(scaler, factor)
    replay = sbt.replay(inner.trace)
    assert replay.equal, str(replay)
    around = sbt.replay(outer.trace)
    assert not [step for step in around.steps if step.state == "differs"], str(around)
    assert any("no operator" in step.detail for step in around.steps)


def test_random_numbers_are_taken_from_the_recording() -> None:
    generator = torch.Generator().manual_seed(0)
    with EmulatedGpu({"randint": lambda f, a, k: f(*a, **k), "normal_": lambda f, a, k: f(*a, **k)}), \
            sbt.record() as recorder:
        words = torch.randint(8, (3,), generator=generator)
        torch.ones(8, 4)[words] + torch.empty(4).normal_(generator=generator)
    replay = sbt.replay(recorder.trace)
    assert replay.equal and [step.state for step in replay.steps].count("random") == 2, replay
    assert str(replay).endswith("  2 with random numbers, taken from the recording")
    with EmulatedGpu({"randint": lambda f, a, k: f(*a, **k)}), sbt.record() as other:
        torch.randint(8, (3,), generator=generator)
    found = sbt.explain(recorder.trace, other.trace)
    assert (found.cause, found.number) == ("source", 0)
    assert str(found) == "operator 0 aten.randint.generator drew other random numbers: another seed?"


def test_attention() -> None:
    """Of nine results two are compared; the seeds are memory that nobody wrote."""
    def flash(_func: Any, args: Any, kwargs: Any) -> Any:
        out, lse = sbt.recompute("aten._scaled_dot_product_flash_attention.default", args, kwargs)
        seed = torch.randint(0, 2**40, (2,))
        return out, lse, None, None, 16, 16, seed, torch.empty(0), torch.empty(0, dtype=out.dtype)

    def recorded() -> sbt.Trace:
        g = torch.Generator().manual_seed(0)
        q, k, v, d = (torch.randn(1, 2, 16, 64, generator=g).to(torch.bfloat16) for _ in range(4))
        aten = torch.ops.aten
        with EmulatedGpu({"_scaled_dot_product_flash_attention": flash}), sbt.record() as recorder:
            out, lse, _, _, n, m, seed, offset, _ = aten._scaled_dot_product_flash_attention(q, k, v, 0.0, True)
            aten._scaled_dot_product_flash_attention_backward(d, q, k, v, out, lse, None, None, n, m, 0.0, True,
                                                              seed, offset)
        return recorder.trace

    before = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        one, other = recorded(), recorded()
    finally:
        torch.use_deterministic_algorithms(before)
    replay = sbt.replay(one)
    assert replay.equal and [step.elements for step in replay.steps] == [2 * 16 * 65, 3 * 2 * 16 * 64], replay
    assert sbt.explain(one, other).cause == "equal"


def test_operators_after_one_without_a_rule() -> None:
    w = torch.randn(3, 4)

    def program() -> None:
        w[torch.randperm(2)].sum()
        y = torch.zeros(4)
        y[0].add_(1.0)
        y + 1

    steps = sbt.replay(recorded(program, {"randperm": lambda f, a, k: torch.tensor([2, 0])}, keep="hashes"), w).steps
    assert [step.state for step in steps][:3] == ["not covered", "follows", "follows"]
    assert {step.state for step in steps[3:]} == {"equal"}


def test_differing_elements_are_counted() -> None:
    def wrong(func: Any, args: Any, kwargs: Any) -> Any:
        y = sbt.recompute(func, args, kwargs)
        y[1:3] *= -1
        return y

    replay = sbt.replay(recorded(lambda: (torch.ones(3, 4) * 3 + 1).sum(), {"mul": wrong}, keep="all"))
    assert [step.state for step in replay.steps] == ["equal", "differs", "equal", "equal"]
    assert str(replay).endswith("  differs: aten.mul.Tensor #1: result 0, 8 of 12 elements")
    assert sum(step.elements for step in replay.steps) == 37


def test_hashes() -> None:
    x = torch.randn(100, 7).to(torch.bfloat16)
    for i in range(x.numel()):
        y = x.clone()
        y.view(torch.int16).view(-1)[i] ^= 1 << (i % 7)
        assert hash_of(y) != hash_of(x)
    assert hash_of(x.t()) == hash_of(x.t().contiguous()) != hash_of(x)
    nan = torch.tensor([0x7FC00000, -1], dtype=torch.int32).view(torch.float32)
    assert hash_of(nan[:1]) == hash_of(nan[1:])


def test_bad_files(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    save_file({"x": torch.ones(2)}, tmp_path / "x")
    with pytest.raises(samebits.InvalidArgument, match="expected; got no metadata samebits_trace"):
        sbt.replay(tmp_path / "x")
    save_file({}, tmp_path / "y", {"samebits_trace": '{"version": 1}'})
    with pytest.raises(samebits.InvalidArgument, match="version 2 is expected; got 1"):
        sbt.Trace.load(tmp_path / "y")
    with pytest.raises(samebits.InvalidArgument, match="keep: hashes, sources, all or a list"):
        sbt.record(keep="nothing")  # type: ignore[arg-type]


# --- explain --------------------------------------------------------------------------------------


def _sum_by_pairs(func: Any, args: Any, _kwargs: Any) -> Any:
    if func._overloadname != "dim_IntList" or args[0].dtype != torch.float32 or args[0].dim() != 2:
        return None
    return torch.tensor([[samebits.dot(c.contiguous(), torch.ones_like(c), precision="fp32") for c in args[0].t()]],
                        dtype=torch.float32).expand(1, -1).clone()


def _one_bit(func: Any, args: Any, kwargs: Any) -> Any:
    y = sbt.recompute(func, args, kwargs)
    y.view(torch.int32).view(-1)[37] ^= 1 << 4
    return y


SEEDS = [0, 1, 2]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("gpu, keep, cause, says", [
    ({}, "sources", "equal", "operators are equal, bit for bit"),
    ({"product": FP32_PRODUCT + " slices=2 slice_tile=4"}, "sources", "rule", "the library splits K: 1 and 2 slices"),
    ({"product": "sum=tensor_core unit=hopper-wgmma fp32_as_tf32=true"}, "sources", "rule",
     "TF32 is allowed on one side"),
    ({"kernels": {"sum": _sum_by_pairs}}, "sources", "rule", "b: a sum by pairs"),
    ({"kernels": {"gelu": _one_bit}}, "all", "no known rule",
     "cause: one bit: bit 4 of element [0, 0, 37]; b follows no known rule: suspect it")])
def test_causes_are_named(seed: int, gpu: dict[str, Any], keep: str, cause: str, says: str) -> None:
    found = sbt.explain(Training(seed).recorded(keep=keep), Training(seed).recorded(keep=keep, gpu=EmulatedGpu(**gpu)))
    assert found.cause == cause and says in str(found), found
    assert "product" not in gpu or "(Gpt.blocks.0.up), same operands" in str(found)


def flushed(func: Any, args: Any, _kwargs: Any) -> Any:
    """A product, in place or not, of a kernel with -ftz=true."""
    def flush(x: torch.Tensor) -> torch.Tensor:
        return torch.where(x.abs() < 2.0**-126, 0 * x, x)

    y = flush(flush(args[0]) * 1.5)
    return args[0].copy_(y) if func._schema.name.endswith("_") else y


def one_bit(_func: Any, args: Any, kwargs: Any) -> Any:
    args[0].mul_(1.5)
    args[0].view(torch.int32)[5] ^= 1
    return args[0]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ["mul", "mul_"])
def test_small_numbers(seed: int, name: str) -> None:
    def of(kernels: Any, **options: Any) -> sbt.Trace:
        x = torch.randn(64, generator=torch.Generator().manual_seed(seed)) * 2.0**-127
        return recorded(lambda: getattr(x, name)(1.5), kernels, **options)

    for kernels in (({}, {name: flushed}), ({name: flushed}, {})):
        found = sbt.explain(*map(of, kernels))
        assert found.cause == "rule" and "compiled with -ftz=true" in str(found), found
    if name == "mul_":
        found = sbt.explain(of({}, keep="all"), of({name: one_bit}, keep="all"))
        assert str(found).endswith("one bit: bit 0 of element [5]; b follows no known rule: suspect it"), found


def test_results_of_one_operator_are_explained() -> None:
    g = torch.Generator().manual_seed(3)
    a, b = (torch.randn(40, 40, generator=g) for _ in range(2))
    one, other = (samebits.matmul(a, b, rule=rule) for rule in (FP32_PRODUCT, FP32_PRODUCT + " slices=2 slice_tile=4"))
    found = sbt.explain(one, other, operator="aten.mm.default", inputs=(a, b))
    assert found.cause == "rule" and "the library splits K: 1 and 2 slices" in str(found), found
    assert sbt.explain(one, one.clone(), operator="aten.mm.default", inputs=(a, b)).cause == "equal"
    with pytest.raises(samebits.InvalidArgument, match="^operator: name the operator"):
        sbt.explain(one, other)
    wrong: dict[tuple[Any, ...], str] = {(): "takes 2 arguments; got 0", (a,): "takes 2 arguments; got 1",
                                         (a, b, 1): "takes 2 arguments; got 3", (a, "b"): "is a tensor; got a str"}
    for inputs, words in wrong.items():
        with pytest.raises(samebits.InvalidArgument, match=f"^inputs: .*{words}$"):
            sbt.explain(one, other, operator="aten.mm.default", inputs=inputs)
    # An argument that has only a name in PyTorch comes in its place.
    found = sbt.explain(a + 1, a + 2, operator="aten.add.Tensor", inputs=(a, b, 2))
    assert found.cause == "no known rule", found


def test_programs_are_recorded_and_explained() -> None:
    x = torch.randn(64)
    with EmulatedGpu():
        found = sbt.explain(lambda: x * 3, lambda: x * 4)
    assert found.cause == "program" and "operator 0 has other arguments" in str(found), found


def test_results_of_chosen_operators_are_kept() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.GELU())
    with sbt.record(keep=["aten.gelu.*", "*.0"]) as recorder:
        (model(torch.ones(2, 3)) * 2).sum()
    kept = {name.split(".")[0] for name in recorder.trace.tensors if name[0].isdigit()}
    named = {recorder.trace.operators[int(i)]["op"] for i in kept}
    assert named == {"aten.addmm.default", "aten.gelu.default"}
    assert any(name.startswith("block.") for name in recorder.trace.tensors)


@pytest.mark.parametrize("seed", SEEDS)
def test_other_sources_and_programs(seed: int) -> None:
    one = Training(seed).recorded()
    changed = Training(seed)
    with torch.no_grad():
        changed.model.blocks[0].down.weight[3, 4] *= 1.5  # type: ignore[union-attr, index]
    found = sbt.explain(one, changed.recorded())
    assert str(found).startswith("the source blocks.0.down.weight has other values\n  read first by operator ")
    assert "more" not in str(found)
    assert "another seed, batch or checkpoint" in str(sbt.explain(one, Training(seed + 10).recorded()))
    fused = sbt.explain(one, Training(seed, fused=True).recorded())
    assert "a foreach optimizer" in str(fused) and "a fused optimizer" in str(fused)
    casts = sbt.explain(one, Training(seed, dtype=torch.bfloat16).recorded())
    assert "another precision of autocast" in str(casts)
    assert {found.cause for found in (fused, casts)} == {"program"}


def test_kernels_of_operators() -> None:
    """Launches lie in an operator's time on its thread; of other launches nothing is kept."""
    from samebits.torch.launches import kernels_of

    def launch(time: float, thread: int, correlation: int, kind: str = "cuda_runtime") -> Any:
        return {"cat": kind, "name": "launch", "ts": time, "tid": thread, "args": {"correlation": correlation}}

    def kernel(correlation: int, name: str) -> Any:
        return {"cat": "kernel", "name": name, "ts": 90.0, "dur": 1.0, "tid": 7,
                "args": {"correlation": correlation, "grid": [correlation, 1, 1], "block": [32, 1, 1]}}

    def span(number: int, begin: float, thread: int) -> Any:
        return {"cat": "user_annotation", "name": f"samebits operator {number}", "ts": begin, "dur": 10.0,
                "tid": thread}

    events = [{"ph": "M", "name": "process_name"}, span(3, 0.0, 1), span(4, 20.0, 1), span(5, 0.0, 2),
              launch(25.0, 1, 12), launch(5.0, 1, 11), launch(26.0, 1, 13, "cuda_driver"), launch(15.0, 1, 14),
              launch(5.0, 2, 15), launch(6.0, 1, 99), kernel(12, "b"), kernel(11, "a"), kernel(13, "c"),
              kernel(14, "hash"), kernel(15, "d")]
    assert {i: [(k["name"], k["grid"][0]) for k in kernels] for i, kernels in kernels_of(events).items()} == {
        3: [("a", 11)], 4: [("b", 12), ("c", 13)], 5: [("d", 15)]}


def test_recordings_with_kernels() -> None:
    """On a CPU no operator has any; the program is the same."""
    with sbt.record(kernels=True) as recorder:
        torch.ones(3) + 1
    assert [entry["op"] for entry in recorder.trace.operators] == ["aten.ones.default", "aten.add.Tensor"]
    assert not any("kernels" in entry for entry in recorder.trace.operators)


# --- A recorded step of a GPU -------------------------------------------------------------------------

STEP = EXAMPLES / "gpt_step.sbt"


def test_a_step_of_a_gpu() -> None:
    """One step of examples/gpt on an H200: bf16 autocast, attention written out, AdamW with lists."""
    trace = sbt.Trace.load(STEP)
    replay = sbt.replay(trace)
    assert replay.equal and str(replay) == "328 operators: 328 equal, bit for bit"
    assert sum(step.elements for step in replay.steps) > 5_000_000
    names = {kernel["name"] for entry in trace.operators for kernel in entry.get("kernels", ())}
    assert any(name.startswith("nvjet_sm90") for name in names) and len(names) > 40


@pytest.mark.skipif("FPINSPECT" not in os.environ, reason="fpinspect is not built")
def test_fpinspect_replays(tmp_path: Path) -> None:
    def replayed(path: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run([os.environ["FPINSPECT"], "replay", str(path)], capture_output=True, text=True,
                              env={**os.environ, "SAMEBITS_PYTHON": sys.executable})

    right = replayed(STEP)
    assert (right.returncode, right.stdout) == (0, "328 operators: 328 equal, bit for bit\n"), right
    trace = sbt.Trace.load(STEP)
    trace.operators = trace.operators[:20]
    trace.operators[-1]["wrote"][0][1] = "f" * 16
    trace.save(tmp_path / "wrong.sbt")
    wrong = replayed(tmp_path / "wrong.sbt")
    assert wrong.returncode == 1 and "  differs: " in wrong.stdout, wrong
    (tmp_path / "none").write_text("")
    assert replayed(tmp_path / "none").returncode == 3
