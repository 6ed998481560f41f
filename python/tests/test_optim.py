"""samebits.optim: formulas against NumPy, formats, skipped steps, checkpoints and refusals."""

from __future__ import annotations

import copy
import inspect
import pickle
import threading
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import samebits
from samebits import optim

BF16 = ml_dtypes.bfloat16
CLASSES = [optim.AdamW, optim.Adam, optim.SGD, optim.Lion, optim.LAMB]


def numbers(count: int, seed: int, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(seed).normal(size=count).astype(np.float32).astype(dtype)


def bits(array: Any) -> Any:
    return np.asarray(array).view(f"u{array.dtype.itemsize}").tolist()


def test_adamw_in_numpy() -> None:
    """Settings arrive, each in its place; the library's own tests prove the rule."""
    f = np.float32
    w, m, v = numbers(1000, 0), np.zeros(1000, f), np.zeros(1000, f)
    expected = w.copy()
    optimizer = optim.AdamW(w, lr=0.01, betas=(0.9, 0.99), weight_decay=0.1, maximize=True)
    for step in range(1, 4):
        g = numbers(1000, step)
        optimizer.step(-g, grad_mul=0.25)
        g = g * f(0.25)
        m = f(0.9) * m + (1 - f(0.9)) * g
        v = f(0.99) * v + (1 - f(0.99)) * (g * g)
        c1, c2 = (1 - np.prod([float(f(b))] * step) for b in (0.9, 0.99))
        expected = expected * f(1 - 0.01 * 0.1) - (f(0.01 / c1) * m) / (np.sqrt(v) / f(np.sqrt(c2)) + f(1e-8))
        assert bits(w) == bits(expected), step
    state = optimizer.state["0"]
    assert (bits(state["exp_avg"]), bits(state["exp_avg_sq"])) == (bits(m), bits(v)) and optimizer.applied_steps == 3


def test_sgd_in_numpy() -> None:
    f, w, m = np.float32, numbers(100, 0), np.zeros(100, np.float32)
    expected = w.copy()
    optimizer = optim.SGD(w, lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=True)
    for step in range(1, 4):
        optimizer.step(numbers(100, step))
        g = numbers(100, step) + f(0.01) * expected
        m = g if step == 1 else f(0.9) * m + g
        expected = expected - f(0.1) * (g + f(0.9) * m)
        assert bits(w) == bits(expected), step


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("weights", ["master32", "direct", "stochastic", "split16", "kahan",
                                     "master16_scaled", "fp8_copy"])
@pytest.mark.parametrize("states", ["fp32", "bf16", "bf16_stochastic", "fp16_scaled", "e4m3", "dynamic8"])
def test_every_mode_steps_and_resumes(kind: Any, weights: str, states: str, tmp_path: Path) -> None:
    def made() -> tuple[Any, Any]:
        dtype = np.float32 if weights == "fp8_copy" else BF16
        params = {"w": numbers(300, 0, dtype), "b": numbers(7, 1, dtype)}
        options = {"momentum": 0.9} if kind is optim.SGD else {}
        return params, kind(params, lr=0.01, weights=weights, states=states, seed=3, **options)

    def step(params: Any, optimizer: Any, number: int) -> None:
        optimizer.step({name: numbers(p.size, 10 + number, p.dtype) for name, p in params.items()})

    def everything(params: Any, optimizer: Any) -> Any:
        arrays = {**params, **{f"{n}.{k}": a for n, s in optimizer.state.items() for k, a in s.items()}}
        return {name: bits(array) for name, array in arrays.items()}

    params, optimizer = made()
    before = everything(params, optimizer)
    for number in range(2):
        step(params, optimizer, number)
    assert everything(params, optimizer)["w"] != before["w"] or weights == "direct"
    optimizer.save(tmp_path / "state.safetensors")
    resumed_params, resumed = made()
    resumed.load(tmp_path / "state.safetensors")
    for number in range(2, 4):
        step(params, optimizer, number)
        step(resumed_params, resumed, number)
    assert everything(params, optimizer) == everything(resumed_params, resumed)
    assert resumed.applied_steps == 4


def test_a_skipped_step_changes_nothing() -> None:
    w = numbers(10, 0)
    optimizer = optim.Adam(w)
    optimizer.step(np.full(10, np.nan, np.float32), applied=False)
    assert bits(w) == bits(numbers(10, 0)) and optimizer.applied_steps == 0
    assert not optimizer.state["0"]["exp_avg"].any()


def test_backends_threads_and_the_scale_of_the_gradients_change_no_bit() -> None:
    results = set()
    for scale, options in ((1.0, {}), (2.0**-20, {"threads": 2}), (2.0**10, {"backend": "reference"})):
        w = numbers(9000, 0)
        optim.AdamW(w, profile="torch_fused").step(numbers(9000, 1) * np.float32(scale), grad_mul=1 / scale, **options)
        results.add(w.tobytes())
    assert len(results) == 1


def test_every_rule_has_a_class() -> None:
    rules = {kind._rule: kind for kind in vars(optim).values() if hasattr(kind, "_rule")}
    assert list(rules) == samebits._core.enumerations()["update_rule"]
    assert list(rules.values()) == [getattr(optim, kind.__name__) for kind in rules.values()]
    assert {kind.__module__ for kind in rules.values()} == {"samebits.optim"}  # pickles name it
    defaults = {name: {p.name: p.default for p in inspect.signature(kind).parameters.values()}
                for name, kind in rules.items()}
    adam = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0}
    expected = {
        "adamw": {**adam, "weight_decay": 1e-2}, "adam": adam,
        "sgd": {"lr": 1e-3, "momentum": 0, "dampening": 0, "weight_decay": 0, "nesterov": False},
        "lion": {"lr": 1e-4, "betas": (0.9, 0.99), "weight_decay": 0},
        "lamb": {**adam, "eps": 1e-6, "weight_decay": 1e-2}}
    for name, own in expected.items():
        assert list(defaults[name].items())[1:1 + len(own)] == list(own.items()), name


