"""The transcripts of docs/results/2026-11-24-published-weights.md, on weights that wheels contain.

fpinspect must print each transcript again, byte for byte. Every line of a transcript is also
computed here by NumPy, with the casts of ml_dtypes and files read by torch and safetensors.

PUBLISHED_WEIGHTS is a folder into which these wheels were unpacked; without it nothing runs:

    pip download --no-deps silero-vad==6.2.3 lpips==0.1.4 resemblyzer==0.1.4 wordllama==0.4.0.post1
    for wheel in *.whl; do python -m zipfile -e "$wheel" FOLDER; done

Run by SAMEBITS_PYTHON where that is set and the plain interpreter lacks a package.
"""
import math
import os
import re
import shlex
import sys
import textwrap

import cli_support
from cli_support import read_text
import docs_test

FOLDER = os.environ.get("PUBLISHED_WEIGHTS")
if not FOLDER:
    print("skipped: PUBLISHED_WEIGHTS is not set")
    sys.exit(cli_support.SKIPPED)
try:
    import ml_dtypes
    import numpy as np
    import safetensors
    import torch
except ImportError as missing:
    other = os.environ.pop("SAMEBITS_PYTHON", None)
    if other:
        os.execv(other, [other, *sys.orig_argv[1:]])
    print(f"skipped: {missing}")
    sys.exit(cli_support.SKIPPED)

PAGE = os.path.join(docs_test.ROOT, "docs", "results", "2026-11-24-published-weights.md")
F32 = np.float32
FORMATS = {"fp16": np.float16, "bf16": ml_dtypes.bfloat16, "e4m3": ml_dtypes.float8_e4m3fn,
           "e5m2": ml_dtypes.float8_e5m2, "fp32": F32}
ROLES = ["weights", "Adam m", "Adam v"]
# Rows and columns of a tile (0: all), bits of its scale. One scale for a tensor is not counted.
RECIPES = {"fp8 e4m3, one scale": (0, 0, 0), "fp8 e4m3, 128x128 tiles": (128, 128, 32),
           "mxfp8 e4m3, 1x32 blocks": (1, 32, 8)}
CHOICES = {"weights": [*RECIPES, "bf16", "fp16", "fp32"],
           "Adam m": ["bf16", "fp32"], "Adam v": ["bf16", "fp32"]}


def flattened(path, value):
    """The tensors of a checkpoint, by their path."""
    if isinstance(value, torch.Tensor):
        yield path[1:], value.numpy()
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from flattened(f"{path}.{key}", one)


def tensors_of(path):
    """(name, array) in the order of the file."""
    if path.endswith(".safetensors"):
        with safetensors.safe_open(path, "np") as file:
            return [(name, file.get_tensor(name)) for name in file.offset_keys()]
    return list(flattened("", torch.load(path, map_location="cpu", weights_only=True)))


def bits_of(choice):
    return 8 if choice in RECIPES else 8 * np.dtype(FORMATS[choice]).itemsize


def rounded(x, name):
    return x.astype(FORMATS[name]).astype(F32)  # to nearest even; nothing here overflows


def power_of_two(x, up):
    """The power of two at or below each x, or at or above."""
    fraction, exponent = np.frexp(x)
    return np.ldexp(F32(1), exponent - (fraction == 0.5 if up else 1)).astype(F32)


def quantized(x, recipe):
    """The matrix after quantization and back, and the bits of its scales."""
    rows, columns, bits = RECIPES[recipe]
    rows, columns = rows or x.shape[0], columns or x.shape[1]
    back, tiles = np.empty_like(x), 0
    for i in range(0, x.shape[0], rows):
        # All tiles of a row of tiles at once: [rows, tiles, columns], filled up with zeros.
        part = x[i:i + rows]
        padded = np.pad(part, ((0, 0), (0, -x.shape[1] % columns)))
        y = padded.reshape(len(part), -1, columns)
        amax = np.abs(y).max(axis=(0, 2), keepdims=True)
        amax[amax == 0] = 448  # the scale of zeros is 1
        if recipe.startswith("mx"):  # the scale: the power of two at or above amax / 448
            scale = power_of_two(amax / F32(448), up=True)
            inverse = F32(1) / scale
        else:  # the inverse scale: 448 / amax, for tiles the power of two at or below
            inverse = F32(448) / amax
            if bits:
                inverse = power_of_two(inverse, up=False)
            scale = F32(1) / inverse
        y = rounded(y * inverse, "e4m3") * scale
        back[i:i + rows] = y.reshape(padded.shape)[:, :x.shape[1]]
        tiles += amax.size
    return back, tiles * bits


