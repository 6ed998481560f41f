# What the command-line tests share: running fpinspect, and the two file formats in a few lines.
import json
import math
import os
import struct
import subprocess
import sys
import tempfile
import unittest

if os.path.basename(getattr(sys.modules["__main__"], "__file__", None) or "").endswith("_test.py"):
    sys.exit("these files have no main: run python3 -m unittest NAME_test in tests/cli")

FPINSPECT = os.environ.get("FPINSPECT", "fpinspect")
SAMPLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data",
                      "gpt_sample.safetensors")
SKIPPED = 77  # ctest's SKIP_RETURN_CODE

# Of the environment only what is named here gets through, so that a user's settings do not matter.
CLEAN = {"PATH": os.environ.get("PATH", ""), "LC_ALL": "C.UTF-8"}


def refuse_constant(text):
    raise ValueError(f"{text} is not JSON")


class Result:
    def __init__(self, done):
        self.code = done.returncode
        self.out = done.stdout.decode("utf-8")  # strict: what is printed must be UTF-8
        self.err = done.stderr.decode("utf-8")

    def json(self):
        return json.loads(self.out, parse_constant=refuse_constant)


def run(*arguments, env=None, **more):
    """Arguments are str or bytes; standard output and error are captured."""
    more.setdefault("timeout", 300)
    return Result(subprocess.run([FPINSPECT, *arguments], capture_output=True,
                                 env={**CLEAN, **(env or {})}, **more))


class CliTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def ok(self, *arguments, **more):
        result = run(*arguments, **more)
        self.assertEqual((result.code, result.err), (0, ""))
        return result

    def ok_json(self, *arguments, **more):
        document = self.ok(*arguments, "--json", **more).json()
        self.assertEqual(document["schema"], 1)
        return document

    def fails(self, code, *arguments, says=(), **more):
        """Fails with that exit code, one line on standard error and nothing on standard output."""
        result = run(*arguments, **more)
        self.assertEqual((result.code, result.out), (code, ""), result.err)
        self.assertTrue(result.err.startswith("fpinspect: "), result.err)
        self.assertTrue(result.err.endswith("\n"), result.err)
        line = result.err[:-1]
        self.assertTrue(line.isprintable(), repr(line))
        for part in [says] if isinstance(says, str) else says:
            self.assertIn(part, line)
        return line

    def convert(self, source, *options):
        """The output of `convert` as (descr, shape, raw bytes)."""
        target = self.path("converted.npy")
        result = run("convert", source, target, *options)
        self.assertEqual((result.code, result.out), (0, ""), result.err)
        self.assertEqual(result.err.count("\n"), 1)
        return read_npy(target)


def write_file(path, content):
    """Writes text or bytes. Returns the path."""
    with open(path, "wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
    return path


def read_file(path):
    with open(path, "rb") as file:
        return file.read()


def read_text(path):
    return read_file(path).decode()


def write_npy(path, descr, shape, data, fortran=False, version=1):
    header = repr({"descr": descr, "fortran_order": fortran, "shape": tuple(shape)})
    length_bytes = 2 if version == 1 else 4
    header += " " * (-(8 + length_bytes + len(header) + 1) % 64) + "\n"
    start = b"\x93NUMPY" + bytes([version, 0]) + len(header).to_bytes(length_bytes, "little")
    return write_file(path, start + header.encode() + data)


def read_npy(path):
    """(descr, shape, raw bytes) of a version 1.0 file in C order, its header as NumPy aligns it."""
    content = read_file(path)
    assert content[:8] == b"\x93NUMPY\x01\x00", content[:8]
    end = 10 + int.from_bytes(content[8:10], "little")
    assert end % 64 == 0 and content[end - 1:end] == b"\n"
    header = eval(content[10:end], {"__builtins__": {}})  # our own output
    assert sorted(header) == ["descr", "fortran_order", "shape"] and not header["fortran_order"]
    return header["descr"], header["shape"], content[end:]


def write_safetensors(path, tensors, metadata=None):
    """tensors: (name, dtype, shape, raw bytes) in the order of their data."""
    header, data = {"__metadata__": metadata} if metadata else {}, b""
    for name, dtype, shape, raw in tensors:
        header[name] = {"dtype": dtype, "shape": list(shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    return write_file(path, struct.pack("<Q", len(text)) + text + data)


def read_safetensors(path):
    """{name: (dtype, shape, raw bytes)}"""
    content = read_file(path)
    start = 8 + struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:start])
    header.pop("__metadata__", None)
    return {name: (entry["dtype"], entry["shape"],
                   content[start + entry["data_offsets"][0]:start + entry["data_offsets"][1]])
            for name, entry in header.items()}


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


def hexadecimal(raw, bytes_each=1):
    """Codes as a list of fixed-width hexadecimal strings."""
    return [raw[i:i + bytes_each][::-1].hex() for i in range(0, len(raw), bytes_each)]


def tree_sum(inputs):
    """Neighbours are added level by level; a lone last one passes up (contract, section 6)."""
    level = list(inputs)
    while len(level) > 1:
        pairs = [level[i] + level[i + 1] for i in range(0, len(level) - 1, 2)]
        level = pairs + level[len(level) & ~1:]
    return level[0] if level else 0.0


def sqnr_db(signal, noise):
    return 10.0 * math.log10(signal / noise) if noise > 0.0 and signal > 0.0 else None
