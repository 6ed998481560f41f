# PyTorch's files: those that PyTorch wrote, those written here, and hostile ones.
import argparse
import collections
import os
import re
import resource
import struct
import zipfile

import cli_support
import torch_files
from cli_support import floats, write_safetensors
from torch_files import (Call, Storage, Tensor, contiguous, stand_in, write_archive, write_old,
                         write_zip)

DATA = os.path.dirname(cli_support.SAMPLE)


def ramp(count, start=0):
    """The numbers of tests/data/make_torch_files.py."""
    return [(start + i) / 8 for i in range(count)]


def bounded():
    """Before the command: at most 1 GiB of memory and 20 s of processor time."""
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (20, 20))


class FilesOfPyTorch(cli_support.CliTest):
    def test_checkpoints(self):
        """Every tensor of a checkpoint with Adam's states, in both formats."""
        w, m, v = ramp(12), ramp(12, 5), ramp(12, 50)
        expected = {
            "model.layers.0.weight": ("F32", (3, 4), w),
            "model.layers.0.bias": ("F32", (3,), ramp(3, 100)),
            "model.tied.weight": ("F32", (3, 4), w),
            "model.transposed": ("F32", (4, 3), [w[4 * i + k] for k in range(4) for i in range(3)]),
            "model.column": ("F32", (3,), w[1::4]),
            "model.half": ("BF16", (4,), ramp(4)),
            "model.e4m3": ("F8_E4M3", (4,), ramp(4, 8)),
            "model.empty": ("F32", (0, 3), []),
            "optimizer.state.0.step": ("F32", (), [3.0]),
            "optimizer.state.0.exp_avg": ("F32", (3, 4), m),
            "optimizer.state.0.exp_avg_sq": ("F32", (3, 4), v),
        }
        unread = {"args": "no tensor but an object of argparse.Namespace",
                  "class": "no tensor but the name torch.nn.modules.linear.Linear",
                  "sparse": "a sparse tensor"}
        for name in "adam.pt", "adam.pth":
            path = os.path.join(DATA, name)
            tensors = {t["name"]: t for t in self.ok_json("tensor", path)["tensors"]}
            self.assertEqual(list(tensors), [*expected, *unread])
            for tensor, reason in unread.items():
                self.assertEqual((tensors[tensor]["dtype"], tensors[tensor]["note"]), (None, reason))
            for tensor, (dtype, shape, values) in expected.items():
                self.assertEqual((tensors[tensor]["dtype"], tuple(tensors[tensor]["shape"])),
                                 (dtype, shape))
                self.assertEqual(self.convert(f"{path}#{tensor}", "--to", "fp32"),
                                 ("<f4", shape, floats(*values)))

    def test_says_what_safetensors_says(self):
        """All protocols and both formats, for every view of the tensors."""
        raw = floats(*[(-1) ** i * 2.0 ** (i % 40 - 20) * (1 + i / 4096) for i in range(4096)])
        half = struct.pack("<2e", 1, 0.1)
        same = write_safetensors(self.path("same.safetensors"), [
            ("grad.w", "F32", (64, 64), raw), ("bias", "F16", (2,), half),
            ("ids", "I64", (2,), struct.pack("<2q", -1, 7))])
        model = collections.OrderedDict(
            grad={"w": contiguous("FloatStorage", 4, (64, 64), raw)},
            bias=contiguous("HalfStorage", 2, (2,), half), epoch=3, name="x", rate=0.1,
            ids=contiguous("LongStorage", 8, (2,), struct.pack("<2q", -1, 7)))
        views = [], ["--stats"], ["--recipes"], ["--quick"]
        expected = [self.ok_json("tensor", same, *more) for more in views]
        for protocol in 2, 3, 4, 5:
            for write in write_zip, write_old:
                path = write(self.path("m.pt"), model, protocol)
                self.assertEqual([self.ok_json("tensor", path, *more) for more in views], expected)
        self.assertEqual(self.ok("compare", path, same).out.splitlines()[-1],
                         self.ok("compare", same, same).out.splitlines()[-1])
        with open(path, "rb") as file:
            self.assertEqual(self.ok_json("tensor", "-", stdin=file), self.ok_json("tensor", same))

    def test_script(self):
        """torch.jit.save writes data.pkl last, so that the name alone tells the archive."""
        path = self.path("m.jit")
        with zipfile.ZipFile(path, "w") as archive:
            for member in "m/data/0", "m/code/m.py", "m/data.pkl", "m/constants.pkl":
                archive.writestr(member, "")
        self.fails(3, "tensor", path, says=[path, "a TorchScript program; save the state_dict()"])

    def test_operands_need_not_exist(self):
        """An argument of `arith` that ends like a file of PyTorch is no number."""
        for name in "none.pt", "none.pth", "none.ckpt":
            self.fails(3, "arith", "add", name, name, "--format", "fp32", "--out",
                       self.path("o.npy"), says=f"{name}: cannot be opened")


