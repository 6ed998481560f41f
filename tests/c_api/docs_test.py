# Checks that every block of C in docs/c_api.md occurs, line by line, in the compiled example.
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class Blocks(unittest.TestCase):
    def test_page(self):
        page = (ROOT / "docs/c_api.md").read_text(encoding="utf-8")
        source = (ROOT / "examples/c/quickstart.c").read_text(encoding="utf-8")
        blocks = re.findall(r"^```c\n(.*?)^```$", page, re.M | re.S)
        self.assertGreater(len(blocks), 2)
        for block in blocks:
            with self.subTest(block=block.splitlines()[0]):
                self.assertIn(block, source)


if __name__ == "__main__":
    unittest.main()
