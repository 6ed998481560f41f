# ml_dtypes and NumPy as witnesses: their casts against the codes that `fpinspect convert` writes.
"""Usage: ml_dtypes_witness.py (unittest options)

FPINSPECT names the program under test. SAMEBITS_PYTHON, if set, names the interpreter to run under
instead of this one. Exit status 77, which ctest reports as skipped, where NumPy or ml_dtypes cannot
be imported.

Differences that are known are asserted, not left out:
  NaN      what each library writes is listed in NAN below; ours is the canonical NaN with the sign
           of the input (--nan preserve_sign), which e4m3, fnuz and e8m0 share with ml_dtypes.
  e8m0     ml_dtypes gives NaN for zero and negative values, and rounds every value between 2^-127
           and 2^-126 up; the contract ignores the sign, takes 0 to 2^-127 and rounds to nearest.
  float64  ml_dtypes casts through float32, rounding twice; so it is handed float32 values that
           NumPy rounded to odd, which leaves its own rounding the only one that shows.
"""

import os
import subprocess
import sys
import tempfile
import unittest

wanted = os.environ.pop("SAMEBITS_PYTHON", None)
if wanted:  # once: the variable is gone in the environment handed on
    os.execv(wanted, [wanted, *sys.argv])
try:
    import ml_dtypes
    import numpy as np
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

FPINSPECT = os.environ.get("FPINSPECT", "fpinspect")
np.seterr(all="ignore")

DTYPES = {
    "fp16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
    "e3m2": ml_dtypes.float6_e3m2fn,
    "e2m3": ml_dtypes.float6_e2m3fn,
    "e2m1": ml_dtypes.float4_e2m1fn,
    "e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "e8m0": ml_dtypes.float8_e8m0fnu,
}
# Bits of sign and magnitude together, code of max finite.
WIDTH = {"fp16": 16, "bf16": 16, "e3m2": 6, "e2m3": 6, "e2m1": 4}
MAX = {"fp16": 0x7BFF, "bf16": 0x7F7F, "e4m3": 0x7E, "e5m2": 0x7B, "e3m2": 0x1F, "e2m3": 0x1F,
       "e2m1": 0x07, "e4m3fnuz": 0x7F, "e5m2fnuz": 0x7F, "e8m0": 0xFE}
# Theirs and ours for a NaN without sign; a negative one has the sign bit besides where SIGNED.
NAN = {"bf16": (0x7FC0, 0x7FFF), "e4m3": (0x7F, 0x7F), "e5m2": (0x7E, 0x7F),
       "e4m3fnuz": (0x80, 0x80), "e5m2fnuz": (0x80, 0x80), "e8m0": (0xFF, 0xFF)}
SIGNED = {"bf16", "e4m3", "e5m2"}


def code_type(name):
    return np.uint16 if name in ("fp16", "bf16") else np.uint8


def values_of(name):
    """All finite non-negative values, ascending, as float64."""
    codes = np.arange(MAX[name] + 1, dtype=code_type(name))
    return codes.view(DTYPES[name]).astype(np.float64)


def edges(name):
    """Values, midpoints between them and beyond max, with their neighbours in float64."""
    v = values_of(name)
    beyond = 2 * v[-1] - v[-2]
    grid = np.concatenate([v, [beyond, beyond * 2]])
    points = np.concatenate([grid, (grid[1:] + grid[:-1]) / 2, [v[1] / 2, v[1] / 4]])
    points = np.concatenate([points, np.nextafter(points, np.inf), np.nextafter(points, -np.inf)])
    return np.concatenate([points, -points])


def specials(dtype):
    bits = np.dtype(dtype).itemsize * 8
    mantissa = {16: 10, 32: 23, 64: 52}[bits]
    top = ((1 << (bits - 1 - mantissa)) - 1) << mantissa
    found = [0, 1, 2, top, top - 1, top - 2, top | ((1 << mantissa) - 1)]
    found += [top | (1 << i) for i in range(mantissa)]
    found += [1 << i for i in range(bits - 1)]
    found += [code | 1 << (bits - 1) for code in found]
    return np.array(found, dtype=f"<u{bits // 8}")


