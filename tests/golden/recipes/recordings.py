# Recordings of recipes: which matrices, how a library's answers on them become a file, and back.
#
# A file is text. `# key: value` says what ran. Then lines
#   case NAME MODE FORMAT ROWS COLS ORIGIN SHA256(input) SHA256(codes) SHA256(scales)
# MODE is `whole`, or `rows` (every row is a tensor of its own), or `steps/max`, `steps/recent`
# (the rows are a tensor at successive steps of delayed scaling with a history of HISTORY).
# ORIGIN is `PROFILE:TILE_ROWSxTILE_COLS:SEED` of inputs.py or `sample:NAME:OFFSET` of the sample's
# bytes; with `:near`, rows are zeros for which the recipe claims nothing because the library takes
# log2 of S = RN(448 / amax): S at most NEAR ulp below a power of two, with `:near+inf` also Inf.
# Hashes are of e4m3 codes and of scales, row-major: binary32 little-endian, or e8m0. After
# a case of few elements come its rows: `row CODES SCALES` in hexadecimal.
import collections
import hashlib
import json
import struct

import numpy

import inputs

HISTORY = 16
NEAR = 44
LISTED = 4096  # elements up to which a case's answers are listed
BITS = {"fp32": numpy.uint32, "bf16": numpy.uint16, "fp16": numpy.uint16}
FORMAT_OF_DTYPE = {"F32": "fp32", "BF16": "bf16", "F16": "fp16"}

Case = collections.namedtuple("Case", "name mode format rows cols origin")


def sample_tensors(path):
    """(name, format, rows, cols, offset) of a .safetensors file's tensors that recipes take."""
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        heading = json.loads(file.read(size))
    for name, entry in sorted(heading.items()):
        if entry.get("dtype") in FORMAT_OF_DTYPE:
            shape = entry["shape"] if len(entry["shape"]) == 2 else [1] + entry["shape"]
            yield name, FORMAT_OF_DTYPE[entry["dtype"]], *shape, 8 + size + entry["data_offsets"][0]


def cases(formats, tile, modes, sample, tails=False, cleared=""):
    """At least 10^7 random elements and the sample. `tile` with 0 for the whole length; `cleared`
    is what an origin says of rows without a claim."""
    rows = -(-10_500_000 // (len(formats) * len(inputs.PROFILES) * 1024 * 128)) * 128
    seed = 1
    for mode in modes:
        for f in formats:
            for profile in inputs.PROFILES:
                for r, c, label in [(rows, 1024, ""), (4, 512, "-listed"), (131, 296, "-tails")]:
                    if (label == "-tails" and not tails) or (label == "-listed" and
                                                             mode != modes[0]):
                        continue
                    origin = f"{profile}:{tile[0] or 1}x{tile[1] or c}:{seed}{cleared}"
                    yield Case(f"{profile}{label}", mode, f, r, c, origin)
                    seed += 1
            for name, sample_format, r, c, offset in sample_tensors(sample):
                if sample_format == f:
                    of_sample = "whole" if mode == "rows" else mode
                    yield Case(name, of_sample, f, r, c, f"sample:{name}:{offset}")


def nonfinite_cases(formats, tile, mode):
    """Small ones with NaN and Inf, listed in full."""
    seed = 101
    for f in formats:
        for _ in range(2):
            origin = f"nonfinite:{tile[0] or 1}x{tile[1] or 512}:{seed}"
            yield Case("nonfinite", mode, f, 8, 512, origin)
            seed += 1


def clear_unclaimed(bits, format_name, infinite):
    fields = inputs.FORMATS[format_name]
    magnitudes = bits & bits.dtype.type((1 << (fields[0] + fields[1])) - 1)
    amax = magnitudes.max(axis=1)
    if format_name == "fp16":
        amax = amax.view(numpy.float16).astype(numpy.float32)
    else:
        amax = (amax.astype(numpy.uint32) << numpy.uint32(23 - fields[1])).view(numpy.float32)
    with numpy.errstate(all="ignore"):
        s = (numpy.float32(448) / amax).view(numpy.uint32)
    near = (s & 0x7FFFFF) > 0x7FFFFF - NEAR
    bits[near | (infinite & (s == 0x7F800000))] = 0


def input_bits(case, sample):
    kind, *rest = case.origin.split(":")
    if kind == "sample":
        width = numpy.dtype(BITS[case.format]).itemsize
        with open(sample, "rb") as file:
            file.seek(int(rest[1]))
            data = file.read(case.rows * case.cols * width)
        return numpy.frombuffer(data, BITS[case.format]).reshape(case.rows, case.cols).copy()
    tile = [int(n) for n in rest[0].split("x")]
    bits = inputs.matrix(case.format, case.rows, case.cols, kind, *tile, int(rest[1]))
    if len(rest) > 2:
        clear_unclaimed(bits, case.format, rest[2] == "near+inf")
    return bits


def digest(array):
    return hashlib.sha256(numpy.ascontiguousarray(array).tobytes()).hexdigest()


class Recording:
    def __init__(self, path, heading):
        self.file = open(path, "w", encoding="utf-8")
        for key, value in heading.items():
            print(f"# {key}: {value}", file=self.file)

    def add(self, case, bits, codes, scales):
        """codes: uint8 [rows, cols]; scales: uint32 (binary32) or uint8, [.., ..]."""
        print("case", *case, digest(bits), digest(codes), digest(scales), file=self.file)
        if codes.size > LISTED:
            return
        for r in range(case.rows):
            by_row = scales.shape[0] == case.rows
            own = scales[r:r + 1] if by_row else scales if r == 0 else scales[:0]
            print("row", codes[r].tobytes().hex(), own.tobytes().hex() or "-", file=self.file)

    def close(self):
        self.file.close()


def read(path):
    """The preset of a recording, and its cases: each with its hashes and its lines `row`, as words."""
    preset, found = None, []
    with open(path, encoding="utf-8") as file:
        for line in file:
            kind, *words = line.split()
            if kind == "#":
                preset = words[1] if words[0] == "preset:" else preset
            elif kind == "case":
                name, mode, f, rows, cols, origin, *hashes = words
                found.append((Case(name, mode, f, int(rows), int(cols), origin), hashes, []))
            elif kind == "row":
                found[-1][2].append(words)
            else:
                raise ValueError(f"{path}: not a line of a recording: {kind}")
    return preset, found


def listed(rows):
    """Codes and scales of a case's lines `row`, as bytes."""
    codes, scales = zip(*rows)
    return bytes.fromhex("".join(codes)), bytes.fromhex("".join(scales).replace("-", ""))
