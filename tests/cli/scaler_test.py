# `fpinspect scaler`: policies with their settings, traces, outputs.
import math
import os
import random
from fractions import Fraction

import cli_support
from cli_support import read_text, run, write_file

POLICIES = ["native", "torch", "apex", "apex_amp", "megatron", "deepspeed"]

#: What the libraries set if nothing is given.
TORCH = {"init_scale": 65536.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2000}
DEFAULTS = {
    "torch": TORCH,
    "apex": {**TORCH, "hysteresis": 1},
    "apex_amp": {"init_scale": 65536.0, "scale_window": 2000, "min_loss_scale": 0.0,
                 "max_loss_scale": 2.0**24},
    "megatron": {"initial_scale": 2.0**32, "min_scale": 1.0, "growth_factor": 2.0,
                 "backoff_factor": 0.5, "growth_interval": 1000, "hysteresis": 2},
    "deepspeed": {"init_scale": 65536.0, "scale_factor": 2.0, "scale_window": 1000,
                  "min_scale": 1.0, "delayed_shift": 2, "consecutive_hysteresis": 0,
                  "raise_error_at_min_scale": 1}}


# Bad steps; for each policy settings of which each has an effect, what each step does to the scale, the last scale.
BAD_STEPS = "....x....xx.xx....x.x.....xxxxx......"
RUNS = {
    "torch": ({"init_scale": 1000, "growth_factor": 4, "backoff_factor": 0.25, "growth_interval": 3},
              "..+.-..+.--.--..+.-.-..+..-----..+..+", 0.244140625),
    "apex": ({"init_scale": 1000, "growth_factor": 4, "backoff_factor": 0.25, "growth_interval": 3,
              "hysteresis": 2}, "..+....+..-..-..+......+...----..+..+", 1000),
    "apex_amp": ({"init_scale": 1000, "scale_window": 3, "min_loss_scale": 500, "max_loss_scale": 1500},
                 "..+.-..+.--.....+.-....+..-......+..+", 1500),
    "megatron": ({"initial_scale": 9000, "min_scale": 9000, "growth_factor": 4, "backoff_factor": 0.25,
                  "growth_interval": 4, "hysteresis": 3}, "...+....+...--...+......+...--....+..", 36000),
    "deepspeed": ({"init_scale": 2000, "scale_factor": 3, "scale_window": 4, "min_scale": 1500, "delayed_shift": 3,
                   "consecutive_hysteresis": 1, "raise_error_at_min_scale": 0},
                  ".........................+..--.....+.", 4500)}


def overflows(amax, scale):
    """Whether the exact product rounds to something that fp16 does not have."""
    if not (math.isfinite(amax) and math.isfinite(scale)):
        return True
    return Fraction(amax) * Fraction(scale) >= 65520


