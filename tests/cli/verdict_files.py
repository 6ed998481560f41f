# Five files for tests of `fpinspect tensor`, each of which shows one thing.
import math
import random

from cli_support import floats, write_safetensors


def tensor(name, shape, deviation):
    """(name, shape, bell-shaped values), the same in every run."""
    draw = random.Random(name)
    return name, shape, [draw.gauss(0, deviation) for _ in range(math.prod(shape))]


def healthy():
    return [tensor(f"layers.0.{name}.weight", (64, 256), 0.02) for name in ("q_proj", "up_proj")] + [
        tensor("layers.0.norm.weight", (256,), 0.1)]


def underflow():
    """Gradients of two sizes. Factors from 1 to 2^-15, in no order, spread the smaller ones."""
    name, shape, small = tensor("grad.deep", (64, 256), 1e-6)
    spread = [math.ldexp(x, -(i * 2654435761 >> 20 & 15)) for i, x in enumerate(small)]
    return [tensor("grad.head", (64, 256), 1e-3), (name, shape, spread)]


def outlier():
    """Channel 17 is 2^16 times the others: one scale for the tensor makes many of them 0."""
    name, shape, values = tensor("act.mlp", (64, 1024), 1)
    values[17::1024] = [x * 2**16 for x in values[17::1024]]
    return [tensor("act.attention", (64, 1024), 1), (name, shape, values)]


def checkpoint():
    return [tensor(name, shape, deviation) for prefix in (f"layers.{layer}." for layer in range(125))
            for name, shape, deviation in [
                (prefix + "weight", (8, 128), 0.05), (prefix + "bias", (8,), 0.05),
                (f"grad.{prefix}weight", (8, 128), 1e-4), (f"exp_avg.{prefix}weight", (8, 128), 1e-4)]]


def nan():
    name, shape, values = tensor("w1.weight", (32, 256), 0.02)
    for row, column in (17, 254), (20, 0), (31, 0):
        values[256 * row + column] = math.nan
    values[256 * 20 + 1] = math.inf
    return [tensor("w0.weight", (32, 256), 0.02), (name, shape, values)]


def write(make, path):
    return write_safetensors(path, [(name, "F32", shape, floats(*values)) for name, shape, values in make()])
