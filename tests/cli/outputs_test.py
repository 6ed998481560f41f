# Files that fpinspect writes: what is left behind when a run ends early.
import glob
import os
import resource
import signal
import subprocess
import time

import cli_support
from cli_support import FPINSPECT, floats, read_npy, write_npy


def content_of(path):
    with open(path, "rb") as file:
        return file.read()


class Outputs(cli_support.CliTest):
    def setUp(self):
        super().setUp()
        self.square = floats(*range(1, 1025))
        self.x = write_npy(self.path("x.npy"), "<f4", (32, 32), self.square)

    def test_links_are_followed(self):
        os.mkdir(self.path("folder"))
        for name, write in [("a.npy", ["convert", self.x, None, "--to", "e4m3", "--json"]),
                            ("a.html", ["report", self.x, "-o", None])]:
            for exists in False, True:  # a link to no file first
                target, link = self.path("folder/" + name), self.path(name)
                if exists:
                    with open(target, "w", encoding="utf-8") as file:
                        file.write("old")
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
        before, names = content_of(out), sorted(os.listdir(self.folder))
        self.fails(3, "convert", self.x, out, "--to", "fp32", preexec_fn=limit,
                   says=[out, "cannot be written: File too large"])
        self.fails(3, "report", self.x, "-o", self.path("page.html"), preexec_fn=limit,
                   says=[self.path("page.html"), "cannot be written: File too large"])
        self.assertEqual((content_of(out), sorted(os.listdir(self.folder))), (before, names))

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
        process.stdin.write(content_of(self.x)[:100])
        process.stdin.flush()
        time.sleep(0.2)
        process.send_signal(signal.SIGHUP)
        process.communicate(content_of(self.x)[100:])
        self.assertEqual(process.returncode, 0)
        self.assertEqual(read_npy(self.path("o.npy"))[2], self.square)


class ShortenedFile(cli_support.CliTest):
    """An input that another process shortens while it is read."""

    def run_and_shorten(self, path, *arguments):
        """The subcommand maps the file, then waits for standard input."""
        process = subprocess.Popen([FPINSPECT, *arguments], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        deadline = time.monotonic() + 60
        while os.path.realpath(path) not in content_of(f"/proc/{process.pid}/maps").decode():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.001)
        os.truncate(path, 4096)
        out, err = process.communicate(content_of(write_npy(self.path("small.npy"), "<f4", (1,), floats(1))))
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
                code, out, err = self.run_and_shorten(path, *arguments)
                self.assertEqual((code, out, err), (3, b"", line))
                self.assertEqual(sorted(os.listdir(self.folder)), ["small.npy", "x.npy"])


if __name__ == "__main__":
    cli_support.main()
