# `fpinspect explorer`: the page, and its WebAssembly module against the native conversions.
import html
import os
import re
import shutil
import struct
import subprocess

import cli_support
from cli_support import read_file, read_npy, read_text, run, write_file, write_npy

# The page has all but stochastic rounding, whose name is the last.
ROUNDINGS = run("cast", "1", "--to", "bf16", "--rounding", "?").err.split(" one of ")[1].strip().split(", ")[:-1]
OVERFLOWS = ["ieee", "saturate", "saturate_finite"]
FORMATS = ["fp64", "fp32", "tf32", "fp16", "bf16", "e4m3", "e5m2", "e3m2", "e2m3", "e2m1", "e4m3fnuz",
           "e5m2fnuz", "e8m0"]
BYTES = {"fp64": 8, "fp32": 4, "tf32": 4, "fp16": 2, "bf16": 2}

# Reads lines "FROM TO ROUND OVERFLOW BYTES_FROM BYTES_TO FILE_OF_CODES FILE_TO_WRITE".
RUNNER = """
const fs = require("fs");
const page = fs.readFileSync(process.argv[2], "utf8");
const digits = page.match(/type="text\\/plain">([0-9a-f]+)</)[1];
WebAssembly.instantiate(Buffer.from(digits, "hex"), {}).then(({instance}) => {
  const wasm = instance.exports;
  const codes = new DataView(wasm.memory.buffer, wasm.codes(), 65536 * 8);
  for (const line of fs.readFileSync(0, "utf8").trim().split("\\n")) {
    const words = line.split(" ");
    const [from, to, round, overflow, wide, narrow] = words.map(Number);
    const read = fs.readFileSync(words[6]);
    const count = read.length / wide;
    const out = Buffer.alloc(count * narrow);
    for (let first = 0; first < count; first += 65536) {
      const size = Math.min(65536, count - first);
      for (let i = 0; i < size; ++i)
        codes.setBigUint64(8 * i, BigInt(read.readUIntLE((first + i) * wide, wide)), true);
      wasm.convert_all(from, to, size, round, overflow);
      for (let i = 0; i < size; ++i)
        out.writeUIntLE(Number(codes.getBigUint64(8 * i, true)), (first + i) * narrow, narrow);
    }
    fs.writeFileSync(words[7], out);
  }
});
"""


class ExplorerTest(cli_support.CliTest):
    def setUp(self):
        super().setUp()
        self.page = self.path("explorer.html")
        done = run("explorer", "-o", self.page)
        if done.code == 4:
            self.assertEqual(done.err, "fpinspect: explorer: not in this build, which had no clang for "
                                       "wasm32-wasi\n")
            self.skipTest("built without the explorer")
        self.assertEqual((done.code, done.out, done.err), (0, "", ""))
        self.source = read_text(self.page)


class Page(ExplorerTest):
    def test_nothing_from_outside(self):
        self.assertEqual(re.findall(r"https?:|@import|url\(|\bsrc=|<link|<iframe|fetch", self.source), [])
        self.assertIn("default-src 'none';", self.source)
        self.assertLess(len(self.source), 60_000)
        self.assertEqual(self.ok("explorer", "-o", "-").out, self.source)

    def test_settings_are_those_of_the_library(self):
        options = re.findall(r'<option value="(\d+)">(\w+)</option>', self.source)
        self.assertEqual(options, [(str(i), name) for i, name in enumerate(ROUNDINGS)] +
                         [(str(i), name) for i, name in enumerate(OVERFLOWS)])
        labels = re.findall(r'<label for="(\w+)"', self.source)
        self.assertEqual(labels, ["number", "round", "overflow"])

    def test_refused(self):
        self.fails(2, "explorer", says="--out")
        self.fails(2, "explorer", "-o", self.page, "--json", says="--json")
        self.fails(3, "explorer", "-o", self.path("no/x.html"), says="no/x.html")


