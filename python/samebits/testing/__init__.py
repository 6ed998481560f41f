"""Property tests of your own kernels: conversions, functions, quantizers, reductions, loss scalers.

    from samebits.testing import check_conversion

    def test_my_cast():
        check_conversion(my_cast, "fp32", "e4m3", overflow="saturate")

`simulate_ranks` runs code that uses a communicator on several ranks in one process.

The Hypothesis strategies are in `samebits.testing.strategies`; nothing else needs Hypothesis.
"""

from samebits.testing.conversions import check_conversion
from samebits.testing.functions import check_function
from samebits.testing.loss_scaler_runs import Trace
from samebits.testing.loss_scalers import check_loss_scaler
from samebits.testing.memory import Layout
from samebits.testing.quantizers import check_quantize
from samebits.testing.ranks import RankCallsDiffer, simulate_ranks
from samebits.testing.reductions import check_reduction
from samebits.testing.same_bits import assert_same_bits

__all__ = [
    "Layout",
    "RankCallsDiffer",
    "Trace",
    "assert_same_bits",
    "check_conversion",
    "check_function",
    "check_loss_scaler",
    "check_quantize",
    "check_reduction",
    "simulate_ranks",
]
