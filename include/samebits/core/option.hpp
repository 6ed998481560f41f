// Tables of option structs: one row for each option, with its name and its member.
#pragma once

#include <string_view>
#include <tuple>
#include <type_traits>

namespace samebits {

/// One option. Its member may lie in a member of the struct: then the path has several members.
template <class... Path>
struct option {
  std::string_view name;  ///< in C, in Python and in text
  std::tuple<Path...> path;

  constexpr option(std::string_view n, Path... members) : name(n), path(members...) {}

  /// The option's member of a struct.
  template <class Options>
  constexpr auto& of(Options& options) const {
    return std::apply(
        [&](auto... member) -> auto& { return (options.*....*member); }, path);
  }
};

/// The rows of an option struct, a std::tuple of options; nullptr for a struct without a table.
/// samebits/options.hpp defines the tables.
template <class Options>
inline constexpr auto option_table = nullptr;

/// A struct with a table.
template <class Options>
concept has_options = !std::is_null_pointer_v<decltype(option_table<std::remove_const_t<Options>>)>;

/// The rows of a struct that is a member of another struct, as rows of the other struct.
template <class Member, class... Rows>
constexpr auto options_in(Member member, const std::tuple<Rows...>& rows) {
  const auto within = [&]<class... Path>(const option<Path...>& row) {
    return std::apply([&](Path... path) { return option(row.name, member, path...); }, row.path);
  };
  return std::apply([&](const Rows&... row) { return std::tuple(within(row)...); }, rows);
}

/// Calls f(row, member) for each option of a struct, in the order of the table.
template <has_options Options, class F>
constexpr void for_each_option(Options& options, const F& f) {
  std::apply([&](const auto&... row) { (f(row, row.of(options)), ...); },
             option_table<std::remove_const_t<Options>>);
}

}  // namespace samebits
