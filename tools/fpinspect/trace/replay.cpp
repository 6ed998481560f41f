// `fpinspect replay`: recomputes a recording with the Python package, which has the rules of operators.
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "fpinspect/cli/command.hpp"

namespace fpinspect {
namespace {

/// The Python of the environment that has the package: $SAMEBITS_PYTHON, the one beside this
/// program, or python3.
std::string python() {
  if (const char* named = std::getenv("SAMEBITS_PYTHON")) return named;
  std::error_code none;
  const auto beside =
      std::filesystem::read_symlink("/proc/self/exe", none).parent_path() / "python3";
  return std::filesystem::exists(beside, none) ? beside.string() : "python3";
}

run_function replay_command(option_list& add) {
  auto& path = add.required("FILE", "A recording, as samebits.torch.record writes it");
  return [&](const session&) {
    const std::string program = python();
    execlp(program.c_str(), program.c_str(), "-m", "samebits", "replay", path.c_str(), nullptr);
    throw backend_error("replay needs Python with the packages samebits and torch: ", program, ": ",
                        std::strerror(errno));
  };
}

const registered replay_here("replay", "Recompute a PyTorch recording on this CPU", 146,
                             replay_command);

}  // namespace
}  // namespace fpinspect