class Scaler(cli_support.CliTest):
    def trace(self, header, rows):
        lines = [header, *(",".join(map(str, row)) for row in rows)]
        path = write_file(self.path("t.csv"), "".join(line + "\n" for line in lines))
        return path

    def replay(self, policy, path, *options, settings=None):
        given = [f"{k}={v}" for k, v in (settings or {}).items()]
        done = run("scaler", "--policy", policy, "--trace", path, *options,
                   *(["--set", *given] if given else []))
        self.assertEqual(done.code, 0, done.err)
        lines = done.out.splitlines()
        self.assertEqual(lines[0], "step,scale,applied,cause")
        rows = [line.split(",") for line in lines[1:]]
        self.assertTrue(all(row[1].startswith(("0x", "inf")) for row in rows))
        return [(int(s), float.fromhex(scale), applied == "1", cause)
                for s, scale, applied, cause in rows], done.err

    def bad_steps(self, steps):
        return self.trace("step,nonfinite", [(i, int(bad)) for i, bad in enumerate(steps)])

    def test_settings(self):
        """That the policies are the libraries': golden.loss_scale, which replays their recordings."""
        bad = [step == "x" for step in BAD_STEPS]
        path = self.bad_steps(bad)
        for name, (settings, changes, last) in RUNS.items():
            rows, _ = self.replay(name, path, settings=settings)
            self.assertEqual([(row[0], row[2]) for row in rows], [(i, not b) for i, b in enumerate(bad)])
            summary = self.ok_json("scaler", "--policy", name, "--trace", path, "--set",
                                   *(f"{k}={v}" for k, v in settings.items()))
            final = float.fromhex(summary["final_scale"])
            scales = [row[1] for row in rows] + [final]
            self.assertEqual("".join(".+-"[(b > a) - (b < a)] for a, b in zip(scales, scales[1:])), changes, name)
            self.assertEqual((scales[0], final), (next(iter(settings.values())), last), name)

    def test_defaults(self):
        generator = random.Random(1)
        for name in POLICIES[1:]:
            for rate in (0.0, 0.002, 0.3):
                path = self.bad_steps([generator.random() < rate for _ in range(6000)])
                self.assertEqual(self.replay(name, path),
                                 self.replay(name, path, settings=DEFAULTS[name]))

    def test_closed_loop(self):
        """A step is bad where amax times the scale overflows, and counts as a bad step does."""
        generator = random.Random(3)
        edge = [65520.0 / 65536, 65519.0 / 65536, 65520 / 50000, math.nextafter(65520 / 50000, 0),
                math.inf, math.nan, 0.0, 1e-300, 1e300]
        for name in POLICIES[1:]:
            steps = [generator.choice(edge + [2.0**generator.randint(-6, 3)]) for _ in range(400)]
            scale = {"megatron": "initial_scale"}.get(name, "init_scale")
            for settings in ({}, {scale: 50000.0}):
                path = self.trace("step,amax", [(i, s.hex()) for i, s in enumerate(steps)])
                rows, _ = self.replay(name, path, settings=settings)
                bad = [overflows(amax, row[1]) for amax, row in zip(steps, rows)]
                self.assertEqual([not row[2] for row in rows], bad)
                again, _ = self.replay(name, self.bad_steps(bad), settings=settings)
                self.assertEqual([row[:3] for row in again], [row[:3] for row in rows])

    def test_native(self):
        # Bad at once after a growth: one back, and twice the interval. The scale is lower by one
        # after the second of two bad steps only.
        steps = [0] * 3 + [1] + [0] * 6 + [1, 1] + [0] * 3
        path = self.trace("step,nonfinite", list(enumerate(steps)))
        settings = {"growth_interval": 3, "recovery_interval": 2, "growth_interval_max": 100,
                    "isolated_cost": 0, "forgive_after": 1}
        rows, _ = self.replay("native", path, settings=settings)
        exponents = [math.frexp(row[1])[1] - 1 for row in rows]
        self.assertEqual(exponents, [16] * 3 + [17] + [16] * 6 + [17] + [16] * 4)
        self.assertEqual([row[2] for row in rows], [not s for s in steps])

    def test_causes(self):
        path = self.trace("amax, loss_nonfinite ,step",
                          [(1.0, 0, 5), ("inf", 0, 6), ("nan", 1, 7), ("nan", 0, 8), (0.5, 1, 10)])
        rows, _ = self.replay("native", path)
        self.assertEqual([(row[0], row[3]) for row in rows],
                         [(5, "overflow"), (6, "overflow"), (7, "loss"), (8, "nan"), (10, "none")])

    def test_columns_of_others(self):
        path = self.trace("lr,step,loss\x1b,nonfinite", [(0.1, 0, 2.5, 0), (0.1, 1, "", 1)])
        rows, said = self.replay("torch", path)
        self.assertEqual([row[2] for row in rows], [True, False])
        self.assertEqual(said, 'fpinspect: column "lr" is not read\n'
                               'fpinspect: column "loss\\x1b" is not read\n')

    def test_end_of_a_run(self):
        path = self.trace("step,nonfinite", [(i, 1) for i in range(40)])
        rows, said = self.replay("deepspeed", path)
        self.assertEqual((len(rows), rows[-1][1:3]), (18, (1.0, False)))
        self.assertEqual(said, "fpinspect: policy deepspeed ends the run after step 17\n")
        rows, said = self.replay("deepspeed", path, settings={"raise_error_at_min_scale": 0})
        self.assertEqual((len(rows), said), (40, ""))

    def test_outputs(self):
        path = self.trace("step,nonfinite", [(0, 0), (1, 1), (2, 0)])
        shown = self.ok("scaler", "--policy", "torch", "--trace", path).out
        self.ok("scaler", "--policy", "torch", "--trace", path, "--out", self.path("o.csv"))
        self.assertEqual(read_text(self.path("o.csv")), shown)
        self.assertEqual(shown, "step,scale,applied,cause\n0,0x1p+16,1,none\n"
                                "1,0x1p+16,0,nonfinite\n2,0x1p+15,1,none\n")
        plot = self.ok("scaler", "--policy", "torch", "--trace", path, "--plot").out
        self.assertIn("    2^16 │██\n    2^15 │  █\n skipped │ █\n", plot)
        plot = self.ok("scaler", "--policy", "torch", "--trace", path, "--plot", "--ascii").out
        self.assertTrue(plot.isascii() and "2^16 |##\n" in plot)
        summary = self.ok_json("scaler", "--policy", "torch", "--trace", path)
        self.assertEqual(summary, {"schema": 1, "policy": "torch", "steps": 3, "skipped": 1,
                                   "causes": {"nonfinite": 1}, "final_scale": "0x1p+15",
                                   "stopped": False})
        empty = self.trace("step,nonfinite", [])
        self.assertEqual(self.ok("scaler", "--policy", "torch", "--trace", empty).out,
                         "step,scale,applied,cause\n")
        self.ok("scaler", "--policy", "torch", "--trace", empty, "--plot")

    def test_generated_traces(self):
        for name in ["steady", "accidents", "drift", "drop", "random", "nan_streak", "loss_streak",
                     "noisy", "alternating"]:
            arguments = ["--generate", name, "--steps", "600",
                         *(["--seed", "7"] if name in ("random", "noisy") else [])]
            path = self.path(name + ".csv")
            self.ok("scaler", *arguments, "--out", path)
            text = read_text(path)
            self.assertEqual(self.ok("scaler", *arguments).out, text)
            self.assertEqual(text.count("\n"), 601)
            for policy in POLICIES:
                direct = run("scaler", "--policy", policy, *arguments)
                read = run("scaler", "--policy", policy, "--trace", path)
                piped = run("scaler", "--policy", policy, "--trace", "-", input=text.encode())
                self.assertEqual((direct.out, direct.err), (read.out, read.err))
                self.assertEqual(piped.out, read.out)
                self.assertEqual(direct.code, 0)

    def test_refused(self):
        good = self.trace("step,nonfinite", [(0, 0)])
        for arguments, says in [
                (["--policy", "torch"], "--trace FILE or --generate"),
                (["--trace", good], "--policy"),
                (["--policy", "sgd", "--trace", good], '"sgd"'),
                (["--policy", "torch", "--generate", "x"], "steady, accidents"),
                (["--policy", "torch", "--trace", good, "--set", "x"], "name=value"),
                (["--policy", "torch", "--trace", good, "--set", "x=1"], "growth_factor"),
                (["--policy", "torch", "--trace", good, "--set", "growth_factor=1"], "above 1"),
                (["--policy", "torch", "--trace", good, "--set", "growth_factor=a\x1bb"], "x1b"),
                (["--policy", "torch", "--generate", "drop", "--steps", "-1"], "--steps"),
                (["--policy", "megatron", "--trace", good, "--set", "min_scale=0"], "min_scale")]:
            self.fails(2, "scaler", *arguments, says=says)
        for header, row, says in [
                ("step", (0,), "nonfinite or a column amax"), ("nonfinite", (0,), "step"),
                ("step,nonfinite,amax", (0, 0, 0), "either"),
                ("step,step,amax", (0, 0, 0), "twice"), ("step,nonfinite", (0, 2), "line 2"),
                ("step,nonfinite", (0,), "1 cells"), ("step,amax", (0, "-1"), ">= 0"),
                ("step,amax", (0, "one"), "number"), ("step,amax", ("x", "1"), "integer")]:
            self.fails(3, "scaler", "--policy", "torch", "--trace", self.trace(header, [row]),
                       says=says)
        with open(self.path("empty"), "w", encoding="utf-8"):
            pass
        for path in [self.path("empty"), self.path("missing"), self.folder]:
            self.fails(3, "scaler", "--policy", "torch", "--trace", path, says=path)
        good = self.trace("step,nonfinite", [(0, 0)])
        self.fails(3, "scaler", "--policy", "torch", "--trace", good, "--out",
                   self.path("no/o.csv"), says="no/o.csv")
        self.assertEqual(sorted(os.listdir(self.folder)), ["empty", "t.csv"])