def test_random_streams() -> None:
    names = samebits._core.enumerations()["stream_purpose"]
    streams = {optim.random_stream(name, tensor, step) for name in names
               for tensor in (0, 1, 2**24 - 1) for step in (0, 1, 2**32 - 1)}
    assert len(streams) == 9 * len(names)
    w = np.ones(64, BF16)
    optim.SGD(w, lr=0.1, weights="stochastic", seed=5).step(w.copy())
    expected = samebits.convert(np.full(64, 1 - np.float32(0.1)), "bf16", rounding="stochastic", random_bits=16, seed=5,
                                random_stream=optim.random_stream("weights", 0, 1))
    assert bits(w) == bits(expected)


W = np.random.default_rng(0).normal(size=4).astype(np.float32)


@pytest.mark.parametrize("message, call", [
    ("has no such profile", lambda path: optim.Lion(W, profile="apex_te").step(W.copy())),
    ("C-contiguous", lambda path: optim.AdamW(W[::2])),
    ("split16 needs parameters in bf16", lambda path: optim.AdamW(W.astype(np.float16), weights="split16")),
    ("fp8_copy needs parameters in fp32", lambda path: optim.AdamW(W.astype(BF16), weights="fp8_copy")),
    ("params: fp32, bf16 or fp16|parameters: fp32", lambda path: optim.AdamW(W.astype(np.float64))),
    ("gradients: one for each", lambda path: optim.AdamW({"w": W}).step({"v": W})),
    (r"gradients\[0\]: shape", lambda path: optim.AdamW(W).step(W[:3].copy())),
    ("overlap", lambda path: optim.AdamW([W, W[:2]]).step([W.copy(), W[:2].copy()])),
    (r"tensor: an integer of 0 .. 2\^24 - 1 is expected; got 16777216",
     lambda path: optim.random_stream("weights", 2**24, 0)),
    ("a NumPy array", lambda path: optim.AdamW([[1.0, 2.0]])),
    ("rule adam is expected; got adamw", lambda path: optim.Adam(W).load(path)),
    ("only in the file", lambda path: optim.AdamW({"a": W}).load(path)),
    ("0.parameter: shape", lambda path: optim.AdamW(W[:3].copy()).load(path)),
    *((f"in {other} is expected; got", lambda path, other=other: (
        optim.AdamW(W, states="dynamic8").save(path), optim.AdamW(W, states=other).load(path)))
      for other in ("e4m3", "e5m2")),
])
def test_refusals(message: str, call: Any, tmp_path: Path) -> None:
    optim.AdamW(W).save(tmp_path / "s")
    with pytest.raises((samebits.InvalidArgument, TypeError), match=message):
        call(tmp_path / "s")


