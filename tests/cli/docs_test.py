# The transcripts of docs/, run again: what a page shows is what the tool prints.
#
# In ```console blocks a line "$ fpinspect ..." is run in a folder that looks like the root of the
# project (with the samples and the recorded results of tensor cores alone); below it stand its standard output and error. A line "..."
# stands for any lines.
import os
import re
import shlex
import subprocess

import cli_support
from cli_support import read_text

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
# Each page has more transcripts than this.
PAGES = {"fpinspect.md": 8, "fpinspect_tensor.md": 12, "fpinspect_files.md": 8, "fpinspect_numbers.md": 20,
         "fpinspect_training.md": 8, "fpinspect_gpu.md": 4, "fpinspect_json.md": 1, "accumulators.md": 0,
         "../README.md": 1}


def transcripts(text):
    """(line number, command, expected output)"""
    for block in re.finditer(r"^```console\n(.*?)^```$", text, re.M | re.S):
        line = text[:block.start(1)].count("\n") + 1
        for part in re.split(r"^(?=\$ )", block[1], flags=re.M):
            command, _, output = part.partition("\n")
            if command:
                yield line, command, output
            line += part.count("\n")


def pattern(output):
    lines = [r"(?:.*\n)*?" if line == "..." else re.escape(line) + r"\n"
             for line in output.splitlines()]
    return r"\A" + "".join(lines) + r"\Z"


class Transcripts(cli_support.CliTest):
    def test_pages(self):
        for path in ("tests/data/gpt_sample.safetensors", "tests/data/adam.pt",
                     "tests/golden/tensor_core/h200.txt"):
            os.makedirs(os.path.dirname(self.path(path)), exist_ok=True)
            os.symlink(os.path.abspath(os.path.join(ROOT, path)), self.path(path))
        pages = {page for page in os.listdir(os.path.join(ROOT, "docs")) if page.startswith("fpinspect")}
        self.assertEqual(pages - set(PAGES), set())
        for page, least in PAGES.items():
            found = list(transcripts(read_text(os.path.join(ROOT, "docs", page))))
            self.assertGreater(len(found), least, page)
            for line, command, expected in found:
                with self.subTest(f"docs/{page}:{line}"):
                    self.check(command, expected)

    def check(self, command, expected):
        words = shlex.split(command[2:])
        self.assertEqual(words[0], "fpinspect")
        done = subprocess.run([cli_support.FPINSPECT, *words[1:]], stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, cwd=self.folder, env=cli_support.CLEAN,
                              timeout=60)
        shown = done.stdout.decode("utf-8")
        if not re.search(pattern(expected), shown):
            self.assertEqual(shown, expected, command)
