"""Several ranks that train one model: one decision, one norm, one sum of gradients on all ranks.

You connect samebits to your network by a subclass of `Communicator`. For torch.distributed there is
`samebits.torch.ProcessGroup`. Every function is called on every rank, in the same order.

Examples
--------
>>> import numpy as np
>>> import samebits as sb
>>> import samebits.ranks as sbr
>>> ranks = sbr.SingleRank()
>>> gradients = {"w": np.float32([1, 2]), "b": np.float32([3])}
>>> sbr.reduce_gradients(ranks, gradients, factor=1 / ranks.size)
>>> scaler = sb.LossScaler()
>>> scaler.unscale(gradients).first_bad is None
True
>>> scaler.agree(ranks).bad_rank is None
True
"""

from __future__ import annotations

from samebits.ranks.agreement import *
from samebits.ranks.communicator import *
from samebits.ranks.gradients import *
from samebits.ranks.shards import *
from samebits.rules import dir_of, names_in

__all__ = names_in(__name__, ("agreement", "communicator", "gradients", "shards"))
__dir__ = dir_of(__name__)
