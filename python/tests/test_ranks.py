"""Several ranks, as threads: one sum, one decision and one norm."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import samebits as sb
import samebits.ranks as sbr
from samebits.testing import RankCallsDiffer, simulate_ranks

COUNT = 3


def numbers(rank: int, *shape: int) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(rank)
    x = rng.standard_normal(shape) * 2.0 ** rng.integers(-12, 12, shape)
    return x.astype(np.float32)


def outcome(body: Any) -> Any:
    """Return the result of body(ranks), or the exception that it raised."""
    def run(ranks: sbr.Communicator) -> Any:
        try:
            return body(ranks)
        except Exception as error:
            return error
    return run


# --- one sum of gradients -----------------------------------------------------------------------

@pytest.mark.parametrize("communication", ["fp32", "fp16", "bf16", "e4m3", "e5m2"])
@pytest.mark.parametrize("elements_at_once", [7, 1 << 22])
def test_sums(communication: str, elements_at_once: int) -> None:
    """Of small whole numbers they are exact; the library's own tests prove the others."""
    def train(ranks: sbr.Communicator) -> dict[str, Any]:
        gradients = {"w": np.float32(np.arange(16) % 8).reshape(2, 8) * 2**ranks.rank, "b": np.float32([ranks.rank])}
        sbr.reduce_gradients(ranks, gradients, communication=communication, factor=0.5,
                             elements_at_once=elements_at_once)
        return gradients

    for result in simulate_ranks(COUNT, train):
        assert result["w"].tolist() == [[3.5 * (i % 8) for i in range(8)]] * 2 and result["b"].tolist() == [1.5]


def test_stochastic_rounding_differs_by_rank_and_is_repeatable() -> None:
    def train(ranks: sbr.Communicator) -> Any:
        gradient = np.full(1000, 1 + 2.0**-9, np.float32)
        sbr.reduce_gradients(ranks, gradient, rounding="stochastic", seed=5)
        return gradient

    first, again = simulate_ranks(2, train), simulate_ranks(2, train)
    np.testing.assert_array_equal(first[0], first[1])
    np.testing.assert_array_equal(first[0], again[0])
    values = set(first[0].tolist())
    assert len(values) == 3  # both ranks round down, one does, none does


def gradients_differ(ranks: sbr.Communicator) -> None:
    sbr.reduce_gradients(ranks, np.ones(4 + ranks.rank, np.float32))


def scalers_differ(ranks: sbr.Communicator) -> None:
    scaler = sb.LossScaler(init_exponent=10 + (ranks.rank == 2))
    scaler.observe()
    scaler.agree(ranks)


def lengths_differ(ranks: sbr.Communicator) -> None:
    sbr.norm_of_shards(ranks, [numbers(0, 0)] * (1 + min(ranks.rank, 1)), [0] * (1 + min(ranks.rank, 1)))


@pytest.mark.parametrize(("body", "message"), [
    (gradients_differ, "differ"), (scalers_differ, "the ranks' scalers differ"),
    (lengths_differ, "between 1 and 2 tensors")])
def test_ranks_that_differ(body: Any, message: str) -> None:
    for error in simulate_ranks(COUNT, outcome(body)):
        assert isinstance(error, sb.RankError)
        assert message in str(error)


INVALID = sb.InvalidArgument
ONE = [np.float32([1])]


