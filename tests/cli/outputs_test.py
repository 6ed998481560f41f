# Files that fpinspect writes: what they may be called, which files they never replace, and what is left behind
# when a run ends early.
import glob
import json
import os
import resource
import signal
import subprocess
import time

import cli_support
from cli_support import FPINSPECT, floats, read_file, read_npy, write_file, write_npy, write_safetensors


class Outputs(cli_support.CliTest):
    def setUp(self):
        super().setUp()
        self.square = floats(*range(1, 1025))
        self.x = write_npy(self.path("x.npy"), "<f4", (32, 32), self.square)
        self.y = write_npy(self.path("y.npy"), "<f4", (32, 32), self.square)

    def text(self, name, text):
        return write_file(self.path(name), text)

    def refused(self, *arguments, says, victims, **more):
        """Exit code 2, and the folder is as it was."""
        before = {path: read_file(path) for path in victims}
        names = sorted(os.listdir(self.folder))
        line = self.fails(2, *arguments, says=says, **more)
        self.assertEqual({path: read_file(path) for path in victims}, before)
        self.assertEqual(sorted(os.listdir(self.folder)), names)
        return line

    def test_extensions(self):
        """A name that does not say what is written is refused, whether the file exists or not."""
        model = write_safetensors(self.path("m.safetensors"), [("a", "F32", (32, 32), self.square)])
        torch = ["scaler", "--policy", "torch", "--generate", "drop", "--steps", "4", "--out"]
        for arguments, extension in [
                (["report", self.x, "-o"], ".html"),
                (["report", self.x, "--svg", "exponents", "-o"], ".svg"),
                (["report", self.x, "--svg", "exponents", "--out"], ".svg"),
                (torch, ".csv"), (["scaler", "--generate", "drop", "--out"], ".csv"),
                (["advise", "--gpu", "h100", "--map"], ".json")]:
            option = "--map" if "--map" in arguments else "--out"
            for path in model, self.path("new"), self.path("new.txt"), self.path("html"):
                self.refused(*arguments, path, victims=[model], says=[
                    f'{option}: "{path}" must end in {extension}', "or be - for standard output"])
        self.refused("report", self.x, "--svg", "exponents", "-o", self.path("new.html"), victims=[],
                     says="must end in .svg")
        self.refused("report", self.x, "-o", self.path("new.svg"), victims=[], says="must end in .html")
        self.refused("verify", "--tensor-cores", "--record", model, victims=[model],
                     says=f'--record: "{model}" must end in .txt')
        self.ok("report", self.x, "-o", self.path("A.HTML"))
        self.ok(*torch, self.path("A.Csv"))

    def names_of(self, path):
        """The path, and other names of the same file with the same extension."""
        extension = os.path.splitext(path)[1]
        hard, soft = self.path("hard" + extension), self.path("soft" + extension)
        for name in hard, soft:
            if os.path.lexists(name):
                os.remove(name)
        os.link(path, hard)
        os.symlink(path, soft)
        return [path, os.path.join(self.folder, ".", os.path.basename(path)), hard, soft]

    def test_inputs_are_not_replaced(self):
        """Every subcommand that writes a file, by every argument that reads one."""
        x, y = self.x, self.y
        q = self.path("q.safetensors")
        self.ok("quantize", x, q, "--to", "e4m3")
        ones = write_npy(self.path("ones.npy"), "<f4", (1, 1), floats(1))
        page = self.path("model.html")  # the content decides what is read
        write_safetensors(page, [("w", "F32", (32, 32), self.square)])
        picture = self.path("model.svg")
        os.link(page, picture)
        steps = self.text("t.csv", "step,nonfinite\n0,0\n1,1\n")
        trace = self.text("trace.html", "step,scale,applied\n0,2,1\n1,2,1\n")
        shard = write_safetensors(self.path("shard.html"), [("a", "F32", (1,), floats(1))])
        index = self.text("m.index.json", json.dumps({"weight_map": {"a": "shard.html"}}))
        named = self.path("index.html")
        os.link(index, named)
        matmul = ["--format-a", "fp16", "--format-b", "fp16", "--unit", "hopper-wgmma", "--promotion", "0"]
        to = ["--to", "fp16"]
        for victim, option, arguments in [
                (x, "OUT", lambda out: ["convert", x, out, *to]),
                (q, "OUT", lambda out: ["convert", q + "#codes", out, *to]),
                (q, "OUT", lambda out: ["quantize", q + "#codes", out, "--to", "e4m3"]),
                (q, "OUT", lambda out: ["dequantize", q, out]),
                (x, "--out", lambda out: ["matmul", x, y, *matmul, "--out", out]),
                (y, "--out", lambda out: ["matmul", x, y, *matmul, "--out", out]),
                (ones, "--out", lambda out: ["matmul", x, y, *matmul, "--scale-a", ones, "--out", out]),
                (ones, "--out", lambda out: ["matmul", x, y, *matmul, "--scale-b", ones, "--out", out]),
                (x, "--out", lambda out: ["arith", "add", x, y, "--format", "fp32", "--out", out]),
                (y, "--out", lambda out: ["arith", "add", x, y, "--format", "fp32", "--out", out]),
                (y, "--flags", lambda out: ["arith", "add", x, y, "--format", "fp32", "--out",
                                            self.path("z.npy"), "--flags", out]),
                (page, "--out", lambda out: ["report", page, "-o", out]),
                (page, "--out", lambda out: ["report", page + "#w", "-o", out]),
                (page, "--out", lambda out: ["report", x, page, "-o", out]),
                (picture, "--out", lambda out: ["report", picture, "--svg", "exponents", "-o", out]),
                (trace, "--out", lambda out: ["report", x, "--loss-scale-trace", trace, "-o", out]),
                (shard, "--out", lambda out: ["report", index, "-o", out]),
                (named, "--out", lambda out: ["report", index, "-o", out]),
                (steps, "--out", lambda out: ["scaler", "--policy", "torch", "--trace", steps, "--out",
                                              out])]:
            for out in self.names_of(victim):
                with self.subTest(arguments=arguments(out)):
                    self.refused(*arguments(out), victims=[victim], says=[
                        f'{option}: "{out}" is read by this command', "name another file"])

    def test_standard_input_is_an_input(self):
        with open(self.x, "rb") as file:
            self.refused("convert", "-", self.x, "--to", "fp16", stdin=file, victims=[self.x],
                         says=f'OUT: "{self.x}" is read by this command')
        steps = self.text("t.csv", "step,nonfinite\n0,0\n")
        with open(steps, "rb") as file:
            self.refused("scaler", "--policy", "torch", "--trace", "-", "--out", steps, stdin=file,
                         victims=[steps], says=f'--out: "{steps}" is read by this command')

    def test_one_file_for_two_outputs(self):
        out, other = self.path("z.npy"), os.path.join(self.folder, ".", "z.npy")
        arguments = ["arith", "add", self.x, self.y, "--format", "fp32", "--out", out, "--flags"]
        self.refused(*arguments, other, victims=[], says=f'--flags: "{other}" is the file of --out too')
        write_npy(out, "<f4", (1,), floats(1))
        os.link(out, self.path("hard.npy"))
        self.refused(*arguments, self.path("hard.npy"), victims=[out], says="is the file of --out too")

    def test_other_files_are_replaced(self):
        """A copy of the input is another file."""
        self.ok("convert", self.x, self.y, "--to", "e4m3", "--json")
        self.assertEqual(read_npy(self.y)[:2], ("|u1", (32, 32)))

    def test_links_are_followed(self):
        os.mkdir(self.path("folder"))
        for name, write in [("a.npy", ["convert", self.x, None, "--to", "e4m3", "--json"]),
                            ("a.html", ["report", self.x, "-o", None])]:
            for exists in False, True:  # a link to no file first
                target, link = self.path("folder/" + name), self.path(name)
                if exists:
                    write_file(target, "old")
                else:
                    os.symlink("second." + name, link)
                    os.symlink("folder/" + name, self.path("second." + name))
                self.ok(*[link if argument is None else argument for argument in write])
                self.assertTrue(os.path.islink(link) and os.path.islink(self.path("second." + name)))
                self.assertFalse(os.path.islink(target))
                self.assertGreater(os.path.getsize(target), 1000)
        self.assertEqual(sorted(os.listdir(self.path("folder"))), ["a.html", "a.npy"])
        os.symlink("circle.npy", self.path("circle.npy"))
        self.fails(3, "convert", self.x, self.path("circle.npy"), "--to", "fp16",
                   says=[self.path("circle.npy"), "cannot be followed"])

    def test_nothing_stays_behind_a_full_limit(self):
        """As by `ulimit -f`: the write fails, with a message."""
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))
        out = write_npy(self.path("o.npy"), "<f4", (1,), floats(1))
        before, names = read_file(out), sorted(os.listdir(self.folder))
        self.fails(3, "convert", self.x, out, "--to", "fp32", preexec_fn=limit,
                   says=[out, "cannot be written: File too large"])
        self.fails(3, "report", self.x, "-o", self.path("page.html"), preexec_fn=limit,
                   says=[self.path("page.html"), "cannot be written: File too large"])
        self.assertEqual((read_file(out), sorted(os.listdir(self.folder))), (before, names))

    def test_nothing_stays_behind_a_signal(self):
        """While a large file is written. A run that ends before the signal arrives has done its work."""
        count = 1 << 26
        x = self.path("large.npy")
        write_npy(x, "|u1", (count,), b"")
        os.truncate(x, os.path.getsize(x) + count)  # zeros, without disk blocks
        out = self.path("o.npy")
        caught = 0
        for number in signal.SIGTERM, signal.SIGINT, signal.SIGHUP:
            process = subprocess.Popen([FPINSPECT, "convert", x, out, "--to", "fp32"],
                                       stderr=subprocess.DEVNULL)
            while process.poll() is None and not glob.glob(self.path(".samebits-*")):
                time.sleep(0.001)
            process.send_signal(number)
            code = process.wait()
            self.assertIn(code, (0, -number))
            caught += code == -number
            self.assertEqual(glob.glob(self.path(".samebits-*")), [])
            if os.path.exists(out):
                self.assertEqual(os.path.getsize(out), 4 * count + 128)
                os.remove(out)
        self.assertGreater(caught, 0)

    def test_ignored_signals_stay_ignored(self):
        """As under nohup."""
        def ignore():
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        process = subprocess.Popen([FPINSPECT, "convert", "-", self.path("o.npy"), "--to", "fp32"],
                                   stdin=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=ignore)
        process.stdin.write(read_file(self.x)[:100])
        process.stdin.flush()
        time.sleep(0.2)
        process.send_signal(signal.SIGHUP)
        process.communicate(read_file(self.x)[100:])
        self.assertEqual(process.returncode, 0)
        self.assertEqual(read_npy(self.path("o.npy"))[2], self.square)