class Module(ExplorerTest):
    """All 2^16 codes of both 16-bit formats into every format, and 10^6 words of fp32, by every rule."""

    def setUp(self):
        super().setUp()
        if shutil.which("node") is None:
            self.skipTest("no node")
        write_file(self.path("runner.js"), RUNNER)

    def check(self, source, descr, codes, targets, rules):
        count = len(codes) // BYTES[source]
        write_file(self.path("codes"), codes)
        read = write_npy(self.path("in.npy"), descr, (count,), codes)
        jobs, lines = [], []
        for to in targets:
            for round_index, overflow_index in rules:
                out = self.path(f"{to}.{round_index}.{overflow_index}")
                jobs.append((to, round_index, overflow_index, out))
                lines.append(" ".join(map(str, [
                    FORMATS.index(source), FORMATS.index(to), round_index, overflow_index, BYTES[source],
                    BYTES.get(to, 1), self.path("codes"), out])))
        subprocess.run(["node", self.path("runner.js"), self.page], input="\n".join(lines).encode(),
                       check=True, timeout=300)
        for to, round_index, overflow_index, out in jobs:
            target = self.path("native.npy")
            done = run("convert", read, target, "--from", source, "--to", to, "--rounding",
                       ROUNDINGS[round_index], "--overflow", OVERFLOWS[overflow_index])
            self.assertEqual(done.code, 0, done.err)
            native = read_npy(target)[2]
            made = read_file(out)
            self.assertEqual(len(made), len(native))
            if made != native:
                width = len(native) // count
                first = next(i for i in range(count)
                             if made[i * width:(i + 1) * width] != native[i * width:(i + 1) * width])
                self.fail(f"{source} to {to}, {ROUNDINGS[round_index]}, {OVERFLOWS[overflow_index]}: "
                          f"element {first} differs")

    def test_all_codes_of_16_bits(self):
        codes = b"".join(struct.pack("<H", c) for c in range(1 << 16))
        rules = [(i, 0) for i in range(len(ROUNDINGS))] + [(0, 1), (0, 2)]
        for source in "fp16", "bf16":
            self.check(source, "<u2", codes, [f for f in FORMATS if f != "fp64"], rules)

    def test_a_million_words_of_fp32(self):
        words = bytearray()
        state = 1
        for _ in range(1_000_000):
            state = (state * 6364136223846793005 + 1442695040888963407) & (2**64 - 1)
            words += (state >> 32).to_bytes(4, "little")
        rules = [(i, 0) for i in range(len(ROUNDINGS))]
        self.check("fp32", "<u4", bytes(words), ["e4m3"], rules)


class Browser(ExplorerTest):
    def setUp(self):
        super().setUp()
        self.chromium = shutil.which("chromium") or shutil.which("google-chrome")
        if self.chromium is None:
            self.skipTest("no Chromium")

    def figures(self, script=""):
        """{format: what its line says} after the script ran."""
        write_file(self.page, self.source.replace(
            "</body>", "<script>const ready = setInterval(() => {"
            "if (!document.getElementById('e8m0')) return; clearInterval(ready);"
            + script + "}, 5);</script></body>"))
        done = subprocess.run(
            [self.chromium, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
             "--virtual-time-budget=3000", f"--user-data-dir={self.path('profile')}", "--dump-dom",
             "file://" + self.page], capture_output=True, timeout=120,
            env={**os.environ, "HOME": self.folder})
        self.assertNotIn(b":CONSOLE", done.stderr)
        self.dom = done.stdout.decode("utf-8")
        return {name: html.unescape(re.sub("<[^>]*>", "", figures)) for name, figures in re.findall(
            r'<section id="(\w+)">.*?<p class="figures">(.*?)</p>', self.dom, re.S)}

    def test_first_view(self):
        figures = self.figures()
        self.assertEqual(list(figures), FORMATS)
        casts = self.ok_json("cast", "0.1")["casts"][0]["results"]
        self.assertEqual({r["format"]: r["code"] for r in casts},
                         {name: shown.split()[0] for name, shown in figures.items()})
        self.assertEqual(figures["fp16"], "0x2e66  = 0.0999755859375, error -0.0000244")

    def test_typing_and_rounding(self):
        set_to = "const e = document.getElementById('{}'); e.value = '{}';" \
                 "e.dispatchEvent(new Event('input', {{bubbles: true}}));"
        figures = self.figures("{" + set_to.format("number", "-500") + "}{" +
                               set_to.format("overflow", "1") + "}")
        self.assertEqual(figures["e4m3"], "0xfe  = -448, error 52")
        figures = self.figures("{" + set_to.format("number", "3.3") + "}{" +
                               set_to.format("round", "3") + "}")
        self.assertEqual(figures["e4m3"], "0x46  = 3.5, error 0.2")  # upward; to nearest: 3.25
        self.figures("{" + set_to.format("number", "1.2.3") + "}")
        self.assertIn("This is not a number", self.dom)

    def test_flipping_a_bit(self):
        press = "document.querySelector('[aria-label=\"{}\"]').click();"
        figures = self.figures(press.format("fp16 sign bit 15"))
        self.assertTrue(figures["fp16"].startswith("0xae66  = -0.0999755859375, exact"))
        figures = self.figures(press.format("tf32 mantissa bit 0"))
        self.assertTrue(figures["tf32"].endswith(", exact"))
        self.assertIn('aria-pressed="true"', self.dom)
