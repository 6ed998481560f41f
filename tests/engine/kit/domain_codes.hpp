// Random codes of a restricted input domain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/inputs/families.hpp"
#include "samebits/core/format.hpp"
#include "samebits/testkit/domain.hpp"

namespace samebits::testkit {

/// Generates codes of a domain that are likely to reveal errors of a conversion.
class domain_codes {
 public:
  /// @param more  codes that are tried beside random ones, to find some of the domain
  /// @throws invalid_argument if domain.codes has a code that another member of the domain
  ///   excludes, or if the domain contains neither any of `more` nor any of many random codes.
  domain_codes(const input_domain& domain, format_id from, format_id to,
               std::vector<std::uint64_t> more = {});

  [[nodiscard]] bool contains(std::uint64_t code) const {
    return everything_ || domain_.contains(from_, code);
  }
  /// Calls domain.prepare, if it is set: contains() will be called with these codes, if any.
  void prepare(std::span<const std::uint64_t> codes) const {
    if (domain_.prepare && !codes.empty()) domain_.prepare(codes);
  }
  /// Returns a random code of the domain.
  std::uint64_t any_code(const support::word_source& next) const;
  /// Returns random codes of the domain.
  std::vector<std::uint64_t> any_codes(std::size_t count, const support::word_source& next) const;
  /// Returns the codes that lie in the domain, in order.
  [[nodiscard]] std::vector<std::uint64_t> kept(std::vector<std::uint64_t> codes) const;
  /// Returns the codes that the user listed; empty if the user listed none.
  [[nodiscard]] const std::vector<std::uint64_t>& listed() const { return domain_.codes; }

 private:
  /// A random code that may lie outside of the domain.
  [[nodiscard]] std::uint64_t tried_code(const support::word_source& next) const;

  input_domain domain_;
  format_id from_;
  format_id to_;
  bool everything_;
  std::vector<std::uint64_t> pool_;  ///< codes of a restricted domain
};

}  // namespace samebits::testkit
