# `fpinspect report --loss-scale-trace`: the scale of a training run as a picture.
import re
import xml.etree.ElementTree

from cli_support import SAMPLE, read_text, write_file
from report_test import SVG, ReportTest


class Trace(ReportTest):
    def trace(self, text):
        return write_file(self.path("trace.csv"), text)

    def picture(self, text):
        out = self.ok("report", SAMPLE, "--svg", "loss-scale-trace", "--loss-scale-trace",
                      self.trace(text), "-o", "-").out
        return xml.etree.ElementTree.fromstring(out.encode())

    def test_what_scaler_writes(self):
        path = self.path("run.csv")
        self.ok("scaler", "--policy", "torch", "--generate", "accidents", "--steps", "8000", "--out", path)
        rows = [line.split(",") for line in read_text(path).splitlines()[1:]]
        skipped = sum(row[2] == "0" for row in rows)
        page = self.report(SAMPLE, "--loss-scale-trace", path)
        self.assertIn("Training run", page.text)
        self.assertIn(f"8000 steps, {skipped} skipped", page.text)
        (label,) = [a["aria-label"] for a in page.all("svg") if "training run" in a["aria-label"]]
        first, last = (float.fromhex(rows[i][1]) for i in (0, -1))
        self.assertIn(f"the scale is {first:g} in the first step and {last:g} in the last", label)
        self.assertLess(len(self.source), 1 << 20)
        self.assertNotIn("Training run", self.report(SAMPLE).text)

    def test_a_scale_that_falls_to_0(self):
        path = self.path("run.csv")
        self.ok("scaler", "--policy", "torch", "--generate", "nan_streak", "--steps", "8000", "--out", path)
        rows = [line.split(",") for line in read_text(path).splitlines()[1:]]
        zeros = [row[0] for row in rows if float.fromhex(row[1]) == 0]
        self.assertGreater(len(zeros), 0)
        page = self.report(SAMPLE, "--loss-scale-trace", path)
        (label,) = [a["aria-label"] for a in page.all("svg") if "training run" in a["aria-label"]]
        self.assertTrue(label.endswith(f"in the last; the scale is 0 from step {zeros[0]} on."), label)

    def test_a_scale_of_0_lies_at_the_bottom_of_the_axis(self):
        def curve(text):
            picture = self.picture("step,scale,applied\n" + text)
            (path,) = [p.get("d") for p in picture.findall(SVG + "path") if p.get("class") == "c1"]
            return path, picture.find(SVG + "desc").text
        path, text = curve("5,4,1\n6,0,0\n7,0,0\n")
        self.assertRegex(path, r"L164 150H276L276 150H388$")
        self.assertEqual(text, "3 steps, 2 skipped; the scale is 4 in the first step and 0 in the "
                         "last; the scale is 0 from step 6 on.")
        path, text = curve("5,0,1\n6,0,1\n")
        self.assertEqual(path, "M52 150H220L220 150H388")
        self.assertTrue(text.endswith("the scale is 0 from step 5 on."), text)
        path, text = curve("5,0,1\n6,8,1\n")
        self.assertTrue(text.endswith("the scale is 0 in the first step and 8 in the last."), text)

    def test_steps_of_the_curve(self):
        picture = self.picture("step,scale,applied\n0,1024,1\n1,0x1p11,1\n2,2048,0\n3,512,True\n")
        (curve,) = [p.get("d") for p in picture.findall(SVG + "path") if p.get("class") == "c1"]
        points = re.fullmatch(r"M([\d.]+) ([\d.]+)H([\d.]+)L[\d.]+ ([\d.]+)H([\d.]+)L[\d.]+ ([\d.]+)H[\d.]+"
                              r"L[\d.]+ ([\d.]+)H([\d.]+)", curve).groups()
        start, y0, _, y1, _, y2, y3, end = (float(one) for one in points)
        self.assertEqual((start, end, y1), (52, 388, y2))
        self.assertAlmostEqual((y3 - y0) / (y0 - y1), 1, places=1)  # 2^9, 2^10 and 2^11
        (bar,) = [r for r in picture.findall(SVG + "rect") if r.get("class") == "skipped"]
        self.assertEqual((bar.get("x"), bar.get("width"), bar.get("height")), ("220", "84", "26"))

    def test_columns_of_many_steps(self):
        steps = "".join(f"{i},{2.0 ** (i % 2)},{int(i % 10 != 0)}\n" for i in range(3360))
        picture = self.picture("step,scale,applied\n" + steps)
        bars = [r for r in picture.findall(SVG + "rect") if r.get("class") == "skipped"]
        self.assertEqual((len(bars), {bar.get("height") for bar in bars}), (336, {"6"}))
        texts = [t.text for t in picture.findall(SVG + "text")]
        self.assertIn("step 0", texts)
        self.assertIn("3359", texts)

    def test_columns_in_any_order_and_a_single_step(self):
        picture = self.picture("applied , cause,scale,step\r\n1,none,65536,-7\r\n\r\n")
        self.assertEqual(picture.find(SVG + "desc").text,
                         "1 step, 0 skipped; the scale is 65536 in the first step and 65536 in the last.")

    def test_refused(self):
        for text, *says in [("", "line 0", "header"), ("step,scale\n1,1\n", "line 1", "no column applied"),
                            ("step,scale,applied,scale\n", "column scale stands there twice"),
                            ("step,scale,applied\n", "no steps"),
                            ("step,scale,applied\n1,2\n", "line 2", "2 cells under 3 names"),
                            ("step,scale,applied\nx,2,1\n", "step", '"x"'),
                            ("step,scale,applied\n1,y,1\n", "scale", '"y"'),
                            ("step,scale,applied\n1,-1,1\n", "scale", '"-1"'),
                            ("step,scale,applied\n1,nan,1\n", "finite"),
                            ("step,scale,applied\n1,inf,1\n", "finite"),
                            ("step,scale,applied\n1,2,z\n", "applied", '"z"')]:
            self.fails(3, "report", SAMPLE, "-o", self.path("x.html"), "--loss-scale-trace", self.trace(text),
                       says=["trace.csv", *says])
        self.fails(3, "report", SAMPLE, "-o", self.path("x.html"), "--loss-scale-trace", self.path("none.csv"),
                   says="none.csv")
        trace = self.trace("step,scale,applied\n1,2,1\n")
        self.fails(2, "report", SAMPLE, "-o", self.path("x.svg"), "--svg", "loss-scale-trace",
                   says="--loss-scale-trace")
        self.fails(2, "report", SAMPLE, "-o", self.path("x.svg"), "--svg", "resolution",
                   "--loss-scale-trace", trace, says="--loss-scale-trace does nothing")
