// Recorded results of tensor cores against the model.
//
//   tensor_core_golden FILE
//
// A line is a result: unit, formats of A, B and the result, products; c, d, then codes of A and B
// for each product, hexadecimal; fewer than all: the rest are zeros. Lines that begin with # are
// for people. Prints one line; the exit status is 1 if a result differs, 2 for a file that is none.
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "tensor_core_probe/check.hpp"

namespace samebits {
namespace {

int run(const char* path) {
  std::ifstream file(path);
  if (!file) {
    std::fprintf(stderr, "tensor_core_golden: cannot read %s\n", path);
    return 2;
  }
  std::vector<tensor_core_result> results;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    const auto result = parse_tensor_core_result(line);
    if (!result) {
      std::fprintf(stderr, "tensor_core_golden: no result: %s\n", line.c_str());
      return 2;
    }
    results.push_back(*result);
  }
  std::uint64_t compared = 0;
  std::uint64_t differing = 0;
  for (const tensor_core_finding& f : check_tensor_core_results(results, {.fit = false})) {
    compared += f.compared;
    differing += f.differed;
    if (f.differed != 0) std::printf("%s\n", f.first_difference.c_str());
  }
  std::printf("%s: %llu results, %llu differ\n", path, static_cast<unsigned long long>(compared),
              static_cast<unsigned long long>(differing));
  return differing == 0 && compared == results.size() && compared != 0 ? 0 : 1;
}

}  // namespace
}  // namespace samebits

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: tensor_core_golden FILE\n");
    return 2;
  }
  return samebits::run(argv[1]);
}