@pytest.mark.parametrize(("wrong", "kind", "message"), [
    ({"communication": "e4m4"}, INVALID, "e4m4"), ({"communication": "fp64"}, INVALID, "communication must"),
    ({"factor": np.inf}, INVALID, "factor must"), ({"factor": "2"}, TypeError, "factor"),
    ({"scale": "x"}, INVALID, "scale"), ({"rounding": "upward"}, INVALID, "rounding must"),
    ({"elements_at_once": 0}, INVALID, "elements_at_once must"),
    ({"gradients": [np.int32([1])]}, INVALID, "gradients[0]"), ({"gradients": [np.float64([1])]}, INVALID, "gradients[0]"),
    ({"gradients": 3}, TypeError, "gradients"), ({"backend": 3}, TypeError, "backend"),
    ({"shards": [np.float64([1])]}, INVALID, "shards[0]: fp32, fp16 or bf16"),
    ({"shards": [np.int32([1])]}, INVALID, "shards[0]"), ({"shards": [3]}, TypeError, "shards[0]"),
    ({"shards": ONE, "first": [0, 1]}, INVALID, "first"), ({"shards": ONE, "first": [-1]}, INVALID, "first[0]"),
    ({"shards": {"w": ONE[0]}, "first": {"v": 0}}, INVALID, "first"),
    ({"shards": ONE, "first": [0.5]}, TypeError, "first[0]")])
def test_a_refusal_reaches_every_rank(wrong: dict[str, Any], kind: type[Exception], message: str) -> None:
    gradients = [np.float32([r]) for r in range(COUNT)]

    def call(ranks: sbr.Communicator) -> None:
        own = wrong if ranks.rank == 1 else {}
        if "shards" in wrong:
            sbr.norm_of_shards(ranks, **{"shards": [numbers(0, 5000)], "first": [0], **own})
        else:
            sbr.reduce_gradients(ranks, **{"gradients": [gradients[ranks.rank]], **own})

    results = simulate_ranks(COUNT, outcome(call))
    assert isinstance(results[1], kind)
    assert message in str(results[1]) and "how." not in str(results[1])
    for r in (0, 2):
        assert isinstance(results[r], sb.RankError)
        assert "rank 1 refused" in str(results[r])
    assert [float(g[0]) for g in gradients] == [0, 1, 2]


class _Failing(sbr.SingleRank):
    """A communicator that raises in its operation number `at`; the first one is number 0."""

    def __init__(self, at: int) -> None:
        self.left = at

    def _count(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise ConnectionError("the network is down")

    def all_reduce_max(self, words: Any) -> None:
        self._count()

    def all_gather(self, sent: Any, received: Any) -> None:
        self._count()
        super().all_gather(sent, received)

    def all_to_all(self, sent: Any, received: Any) -> None:
        self._count()
        super().all_to_all(sent, received)


def test_an_exception_of_the_communicator_passes_through() -> None:
    for at in range(3):
        with pytest.raises(ConnectionError, match="down"):
            sbr.reduce_gradients(_Failing(at), np.ones(4, np.float32))
    with pytest.raises(sb.IncompleteWrite) as raised:
        sbr.reduce_gradients(_Failing(4), np.ones(4, np.float32), elements_at_once=2)
    assert isinstance(raised.value.__cause__, ConnectionError)
    scaler = sb.LossScaler()
    scaler.observe()
    with pytest.raises(ConnectionError):
        scaler.agree(_Failing(0))
    assert scaler.agree(sbr.SingleRank()).bad_rank is None


def test_what_is_not_a_communicator() -> None:
    with pytest.raises(TypeError, match="Communicator is expected"):
        sbr.reduce_gradients(None, np.ones(1, np.float32))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="abstract"):
        sbr.Communicator()  # type: ignore[abstract]

    class Wrong(sbr.SingleRank):
        @property
        def size(self) -> int:
            return 0

    with pytest.raises(sb.InvalidArgument, match="ranks.size"):
        sbr.reduce_gradients(Wrong(), np.ones(1, np.float32))


# --- one decision -------------------------------------------------------------------------------

def test_all_ranks_skip_the_step_of_one() -> None:
    def train(ranks: sbr.Communicator) -> Any:
        scaler = sb.LossScaler("torch")
        seen = []
        for step in range(4):
            scaler.scale(float("nan") if (step, ranks.rank) == (2, 1) else 1.0)
            gradient = np.float32([1, np.inf if (step, ranks.rank) == (1, 2) else 1])
            scaler.unscale({"w": gradient})
            everyone = scaler.agree(ranks)
            applied = scaler.step()
            seen.append((applied, everyone.bad_rank, everyone.nonfinite, everyone.loss_nonfinite,
                         everyone.first_bad, scaler.update().change))
        return seen, scaler.save()

    results = simulate_ranks(COUNT, train)
    assert results[0] == results[1] == results[2]
    steps = results[0][0]
    assert [s[0] for s in steps] == [True, False, True, True]
    assert steps[1][1:5] == (2, True, False, 0)
    assert steps[2][1:5] == (1, False, True, None)


