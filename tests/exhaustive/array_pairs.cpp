// Array arithmetic of a 16-bit format on a backend, on all 2^32 pairs or on every N-th first
// operand, nearest even, ieee and saturate; against the reference backend, whose definition the
// oracle checks elsewhere (fp16_pairs, arithmetic_sweep):
//
//   array_pairs add|sub|mul|div fp16|bf16 BACKEND STRIDE [THREADS]
//
// Prints one line; the exit status is 1 if any result differs and 2 for a bad command line.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "samebits/array_arithmetic.hpp"
#include "samebits/error.hpp"
#include "support/effort.hpp"

namespace samebits {
namespace {

struct arguments {
  operation op;
  format_id format;
  std::string backend;
  std::uint64_t stride;
  int threads;
};

struct comparison_counts {
  std::uint64_t compared = 0;
  std::uint64_t differing = 0;
};

/// First operands `first`, every 65536 second ones; the rows of many first operands together keep
/// threads busy.
class block {
 public:
  static constexpr std::int64_t rows = 64;

  explicit block(const arguments& a) : a_(a), second_(65536), got_(rows * 65536), expected_(got_) {
    for (std::size_t i = 0; i < second_.size(); ++i) second_[i] = static_cast<std::uint16_t>(i);
  }

  void compare(const std::vector<std::uint16_t>& first, overflow policy, comparison_counts& t) {
    run(first, policy, a_.backend, got_);
    run(first, policy, "reference", expected_);
    for (std::size_t i = 0; i < first.size() * 65536; ++i) {
      ++t.compared;
      if (got_[i] == expected_[i] || t.differing++ != 0) continue;
      std::printf("%s of %04X, %04zX: got %04X, expected %04X\n", std::string(name(a_.op)).c_str(),
                  static_cast<unsigned>(first[i / 65536]), i % 65536,
                  static_cast<unsigned>(got_[i]), static_cast<unsigned>(expected_[i]));
    }
  }

 private:
  void run(const std::vector<std::uint16_t>& first, overflow policy, const std::string& backend,
           std::vector<std::uint16_t>& out) const {
    const auto count = static_cast<std::int64_t>(first.size());
    const const_matrix_view x{first.data(), a_.format, count, 65536, 1, 0};
    const const_matrix_view y{second_.data(), a_.format, count, 65536, 0, 1};
    const matrix_view z{out.data(), a_.format, count, 65536, 65536, 1};
    compute(a_.op, {x, y}, z, {.overflow = policy}, {backend, a_.threads});
  }

  const arguments& a_;
  std::vector<std::uint16_t> second_, got_, expected_;
};

std::optional<arguments> parsed(int argc, char** argv) {
  if (argc != 5 && argc != 6) return std::nullopt;
  const std::optional<operation> op = find_enumerator<operation>(argv[1]);
  const std::string format = argv[2];
  const std::uint64_t stride = std::strtoull(argv[4], nullptr, 10) * support::effort_divisor;
  const int threads = argc > 5 ? std::atoi(argv[5]) : 1;
  if (!op || operand_count(*op) != 2 || (format != "fp16" && format != "bf16") || stride == 0 ||
      threads < 1) {
    return std::nullopt;
  }
  return arguments{*op, format == "fp16" ? format_id::fp16 : format_id::bf16, argv[3], stride,
                   threads};
}

int run(const arguments& a) {
  comparison_counts t;
  block b(a);
  for (std::uint64_t first = 0; first < 65536;) {
    std::vector<std::uint16_t> codes;
    for (; codes.size() < static_cast<std::size_t>(block::rows) && first < 65536;
         first += a.stride) {
      codes.push_back(static_cast<std::uint16_t>(first));
    }
    for (const overflow policy : {overflow::ieee, overflow::saturate}) b.compare(codes, policy, t);
  }
  std::printf("%s in %s on %s: %llu results, %llu differ\n", std::string(name(a.op)).c_str(),
              std::string(name(a.format)).c_str(), a.backend.c_str(),
              static_cast<unsigned long long>(t.compared),
              static_cast<unsigned long long>(t.differing));
  return t.differing == 0 ? 0 : 1;
}

}  // namespace
}  // namespace samebits

int main(int argc, char** argv) {
  const auto given = samebits::parsed(argc, argv);
  if (!given) {
    std::fprintf(stderr, "usage: array_pairs add|sub|mul|div fp16|bf16 BACKEND STRIDE [THREADS]\n");
    return 2;
  }
  try {
    return samebits::run(*given);
  } catch (const samebits::unsupported& e) {
    std::printf("%s\n", e.what());
    return 77;  // skipped
  }
}