def test_states_that_do_not_fit_are_refused() -> None:
    fixed = numbers(300, 0)
    fixed.flags.writeable = False
    for key, array in (
        ("exp_avg", np.zeros(300, BF16)), ("exp_avg", np.zeros(299, np.float32)), ("exp_avg", fixed),
        ("exp_avg", np.zeros(600, np.float32)[::2]), ("exp_avg", [0.0] * 300),
        ("exp_avg_sq_scale", np.ones(2, np.float32)), ("exp_avg_sq_scale", np.ones(3)),
    ):
        optimizer = optim.AdamW(numbers(300, 0), states=("fp32", "e4m3"))
        old, optimizer.state["0"][key] = optimizer.state["0"][key], array  # type: ignore[assignment]
        with pytest.raises(samebits.InvalidArgument, match=rf"state\[0\]\[{key}\]: a writable"):
            optimizer.step(numbers(300, 1))
        del optimizer.state["0"][key]
        with pytest.raises(samebits.InvalidArgument, match=rf"state\[0\]\[{key}\]: a writable"):
            optimizer.step(numbers(300, 1))
        new = optimizer.state["0"][key] = old.copy()  # the one that is updated
        optimizer.step(numbers(300, 1))
        assert new.tobytes() != old.tobytes()


@pytest.mark.parametrize("applied", [True, False])
def test_a_refused_step_changes_no_setting(applied: bool) -> None:
    w, expected = numbers(10, 0), numbers(10, 0)
    optimizer, other = optim.SGD(w, lr=0.5), optim.SGD(expected, lr=0.5)
    for bad in (
        lambda: optimizer.step(numbers(10, 1), lr=-1, applied=applied),
        lambda: optimizer.step(numbers(10, 1), lr=float("nan"), applied=applied),
        lambda: optimizer.step(numbers(9, 1), lr=0.25, applied=applied),
    ):
        with pytest.raises(samebits.InvalidArgument):
            bad()
    optimizer.step(numbers(10, 1))
    other.step(numbers(10, 1))
    assert bits(w) == bits(expected)
    optimizer.step(numbers(10, 1), lr=0.25, applied=False)  # the rate holds from a skipped step on
    optimizer.step(numbers(10, 1))
    other.step(numbers(10, 1), lr=0.25)
    assert bits(w) == bits(expected)


def test_a_file_has_the_seed(tmp_path: Path) -> None:
    runs = [numbers(300, 0, BF16) for _ in range(2)]
    first, second = (optim.SGD(w, weights="stochastic", seed=s) for w, s in zip(runs, (5, 6), strict=True))
    first.save(tmp_path / "s")
    second.load(tmp_path / "s")
    for optimizer in (first, second):
        optimizer.step(numbers(300, 1, BF16))
    assert bits(runs[0]) == bits(runs[1])


@pytest.mark.parametrize("kind", [optim.AdamW, optim.Adam, optim.LAMB])
@pytest.mark.parametrize("states", ["fp16", "fp16_stochastic", ("fp32", "fp16")])
def test_second_moments_in_fp16_are_refused(kind: Any, states: Any) -> None:
    with pytest.raises(samebits.InvalidArgument, match=r"states: fp16\w* has no numbers between 0 and "
                       r"2\^-24, .* exp_avg_sq .* eps alone; use fp16_scaled or bf16"):
        kind(numbers(4, 0), states=states)
    optim.Lion(numbers(4, 0), states="fp16").step(numbers(4, 1))


@pytest.mark.parametrize("backend", ["reference", "avx2", "avx512"])
@pytest.mark.parametrize("kind", [optim.AdamW, optim.Adam, optim.LAMB])
def test_eps_of_zero(kind: Any, backend: str) -> None:
    if not any(b.name == backend and b.supported for b in samebits.backends()):
        pytest.skip(f"no {backend} on this machine")
    w = np.ones(21, np.float32)
    g = np.where(np.arange(21) % 3 == 0, 0, 1).astype(np.float32)
    kind(w, lr=0.25, betas=(0.5, 0.75), eps=0, weight_decay=0).step(g, backend=backend)
    assert set(np.asarray(w).view(np.uint32)[::3].tolist()) == {0x7FFFFFFF}
    assert set(w[g == 1].tolist()) == {0.75}