class ShortenedFile(cli_support.CliTest):
    """An input that another process shortens while it is read."""

    def run_and_shorten(self, path, size, *arguments):
        """The subcommand maps the file, then waits for standard input."""
        process = subprocess.Popen([FPINSPECT, *arguments], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        deadline = time.monotonic() + 60
        while os.path.realpath(path) not in read_file(f"/proc/{process.pid}/maps").decode():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.001)
        os.truncate(path, size)
        out, err = process.communicate(read_file(write_npy(self.path("small.npy"), "<f4", (1,), floats(1))))
        return process.returncode, out, err.decode()

    def test_one_error(self):
        count = 1 << 22
        path = write_npy(self.path("x.npy"), "<f4", (count // 1024, 1024), bytes(4 * count))
        size = os.path.getsize(path)
        line = (f"fpinspect: {path}: cannot be read to its end: the file was shortened meanwhile, or its "
                "disk failed\n")
        for arguments in (["tensor", path, "-"], ["tensor", path, "-", "--quick"],
                          ["tensor", path, "-", "--stats"], ["report", path, "-", "-o", self.path("o.html")]):
            with self.subTest(arguments=arguments):
                os.truncate(path, size)
                code, out, err = self.run_and_shorten(path, 4096, *arguments)
                self.assertEqual((code, out, err), (3, b"", line))
                self.assertEqual(sorted(os.listdir(self.folder)), ["small.npy", "x.npy"])

    def test_within_the_last_page(self):
        """The kernel shows zeros there, and raises no signal. `tensor` has then written its figures."""
        path = write_npy(self.path("x.npy"), "<f4", (1000, 1), floats(*[1] * 1000))
        size = os.path.getsize(path)
        self.assertLess(size % 4096, 4096 - 8)
        for arguments in (["tensor", path, "-", "--quick"], ["report", path, "-", "-o", self.path("o.html")]):
            with open(path, "ab") as file:
                file.write(bytes(size - os.path.getsize(path)))
            code, _, err = self.run_and_shorten(path, size - 8, *arguments)
            self.assertEqual((code, err), (
                3, f"fpinspect: {path}: cannot be read to its end: the file was shortened meanwhile\n"))
            self.assertEqual(sorted(os.listdir(self.folder)), ["small.npy", "x.npy"])

    def test_replaced_file(self):
        """Another file under the name leaves the opened one as it was."""
        path = write_npy(self.path("x.npy"), "<f4", (1000, 1), floats(*[1] * 1000))
        whole = self.ok("tensor", path, write_npy(self.path("small.npy"), "<f4", (1,), floats(1)), "--quick").out
        other = write_npy(self.path("other.npy"), "<f4", (1,), floats(2))
        process = subprocess.Popen([FPINSPECT, "tensor", path, "-", "--quick"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE)
        while os.path.realpath(path) not in read_file(f"/proc/{process.pid}/maps").decode():
            time.sleep(0.001)
        os.rename(other, path)
        out, _ = process.communicate(read_file(self.path("small.npy")))
        self.assertEqual((process.returncode, out.decode()), (0, whole.replace("small.npy", "-")))
