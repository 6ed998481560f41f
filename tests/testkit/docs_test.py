# Checks that every block of C++ in docs/testkit.md occurs, line by line, in a compiled file.
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMPILED = [*(ROOT / "examples").glob("prove_*"),
            ROOT / "tests/package/testkit_consumer/prove.cpp"]


class Blocks(unittest.TestCase):
    def test_page(self):
        page = (ROOT / "docs/testkit.md").read_text(encoding="utf-8")
        blocks = re.findall(r"^```cpp\n(.*?)^```$", page, re.M | re.S)
        self.assertGreater(len(blocks), 4)
        sources = [path.read_text(encoding="utf-8") for path in COMPILED]
        for block in blocks:
            with self.subTest(block=block.splitlines()[0]):
                self.assertTrue(any(block in source for source in sources), block)


if __name__ == "__main__":
    unittest.main()