def inputs(name, dtype):
    """Bit patterns of a source dtype: specials, edges of the destination, and many more."""
    bits = np.dtype(dtype).itemsize * 8
    unsigned = f"<u{bits // 8}"
    if bits == 16:
        return np.arange(65536, dtype=unsigned).view(dtype)
    parts = [specials(dtype).view(dtype)]
    near = edges(name).astype(dtype)
    parts += [near, np.nextafter(near, dtype(np.inf)), np.nextafter(near, dtype(-np.inf))]
    if bits == 32:
        count = 1 << 22
        parts.append((np.arange(count, dtype=np.uint64) * 1021 % (1 << 32)).astype(unsigned)
                     .view(dtype))
    else:
        count = 1 << 19
        rng = np.random.default_rng(64)
        parts.append(rng.integers(0, 1 << 64, count, dtype=np.uint64).view(dtype))
        small = rng.integers(0, 1 << 32, count, dtype=np.uint32).view(np.float32)
        parts.append(small.astype(dtype))
    return np.concatenate(parts)


def sign_of(x):
    bits = x.dtype.itemsize * 8
    return (x.view(f"<u{bits // 8}") >> (bits - 1)).astype(bool)


def rounded_to_odd(x):
    """float64 to float32: exact, or the neighbour whose last bit is 1."""
    f = x.astype(np.float32)
    back = f.astype(np.float64)
    bits = f.view(np.uint32).copy()
    bits[np.abs(back) > np.abs(x)] -= 1
    bits[(back != x) & ~np.isnan(x)] |= 1
    return bits.view(np.float32)