class HostileFiles(cli_support.CliTest):
    def refused(self, path, says):
        self.fails(3, "tensor", path, says=[path, *says], preexec_fn=bounded)

    def test_code_is_not_run(self):
        marker = self.path("marker")
        attacks = {"posix.system": Call(os.system, f"touch {marker}"),
                   "builtins.exec": Call(exec, f"open({marker!r}, 'w')"),
                   "builtins.getattr": Call(getattr, "x", "upper"),
                   "os.makedirs": Call(os.makedirs, marker)}
        weight = contiguous("FloatStorage", 4, (1,), floats(1))
        for protocol in 2, 4:
            for called, attack in attacks.items():
                if protocol == 2:
                    called = called.replace("builtins.", "__builtin__.")
                for model in attack, {"w": weight, "x": [attack]}:
                    for write in write_zip, write_old:
                        path = write(self.path("m.pt"), model, protocol)
                        self.refused(path, [f"the pickle calls {called}, which was not run"])
        for command in ["tensor", path, "--quick"], ["report", path, "-o", self.path("r.html")], \
                ["compare", path, path], ["convert", path, self.path("o.npy"), "--to", "fp16"]:
            self.fails(3, *command, says=[path, "was not run"])
        self.assertFalse(os.path.exists(marker))

    def test_inert_objects_keep_the_exit_code(self):
        path = write_zip(self.path("m.ckpt"), {
            "hyper": argparse.Namespace(a=1), "seen": {1, 2}, "type": argparse.ArgumentParser,
            "w": contiguous("FloatStorage", 4, (1,), floats(1))})
        listed = self.ok("tensor", path, "--list").out
        for text in ("hyper: no tensor but an object of argparse.Namespace",
                     "seen: no tensor but an object of __builtin__.set",
                     "type: no tensor but the name argparse.ArgumentParser"):
            self.assertIn(text, listed)

    def test_no_other_numbers_than_torch_reads(self):
        """What would show other tensors than torch loads is refused, or named so that it is seen."""
        first, second = (contiguous("FloatStorage", 4, (1,), floats(x)) for x in (1, 2))
        path = write_zip(self.path("m.pt"), {1.5: first, 0: second})
        names = [t["name"] for t in self.ok_json("tensor", path)["tensors"]]
        self.assertEqual(names, ["<0>", "0"])
        self.refused(write_zip(self.path("m.pt"), Call(collections.OrderedDict, {"w": first})),
                     ["a dict made of another object than a list of pairs"])
        replaced = contiguous("FloatStorage", 4, (1,), floats(1))
        replaced.call = *replaced.call, (Storage("FloatStorage", floats(5), 4), 0, (1,), (1,))
        self.refused(write_zip(self.path("m.pt"), {"w": replaced}),
                     ["a tensor whose storage is replaced by its state"])
        twice = b"\x80\x02}q\x00(X\x01\x00\x00\x00wK\x01X\x01\x00\x00\x00wK\x02u."
        self.refused(write_archive(self.path("m.pt"), twice), ['a dict has the key "w" twice'])
        made = b"\x80\x02ccollections\nOrderedDict\n]\x85\x81."
        self.refused(write_archive(self.path("m.pt"), made), ["a dict made by __new__ with arguments"])
        pairs = [(1, 2)] * 300_000
        self.refused(write_zip(self.path("m.pt"), [Call(collections.OrderedDict, pairs) for _ in range(40)]),
                     ["more than 10000000 items of dicts in calls"])

    def test_bytes_and_a_view_of_them(self):
        """PyTorch saves them as one storage with two names; either may come first."""
        raw = bytes([0x38, 0x40])
        storage = Storage("ByteStorage", raw, 1)
        bytes_of = Tensor(storage, 0, (2,), (1,))
        view_of = Call(stand_in("torch._utils", "_rebuild_tensor_v3"), Storage("UntypedStorage", raw, 1, storage),
                       0, (2,), (1,), False, {}, stand_in("torch", "float8_e4m3fn"))
        for model in {"a": bytes_of, "b": view_of}, {"b": view_of, "a": bytes_of}:
            path = write_zip(self.path("m.pt"), model)
            self.assertEqual(self.convert(f"{path}#b", "--to", "fp32")[2], floats(1, 2))
            self.assertEqual(self.convert(f"{path}#a", "--to", "fp32")[2], floats(0x38, 0x40))

    def test_bombs(self):
        """Small files that claim much: refused in bounded time and memory."""
        deep = b"\x80\x02" + b"]" * 999_000 + b"a" * 998_999 + b"."
        self.refused(write_archive(self.path("m.pt"), deep), ["nested more than 100 deep"])
        paths = b"\x80\x02]q\x01" + b"](h\x01h\x01eq\x01" * 60 + b"."
        self.refused(write_archive(self.path("m.pt"), paths), ["hold more than 10000000 objects"])
        memo = b"\x80\x02Nr\xff\xff\xff\x7f."
        self.refused(write_archive(self.path("m.pt"), memo), ["byte 3: a memo index above"])
        text = b"\x80\x02\x8d" + b"\xff" * 7 + b"\x7f" + b"x."
        self.refused(write_archive(self.path("m.pt"), text), ["the file ends before"])
        small = Storage("FloatStorage", floats(1), 4)
        for shape, strides, says in [((1 << 40,), (0,), "exceed the file 1024 times"),
                                     ((2,), (1,), "a tensor exceeds its storage"),
                                     ((1 << 62, 8), (0, 0), "exceeds 64 bits")]:
            for write in write_zip, write_old:
                path = write(self.path("m.pt"), Tensor(small, 0, shape, strides))
                self.refused(path, [says])
        claimed = Storage("FloatStorage", floats(1), 4)
        claimed.elements = 1 << 50
        tensor = Tensor(claimed, 0, (1 << 50,), (1,))
        self.refused(write_zip(self.path("m.pt"), tensor), ['"m/data/0": it has 4 bytes'])
        self.refused(write_old(self.path("m.pt"), tensor), ["the file ends before"])

    def test_overlapping_members(self):
        """Two storages over the same bytes of an archive."""
        pair = [contiguous("FloatStorage", 4, (1,), floats(i)) for i in range(2)]
        path = write_zip(self.path("m.pt"), pair)
        with open(path, "r+b") as file:
            content = bytearray(file.read())
            _, first, second = (entry.start() for entry in re.finditer(b"PK\1\2", content))
            content[second + 42:second + 46] = content[first + 42:first + 46]
            file.seek(0)
            file.write(content)
        self.refused(path, ['member "m/data/1"'])

    def test_cut_files(self):
        raw = floats(*range(4))
        for write in write_zip, write_old:
            path = write(self.path("m.pt"), {"w": contiguous("FloatStorage", 4, (2, 2), raw)})
            for size in range(os.path.getsize(path) - 1, 0, -23):
                os.truncate(path, size)
                self.fails(3, "tensor", path, says=path)
