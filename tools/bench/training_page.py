"""Writes the tables and charts of docs/training.md from measured results.

usage: training_page.py RESULTS
RESULTS is the folder of examples/gpt/experiments.py and tools/bench/gpu/training_bench.py. A table stands
between two comments of the page, <!-- NAME --> and <!-- end -->.
"""

import json
import math
import re
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "examples" / "gpt"))
from plot import Curve, chart
from precision import PRECISIONS

ORDER = {name: number for number, name in enumerate(PRECISIONS)}
PAGE, FIGURES = ROOT / "docs" / "training.md", ROOT / "docs" / "figures"


def table(head, rows):
    """Return a table; cells that are no text are written as numbers."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def loss(value, digits=4):
    return f"{value:.{digits}f}" if math.isfinite(value) else "NaN"


def error(values):
    """Return the standard error of a mean."""
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan


class Results:
    """What was measured."""

    def __init__(self, folder):
        for name in ("losses", "rates", "frozen", "failures", "lost_gradients", "steps",
                     "optimizers", "products"):
            rows = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
            setattr(self, name, sorted(rows, key=lambda r: ORDER.get(r.get("precision"), 0)))
        self.device = (folder / "device.txt").read_text(encoding="utf-8").strip().replace("\n", ", ")
        self.longest = max(row["steps"] for row in self.losses)

    def of(self, precision, steps):
        """Return the trainings of a precision, by seed."""
        return sorted((r for r in self.losses if (r["precision"], r["steps"]) == (precision, steps)),
                      key=lambda r: r.get("seed", 0))

    def relative(self, precision, steps):
        """Return the differences of losses from fp32 with the same seed, in percent."""
        return [100 * (a["validation"] / b["validation"] - 1)
                for a, b in zip(self.of(precision, steps), self.of("fp32", steps))]

    def training(self, precision, steps):
        """Return the same differences of the training losses of the last 100 steps."""
        return [100 * (statistics.mean(a["losses"][-10:]) / statistics.mean(b["losses"][-10:]) - 1)
                for a, b in zip(self.of(precision, steps), self.of("fp32", steps))]

    def step(self, name):
        return next(row for row in self.steps if row["name"] == name)


def losses_table(results):
    rows = []
    for steps in sorted({r["steps"] for r in results.losses}, reverse=True):
        names = list(dict.fromkeys(r["precision"] for r in results.losses if r["steps"] == steps))
        for name in names:
            found = [r["validation"] for r in results.of(name, steps)]
            apart = results.relative(name, steps)
            many = len(found) > 1
            close = "yes" if abs(statistics.mean(apart)) <= max(0.5, 2 * error(apart) if many else 0) else "no"
            rows.append([f"`{name}`", f"{steps:,}", len(found),
                         loss(statistics.mean(found)) + (f" ± {error(found):.4f}" if many else ""),
                         *(3 * [""] if name == "fp32" else
                           [signed(apart), close, signed(results.training(name, steps))])])
    return table(["precision", "steps", "seeds", "loss", "beside fp32", "close", "training loss beside fp32"],
                 rows)


def steps_table(results):
    base = results.step("fp32")["tokens_a_second"]
    rows = []
    for row in results.steps:
        parts = row["milliseconds"]
        name = f"`{row['name']}`" if "_" in row["name"] or len(row["name"]) < 9 else row["name"]
        rows.append([name, f"{row['bytes_a_parameter']:.1f}", f"{row['peak_bytes'] / 2**30:.1f}",
                     *(f"{parts[p]:.1f}" if p in parts else "" for p in ("forward", "backward", "clip", "optimizer")),
                     f"{row['tokens_a_second']:,.0f}", f"{row['tokens_a_second'] / base:.2f}"])
    return table(["", "bytes a parameter", "peak GiB", "forward ms", "backward", "clip", "optimizer",
                  "tokens a second", "beside fp32"], rows)


def lost_table(results):
    found = {(r["of"], r["exponent"]): r for r in results.lost_gradients}
    rows = [[f"2^{e}", *(f"{100 * found[of, e][kind]:.3g} %" for of in ("outputs", "weights")
                         for kind in ("zero", "inf"))]
            for e in (0, 8, 16, 20, 24, 28)]
    return table(["loss scale", "outputs: become 0", "Inf", "weights: become 0", "Inf"], rows)


def by_rate(rows, cell):
    rates = sorted({r["rate"] for r in rows})
    names = list(dict.fromkeys(r["precision"] for r in rows))
    return table(["learning rate", *(f"`{n}`" for n in names)],
                 [[f"{rate:g}", *(cell(at_rate(rows, n, rate)) for n in names)] for rate in rates])


def at_rate(rows, precision, rate):
    """Return the trainings of a precision at a learning rate, by seed."""
    return sorted((r for r in rows if (r["precision"], r["rate"]) == (precision, rate)), key=lambda r: r["seed"])


def mean_loss(rows):
    """Return the mean of losses, and its error."""
    found = [r["validation"] for r in rows]
    return f"{loss(statistics.mean(found), 3)} ± {error(found):.3f}"


def failures_table(results):
    fp32 = {r["seed"]: r["validation"] for r in results.failures if r["precision"] == "fp32"}
    rows = []
    for name in dict.fromkeys(r["precision"] for r in results.failures):
        runs = [r for r in results.failures if r["precision"] == name]
        good = [r["validation"] for r in runs if math.isfinite(r["validation"])]
        worse = sum(r["validation"] > 1.02 * fp32[r["seed"]] for r in runs)
        rows.append([f"`{name}`", runs[0]["steps"], len(runs), len(runs) - len(good), worse,
                     f"{loss(statistics.mean(good))} ± {error(good):.4f}" if len(good) > 1 else ""])
    return table(["precision", "steps", "runs", "loss NaN", "loss over 2 % above fp32", "mean loss of the others"], rows)


def optimizers_table(results):
    names = list(dict.fromkeys(r["name"] for r in results.optimizers))
    tensors = list(dict.fromkeys(r["tensors"] for r in results.optimizers))
    found = {(r["name"], r["tensors"]): r["seconds"] * 1e3 for r in results.optimizers}
    return table(["AdamW", *(f"{t}, ms" for t in tensors)],
                 [[n, *(f"{found[n, t]:.2f}" if (n, t) in found else "" for t in tensors)] for n in names])


def products_table(results):
    return table(["n", "largest power of two in n", "TFLOPS"],
                 [[r["n"], r["n"] & -r["n"], f"{r['tflops']:.0f}"] for r in results.products])


def signed(values):
    """Return a mean of percentages, with its standard error if there are several."""
    mean = statistics.mean(values)
    if not math.isfinite(mean):
        return ""
    return f"{mean:+.2f} %" + (f" ± {error(values):.2f}" if len(values) > 1 else "")


def percent(results, precision):
    """Return how far the loss of a precision is from that of fp32, in its longest trainings."""
    steps = max(r["steps"] for r in results.losses if r["precision"] == precision)
    return f"`{precision}` {signed(results.relative(precision, steps))}"


def beside_bf16(results, precision, rates):
    """Return how far the losses of a precision are from those of bf16, by learning rate."""
    def apart(rate):
        pairs = zip(*(at_rate(results.rates, name, rate) for name in (precision, "bf16_autocast")))
        return [100 * (a["validation"] / b["validation"] - 1) for a, b in pairs]

    return f"`{precision}` " + ", ".join(f"{signed(apart(rate))} at {rate:g}" for rate in rates)


def speed(results, name, base):
    return results.step(name)["tokens_a_second"] / results.step(base)["tokens_a_second"]


def memory(results, name, base):
    return results.step(name)["peak_bytes"] / results.step(base)["peak_bytes"]


def failed(results, precision):
    runs = [r for r in results.failures if r["precision"] == precision]
    return f"`{precision}` {sum(not math.isfinite(r['validation']) for r in runs)} of {len(runs)}"


def lost(results, exponent):
    row = next(r for r in results.lost_gradients if r["of"] == "outputs" and r["exponent"] == exponent)
    return f"{100 * row['zero']:.3g} % with 2^{exponent}"


def beside_loop(results):
    """Return how many times faster than a for-loop each AdamW is that was measured."""
    found = {r["name"]: r["seconds"] for r in results.optimizers if r["tensors"] == "gpt2"}
    return ", ".join(f"{name} {found['for-loop'] / found[name]:.1f}"
                     for name in ("foreach", "fused", "compiled", "samebits") if name in found)


def tflops(results, n):
    return next(f"{r['tflops']:.0f}" for r in results.products if r["n"] == n)


def skipped(rows, precision):
    rows = [r for r in rows if r["precision"] == precision]
    return f"`{precision}` {sum(r['skipped'] for r in rows)} of {sum(r['steps'] for r in rows):,}"


CLAIMS = [
    ("16-bit training is 2 to 2.8 times as fast as fp32",
     lambda r: f"`bf16_autocast` {speed(r, 'bf16_autocast', 'fp32'):.2f} times, beside TF32 "
               f"{speed(r, 'bf16_autocast', 'tf32'):.2f} times; `bf16_master` {speed(r, 'bf16_master', 'fp32'):.2f} times"),
    ("It needs half the memory",
     lambda r: f"`bf16_autocast` {memory(r, 'bf16_autocast', 'fp32'):.2f} of fp32, "
               f"`bf16_direct` {memory(r, 'bf16_direct', 'fp32'):.2f}"),
    ("16 bytes a parameter with fp32 masters, and also in fp32",
     lambda r: ", ".join(f"`{n}` {r.step(n)['bytes_a_parameter']:.1f}"
                         for n in ("fp32", "bf16_master", "bf16_split16", "bf16_direct", "states8"))),
    ("16-bit formats change results by less than 0.1 %",
     lambda r: ", ".join(percent(r, n) for n in ("bf16_autocast", "bf16_master", "fp16_torch", "fp16_native"))),
    ("fp16 loses small gradients; a scaled loss saves them",
     lambda r: f"gradients of outputs that become 0: {lost(r, 0)}, {lost(r, 8)}, {lost(r, 16)}"),
    ("fp16 for everything diverges", lambda r: f"NaN: {failed(r, 'fp16_weights')} runs"),
    ("fp16 fails in 5 of 100 runs, fp32 and bf16 in none",
     lambda r: "NaN: " + ", ".join(failed(r, n) for n in ("fp16", "fp16_native", "bf16_autocast", "fp32"))),
    ("bf16 needs no loss scaling", lambda r: percent(r, "bf16_autocast") + " without it"),
    ("bf16 weights without masters change results by less than 0.1 %",
     lambda r: percent(r, "bf16_direct") + "; at small learning rates they stand still ([below](#frozen-weights))"),
    ("Stochastic rounding is nearly fp32", lambda r: ", ".join(percent(r, n) for n in ("bf16_stochastic", "bf16_direct"))),
    ("FP8 is up to 2 times as fast as bf16",
     lambda r: f"not for a GPT-2 of 124M: `fp8_tensor` {speed(r, 'fp8_tensor', 'bf16_autocast'):.2f} times, "
               f"`fp8_tile` {speed(r, 'fp8_tile', 'bf16_autocast'):.2f} times as fast"
               if speed(r, "fp8_tensor", "bf16_autocast") < 1 else
               f"`fp8_tensor` {speed(r, 'fp8_tensor', 'bf16_autocast'):.2f} times, `fp8_tile` "
               f"{speed(r, 'fp8_tile', 'bf16_autocast'):.2f} times"),
    ("FP8 diverges as the learning rate rises",
     lambda r: "no NaN, but losses beside bf16: " + "; ".join(
         beside_bf16(r, n, (1e-3, 3e-3, 1e-1)) for n in ("fp8_tensor", "fp8_tile"))
     if all(math.isfinite(row["validation"]) for row in r.rates) else "some losses are NaN ([below](#fp8-and-the-learning-rate))"),
    ("Scales for tiles lose less than one for a tensor",
     lambda r: "beside bf16: " + "; ".join(beside_bf16(r, n, (1e-3, 3e-3)) for n in ("fp8_tile", "fp8_tensor"))),
    ("AdamW: foreach is faster than a for-loop, fused than foreach; compiled is like fused",
     lambda r: f"{beside_loop(r)} times as fast as the loop"),
    ("A fused update of fp16 weights makes a step 10 to 20 % faster",
     lambda r: f"this library's scaler and AdamW beside PyTorch's fused AdamW: the whole step "
               f"{speed(r, OURS, PLAIN):.2f} times as fast, the part behind the backward pass "
               f"{behind(r, PLAIN) / behind(r, OURS):.2f} times"),
    ("FlashAttention: 2.3 times as fast, 30 % less memory",
     lambda r: f"{speed(r, 'bf16_autocast', 'attention written out'):.2f} times, "
               f"{100 - 100 * memory(r, 'bf16_autocast', 'attention written out'):.0f} % less"),
    ("Checkpointed activations save memory and cost time",
     lambda r: f"{100 - 100 * memory(r, 'activations checkpointed', 'bf16_autocast'):.0f} % less memory, "
               f"{speed(r, 'activations checkpointed', 'bf16_autocast'):.2f} times as fast"),
    ("Tensor cores need multiples of 8",
     lambda r: "TFLOPS of a bf16 product: " + ", ".join(f"width {n}: {tflops(r, n)}" for n in (764, 765, 768))),
    ("Loss scaling skips few steps",
     lambda r: ", ".join(skipped(r.losses, f"fp16_{n}") for n in ("torch", "apex", "native"))
               + "; in the 50 trainings of the smallest model " + skipped(r.failures, "fp16_native")),
]
OURS, PLAIN = "samebits' scaler and AdamW", "plain PyTorch, fused AdamW"


def behind(results, name):
    """Return the milliseconds of a step behind its backward pass."""
    parts = results.step(name)["milliseconds"]
    return parts.get("clip", 0) + parts["optimizer"]


def claims_table(results):
    return table(["often written", "measured here"], [[claim, measure(results)] for claim, measure in CLAIMS])


TABLES = {
    "device": lambda r: f"Measured on {r.device}; text {r.losses[0]['text'][:16]} (SHA-256).",
    "claims": claims_table, "losses": losses_table, "steps": steps_table, "lost": lost_table, "failures": failures_table,
    "rates": lambda r: by_rate(r.rates, mean_loss),
    "frozen": lambda r: by_rate(r.frozen, lambda rows: f"{loss(rows[0]['validation'], 3)}, "
                                                       f"{100 * rows[0]['unchanged']:.1f} %"),
    "optimizers": optimizers_table, "products": products_table,
}


def beside_fp32(results, precision):
    """Return how far training losses are from fp32 with the same seed: means of 100 steps over seeds."""
    hundreds = [[[statistics.mean(run["losses"][i:i + 10]) for i in range(0, len(run["losses"]), 10)]
                 for run in results.of(name, results.longest)] for name in (precision, "fp32")]
    apart = [[100 * (a / b - 1) for a, b in zip(*runs)] for runs in zip(*hundreds)]  # [seed][hundred]
    points = [statistics.mean(seeds) for seeds in zip(*apart)]
    return Curve(precision, [(100 * i + 50, y) for i, y in enumerate(points)],
                 [error(seeds) for seeds in zip(*apart)])


def charts(results):
    """Write the charts."""
    FIGURES.mkdir(exist_ok=True)
    names = dict.fromkeys(r["precision"] for r in results.losses if r["steps"] == results.longest)
    seeds = len(results.of("fp32", results.longest))
    chart([beside_fp32(results, name) for name in names if name != "fp32"], FIGURES / "training_beside.svg",
          title=f"Training loss beside fp32, mean of {seeds} seeds", x="step", y="difference in %")
    curves = []
    for name in names:
        runs = [r["losses"] for r in results.of(name, results.longest)]
        curves.append(Curve(name, [(10 * i + 5, statistics.mean(ls)) for i, ls in enumerate(zip(*runs))]))
    chart(curves, FIGURES / "training_losses.svg", title=f"Training loss, mean of {seeds} seeds",
          x="step", y="loss (nats a byte)", log_y=True)
    curves = [Curve(f"{of}: {kind}", [(r["exponent"], 100 * r[key]) for r in results.lost_gradients
                                      if r["of"] == of and r[key]])
              for of in ("outputs", "weights") for kind, key in (("0", "zero"), ("Inf", "inf"))]
    chart(curves, FIGURES / "training_lost.svg", title="fp32 gradients that fp16 loses",
          x="loss scale, power of two", y="% of the gradients", log_y=True)
    rates = sorted({r["rate"] for r in results.rates})
    curves = [Curve(name, [(rate, statistics.mean(r["validation"] for r in at_rate(results.rates, name, rate)))
                           for rate in rates])
              for name in dict.fromkeys(r["precision"] for r in results.rates)]
    chart(curves, FIGURES / "training_rates.svg", title="Loss by learning rate", x="learning rate",
          y="validation loss", log_x=True)
    curves = [Curve(name, sorted((r["rate"], 100 * r["unchanged"]) for r in results.frozen if r["precision"] == name))
              for name in dict.fromkeys(r["precision"] for r in results.frozen)]
    chart(curves, FIGURES / "training_frozen.svg", title="Weights that are as they began",
          x="learning rate", y="% of the weights", log_x=True)


def main():
    results = Results(Path(sys.argv[1]))
    text = PAGE.read_text(encoding="utf-8")
    for name, make in TABLES.items():
        text, count = re.subn(rf"(<!-- {name} -->\n).*?(<!-- end -->)",
                              lambda found: found[1] + make(results) + "\n" + found[2], text, flags=re.S)
        if count != 1:
            sys.exit(f"{PAGE}: {count} places for the table {name}")
    PAGE.write_text(text, encoding="utf-8")
    charts(results)


if __name__ == "__main__":
    main()