class Effect:
    """What a format or a recipe does to elements."""

    def __init__(self, x, back, scale_bits=0):
        exact, error = x.astype(np.float64), x.astype(np.float64) - back
        signal, noise = np.sum(exact * exact), np.sum(error * error)
        assert signal > 0 and np.isfinite(noise)
        self.db = 10 * math.log10(signal / noise) if noise > 0 else math.inf
        self.nonzero = np.count_nonzero(x)
        zeroed = (x != 0) & (back == 0)
        self.lost = np.count_nonzero(zeroed)
        self.share = self.lost / self.nonzero
        small = math.frexp(math.sqrt(signal / x.size))[1] - 1 - 24
        self.negligible = np.count_nonzero(zeroed & (np.frexp(x)[1] - 1 < small))
        self.scale_bits = scale_bits

    def percent(self):
        return percent(self.lost, self.nonzero)

    def text(self):
        return "exact" if math.isinf(self.db) else f"{self.db:.1f} dB"


class Tensor:
    def __init__(self, name, x):
        self.name, self.x, self.shape, self.bits = name, x.astype(F32), x.shape, 8 * x.itemsize
        self.role = ("Adam v" if "exp_avg_sq" in name else "Adam m" if "exp_avg" in name else
                     "weights" if re.search("(weight|bias)", name) else None)
        assert self.role, name
        self.vector = x.ndim < 2
        self.effects = {choice: self.effect(choice) for choice in CHOICES[self.role]
                        if self.takes(choice)}

    def takes(self, choice):
        if choice in RECIPES:
            return not self.vector and "embed" not in self.name
        return self.bits > bits_of(choice)

    def effect(self, choice):
        if choice not in RECIPES:
            return Effect(self.x, rounded(self.x, choice))
        matrix = self.x.reshape(self.shape[0], -1)
        return Effect(matrix, *quantized(matrix, choice))

    def meets(self, choice):
        effect = self.effects[choice]
        counted = effect.lost - (effect.negligible if self.role != "weights" else 0)
        return effect.db >= 30 and (counted == 0 or 100 * counted < effect.nonzero)


class Outcome:
    """What a choice does to all tensors of a role."""

    def __init__(self, choice, tensors):
        self.choice = choice
        self.tried = sorted((t for t in tensors if choice in t.effects), key=lambda t: (
            t.effects[choice].db, -t.effects[choice].share))
        self.failed = [t for t in self.tried if not t.meets(choice)]
        self.bits = bits_of(choice)
        if choice in RECIPES:
            scales = sum(t.effects[choice].scale_bits for t in self.tried)
            self.bits += scales / sum(t.x.size for t in self.tried)


class Role:
    def __init__(self, name, tensors):
        self.name, self.tensors = name, tensors
        outcomes = [Outcome(c, tensors) for c in CHOICES[name]
                    if c not in RECIPES or any(t.takes(c) for t in tensors)]
        outcomes.sort(key=lambda outcome: outcome.bits)
        meets = [o.choice == "fp32" or not (o.failed or (name == "Adam v" and o.tried))
                 for o in outcomes]
        self.chosen, self.cheaper = outcomes[meets.index(True)], outcomes[:meets.index(True)]


def percent(part, whole):
    if part in (0, whole):
        return "0 %" if part == 0 else "100 %"
    share = 100 * part / whole
    return "< 0.01 %" if share < 0.01 else "> 99.99 %" if share > 99.99 else f"{share:.2f} %"


def wrapped(text, indent):
    return textwrap.fill(text, 80, subsequent_indent=" " * indent, break_long_words=False,
                         break_on_hyphens=False) + "\n"


def reason(role):
    for outcome in reversed(role.cheaper):
        if outcome.failed:
            worst, others = outcome.failed[0], len(outcome.failed) - 1
            effect = worst.effects[outcome.choice]
            what = effect.text() if effect.db < 30 else f"{effect.percent()} lost"
            more = f", {others} more fail{'s' if others == 1 else ''}" if others else ""
            return f"not {outcome.choice}: {what} in {worst.name}{more}"
        if role.name == "Adam v" and outcome.tried:
            return f"not {outcome.choice}: rounding to nearest drops updates below 2^-9 of v"
    return ""


def role_text(role):
    chosen, tensors = role.chosen, role.tensors
    line = f"  {role.name:12}{len(tensors):5}  "
    if chosen.tried:
        effects = [t.effects[chosen.choice] for t in chosen.tried]
        lost = max(effects, key=lambda effect: effect.share)
        line += (f"{chosen.choice:25}{effects[0].text():>8}{lost.percent():>10} lost"
                 f"{f'{chosen.bits:.3g} bits':>11}")
    elif chosen.choice == "fp32":
        line += f"{chosen.choice:25}as stored"
    else:
        line += f"as stored, no wider than {chosen.choice}"
    notes = [reason(role)]
    reshaped = sum(role.name == "weights" and len(t.shape) > 2 for t in tensors)
    uncounted = any(t.effects[chosen.choice].share >= 0.01 for t in chosen.tried)
    notes.append(f"as [out, rest]: {reshaped} of rank above 2" if reshaped else
                 "not counted: lost values below 2^-24 of their tensor's RMS" if uncounted else "")
    vectors = sum(t.vector for t in tensors)
    if chosen.choice in RECIPES and vectors:
        notes.append(f"besides: {vectors} of rank 0 or 1 as stored")
    return line + "\n" + "".join(wrapped(" " * 10 + note, 12) for note in notes if note)


