// Operations over tensor lists against the oracle, and the factor of clipping.
#include <algorithm>
#include <bit>
#include <cmath>

#include "engine/cases/lists.hpp"
#include "engine/suites/rapidcheck.hpp"
#include "oracle/convert.hpp"
#include "oracle/list.hpp"
#include "oracle/philox.hpp"
#include "oracle/sum_tree.hpp"
#include "support/rules.hpp"

namespace samebits::support {
namespace {

using codes = std::vector<std::uint64_t>;

std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

codes codes_of(const matrix_view& v) {
  codes all;
  for_each_element(
      v, [&](std::int64_t row, std::int64_t col) { all.push_back(code_at(v, row, col)); });
  return all;
}

/// The lists of a case.
class lists {
 public:
  lists(const list_case& c, const call_site& site) : c_(c), site_(site) {}
  [[nodiscard]] std::size_t size() const { return c_.tensors.size(); }
  [[nodiscard]] const matrix_view& view(std::size_t list, std::size_t tensor) const {
    return site_.views[list * size() + tensor];
  }
  [[nodiscard]] const oracle::format& format(std::size_t list, std::size_t tensor) const {
    return oracle_of(c_.tensors[tensor].formats[list]);
  }
  /// Sets each element of a list to f(tensor, row, col).
  template <class Function>
  void set(std::size_t list, const Function& f) const {
    for (std::size_t t = 0; t < size(); ++t) {
      const matrix_view& v = view(list, t);
      for_each_element(
          v, [&](std::int64_t row, std::int64_t col) { put_code(v, row, col, f(t, row, col)); });
    }
  }
  void scale(std::uint32_t factor) const {
    set(0, [&](std::size_t t, std::int64_t row, std::int64_t col) {
      return oracle::scaled(format(0, t), code_at(view(0, t), row, col), factor);
    });
  }
  [[nodiscard]] std::vector<oracle::inspected> inspected() const {
    std::vector<oracle::inspected> all;
    for (std::size_t t = 0; t < size(); ++t) {
      all.push_back(oracle::inspect(format(0, t), codes_of(view(0, t))));
    }
    return all;
  }

