// Fuzz target: the command line of fpinspect's subcommands that read and write no files. The input is
// their arguments, one per line.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fpinspect/cli/command.hpp"
#include "fpinspect/cli/error.hpp"
#include "fpinspect/output/output.hpp"
#include "invariants.hpp"
#include "samebits/error.hpp"
#include "tensor_file/error.hpp"

namespace samebits::fuzz {
namespace {

/// Subcommands whose work takes milliseconds at most.
constexpr std::array<std::string_view, 12> commands = {
    "advise", "arith", "cast",       "completion", "formats", "manual",
    "memory", "range", "resolution", "show",       "table",   "units"};

/// Whether the arguments name a subcommand above and no file.
bool is_harmless(const std::vector<std::string>& arguments) {
  if (arguments.empty() || arguments.size() > 30) return false;
  if (std::find(commands.begin(), commands.end(), arguments[0]) == commands.end()) return false;
  return std::none_of(arguments.begin(), arguments.end(), [](const std::string& a) {
    return a.starts_with("-o") || a.starts_with("--o") || a.starts_with("--map") ||
           a.starts_with("--svg") || a.find('/') != std::string::npos;
  });
}

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end).data(), end);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

void check(std::string_view input) {
  std::vector<std::string> arguments = lines_of(input);
  if (!is_harmless(arguments)) return;
  arguments.insert(arguments.begin(), "fpinspect");
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  static const int nowhere = ::open("/dev/null", O_WRONLY);
  fpinspect::output out(nowhere);
  constexpr std::size_t longest = 4000;  // characters of a refusal
  try {
    fpinspect::run_command_line(static_cast<int>(pointers.size()), pointers.data(), out);
    out.flush();
  } catch (const fpinspect::usage_error& error) {
    require_message(error.what(), longest);
  } catch (const fpinspect::check_failed& error) {
    require_message(error.what(), longest);
  } catch (const fpinspect::backend_error& error) {
    require_message(error.what(), longest);
  } catch (const tensor_file::file_error& error) {
    require_message(error.what(), longest);
  } catch (const samebits::unsupported& error) {
    require_message(fpinspect::unmarked_message(error.what()), longest);
  }
}

}  // namespace
}  // namespace samebits::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  samebits::fuzz::check({reinterpret_cast<const char*>(data), size});
  return 0;
}
