// Files for shells and `man`, made from the declared subcommands and options.
#pragma once

#include <CLI/CLI.hpp>

#include "fpinspect/common.hpp"

namespace fpinspect {

/// Returns a script that completes subcommands and options.
std::string bash_completion(const CLI::App& app);
std::string zsh_completion(const CLI::App& app);
std::string fish_completion(const CLI::App& app);

/// Returns the manual page in the language of troff's macros `man`.
std::string manual_page(const CLI::App& app);

}  // namespace fpinspect