def size_text(size):
    for unit, name in (1e9, "GB"), (1e6, "MB"), (1e3, "kB"):
        if size >= unit:
            return f"{size / unit:.{int(size < 10 * unit or name == 'GB')}f} {name}"
    return f"{size} bytes"


def sizes(roles):
    """The bytes as stored, and with the choices. No choice here is refused for its SQNR alone."""
    before = after = 0
    for role in roles:
        for tensor in role.tensors:
            stored = tensor.x.size * tensor.bits // 8
            effect = tensor.effects.get(role.chosen.choice)
            chosen = tensor.x.size * bits_of(role.chosen.choice)
            before += stored
            after += stored if effect is None else (chosen + effect.scale_bits + 7) // 8
    tensors = sum(len(role.tensors) for role in roles)
    return (f"  {'all':12}{tensors:5}  {size_text(before)} as stored, {size_text(after)} with these "
            "choices\n")


def attention(roles):
    text = ""
    for role in roles:
        for outcome in role.cheaper:
            good = len(outcome.tried) - len(outcome.failed)
            if outcome.failed and good >= 3 * len(outcome.failed):
                for tensor in outcome.failed:
                    lost = tensor.effects[outcome.choice].percent()
                    text += wrapped(f"  {tensor.name}: {outcome.choice} loses {lost}; "
                                    f"enough for {good} others of its role", 4)
                break
    return f"Look at these\n{text}" if text else "Nothing else needs attention.\n"


def details(tensor):
    """The detailed view above its chart."""
    x = tensor.x[tensor.x != 0]
    zeros = tensor.x.size - x.size
    lines = [f"{tensor.name}  F{tensor.bits} [{', '.join(map(str, tensor.shape))}]  "
             f"{tensor.x.size} elements",
             f"  amax {np.abs(x).max():.6g}   smallest non-zero {np.abs(x).min():.6g}",
             f"  zeros {zeros} ({percent(zeros, tensor.x.size)})   NaN 0   Inf 0",
             "  to         underflow   subnormal    overflow        SQNR  saturating  lost to"]
    for name in "fp16", "bf16", "e4m3", "e5m2":
        effect = tensor.effect(name)
        back = np.abs(rounded(x, name))
        smallest = F32(ml_dtypes.finfo(FORMATS[name]).smallest_normal)
        subnormal = np.count_nonzero((back > 0) & (back < smallest))
        shares = effect.lost, subnormal, np.count_nonzero(~np.isfinite(back))
        ratio = f"{effect.text():>10}"
        if effect.lost:
            ratio = f"{'–':>10}  {effect.text():>10}  0"
        lines.append(f"  {name:8}" + "".join(f"  {percent(n, x.size):>10}" for n in shares) +
                     f"  {ratio}")
    return "\n".join(lines) + "\n...\n"


def verdict(path):
    tensors = [Tensor(name, x) for name, x in tensors_of(os.path.join(FOLDER, path))]
    roles = [Role(name, [t for t in tensors if t.role == name]) for name in ROLES]
    roles = [role for role in roles if role.tensors]
    more = "more: --list, --details NAME, --stats, --recipes, --json; fpinspect report FILE\n"
    return (f"{path}: {len(tensors)} tensor{'s' if len(tensors) != 1 else ''}, "
            f"{sum(t.x.size for t in tensors)} values\n\n"
            "Cheapest choice that keeps 30 dB and loses fewer than 1 % of the non-zero\n"
            "values in every tensor (--need). Figures: the worst tensor's.\n" +
            "".join(map(role_text, roles)) + sizes(roles) + "\n" + attention(roles) + "\n" +
            (details(tensors[0]) if len(tensors) == 1 else more))


class PublishedWeights(cli_support.CliTest):
    def test_transcripts(self):
        found = list(docs_test.transcripts(read_text(PAGE)))
        self.assertEqual(len(found), 7)
        for _, command, expected in found:
            with self.subTest(command):
                _, _, path = shlex.split(command[2:])
                done = cli_support.run("tensor", path, cwd=FOLDER)
                self.assertRegex(done.out + done.err, docs_test.pattern(expected))
                if done.code == 0:
                    self.assertEqual(verdict(path), expected)
