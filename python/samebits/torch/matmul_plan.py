"""Matrix products on a GPU, by cuBLASLt, whose bits `samebits.matmul` returns on a CPU."""

from __future__ import annotations

import torch

from samebits import _core
from samebits.errors import InvalidArgument
from samebits.torch.tensors import stream_of

__all__ = ["MatmulPlan"]


class MatmulPlan:
    """A product by one algorithm of cuBLASLt whose results were compared with a rule.

    A plan is for shapes, dtypes, strides and alignments. It times the algorithms that do not split K,
    and takes the fastest one that has the bits of `rule` in 4,096 results of operands of its own.

    Parameters
    ----------
    a, b : tensor [M, K] and [K, N], on a Hopper GPU
        Two of bfloat16 or of float16, dense in rows or in columns; or of float8_e4m3fn and
        float8_e5m2, `a` dense in rows and `b` the transpose of dense weights [N, K]. No element is
        read.
    out_dtype : torch.dtype, optional
        float32, or that of `a` (the default); with FP8 also float16 and bfloat16 (the default).
    a_scales, a_tile, b_scales, b_tile
        FP8: dequantization scales, float32, and the tile of one scale as in `samebits.matmul`: (0, 0),
        (1, 0), (1, 128) or (128, 128) of `a`; turned for `b`. Scales lie as cuBLASLt reads them:
        those of (1, 128) by tiles of K, those of (128, 128) in rows of a multiple of four.
    fast_accumulation : bool
        FP8: sums stay in the tensor core for all of K, ``use_fast_accum`` of scaled_mm.

    Attributes
    ----------
    rule : str
        The rule, for ``samebits.matmul(a.cpu(), b.cpu(), rule=plan.rule, out=...)``.
    algorithm : str
        cuBLASLt's version, and the numbers by which it configures the algorithm.

    Raises
    ------
    InvalidArgument
        An argument was refused, or the stream is being captured: a plan is made before.
    Unsupported
        The GPU is no Hopper, cuBLASLt cannot be loaded or has no such product, or no algorithm has
        the bits of the rule.

    Notes
    -----
    An element of the product depends on one row of `a` and one column of `b`: concatenated weights
    give the bits of separate ones.

    Examples
    --------
    A step may be captured, since the plan is made before. It needs a GPU:

    >>> plan = sbt.MatmulPlan(x, weight.t())  # doctest: +SKIP
    >>> y = plan(x, weight.t())  # doctest: +SKIP
    >>> same = sb.matmul(x.cpu(), weight.t().cpu(), rule=plan.rule, out="bf16")  # doctest: +SKIP
    """

    def __init__(self, a: torch.Tensor, b: torch.Tensor, *, out_dtype: torch.dtype | None = None,
                 a_scales: torch.Tensor | None = None, a_tile: tuple[int, int] = (0, 0),
                 b_scales: torch.Tensor | None = None, b_tile: tuple[int, int] = (0, 0),
                 fast_accumulation: bool = False) -> None:
        for name, x in (("a", a), ("b", b)):
            if x.dim() != 2:
                raise InvalidArgument(f"{name}: two axes are expected; got shape {[*x.shape]}")
        half = a.dtype in (torch.bfloat16, torch.float16)
        self._dtype = out_dtype or (a.dtype if half else torch.bfloat16)
        self._how = (a_tile, b_tile, fast_accumulation)
        self._plan = _core.MatmulPlan(a, b, self._new(a, b), (a_scales, b_scales), self._how,
                                      (None, None, stream_of(a.device)))

    def __call__(self, a: torch.Tensor, b: torch.Tensor, *, a_scales: torch.Tensor | None = None,
                 b_scales: torch.Tensor | None = None, out: torch.Tensor | None = None) -> torch.Tensor:
        """Return a b of tensors as the plan was made for, on the current stream, without gradients.

        Parameters
        ----------
        a, b, a_scales, b_scales : tensors
            Of the plan's shapes, dtypes, strides and alignments.
        out : tensor [M, N], optional
            Receives the product; dense in rows.

        Returns
        -------
        tensor [M, N]
        """
        out = self._new(a, b) if out is None else out
        self._plan.run(a, b, out, (a_scales, b_scales), self._how, (None, None, stream_of(a.device)))
        return out

    @property
    def rule(self) -> str:
        """The rule of each element, as `samebits.matmul` takes it."""
        text: str = self._plan.rule
        return text

    @property
    def algorithm(self) -> str:
        """What cuBLASLt runs."""
        text: str = self._plan.algorithm
        return text

    def _new(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a.new_empty((a.shape[0], b.shape[1]), dtype=self._dtype)
