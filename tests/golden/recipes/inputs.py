# Matrices that recipes are recorded on, made in integers.
#
# An element is a sign and a magnitude, both from splitmix64 words: one for the element, one for its
# tile. All PROFILES yield finite numbers alone; the profile "nonfinite" has tiles with NaN of any
# payload and Inf among numbers and among zeros, tiles of nothing else, and tiles of numbers.
import numpy

FORMATS = {  # exponent bits, mantissa bits, magnitudes near which scales change their behaviour
    # 1e-4, 1e-10, 1e-12, 2^-9, 448 / FLT_MAX, 448 * 2^-127, 2^-126
    "fp32": (8, 23, (0x38D1B717, 0x2EDBE6FF, 0x2B8CBCCC, 0x3B000000, 0x03E00000, 0x04600000,
                     0x00800000)),
    "bf16": (8, 7, (0x38D1, 0x2EDB, 0x2B8C, 0x3B00, 0x03E0, 0x0460, 0x0080)),
    # 1e-4, 2^-9, 2^-14, the smallest, 448, 1
    "fp16": (5, 10, (0x068E, 0x1800, 0x0400, 0x0002, 0x5F00, 0x3C00)),
}
PROFILES = ("spread", "middle", "ties", "edges")


def words(seed, index):
    with numpy.errstate(over="ignore"):
        z = numpy.uint64(seed) + (index + numpy.uint64(1)) * numpy.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
        return z ^ (z >> numpy.uint64(31))


def trailing_zeros(value):
    """Of values below 2^21 that are not 0."""
    return (numpy.frexp((value & -value).astype(numpy.float64))[1] - 1).astype(numpy.int64)


def assemble(exponent, mantissa, bits):
    """The magnitude of those fields; an exponent below 1 shifts the mantissa out."""
    shift = numpy.clip(1 - exponent, 0, 40)
    return numpy.where(exponent >= 1, (exponent << bits) | mantissa, mantissa >> shift)


def magnitudes(profile, fields, element, tile, leads):
    """Of int64 words of elements and tiles; `leads` marks the first element of each tile."""
    exponent_bits, bits, special = fields
    largest_exponent = (1 << exponent_bits) - 2
    largest = (largest_exponent << bits) | ((1 << bits) - 1)
    mask = (1 << bits) - 1
    mantissa = element & mask
    drop = trailing_zeros(((element >> 24) & 0xFFFFF) | 0x100000)
    lone_zero = ((element >> 48) & 63) == 0
    nudge = ((tile >> 40) & 0xFFFFF) % 5 - 2
    random_exponent = 1 + (tile & 0xFFFF) % largest_exponent

    def falling(top, m):
        return numpy.where(lone_zero, 0, assemble(top - drop, m, bits))

    def led(leader):
        return numpy.where(leads, leader, falling((leader >> bits) - 1, mantissa))

    if profile == "spread":
        return falling(random_exponent, mantissa)
    if profile == "middle":
        bias = (1 << (exponent_bits - 1)) - 1
        return falling(bias - 10 + (tile & 0xFFFF) % 21, mantissa)
    if profile == "ties":
        leader = ((random_exponent << bits) | (3 << (bits - 2))) + nudge
        coarse = mantissa & ~((1 << (bits - 4)) - 1)
        return numpy.where(leads, leader, falling(random_exponent - 1, coarse))
    if profile == "nonfinite":
        infinite = numpy.full_like(element, (largest_exponent + 1) << bits)
        nan = infinite | mantissa | 1
        either = numpy.where((element >> 60) & 1 == 0, nan, infinite)
        bias = (1 << (exponent_bits - 1)) - 1
        finite = falling(bias - 10 + (tile & 0xFFFF) % 21, mantissa)
        rare = ((element >> 54) & 15) == 0
        kind = ((tile >> 16) & 0xFFF) % 9
        other = numpy.select([kind % 3 == k for k in range(2)], [nan, infinite], either)
        rest = numpy.where(kind < 3, finite, 0)
        return numpy.select([kind < 6, kind == 6, kind == 7],
                            [numpy.where(rare, other, rest), nan, infinite], finite)
    kind = ((tile >> 16) & 0xFFF) % 12
    pick = (tile >> 28) & 0xFFF
    near = numpy.maximum(numpy.array(special)[pick % len(special)] + nudge, 0)
    small = (tile >> 20) & mask
    zero = numpy.zeros_like(element)
    return numpy.select(
        [kind == k for k in range(3, 12)],
        [numpy.where(leads, 1, 0),
         mantissa,
         led(near),
         led(largest - (nudge + 2)),
         led((random_exponent << bits) + nudge),
         ((tile >> 8) & 0x7FFFFFFF) % (largest + 1) + zero,
         ((element >> 8) & 0x7FFFFFFF) % (largest + 1),
         numpy.where(leads, assemble(random_exponent, mantissa, bits), 0),
         numpy.where(leads, small, small >> drop)],
        zero)


def matrix(format_name, rows, cols, profile, tile_rows, tile_cols, seed):
    """[rows, cols] bit patterns, uint32 for fp32, else uint16."""
    fields = FORMATS[format_name]
    r = numpy.arange(rows, dtype=numpy.int64)[:, None]
    c = numpy.arange(cols, dtype=numpy.int64)[None, :]
    per_row = -(-cols // tile_cols)
    index = (r * cols + c).astype(numpy.uint64)
    of_tile = ((r // tile_rows) * per_row + c // tile_cols).astype(numpy.uint64)
    word = words(seed, index)
    tile = words(seed ^ 0xFFFFFFFFFFFFFFFF, of_tile)
    leads = (r % tile_rows == 0) & (c % tile_cols == 0)
    low = numpy.uint64(0x7FFFFFFFFFFFFFFF)
    magnitude = magnitudes(profile, fields, (word & low).astype(numpy.int64),
                           (tile & low).astype(numpy.int64), leads)
    sign = (word >> numpy.uint64(63)).astype(numpy.int64)
    if profile == "edges":
        kind = ((tile & low).astype(numpy.int64) >> 16 & 0xFFF) % 12
        sign = numpy.where(kind == 0, 0, numpy.where(kind == 1, 1, sign))
    width = fields[0] + fields[1]
    bits = magnitude | (sign << width)
    return bits.astype(numpy.uint32 if width == 31 else numpy.uint16)
