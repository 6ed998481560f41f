// Runs the commands that failures print: they must repeat the case they speak of.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>

#include "support/conversion_case.hpp"
#include "support/generators.hpp"
#include "support/rules.hpp"

namespace samebits::support {
namespace {

std::string output_of(const std::string& command) {
  struct close_pipe {
    void operator()(FILE* pipe) const { pclose(pipe); }
  };
  const std::unique_ptr<FILE, close_pipe> pipe(popen(command.c_str(), "r"));
  std::string text;
  std::array<char, 256> part;
  while (pipe && std::fgets(part.data(), part.size(), pipe.get()) != nullptr) text += part.data();
  return text;
}

std::string lower_hex(std::uint64_t code, int digits) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "0x%0*llx", digits,
                static_cast<unsigned long long>(code));
  return text.data();
}

TEST(Reproduction, CastCommandsGiveTheExpectedCode) {
  const char* program = std::getenv("FPINSPECT");
  ASSERT_NE(program, nullptr) << "FPINSPECT must name the program";
  const std::string prefix = "fpinspect cast ";
  std::mt19937_64 engine(4);
  const word_source next = [&engine] { return engine(); };
  int commands = 0;
  while (commands < 60) {
    conversion_case c;
    c.from = format_at(static_cast<int>(engine() % format_count));
    c.to = format_at(static_cast<int>(engine() % format_count));
    c.input = draw_code(static_cast<code_family>(commands % code_family_count), c.from, c.to, next);
    c.rule = deterministic_rules()[engine() % deterministic_rules().size()];
    const std::string command = reproduction(c);
    if (command.rfind(prefix, 0) != 0) continue;
    ++commands;
    const std::string text =
        output_of("'" + std::string(program) + "' cast " + command.substr(prefix.size()));
    const std::string code = lower_hex(expected_code(c), spec_of(c.to).storage_bits / 4);
    EXPECT_NE(text.find(code), std::string::npos) << command << "\n" << text << code;
  }
}

}  // namespace
}  // namespace samebits::support
