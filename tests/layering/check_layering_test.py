"""The layering check itself: each forbidden arrow is seen, an allowed tree passes."""

import pathlib
import tempfile
import unittest

import check_layering

FORBIDDEN = [
    ("numerics/a.hpp", '#include "backends/dispatch/backend.hpp"'),
    ("numerics/a.hpp", '#include "samebits/scalar.hpp"'),
    ("numerics/a.hpp", "#include <vector>"),
    ("numerics/a.hpp", "inline float half(float x);"),
    ("numerics/a.hpp", "#ifdef __CUDACC__"),
    ("include/samebits/core/format.hpp", '#include "numerics/bits/layout.hpp"'),
    ("include/samebits/convert.hpp", '#include "backends/dispatch/backend.hpp"'),
    ("include/samebits/convert.hpp", "#include <Eigen/Core>"),
    ("include/samebits/convert.hpp", "#include <cuda_runtime.h>"),
    ("backends/reference/a.cpp", '#include "backends/cuda/common/launch.cuh"'),
    ("backends/api/convert.cpp", '#include "oracle/convert.hpp"'),
    ("tests/oracle/a.cpp", '#include "numerics/bits/encode.hpp"'),
    ("tests/oracle/a.cpp", '#include "samebits/core/format.hpp"'),
    ("tools/fpinspect/a.cpp", '#include "numerics/bits/encode.hpp"'),
    ("tools/fpinspect/a.cpp", '#include "backends/dispatch/backend.hpp"'),
    ("tools/fpinspect/a.cpp", "#include <fstream>"),
    ("tools/fpinspect/a.cpp", "const auto file = samebits::tensor_file::tensor_file::open(path);"),
    ("tools/fpinspect/a.cpp", "samebits::tensor_file::staged_file file(path);"),
    ("examples/a.cpp", '#include "backends/dispatch/backend.hpp"'),
    ("include/samebits/convert.hpp", '#include "samebits/testkit/conversion.hpp"'),
    ("backends/api/convert.cpp", '#include "samebits/testkit/conversion.hpp"'),
    ("tools/fpinspect/a.cpp", '#include "samebits/testkit/conversion.hpp"'),
    ("include/samebits/core/flags.hpp", '#include "samebits/scalar.hpp"'),
    ("backends/dispatch/a.hpp", '#include "backends/api/view_checks.hpp"'),
    ("backends/verify/a.cpp", '#include "backends/reference/reference.hpp"'),
    ("backends/api/a.cpp", "#include <cuda_runtime.h>"),
    ("tools/tensor_core_probe/a.cpp", '#include "oracle/convert.hpp"'),
    ("tools/function_unit_probe/a.cpp", '#include "oracle/convert.hpp"'),
    ("tests/engine/core/a.hpp", "#include <gtest/gtest.h>"),
    ("tests/engine/core/a.hpp", "#include <rapidcheck.h>"),
    ("tests/engine/cases/a.cpp", "#include <boost/multiprecision/cpp_int.hpp>"),
    ("tests/engine/cases/a.cpp", '#include "oracle/convert.hpp"'),
    ("tests/engine/inputs/a.cpp", '#include "support/generators.hpp"'),
    ("tests/engine/definition.cpp", '#include "engine/suites/rapidcheck.hpp"'),
    ("tests/engine/core/a.cpp", '#include "backends/dispatch/backend.hpp"'),
    ("tests/engine/kit/a.cpp", '#include "samebits/testkit/matchers.hpp"'),
    ("python/src/a.cpp", '#include "backends/threads/interruption.hpp"'),
    ("python/src/a.cpp", '#include "samebits/c/samebits.h"'),
]
ALLOWED = [
    ("numerics/a.hpp", '#include "samebits/core/format.hpp"  // float is a word here'),
    ("numerics/a.hpp", "#include <cstdint>"),
    ("include/samebits/scalar.hpp", '#include "numerics/bits/encode.hpp"'),
    ("include/samebits/eigen.hpp", "#include <Eigen/Core>"),
    ("include/samebits/core/format.hpp", '#include "samebits/core/config.hpp"'),
    ("backends/reference/a.cpp", '#include "numerics/bits/encode.hpp"'),
    ("backends/simd/a.cpp", '#include "backends/reference/reference.hpp"'),
    ("tests/oracle/a.cpp", '#include "samebits/core/rounding.hpp"'),
    ("tests/oracle/a.cpp", "#include <boost/multiprecision/cpp_int.hpp>"),
    ("tests/unit/a.cpp", '#include "numerics/bits/encode.hpp"'),
    ("tests/engine/cases/a.cpp", '#include "numerics/bits/encode.hpp"'),
    ("tests/engine/kit/a.cpp", '#include "samebits/testkit/conversion.hpp"'),
    ("tests/engine/suites/rapidcheck.hpp", "#include <rapidcheck.h>"),
    ("tests/engine/suites/oracle/a.cpp", '#include "oracle/convert.hpp"'),
    ("tools/fpinspect/a.cpp", '#include "samebits/convert.hpp"'),
    ("tools/fpinspect/cli/files.cpp", "#include <fstream>"),
    ("examples/a.cpp", '#include "samebits/testkit/conversion.hpp"'),
    ("backends/dispatch/registry.cpp", '#include "backends/simd/simd.hpp"'),
    ("backends/cuda/common/a.cu", "#include <cuda_runtime.h>"),
    ("tools/fpinspect/explore/update/weight_life.cpp", '#include "numerics/update/update.hpp"'),
    ("tools/tensor_core_probe/a.cpp", '#include "numerics/bits/layout.hpp"'),
    ("tools/function_unit_probe/a.cpp", '#include "numerics/bits/layout.hpp"'),
    ("tests/testkit/samebits/testkit/a.hpp", '#include "support/generators.hpp"'),
    ("python/src/a.cpp", '#include "samebits/convert.hpp"'),
    ("python/src/a.cpp", '#include "backends/dispatch/calls/optimizer.hpp"'),
]


class Layering(unittest.TestCase):
    def found(self, name, text):
        with tempfile.TemporaryDirectory() as root:
            path = pathlib.Path(root, name)
            path.parent.mkdir(parents=True)
            path.write_text(text + "\n", encoding="utf-8")
            return list(check_layering.violations(root))

    def test_forbidden_lines_are_seen(self):
        for name, text in FORBIDDEN:
            with self.subTest(name=name, text=text):
                self.assertEqual(len(self.found(name, text)), 1)

    def test_allowed_lines_pass(self):
        for name, text in ALLOWED:
            with self.subTest(name=name, text=text):
                self.assertEqual(self.found(name, text), [])


if __name__ == "__main__":
    unittest.main()
