# Checks docs/testkit.md: every block of C++ occurs, line by line, in a compiled file, and every
# failure text is what an example prints.
#
# usage: docs_test.py PROGRAM...   the examples whose failure texts the page shows
import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/testkit.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.M | re.S)  # (language, text)
COMPILED = [*(ROOT / "examples").glob("prove_*"),
            ROOT / "tests/package/testkit_consumer/prove.cpp"]
PROGRAMS = sys.argv[1:]


class Blocks(unittest.TestCase):
    def test_page(self):
        blocks = [text for language, text in BLOCKS if language == "cpp"]
        self.assertGreater(len(blocks), 4)
        sources = [path.read_text(encoding="utf-8") for path in COMPILED]
        for block in blocks:
            with self.subTest(block=block.splitlines()[0]):
                self.assertTrue(any(block in source for source in sources), block)

    def test_failure_texts(self):
        texts = [text for language, text in BLOCKS if language == ""]
        self.assertEqual(len(texts), len(PROGRAMS))
        fixed = {**os.environ, "RC_PARAMS": "seed=1"}
        for program, text in zip(PROGRAMS, texts):
            printed = subprocess.run([program], env=fixed, stdout=subprocess.PIPE, text=True,
                                     check=True).stdout
            with self.subTest(program=program):
                self.assertIn(text, printed)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
