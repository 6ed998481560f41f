"""Scaled dot product attention, as `samebits.functions` offers it.

All arrays lie in host memory, in fp16 or bf16.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from samebits import _core
from samebits.rules import options_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from samebits.option_types import AttentionOptions
    from samebits.typing import AttentionKernel, FormatLike

__all__ = ["Attention", "AttentionGradients", "attention", "attention_backward"]


class Attention(NamedTuple):
    """Results of `attention`."""

    out: Any  #: in the shape and format of `q`
    lse: Any  #: fp32 [batch, heads, queries]: the logarithm of the sum; of ``math`` None


class AttentionGradients(NamedTuple):
    """Results of `attention_backward`, in the shapes and format of q, k and v."""

    dq: Any  #: None if it is not wanted
    dk: Any
    dv: Any


def _options(
    *,
    kernel: AttentionKernel,
    causal: bool = False,
    scale: float | None = None,
    multiprocessors: int = 132,
    dropout: float = 0.0,
    format: FormatLike | None = None,
    threads: int | None = None,
    backend: str | None = None,
) -> tuple[Any, ...]:
    """Return the options of the core's functions, their splits, the format and the executor.

    Parameters
    ----------
    kernel : str
        Whose bits the function returns: PyTorch 2.11's ``flash`` (FlashAttention 2), ``cudnn``, the
        default on an H100, or ``math``.
    causal : bool
        Query i sees keys 0 to i.
    scale : float, optional
        Factor of the scores; default ``1 / sqrt(head dimension)``.
    multiprocessors : int
        Streaming multiprocessors of the GPU: 132 of an H100 and of an H200.
    dropout : float
        Another probability than 0 has no rule.
    format, threads, backend
        As in `samebits.convert`. All arrays lie in host memory.

    Raises
    ------
    InvalidArgument, Unsupported
        An argument was refused, or has no rule; nothing was written.
    """
    how = (kernel, causal, 0 if scale is None else scale, multiprocessors)
    return how, dropout, format, (threads, backend, None)


@options_of(_options)
def attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    splits: int = 0,
    out: Any = None,
    **options: Unpack[AttentionOptions],
) -> Attention:
    """Return ``F.scaled_dot_product_attention(q, k, v)`` as PyTorch computes it on a GPU.

    Parameters
    ----------
    q : array [batch, heads, queries, head dimension]
        In fp16 or bf16; the head dimension is 64 or 128.
    k, v : array [batch, heads, keys, head dimension]
    splits : int
        Parts of the keys of ``flash``; default: as many as PyTorch chooses.
    out : array, optional
        As in `samebits.convert`.

    Returns
    -------
    Attention
        The result, and the logarithm of every query's sum of exponentials.

    Examples
    --------
    >>> q = np.ones((1, 1, 2, 64), np.float16)
    >>> sb.functions.attention(q, q, q, kernel="flash").lse.tolist()
    [[[8.693147659301758, 8.693147659301758]]]
    """
    how, dropout, format, where = _options(**options)
    return Attention(*_core.attention((q, k, v), (*how, splits, dropout), format, out, where))


@options_of(_options, attention)
def attention_backward(
    grad: Any,
    q: Any,
    k: Any,
    v: Any,
    out: Any = None,
    lse: Any = None,
    *,
    dq: bool = True,
    **options: Unpack[AttentionOptions],
) -> AttentionGradients:
    """Return the gradients of q, k and v as PyTorch computes them on a GPU.

    Of ``flash`` these are the bits under ``torch.use_deterministic_algorithms(True)``.

    Parameters
    ----------
    grad : array [batch, heads, queries, head dimension]
        The gradient of `attention`'s result.
    out, lse : array, optional
        `attention`'s results; ``math`` does not read them.
    dq : bool
        Whether the gradient of `q` is wanted. That of ``cudnn`` differs from run to run on a GPU
        above 256 keys, and is refused.

    Returns
    -------
    AttentionGradients

    Examples
    --------
    >>> q = np.ones((1, 1, 2, 64), np.float16)
    >>> y = sb.functions.attention(q, q, q, kernel="flash")
    >>> d = sb.functions.attention_backward(q, q, q, q, *y, kernel="flash")
    >>> d.dv[0, 0, :, 0].tolist()
    [1.0, 1.0]
    """
    how, dropout, format, where = _options(**options)
    return AttentionGradients(*_core.attention_backward((q, k, v, grad, out, lse),
                                                        (*how, 0, dropout), dq, format, where))