def test_agreeing_before_looking() -> None:
    with pytest.raises(sb.CallOrderError, match="unscale"):
        sb.LossScaler().agree(sbr.SingleRank())


# --- one norm -----------------------------------------------------------------------------------

def test_norms_are_those_of_one_place_however_the_shards_are_cut() -> None:
    rng = np.random.default_rng(0)
    for trial in range(10):
        count = int(rng.integers(1, 6))
        tensors = {f"t{i}": numbers(100 * trial + i, int(rng.choice([0, 5, 4095, 4096, 4097, 20000, 70000]))).astype(
            [np.float32, np.float16][i % 2]) for i in range(4)}
        borders = {name: sorted([0, *rng.integers(0, x.size + 1, count - 1).tolist(), x.size])
                   for name, x in tensors.items()}
        order = rng.permutation(count)  # shards lie on the ranks in any order

        def norm(ranks: sbr.Communicator, tensors: Any = tensors, borders: Any = borders,
                 order: Any = order) -> sbr.ShardNorms:
            at = order[ranks.rank]
            return sbr.norm_of_shards(ranks, {n: x[borders[n][at]:borders[n][at + 1]] for n, x in tensors.items()},
                                      {n: borders[n][at] for n in tensors})

        for result in simulate_ranks(count, norm):
            assert result == sbr.ShardNorms(*sb.l2norm(tensors))


def test_a_shard_of_strides() -> None:
    x = numbers(0, 128, 96)
    result = sbr.norm_of_shards(sbr.SingleRank(), x.T, 0)
    assert result.total == sb.l2norm(np.ascontiguousarray(x.T))[0]


@pytest.mark.parametrize(("firsts", "message"), [
    ([0, 10, 19], "w: the shards overlap: rank 1 ends at 20, rank 2 begins at 19"),
    ([0, 10, 21], "w: the shards leave a gap: rank 1 ends at 20, rank 2 begins at 21"),
    ([1, 11, 21], "w: the shards leave a gap: the tensor begins at 0, rank 0 begins at 1"),
    ([0, 0, 0], "w: the shards overlap"),
])
def test_shards_that_do_not_fit(firsts: list[int], message: str) -> None:
    def norm(ranks: sbr.Communicator) -> None:
        sbr.norm_of_shards(ranks, {"w": numbers(0, 10)}, [firsts[ranks.rank]])

    for error in simulate_ranks(COUNT, outcome(norm)):
        assert isinstance(error, sb.RankError)
        assert message in str(error)


# --- simulated ranks ----------------------------------------------------------------------------

def test_calls_that_do_not_match_are_told() -> None:
    def sizes(ranks: sbr.Communicator) -> None:
        sent = np.zeros(1 + ranks.rank, np.uint8)
        ranks.all_gather(sent, np.zeros(2 * sent.size, np.uint8))

    with pytest.raises(RankCallsDiffer, match="rank 1 calls all_gather with 2 bytes"):
        simulate_ranks(2, sizes)

    def ends(ranks: sbr.Communicator) -> None:
        if ranks.rank == 0:
            ranks.all_reduce_max(np.zeros(1, np.uint32))

    with pytest.raises(RankCallsDiffer, match="rank 1 has returned"):
        simulate_ranks(2, ends)

    def raises(ranks: sbr.Communicator) -> None:
        if ranks.rank == 1:
            raise ValueError("of the body")
        ranks.all_reduce_max(np.zeros(1, np.uint32))

    with pytest.raises(ValueError, match="of the body"):
        simulate_ranks(2, raises)