class Witness(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def convert(self, array, *options):
        source = os.path.join(self.folder.name, "in.npy")
        target = os.path.join(self.folder.name, "out.npy")
        np.save(source, array)
        run = subprocess.run([FPINSPECT, "convert", source, target, *options],
                             capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, f"{options}: {run.stderr}")
        written = np.load(target)
        if written.dtype.kind == "f" and "--decode" not in options:
            written = written.view(f"<u{written.dtype.itemsize}")
        return written

    def assert_same(self, inputs_as_codes, ours, theirs, what):
        differing = np.flatnonzero(ours != theirs)
        if differing.size == 0:
            return
        i = differing[0]
        self.fail(f"{what}: {differing.size} of {ours.size} differ, the first: input "
                  f"0x{int(inputs_as_codes[i]):X}, got 0x{int(ours[i]):X}, "
                  f"expected 0x{int(theirs[i]):X}")

    def expected_nan(self, name, x, theirs, ours):
        """Asserts both sides of the NaN inputs x."""
        negative = sign_of(x)
        if name == "fp16":  # NumPy keeps payloads: NaN of the right sign is all there is to say
            self.assertTrue(np.all((theirs & 0x7FFF) > 0x7C00))
            self.assertTrue(np.array_equal(theirs >> 15 != 0, negative))
            self.assertTrue(np.array_equal(ours, np.where(negative, 0xFFFF, 0x7FFF)))
        elif name in NAN:
            sign = np.where(negative, 1 << (WIDTH.get(name, 8) - 1), 0) if name in SIGNED else 0
            self.assertTrue(np.all(theirs == (NAN[name][0] | sign)), f"{name}: their NaN changed")
            self.assertTrue(np.all(ours == (NAN[name][1] | sign)), name)
        else:  # no NaN: theirs is the code of a zero of the other sign, ours is max
            zero = np.where(negative, 0, 1 << (WIDTH[name] - 1))
            self.assertTrue(np.array_equal(theirs, zero), f"{name}: their NaN changed")
            self.assertTrue(np.all(ours == MAX[name]), name)

    def check_cast(self, name, dtype, policy):
        x = inputs(name, dtype)
        arguments = ["--to", name, "--overflow", policy, "--nan", "preserve_sign"]
        ours = self.convert(x, *arguments)
        clipped = x
        if policy == "saturate_finite":
            top = dtype(values_of(name)[-1])
            clipped = np.where(np.isfinite(x), np.clip(x, -top, top), x)
        if dtype == np.float64 and name != "fp16":
            clipped = rounded_to_odd(clipped)
        theirs = clipped.astype(DTYPES[name]).view(code_type(name))
        self.assertEqual(ours.dtype, theirs.dtype)
        nan = np.isnan(x)
        self.assertGreater(np.count_nonzero(nan), 0)
        self.expected_nan(name, x[nan], theirs[nan], ours[nan])
        compared = ~nan
        if name == "e8m0":
            magnitude = np.abs(x.astype(np.float64))
            outside = sign_of(x) | (x == 0)
            self.assertTrue(np.all(theirs[compared & outside & ~np.isinf(x)] == 0xFF))
            low = compared & ~outside & (magnitude > 2.0**-127) & (magnitude < 2.0**-126)
            self.assertTrue(np.all(theirs[low] == 0x01), "their rounding below 2^-126 changed")
            self.assertTrue(np.array_equal(ours[low], magnitude[low] >= 1.5 * 2.0**-127))
            compared &= ~outside & ~low
        codes = x.view(f"<u{x.dtype.itemsize}")
        self.assertGreater(np.count_nonzero(compared), x.size // 8)
        self.assert_same(codes[compared], ours[compared], theirs[compared],
                         f"{np.dtype(dtype).name} to {name}, {policy}")
        return np.count_nonzero(compared)

    def test_casts_from_numpy_floats(self):
        compared = 0
        for name in DTYPES:
            for dtype in (np.float32, np.float64, np.float16):
                if name == "fp16" and dtype == np.float16:
                    continue
                for policy in ("ieee", "saturate_finite"):
                    with self.subTest(to=name, source=np.dtype(dtype).name, policy=policy):
                        compared += self.check_cast(name, dtype, policy)
        print(f"{compared} casts compared")

    def test_casts_from_bf16(self):
        codes = np.arange(65536, dtype=np.uint16)
        x = codes.view(ml_dtypes.bfloat16)
        finite = np.isfinite(x.astype(np.float32))
        for name in DTYPES:
            if name in ("bf16", "e8m0"):  # itself; and see check_cast, which widens to float32
                continue
            with self.subTest(to=name):
                ours = self.convert(codes, "--from", "bf16", "--to", name)
                theirs = x.astype(DTYPES[name]).view(code_type(name))
                overflowed_to_nan = name == "e4m3"  # canonical here, signed there
                if overflowed_to_nan:
                    theirs = np.where(theirs == 0xFF, 0x7F, theirs).astype(np.uint8)
                self.assert_same(codes[finite], ours[finite], theirs[finite], f"bf16 to {name}")

    def test_values_of_all_codes(self):
        for name, dtype in DTYPES.items():
            with self.subTest(format=name):
                codes = np.arange(1 << (WIDTH.get(name, 8)), dtype=code_type(name))
                ours = self.convert(codes, "--from", name, "--to", "fp32")
                theirs = codes.view(dtype).astype(np.float32)
                nan = np.isnan(theirs)
                self.assertTrue(np.all(ours[nan] == 0x7FFFFFFF))
                self.assert_same(codes[~nan], ours[~nan], theirs[~nan].view(np.uint32),
                                 f"{name} to fp32")
                decoded = self.convert(codes, "--from", name, "--to", name, "--decode")
                self.assertEqual(decoded.dtype, np.float32)
                self.assert_same(codes[~nan], decoded.view(np.uint32)[~nan],
                                 theirs.view(np.uint32)[~nan], f"{name} decoded")


if __name__ == "__main__":
    unittest.main()