@pytest.mark.parametrize("weights", ["master32", "stochastic"])
def test_steps_of_several_threads_take_turns(weights: str) -> None:
    """The gradients are equal, so the order of the threads does not matter."""
    count, each = 8, 25
    w, expected = (numbers(20000, 0, BF16) for _ in range(2))
    g = numbers(20000, 1, BF16)
    optimizer, alone = (optim.AdamW(p, weights=weights, states="bf16_stochastic", seed=3) for p in (w, expected))
    begin = threading.Barrier(count)

    def steps() -> None:
        begin.wait()
        for _ in range(each):
            optimizer.step(g, threads=1)

    workers = [threading.Thread(target=steps) for _ in range(count)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    for _ in range(count * each):
        alone.step(g, threads=1)
    assert optimizer.applied_steps == alone.applied_steps == count * each
    assert bits(w) == bits(expected)
    for key, array in alone.state["0"].items():
        assert bits(optimizer.state["0"][key]) == bits(array), key


def test_copies_and_pickles_continue() -> None:
    w = numbers(300, 0, BF16)
    optimizer = optim.AdamW(w)
    optimizer.step(numbers(300, 1, BF16))
    results = []
    for v, other in (copy.deepcopy((w, optimizer)), pickle.loads(pickle.dumps((w, optimizer))), (w, optimizer)):
        other.step(numbers(300, 2, BF16))
        assert other.applied_steps == 2
        results.append([bits(v), *(bits(other.state["0"][key]) for key in ("master", "exp_avg"))])
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize(("options", "kind", "message"), [
    ({"seed": -1}, samebits.InvalidArgument, "seed: an integer of 0 .. 2^64 - 1 is expected; got -1"),
    ({"seed": 1.5}, TypeError, "seed: an integer is expected; got 1.5"),
    ({"block": 128.0}, TypeError, "block: an integer is expected; got 128.0"),
    ({"block": 0}, samebits.InvalidArgument, "block: 128 or 256 is expected; got 0"),
    ({"block": 64}, samebits.InvalidArgument, "block: 128 or 256 is expected; got 64"),
    ({"lr": "1e-3"}, TypeError, "lr: a number is expected; got '1e-3'"),
    ({"lr": -1.0}, samebits.InvalidArgument, "lr: must be a finite number >= 0"),
    ({"betas": (0.9, 1.0)}, samebits.InvalidArgument, "betas[1]: must be in [0, 1)"),
    ({"betas": 0.9}, TypeError, "betas: two numbers are expected; got 0.9"),
    ({"eps": None}, TypeError, "eps: a number is expected; got None"),
    ({"eps": -1.0}, samebits.InvalidArgument, "eps: must be a number >= 0 that is finite"),
    ({"maximize": "yes"}, TypeError, "maximize: True or False is expected; got 'yes'"),
    ({"weights": "master"}, samebits.InvalidArgument, "weights: 'master' is not one of master32"),
    ({"states": ["fp32"]}, samebits.InvalidArgument, "states: one format or 2 are expected; got 1"),
    ({"states": ["fp32"] * 3}, samebits.InvalidArgument, "states: one format or 2 are expected; got 3"),
    ({"states": 3}, TypeError, "states: a string or several are expected; got a int"),
    ({"profile": "torch"}, samebits.InvalidArgument, "profile: 'torch' is not one of torch_f"),
    ({"profile": "torch_fused", "states": "bf16"}, samebits.InvalidArgument, "with a torch profile"),
])
def test_constructors_refuse_what_no_step_could_take(options: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as caught:
        optim.AdamW(np.ones(4, np.float32), **options)
    assert str(caught.value).startswith(message)


def test_names_in_another_case_are_the_same_names() -> None:
    w = np.ones(4, np.float32)
    optimizer = optim.AdamW({"w": w}, weights="FP8-copy", states="FP16_SCALED")
    optimizer.step({"w": w.copy()})
    assert set(optimizer.state["w"]) == {"fp8", "fp8_scale", "exp_avg", "exp_avg_scale",
                                         "exp_avg_sq", "exp_avg_sq_scale"}