 private:
  const list_case& c_;
  const call_site& site_;
};

std::uint64_t squares_of(const std::vector<oracle::inspected>& all) {
  std::vector<std::uint64_t> squares;
  for (const oracle::inspected& x : all) squares.push_back(x.squares);
  return oracle::sum_tree(squares);
}

double root(std::uint64_t squares) { return std::sqrt(std::bit_cast<double>(squares)); }

void add(returned_values& all, const oracle::inspected& x, std::uint64_t elements,
         bool distribution) {
  all.insert(all.end(), {{"count", elements},
                         {"nan", x.nan},
                         {"inf", x.inf},
                         {"zeros", distribution ? x.zeros : 0},
                         {"subnormals", distribution ? x.subnormals : 0},
                         {"amax", x.amax},
                         {"squares", x.squares}});
}

returned_values inspect_by_oracle(const list_case& c, const lists& l) {
  const std::vector<oracle::inspected> each = l.inspected();
  const bool distribution = c.counts == inspect_counts::distribution;
  oracle::inspected total;
  std::uint64_t elements = 0;
  std::int64_t first_bad = -1;
  returned_values tensors;
  for (std::size_t t = 0; t < l.size(); ++t) {
    const oracle::inspected& one = each[t];
    const auto count = static_cast<std::uint64_t>(l.view(0, t).rows * l.view(0, t).cols);
    add(tensors, one, count, distribution);
    elements += count;
    total.nan += one.nan;
    total.inf += one.inf;
    total.zeros += one.zeros;
    total.subnormals += one.subnormals;
    total.amax = std::max(total.amax, one.amax);
    for (std::size_t f = 0; f < 256; ++f) total.exponents[f] += one.exponents[f];
    if (first_bad < 0 && one.nan + one.inf != 0) first_bad = static_cast<std::int64_t>(t);
  }
  total.squares = squares_of(each);
  returned_values all;
  add(all, total, elements, distribution);
  all.insert(all.end(), tensors.begin(), tensors.end());
  all.push_back({"first_bad", static_cast<std::uint64_t>(first_bad)});
  for (const std::uint64_t n : total.exponents) all.push_back({"exponents", distribution ? n : 0});
  return all;
}

returned_values unscale_by_oracle(const list_case& c, const lists& l) {
  std::uint64_t elements = 0, nonfinite = 0, overflowed = 0, amax = 0;
  std::int64_t first_bad = -1;
  const std::vector<oracle::inspected> each = l.inspected();
  for (std::size_t t = 0; t < l.size(); ++t) {
    const auto is_finite = [&](std::uint64_t code) {
      return oracle::decode(l.format(0, t), code).kind == oracle::value_kind::finite;
    };
    elements += static_cast<std::uint64_t>(l.view(0, t).rows * l.view(0, t).cols);
    nonfinite += each[t].nan + each[t].inf;
    amax = std::max<std::uint64_t>(amax, each[t].amax);
    const std::uint64_t before = overflowed;
    for (const std::uint64_t code : codes_of(l.view(0, t))) {
      overflowed += is_finite(code) && !is_finite(oracle::scaled(l.format(0, t), code, bits(c.a)));
    }
    const bool bad = each[t].nan + each[t].inf != 0 || overflowed != before;
    if (bad && first_bad < 0) first_bad = static_cast<std::int64_t>(t);
  }
  l.scale(bits(c.a));
  return {{"count", elements},
          {"nonfinite", nonfinite},
          {"overflowed", overflowed},
          {"amax", amax},
          {"first_bad", static_cast<std::uint64_t>(first_bad)}};
}

returned_values norms_by_oracle(const lists& l) {
  const std::vector<oracle::inspected> each = l.inspected();
  returned_values all = {{"norm of all", std::bit_cast<std::uint64_t>(root(squares_of(each)))}};
  for (const oracle::inspected& x : each) {
    all.push_back({"norm of a tensor", std::bit_cast<std::uint64_t>(root(x.squares))});
  }
  return all;
}

returned_values clip_by_oracle(const list_case& c, const lists& l) {
  const auto norm = std::bit_cast<std::uint64_t>(root(squares_of(l.inspected())));
  const std::uint32_t factor = oracle::clip_factor(norm, std::bit_cast<std::uint64_t>(c.max_norm));
  // A norm that is not finite leaves the gradients as they are, as factor 1 does.
  if (factor != bits(1.0f) && norm < 0x7FF0000000000000u) l.scale(factor);
  return {{"norm", norm}, {"factor", factor}};
}

returned_values by_oracle(const list_case& c, const call_site& site) {
  const lists l(c, site);
  const auto code = [&](std::size_t list, std::size_t t, std::int64_t row, std::int64_t col) {
    return code_at(l.view(list, t), row, col);
  };
  switch (c.which) {
    case list_call::inspect: return inspect_by_oracle(c, l);
    case list_call::l2norm: return norms_by_oracle(l);
    case list_call::unscale: return unscale_by_oracle(c, l);
    case list_call::scale: l.scale(bits(c.a)); break;
    case list_call::clip: return clip_by_oracle(c, l);
    case list_call::accumulate:
      l.set(0, [&](std::size_t t, std::int64_t row, std::int64_t col) {
        const float scale = c.has_scales ? site.pointer<const float>(2 * l.size())[t] : 1.0f;
        return oracle::accumulated(l.format(0, t), code(0, t, row, col), l.format(1, t),
                                   code(1, t, row, col), bits(scale));
      });
      break;
    case list_call::axpby:
      l.set(c.out, [&](std::size_t t, std::int64_t row, std::int64_t col) {
        return oracle::combined(l.format(c.out, t), bits(c.a), l.format(0, t), code(0, t, row, col),
                                bits(c.b), l.format(1, t), code(1, t, row, col));
      });
      break;
    case list_call::cast:
      l.set(1, [&](std::size_t t, std::int64_t row, std::int64_t col) {
        const random_stream& r = c.cast.random;
        const std::uint64_t index = oracle::element_index(
            r, static_cast<std::uint64_t>(row), static_cast<std::uint64_t>(col),
            static_cast<std::uint64_t>(l.view(0, t).cols));
        // Each tensor draws from a stream of its own.
        const random_bits random{oracle::random_word(r.seed, r.stream + t, index, r.bits), r.bits};
        return oracle::convert(l.format(0, t), l.format(1, t), code(0, t, row, col),
                               {c.cast.rounding, c.cast.overflow, c.cast.nan}, random);
      });
      break;
  }
  return {};
}

class ListOracle : public ::testing::TestWithParam<list_call> {};

TEST_P(ListOracle, EveryElementAndReport) {
  expect_on_hosts(list_operation(GetParam()), "the oracle", by_oracle, 200);
}

INSTANTIATE_TEST_SUITE_P(, ListOracle, list_calls(), name_of_list_call);

TEST(ClipFactor, IsTheOracles) {
  expect_holds("clip_factor", 3000, [] {
    rc::Random random(*rc::gen::arbitrary<std::uint64_t>());
    const auto number = [&] {
      const std::uint64_t near = 1023 - 30 + random.next() % 60;
      std::uint64_t code = near << 52 | (random.next() >> 12);
      if (random.next() % 16 == 0) code = random.next() % 0x7FF0000000000001u;
      if (random.next() % 32 == 0) code = 0;
      return code;
    };
    const std::uint64_t norm = random.next() % 64 == 0 ? 0x7FF8000000000001u : number();
    const std::uint64_t max_norm = number();
    const float got = clip_factor(std::bit_cast<double>(norm), std::bit_cast<double>(max_norm));
    RC_ASSERT(bits(got) == oracle::clip_factor(norm, max_norm));
  });
}

}  // namespace
}  // namespace samebits::support
