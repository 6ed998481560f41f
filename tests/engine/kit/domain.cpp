// Membership of a domain, and random codes of a domain.
#include "samebits/testkit/domain.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <utility>

#include "engine/kit/domain_codes.hpp"
#include "samebits/error.hpp"
#include "samebits/scalar.hpp"

namespace samebits::testkit {
namespace {

constexpr int pool_size = 4096;

std::uint64_t code_of(format_id format, double x, rounding round) {
  return convert_code(format_id::fp64, format, std::bit_cast<std::uint64_t>(x),
                      {round, overflow::saturate})
      .code;
}

/// Returns a random code: half of them likely to reveal errors, the others with a uniform code
/// between the codes of the domain's two bounds.
std::uint64_t random_code(const input_domain& domain, format_id from, format_id to,
                          const support::word_source& next) {
  if (next() % 2 == 0) return support::draw_any_code(from, to, next);
  const std::uint64_t low = code_of(from, domain.smallest, rounding::upward);
  const std::uint64_t high = code_of(from, domain.largest, rounding::downward);
  const std::uint64_t code = low + next() % (std::max(low, high) - low + 1);
  if (!domain.negative || next() % 2 == 0) return code;
  return code_of(from, -decode_double(from, code), rounding::nearest_even);
}

}  // namespace

bool input_domain::is_everything() const {
  return nan && infinite && subnormal && negative && smallest == 0 && std::isinf(largest) &&
         !accepts && codes.empty();
}

bool input_domain::contains(format_id format, std::uint64_t code) const {
  if (!codes.empty() && std::find(codes.begin(), codes.end(), code) == codes.end()) return false;
  const number_class kind = classify(format, code);
  if (!negative && is_negative(format, code)) return false;
  if (!nan && kind == number_class::nan) return false;
  if (!infinite && kind == number_class::infinite) return false;
  if (!subnormal && kind == number_class::subnormal) return false;
  if (kind == number_class::normal || kind == number_class::subnormal) {
    const double magnitude = std::abs(decode_double(format, code));
    if (magnitude < smallest || magnitude > largest) return false;
  }
  return !accepts || accepts(code);
}

domain_codes::domain_codes(const input_domain& domain, format_id from, format_id to,
                           std::vector<std::uint64_t> more)
    : domain_(domain), from_(from), to_(to), everything_(domain.is_everything()) {
  if (everything_) return;
  if (!(domain.smallest >= 0) || !(domain.largest >= domain.smallest)) {
    throw invalid_argument("domain.smallest and domain.largest must be 0 <= smallest <= largest");
  }
  for (const std::uint64_t code : domain.codes) {
    if (contains(code)) continue;
    throw invalid_argument("domain.codes has code " + std::to_string(code) +
                           ", which the other members of domain exclude");
  }
  if (!domain.codes.empty()) {
    pool_ = domain.codes;
    return;
  }
  pool_ = kept(std::move(more));
  std::mt19937_64 engine(1);
  std::vector<std::uint64_t> tried(pool_size);
  for (int tries = 0; tries < 64 && pool_.size() < pool_size; ++tries) {
    for (std::uint64_t& code : tried) code = tried_code([&] { return engine(); });
    for (const std::uint64_t code : kept(tried)) {
      if (pool_.size() < pool_size) pool_.push_back(code);
    }
  }
  if (pool_.empty()) {
    throw invalid_argument("domain contains none of " + std::to_string(64 * pool_size) +
                           " random codes; list codes in domain.codes");
  }
}

std::uint64_t domain_codes::tried_code(const support::word_source& next) const {
  return random_code(domain_, from_, to_, next);
}

std::uint64_t domain_codes::any_code(const support::word_source& next) const {
  if (everything_) return support::draw_any_code(from_, to_, next);
  for (int tries = 0; tries < 8 && domain_.codes.empty() && !domain_.prepare; ++tries) {
    const std::uint64_t code = tried_code(next);
    if (contains(code)) return code;
  }
  return pool_[next() % pool_.size()];
}

std::vector<std::uint64_t> domain_codes::any_codes(std::size_t count,
                                                   const support::word_source& next) const {
  const bool at_once = domain_.prepare && domain_.codes.empty();
  std::vector<std::uint64_t> codes(count);
  for (std::uint64_t& code : codes) code = at_once ? tried_code(next) : any_code(next);
  if (!at_once) return codes;
  prepare(codes);
  for (std::uint64_t& code : codes) {
    if (!contains(code)) code = pool_[next() % pool_.size()];
  }
  return codes;
}

std::vector<std::uint64_t> domain_codes::kept(std::vector<std::uint64_t> codes) const {
  if (everything_) return codes;
  prepare(codes);
  std::erase_if(codes, [this](std::uint64_t code) { return !contains(code); });
  return codes;
}

}  // namespace samebits::testkit
