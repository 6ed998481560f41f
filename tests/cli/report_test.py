# `fpinspect report`: one file that is complete in itself, escaped, small, and true to the figures.
import html.parser
import os
import re
import shutil
import struct
import subprocess
import xml.etree.ElementTree

import cli_support
import verdict_files
from cli_support import SAMPLE, floats, read_text, run, write_file, write_npy, write_safetensors

VOID = {"meta", "br"}
SVG = "{http://www.w3.org/2000/svg}"


class Page(html.parser.HTMLParser):
    """Elements, text and links; complains of tags that are not closed in order."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.elements, self.text, self.rows = [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open and self.open[-1] == tag, (tag, self.open)
        self.open.pop()

    def handle_data(self, data):
        if "script" in self.open or "style" in self.open:
            return
        self.text.append(data)
        if "td" in self.open or "th" in self.open:
            self.rows[-1][-1] += data

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


class ReportTest(cli_support.CliTest):
    def report(self, *arguments):
        path = self.path("report.html")
        done = self.ok("report", *arguments, "-o", path)
        self.assertEqual(done.out, "")
        self.source = read_text(path)
        return Page(self.source)

    def svg(self, name, *arguments):
        out = self.ok("report", *arguments, "--svg", name, "-o", "-").out
        return xml.etree.ElementTree.fromstring(out.encode())


class Complete(ReportTest):
    def test_nothing_from_outside(self):
        page = self.report(SAMPLE)
        self.assertEqual(re.findall(r"https?:|//[a-z]|@import|url\(|\bsrc=|<link|<iframe", self.source), [])
        (policy,) = [a["content"] for a in page.all("meta")
                     if a.get("http-equiv") == "Content-Security-Policy"]
        self.assertTrue(policy.startswith("default-src 'none';"))

    def test_accessible(self):
        page = self.report(SAMPLE)
        self.assertEqual(page.all("html"), [{"lang": "en"}])
        for picture in page.all("svg"):
            self.assertEqual(picture["role"], "img")
            self.assertGreater(len(picture["aria-label"]), 20)
        self.assertEqual(len(page.all("svg")), len(page.all("figcaption")))
        self.assertEqual(len(page.all("table")), len(page.all("caption")))
        self.assertTrue(all(a.get("scope") in ("col", "row") for a in page.all("th")))
        ids = [a["id"] for _, a in page.elements if "id" in a]
        self.assertEqual(len(ids), len(set(ids)))
        for link in page.all("a"):
            self.assertIn(link["href"][1:], ids)
        levels = [int(tag[1]) for tag, _ in page.elements if re.fullmatch("h[1-6]", tag)]
        self.assertEqual((levels[0], levels.count(1)), (1, 1))
        self.assertTrue(all(b - a <= 1 for a, b in zip(levels, levels[1:])))

    def test_the_same_sentences_as_the_first_screen(self):
        page = self.report(SAMPLE)
        words = lambda text: " ".join(text.split())
        shown = words(" ".join(page.text))
        screen = self.ok("tensor", SAMPLE, env={"COLUMNS": "200"}).out
        self.assertIn(words(screen[screen.index("Cheapest"):screen.index("  weights")]), shown)
        sentences = [line.strip() for line in screen.splitlines()
                     if line.startswith("          ") and "lost in" not in line]
        self.assertGreater(len(sentences), 3)
        findings = screen.split("Look at these\n")[1].split("\n\n")[0]
        sentences += [line.split(": ", 1)[1] for line in findings.splitlines()]  # without the link
        sentences.append("Every scale from 2^9 to 2^26 meets the need.")
        for sentence in sentences:
            self.assertIn(words(sentence), shown)
        for line in re.findall(r"^  (none|2\^\d+) +([<0-9].*)$", screen, re.M):
            self.assertIn(f"{line[0]}: {line[1]}", shown)

    def test_the_table_has_the_figures_of_tensor(self):
        page = self.report(SAMPLE)
        table = {row[0]: row for row in page.rows if len(row) == 8}
        screen = self.ok("tensor", SAMPLE, "--list").out.split("\n\n")[1].splitlines()[2:]
        self.assertEqual(len(screen), 10)
        self.assertEqual([row[0] for row in page.rows if len(row) == 8][1:],
                         [line.split()[-1] for line in screen])  # and its order
        for line in screen:
            *figures, role, name = re.split(r"  +", line.strip())
            row = table[name]
            self.assertEqual([row[1], *row[5:8]], [role, *figures])

    def test_findings_come_first_in_detail(self):
        page = self.report(SAMPLE)
        findings = self.ok_json("tensor", SAMPLE)["verdict"]["findings"]
        sections = [a["id"] for a in page.all("section") if "id" in a]
        links = [a["href"][1:] for a in page.all("a") if a["href"].startswith("#t")]
        self.assertEqual(sections[:2], links[:2])
        self.assertEqual(len(findings), 2)

    def test_no_tensors_and_no_gradients(self):
        empty = write_safetensors(self.path("empty.safetensors"), [])
        self.assertIn("Nothing else needs attention.", self.report(empty).text)
        page = self.report(SAMPLE, "--tensor", "weight.fc1")
        self.assertNotIn("Loss scale", page.text)
        self.assertEqual(page.text.count("weight.fc1"), 2)

    def test_elements_without_figures(self):
        path = write_safetensors(self.path("m.safetensors"), [
            ("flag", "BOOL", (2,), bytes(2)), ("none", "F32", (0, 3), b""),
            ("zeros.weight", "F32", (2, 2), bytes(16)), ("scalar", "F32", (), floats(1)),
            ("count", "I64", (1,), struct.pack("<q", 2**62 + 1))])
        self.assertEqual(len([row for row in self.report(path).rows if len(row) == 8]), 6)

    def test_the_folder_is_not_told(self):
        self.report(SAMPLE)
        self.assertNotIn(os.path.dirname(SAMPLE), self.source)
        self.assertIn("<h1>gpt_sample.safetensors</h1>", self.source)
        unnamed = write_npy(self.path("x.npy"), "<f4", (2,), b"\0" * 8)
        self.report(unnamed)
        self.assertNotIn(self.folder, self.source)

    def test_the_same_bytes_each_time(self):
        self.report(SAMPLE)
        first = self.source
        self.report(SAMPLE)
        self.assertEqual(self.source, first)


class Escaping(ReportTest):
    NAMES = ["<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "a&amp;b", "'x'", "</svg>",
             "grad.</title>", "\u202e\x1b[31m", "]]>"]

    def test_names(self):
        values = floats(*[1.0 + i / 64 for i in range(64)])
        path = write_safetensors(self.path("<b>&\".safetensors"),
                                 [(name, "F32", (8, 8), values) for name in self.NAMES])
        page = self.report(path)
        self.assertEqual(len(page.all("script")), 1)
        self.assertEqual(page.all("img") + page.all("b"), [])
        self.assertEqual(len([row for row in page.rows if len(row) == 8]), 1 + len(self.NAMES))
        for name in ["<script>alert(1)</script>", "a&amp;b", "'x'", "</svg>", "]]>"]:
            self.assertIn(name, page.text)
            self.assertTrue(any(name in a["aria-label"] for a in page.all("svg")))
        self.assertNotIn("\x1b", self.source)
        self.assertNotIn("\u202e", self.source)

    def test_names_in_pictures(self):
        path = write_safetensors(self.path("x.safetensors"), [
            ("<b>&\"'", "F32", (2, 2), floats(1, 2, 3, 4))])
        for name in "exponents", "amax", "error":
            picture = self.svg(name, path, "--need", "10dB", "--role", "*=weights")
            self.assertIn("<b>&", picture.find(SVG + "title").text)


class Size(ReportTest):
    def test_five_hundred_tensors(self):
        page = self.report(verdict_files.write(verdict_files.checkpoint, self.path("checkpoint.safetensors")))
        self.assertLess(len(self.source.encode()), 2_000_000)
        self.assertEqual(len([row for row in page.rows if len(row) == 8]), 501)
        self.assertIn("The other 300 tensors are in the table alone.", page.text)

    def test_wide_ranges_and_large_shapes(self):
        values = struct.pack("<128d", *[2.0**e for e in range(-1000, 1000, 16)][:125], 0, 1, 2)
        path = write_npy(self.path("x.npy"), "<f8", (128,), values)
        self.report(path)
        self.assertLess(len(self.source), 60_000)
        long = write_npy(self.path("long.weight.npy"), "<f4", (3, 70001), floats(*[1.5] * 210003))
        self.report(long)
        self.assertLess(len(self.source), 60_000)


class Pictures(ReportTest):
    def levels(self, picture):
        """{(row, column): class} of a heat map."""
        cells = {}
        group = picture.find(SVG + "g")
        for path in group.findall(SVG + "path"):
            for col, row, length in re.findall(r"M(\d+) (\d+)\.5h(\d+)", path.get("d")):
                for i in range(int(length)):
                    self.assertNotIn((int(row), int(col) + i), cells)
                    cells[int(row), int(col) + i] = path.get("class")
        return cells

    def test_amax_of_each_cell(self):
        nan = float("nan")
        rows = [[8.0, 4.0, 1.9, 0.0], [1e-9, nan, -8.0, 7.0]]
        path = write_npy(self.path("x.npy"), "<f4", (2, 4), floats(*rows[0], *rows[1]))
        self.assertEqual(self.levels(self.svg("amax", path)), {
            (0, 0): "h7", (0, 1): "h6", (0, 2): "h5", (1, 0): "h0", (1, 1): "hx", (1, 2): "h7",
            (1, 3): "h7"})

    def test_cells_of_large_matrices(self):
        values = [1.0] * (100 * 200)
        values[99 * 200 + 199] = 64.0  # the last of all
        path = write_npy(self.path("x.npy"), "<f4", (100, 200), floats(*values))
        picture = self.svg("amax", path)
        cells = self.levels(picture)
        self.assertEqual((max(cells), len(cells)), ((12, 24), 13 * 25))
        self.assertEqual({key: c for key, c in cells.items() if c != "h1"}, {(12, 24): "h7"})
        self.assertIn("100 rows, 200 columns; a cell is 8 x 8",
                      [t.text for t in picture.findall(SVG + "text")])

    def test_error_of_each_cell(self):
        values = [448.0, 420.0, 1.0, 0.0025]  # amax 448: the scale is 1
        path = write_npy(self.path("w.weight.npy"), "<f4", (1, 4), floats(*values))
        (tensor,) = self.ok_json("tensor", path, "--need", "20dB", "--need", "underflow<30%")["verdict"]["tensors"]
        self.assertEqual(tensor["choice"], "fp8 e4m3, one scale")
        cells = self.levels(self.svg("error", path, "--need", "20dB", "--need", "underflow<30%"))
        self.assertEqual(cells, {(0, 1): "h1", (0, 3): "h7"})  # 416: 40.4 dB; 0.00195: 13.2 dB

    def test_exponents(self):
        path = write_npy(self.path("x.npy"), "<f4", (4,), floats(1.0, 1.5, 2.0**-20, 0.0))
        picture = self.svg("exponents", path)
        self.assertEqual(picture.find(SVG + "desc").text.split(";")[0], "Values from 2^-20 to below 2^1")
        self.assertIn("most in the column of 2^0, 66.67 %", picture.find(SVG + "desc").text)
        (bars,) = [p.get("d") for p in picture.findall(SVG + "path") if p.get("class") == "bars"]
        heights = [float(b) - float(a) for b, a in re.findall(r"M[\d.]+ ([\d.]+)V([\d.]+)", bars)]
        self.assertEqual(len(heights), 2)
        self.assertAlmostEqual(heights[0] / heights[1], 0.5, places=2)

    def test_loss_scale(self):
        scale = self.ok_json("tensor", SAMPLE)["verdict"]["fp16_loss_scale"]
        picture = self.svg("loss-scale", SAMPLE)
        self.assertIn("without a scale 31.23 % become 0", picture.find(SVG + "desc").text)
        self.assertIn(f"at 2^{scale['log2']}, the largest scale without overflow, 0 %",
                      picture.find(SVG + "desc").text)
        curves = {p.get("class"): re.findall(r"[ML]([\d.]+) ([\d.]+)", p.get("d"))
                  for p in picture.findall(SVG + "path") if p.get("class") in ("c1", "bad")}
        self.assertEqual(len(curves["c1"]), len(curves["bad"]))
        bottom = max(float(y) for _, y in curves["bad"])
        rising = [i for i, (_, y) in enumerate(curves["bad"]) if float(y) < bottom]
        self.assertEqual(len(curves["bad"]) - rising[0], 6)  # 2^(best + 1) to 2^(best + 6)
        self.fails(2, "report", SAMPLE, "--tensor", "weight.fc1", "--svg", "loss-scale", "-o", "-",
                   says="--role")

    def test_resolution(self):
        picture = self.svg("resolution", SAMPLE)
        self.assertEqual([p.get("class") for p in picture.findall(SVG + "path") if
                          p.get("class") in ("c1", "c2", "c3", "c4")], ["c1", "c2", "c3", "c4"])

    def test_refused(self):
        for arguments, *says in [(["--svg", "bars"], '"bars"', "loss-scale"),
                                 (["--svg", "amax"], "--tensor"),
                                 (["--svg", "error", "--tensor", "weight.fc1.e4m3"], "stored"),
                                 (["--svg", "amax", "--tensor", "grad.bias.fc1"], "matrix"),
                                 (["--json"], "tensor --json"), (["--need", "3"], "--need"),
                                 (["--role", "nothing=weights"], '"nothing"')]:
            out = self.path("x.svg" if "--svg" in arguments else "x.html")
            self.fails(2, "report", SAMPLE, "-o", out, *arguments, says=says)
        self.fails(2, "report", SAMPLE, says="--out")
        self.fails(3, "report", SAMPLE, "-o", self.path("no/x.html"), says="no/x.html")
        self.assertEqual(os.listdir(self.folder), [])


class Browser(ReportTest):
    """In headless Chromium, where there is one."""

    def setUp(self):
        super().setUp()
        self.chromium = shutil.which("chromium") or shutil.which("google-chrome")
        if self.chromium is None:
            self.skipTest("no Chromium")

    def dom(self, script=""):
        path = write_file(self.path("page.html"), self.source.replace("</body>", f"<script>{script}</script></body>"))
        done = subprocess.run(
            [self.chromium, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
             f"--user-data-dir={self.path('profile')}", "--dump-dom", "file://" + path],
            capture_output=True, timeout=120, env={**os.environ, "HOME": self.folder})
        self.assertNotIn(b":CONSOLE", done.stderr)
        return Page(done.stdout.decode("utf-8"))

    def rows(self, page):
        return [row for row in page.rows if len(row) == 8]

    def test_sorting(self):
        self.report(SAMPLE)
        before = self.rows(self.dom())
        for column, first in (0, "weight.fc2.bf16"), (2, "weight.fc1"), (5, "adam.exp_avg_sq.fc1"):
            click = f"document.querySelectorAll('table.sortable thead button')[{column}].click();"
            page = self.dom(click)
            rows = self.rows(page)
            self.assertEqual(sorted(rows), sorted(before))
            (sort,) = [a["aria-sort"] for a in page.all("th") if "aria-sort" in a]
            self.assertEqual(sort, "descending")
            if column == 2:
                counts = [int(row[2]) for row in rows[1:]]
                self.assertEqual(counts, sorted(counts, reverse=True))
            else:
                self.assertEqual(rows[1][0], first)
            again = self.dom(click * 2)
            self.assertEqual([a["aria-sort"] for a in again.all("th") if "aria-sort" in a], ["ascending"])

    def test_no_scrolling_sideways_on_a_phone(self):
        self.report(SAMPLE)
        inner = self.source.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
        self.source = (
            "<html><body><iframe style='width:390px;height:800px' srcdoc=\"" + inner + "\"></iframe><p></p></body>")
        script = ("const frame = document.querySelector('iframe'); frame.onload = () => {"
                  "document.querySelector('p').textContent = "
                  "'width ' + frame.contentDocument.documentElement.scrollWidth; frame.remove(); };")
        page = self.dom(script)
        (width,) = re.findall(r"width (\d+)", " ".join(page.text))
        self.assertLessEqual(int(width), 390)
