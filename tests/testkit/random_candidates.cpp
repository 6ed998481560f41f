// The usual errors of stochastic rounding: rows of the table of candidates().
#include "candidate_functions.hpp"

namespace samebits::testkit {
namespace {

using table = std::vector<candidate>;

void add_random_index(table& rows, const conversion_under_test& conversion) {
  const auto add = [&](const char* sentence, auto change) {
    rows.push_back({sentence, [change](const seen_element& e) {
                      conversion_under_test other = e.conversion;
                      const std::uint64_t position = change(other.random, position_of(e));
                      return with_random(e, random_at(other, position, other.random.bits));
                    }});
  };
  add("random index too large by one", [](random_stream&, std::uint64_t i) { return i + 1; });
  add("random index too small by one", [](random_stream&, std::uint64_t i) { return i - 1; });
  if (conversion.random.offset != 0) {
    add("random offset ignored", [](random_stream& s, std::uint64_t i) {
      s.offset = 0;
      return i;
    });
  }
  if (conversion.random.stream != 0) {
    add("random stream ignored", [](random_stream& s, std::uint64_t i) {
      s.stream = 0;
      return i;
    });
  }
  add("the same random index for every element: the first",
      [](random_stream&, std::uint64_t) { return std::uint64_t{0}; });
}

void add_random_bits(table& rows, const conversion_under_test& conversion) {
  const int k = conversion.random.bits;
  for (const int other : {k - 1, k + 1}) {
    if (other < 1 || other > 32) continue;
    rows.push_back({"K = " + std::to_string(other) + " random bits instead of " + std::to_string(k),
                    [other](const seen_element& e) {
                      return with_random(e, random_at(e.conversion, position_of(e), other));
                    }});
  }
  const auto add = [&](const char* sentence, auto change) {
    rows.push_back({sentence, [change](const seen_element& e) {
                      const random_bits r =
                          random_at(e.conversion, position_of(e), e.conversion.random.bits);
                      const std::uint64_t limit = std::uint64_t{1} << r.count;
                      const auto value = static_cast<std::uint32_t>(change(e, r, limit) % limit);
                      return with_random(e, {value, r.count});
                    }});
  };
  add("the highest random bit is missing",
      [](const seen_element&, const random_bits& r, std::uint64_t limit) {
        return r.value % (limit / 2);
      });
  add("one random bit too few: R is shifted down by one",
      [](const seen_element&, const random_bits& r, std::uint64_t) {
        return std::uint64_t{r.value} / 2;
      });
  add("rounded away where v * 2^K + R > 2^K instead of >=",
      [](const seen_element&, const random_bits& r, std::uint64_t) {
        return r.value == 0 ? std::uint64_t{0} : std::uint64_t{r.value} - 1;
      });
  add("rounded away where R < v * 2^K: the random bits are complemented",
      [](const seen_element&, const random_bits& r, std::uint64_t limit) {
        return limit - 1 - r.value;
      });
  add("the low K bits of the random word instead of the high ones",
      [](const seen_element& e, const random_bits&, std::uint64_t) {
        return std::uint64_t{random_at(e.conversion, position_of(e), 32).value};
      });
}

}  // namespace

void add_random_candidates(std::vector<candidate>& rows, const conversion_under_test& conversion) {
  add_random_index(rows, conversion);
  add_random_bits(rows, conversion);
}

}  // namespace samebits::testkit
