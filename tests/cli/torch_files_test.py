# PyTorch's files: those that PyTorch wrote, and refusals. What the reader takes and refuses: unit.torch_files.
import os
import pickle
import resource
import struct
import zipfile

import cli_support
from cli_support import floats, write_safetensors

DATA = os.path.dirname(cli_support.SAMPLE)


def ramp(count, start=0):
    """The numbers of tests/data/make_torch_files.py."""
    return [(start + i) / 8 for i in range(count)]


def bounded():
    """Before the command: at most 1 GiB of memory and 20 s of processor time."""
    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
    resource.setrlimit(resource.RLIMIT_CPU, (20, 20))


class FilesOfPyTorch(cli_support.CliTest):
    EXPECTED = {
        "model.layers.0.weight": ("F32", (3, 4), ramp(12)),
        "model.layers.0.bias": ("F32", (3,), ramp(3, 100)),
        "model.tied.weight": ("F32", (3, 4), ramp(12)),
        "model.transposed": ("F32", (4, 3), [ramp(12)[4 * i + k] for k in range(4) for i in range(3)]),
        "model.column": ("F32", (3,), ramp(12)[1::4]),
        "model.half": ("BF16", (4,), ramp(4)),
        "model.e4m3": ("F8_E4M3", (4,), ramp(4, 8)),
        "model.empty": ("F32", (0, 3), []),
        "optimizer.state.0.step": ("F32", (), [3.0]),
        "optimizer.state.0.exp_avg": ("F32", (3, 4), ramp(12, 5)),
        "optimizer.state.0.exp_avg_sq": ("F32", (3, 4), ramp(12, 50)),
    }

    def test_checkpoints(self):
        """Every tensor of a checkpoint with Adam's states, in both formats."""
        unread = {"args": "no tensor but an object of argparse.Namespace",
                  "class": "no tensor but the name torch.nn.modules.linear.Linear",
                  "sparse": "a sparse tensor"}
        for name in "adam.pt", "adam.pth":
            path = os.path.join(DATA, name)
            tensors = {t["name"]: t for t in self.ok_json("tensor", path)["tensors"]}
            self.assertEqual(list(tensors), [*self.EXPECTED, *unread])
            for tensor, reason in unread.items():
                self.assertEqual((tensors[tensor]["dtype"], tensors[tensor]["note"]), (None, reason))
            for tensor, (dtype, shape, values) in self.EXPECTED.items():
                self.assertEqual((tensors[tensor]["dtype"], tuple(tensors[tensor]["shape"])),
                                 (dtype, shape))
                self.assertEqual(self.convert(f"{path}#{tensor}", "--to", "fp32"),
                                 ("<f4", shape, floats(*values)))

    def test_says_what_safetensors_says(self):
        """In both formats, by every command, by name and from standard input."""
        rows = [(name, dtype, shape, floats(*values)) for name, (dtype, shape, values) in self.EXPECTED.items()
                if dtype == "F32"]
        same = write_safetensors(self.path("same.safetensors"), rows)
        chosen = [word for name, *_ in rows for word in ("--tensor", name)]
        for name in "adam.pt", "adam.pth":
            path = os.path.join(DATA, name)
            for view in [], ["--stats"], ["--recipes"], ["--quick"]:
                self.assertEqual(self.ok_json("tensor", path, *chosen, *view),
                                 self.ok_json("tensor", same, *chosen, *view), (name, view))
            self.assertIn("11 tensors, 11 equal, 0 differ\n", self.ok("compare", path, path).out)
            with open(path, "rb") as file:
                self.assertEqual(self.ok_json("tensor", "-", stdin=file), self.ok_json("tensor", path))

    def test_script(self):
        """torch.jit.save writes data.pkl last, so that the name alone tells the archive."""
        path = self.archive("m.jit", **{"m/data/0": b"", "m/code/m.py": b"", "m/data.pkl": b"", "m/constants.pkl": b""})
        self.fails(3, "tensor", path, says=[path, "a TorchScript program; save the state_dict()"])

    def test_operands_need_not_exist(self):
        """An argument of `arith` that ends like a file of PyTorch is no number."""
        for name in "none.pt", "none.pth", "none.ckpt":
            self.fails(3, "arith", "add", name, name, "--format", "fp32", "--out",
                       self.path("o.npy"), says=f"{name}: cannot be opened")

    def archive(self, name, **members):
        with zipfile.ZipFile(self.path(name), "w") as archive:
            for member, content in members.items():
                archive.writestr(member, content)
        return self.path(name)

    def test_code_is_not_run(self):
        class Attack:
            def __reduce__(self):
                return os.makedirs, (marker,)

        marker = self.path("marker")
        path = self.archive("m.pt", **{"m/data.pkl": pickle.dumps(Attack(), 2)})
        for command in ["tensor", path], ["tensor", path, "--quick"], ["report", path, "-o", self.path("r.html")], \
                ["compare", path, path], ["convert", path, self.path("o.npy"), "--to", "fp16"]:
            self.fails(3, *command, says=[path, "the pickle calls os.makedirs, which was not run"])
        self.assertFalse(os.path.exists(marker))

    def test_bombs(self):
        """Small files that claim much: refused in bounded time and memory."""
        for data, says in [(b"]" * 999_000 + b"a" * 998_999, "nested more than 100 deep"),
                           (b"]q\x01" + b"](h\x01h\x01eq\x01" * 60, "hold more than 10000000 objects"),
                           (b"Nr\xff\xff\xff\x7f", "byte 3: a memo index above"),
                           (b"\x8d" + struct.pack("<Q", (1 << 63) - 1) + b"x", "the file ends before")]:
            path = self.archive("m.pt", **{"m/data.pkl": b"\x80\x02" + data + b"."})
            self.fails(3, "tensor", path, says=[path, says], preexec_fn=bounded)
