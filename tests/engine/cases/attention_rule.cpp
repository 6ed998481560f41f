// The rule of attention in the order of contract §16, with scalar steps of numerics/.
#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "engine/cases/attention.hpp"
#include "numerics/hardware/accumulate.hpp"
#include "numerics/hardware/torch_operators/attention.hpp"
#include "numerics/hardware/torch_operators/tensor_format.hpp"

namespace samebits::support {
namespace {

namespace torch = numerics::torch_2_11;
using numerics::ptx::add, numerics::ptx::fma, numerics::ptx::mul;
using words = std::vector<std::uint32_t>;

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// One head of a call: element (row, column) of buffer i, and the rule's steps.
class head_rule {
 public:
  head_rule(const attention_case& c, const call_site& site, std::int64_t batch, std::int64_t head)
      : c_(c),
        site_(site),
        batch_(batch),
        head_(head),
        flash_(c.options.kernel == attention_kernel::flash) {
    const double exact =
        c.options.scale > 0 ? double{c.options.scale} : 1 / std::sqrt(double(c.dimension));
    const auto scale = static_cast<float>(exact);
    rule_ = {c.options.kernel, std::bit_cast<std::uint32_t>(scale),
             std::bit_cast<std::uint32_t>(static_cast<float>(double{scale} * std::numbers::log2e))};
    unit_ = numerics::accumulate_rule_of(
        *find_tensor_row(tensor_unit::hopper_wgmma, *tensor_operands_of(c.format, c.format)),
        c.format, c.format, format_id::fp32, 16);
  }

  void forward() const {
    const int splits = splits_of();
    const bool split = splits > 1;
    const std::int64_t tile = split ? 64 : 128;
    const std::int64_t block = !flash_  ? 128
                               : !split ? (c_.dimension == 64 ? 128 : 64)
                                        : (c_.dimension == 64 ? 256 : 128);
    const std::int64_t blocks = (c_.keys + block - 1) / block,
                       in_part = (blocks + splits - 1) / splits;
    for (std::int64_t row = 0; row < c_.queries; ++row) {
      words lse, out;
      for (std::int64_t part = 0; part < splits; ++part) {
        std::int64_t end = std::min(blocks, (part + 1) * in_part);
        if (c_.options.causal) end = std::min(end, ((row / tile + 1) * tile + block - 1) / block);
        part_of_query(row, part * in_part, end, block, split, lse, out);
      }
      std::uint32_t all = lse[0];
      if (split) all = torch::combined_lse(lse.data(), splits, c_.dimension);
      for (int d = 0; d < c_.dimension; ++d) {
        std::uint32_t y = split ? 0 : out[index(d)];
        for (std::int64_t part = 0; split && part < splits; ++part) {
          y = fma(torch::split_factor(lse[index(part)], all), out[index(part * c_.dimension + d)],
                  y);
        }
        put(3, row, d, torch::code_of(c_.format, y));
      }
      put(4, row, 0, all);
    }
  }

  void backward() const {
    const std::int64_t tile = flash_ && c_.dimension == 128 ? 64 : 128,
                       tiles = (c_.queries + tile - 1) / tile;
    const std::int64_t blocks = (c_.keys + 127) / 128;
    const std::int64_t sums =
        flash_ ? (c_.options.multiprocessors + c_.batch * c_.heads - 1) / (c_.batch * c_.heads) : 1;
    std::vector<words> dq(index(sums), words(index(c_.queries * c_.dimension)));
    for (std::int64_t n = 0; n < blocks; ++n) {
      const std::int64_t first = n * 128, end = std::min(c_.keys, first + 128);
      // codes of P and dS, [query][key of the block]
      const std::int64_t begin = c_.options.causal ? first / tile * tile : 0;
      std::vector<words> p(index(c_.queries)), ds(index(c_.queries));
      for (std::int64_t i = begin; i < c_.queries; ++i)
        score_gradients(i, first, end, p[index(i)], ds[index(i)]);
      words order;
      for (std::int64_t t = begin / tile; t < tiles; ++t) {
        const std::int64_t m = flash_ ? tiles - 1 - (t - begin / tile) : t;
        for (std::int64_t i = m * tile; i < (m + 1) * tile; ++i) {
          order.push_back(static_cast<std::uint32_t>(i));  // queries behind the last are zeros
        }
      }
      for (std::int64_t j = first; j < end; ++j) {
        for (int d = 0; d < c_.dimension; ++d) {
          const auto over_queries = [&](const std::vector<words>& left, std::size_t right) {
            return chain(static_cast<std::int64_t>(order.size()), 0, [&](std::int64_t at) {
              const std::int64_t i = order[index(at)];
              if (i >= c_.queries) return pair{0, 0};
              return pair{left[index(i)][index(j - first)], at_(right, i, d)};
            });
          };
          put(8, j, d, torch::code_of(c_.format, over_queries(p, 5)));
          const std::uint32_t dk = over_queries(ds, 0);
          put(7, j, d, torch::code_of(c_.format, flash_ ? mul(dk, rule_.scale) : dk));
        }
      }
      for (std::int64_t i = begin; i < c_.queries; ++i) {
        for (int d = 0; d < c_.dimension; ++d) {
          std::uint32_t& sum = dq[index(n % sums)][index(i * c_.dimension + d)];
          sum = add(sum, chain(end - first, 0, [&](std::int64_t j) {
                      return pair{ds[index(i)][index(j)], at_(1, first + j, d)};
                    }));
        }
      }
    }
    for (std::int64_t i = 0; wants_dq(c_) && i < c_.queries * c_.dimension; ++i) {
      std::uint32_t y = 0;
      for (const words& sum : dq) y = add(y, sum[index(i)]);
      put(6, i / c_.dimension, i % c_.dimension,
          torch::code_of(c_.format, flash_ ? mul(y, rule_.scale) : y));
    }
  }

 private:
  struct pair {
    std::uint32_t a, b;
  };

  [[nodiscard]] std::pair<std::int64_t, std::int64_t> place(std::size_t i, std::int64_t row,
                                                            std::int64_t col) const {
    const std::int64_t length = site_.views[i].rows / (c_.batch * c_.heads);
    const std::int64_t at = c_.heads_inner ? (batch_ * length + row) * c_.heads + head_
                                           : (batch_ * c_.heads + head_) * length + row;
    return {at, col};
  }
  [[nodiscard]] std::uint32_t at_(std::size_t i, std::int64_t row, std::int64_t col) const {
    const auto [r, k] = place(i, row, col);
    return static_cast<std::uint32_t>(code_at(site_.views[i], r, k));
  }
  void put(std::size_t i, std::int64_t row, std::int64_t col, std::uint32_t code) const {
    const auto [r, k] = place(i, row, col);
    put_code(site_.views[i], r, k, code);
  }

  /// A chain of instructions from `sum`; of(k) are the codes of a product.
  template <class Of>
  std::uint32_t chain(std::int64_t depth, std::uint32_t sum, const Of& of) const {
    for (std::int64_t k = 0; k < depth; k += 16) {
      numerics::tensor_operand a[16], b[16];
      for (int p = 0; p < 16; ++p) {
        const pair x = k + p < depth ? of(k + p) : pair{0, 0};
        a[p] = numerics::tensor_operand_of(unit_.a, unit_.subnormal_exponent_a, x.a);
        b[p] = numerics::tensor_operand_of(unit_.b, unit_.subnormal_exponent_b, x.b);
      }
      sum = numerics::accumulate(unit_, a, b, 16, sum);
    }
    return sum;
  }
  /// The product of row i of buffer `a` and row j of buffer `b`.
  [[nodiscard]] std::uint32_t rows_product(std::size_t a, std::int64_t i, std::size_t b,
                                           std::int64_t j) const {
    return chain(c_.dimension, 0, [&](std::int64_t d) { return pair{at_(a, i, d), at_(b, j, d)}; });
  }

  [[nodiscard]] int splits_of() const {
    if (!flash_) return 1;
    if (c_.options.splits > 0) return c_.options.splits;
    // The GPU is full with 80 % of its places; so few keys are 1, 2 or 3 blocks.
    const std::int64_t block = c_.dimension == 64 ? 256 : 128,
                       blocks = (c_.keys + block - 1) / block;
    const std::int64_t tiles = c_.batch * c_.heads * ((c_.queries + 63) / 64);
    const std::int64_t places = std::int64_t{2} * c_.options.multiprocessors;
    if (10 * tiles >= 8 * places) return 1;
    double best = 0;
    std::vector<double> busy;
    for (std::int64_t s = 1; s <= std::min(blocks, places); ++s) {
      const double waves = double(tiles * s) / double(places);
      const bool same = s > 1 && (blocks + s - 1) / s == (blocks + s - 2) / (s - 1);
      busy.push_back(same ? 0 : waves / std::ceil(waves));
      best = std::max(best, busy.back());
    }
    for (std::size_t s = 0; s < busy.size(); ++s) {
      if (busy[s] > 0 && busy[s] >= 0.85 * best) return static_cast<int>(s) + 1;
    }
    return 1;
  }

  void part_of_query(std::int64_t row, std::int64_t begin, std::int64_t end, std::int64_t block,
                     bool split, words& lse, words& out) const {
    const std::size_t first = out.size();
    out.resize(first + index(c_.dimension));
    if (begin >= end) {
      lse.push_back(torch::minus_inf);
      return;
    }
    std::uint32_t max = torch::minus_inf, sums[4] = {};
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t n = flash_ ? begin + end - 1 - i : i;
      const std::int64_t from = n * block, to = std::min(c_.keys, from + block);
      words p;
      const std::uint32_t before = max;
      for (std::int64_t j = from; j < to; ++j) {
        const bool hidden = c_.options.causal && j > row;
        p.push_back(hidden ? torch::minus_inf : rows_product(0, row, 1, j));
        max = numerics::ptx::lt(max, p.back()) ? p.back() : max;
      }
      for (std::uint32_t& x : p) x = torch::probability(rule_, x, max);
      const std::uint32_t r = torch::rescaling(rule_, before, max);
      std::uint32_t of_block[4] = {};
      for (std::size_t j = 0; j < p.size(); ++j) {
        std::uint32_t& sum = of_block[j / 2 % 4];
        const bool starts = j < 8 && j % 2 == 0;
        sum = !starts ? add(sum, p[j]) : flash_ && i > begin ? fma(sums[j / 2 % 4], r, p[j]) : p[j];
      }
      for (std::size_t l = 0; l < 4; ++l) {
        const bool none = 2 * l >= p.size();  // a lane without keys adds zeros
        if (flash_ && i > begin && none) {
          sums[l] = fma(sums[l], r, 0);
        } else {
          sums[l] = flash_ || i == begin ? of_block[l] : fma(sums[l], r, of_block[l]);
        }
      }
      for (std::uint32_t& x : p) x = torch::code_of(c_.format, x);
      for (int d = 0; d < c_.dimension; ++d) {
        std::uint32_t& y = out[first + index(d)];
        if (i > begin) y = mul(y, r);
        y = chain(to - from, y, [&](std::int64_t j) {
          return pair{p[index(j)], at_(2, from + j, d)};
        });
      }
    }
    const torch::query_end last =
        torch::end_of_query(rule_, max, sums, split ? torch::minus_inf : 0x7F800000u);
    for (int d = 0; d < c_.dimension; ++d)
      out[first + index(d)] = mul(out[first + index(d)], last.factor);
    lse.push_back(last.lse);
  }

  void score_gradients(std::int64_t i, std::int64_t first, std::int64_t end, words& p,
                       words& ds) const {
    words x, y;
    for (int d = 0; d < c_.dimension; ++d) {
      x.push_back(torch::value_of(c_.format, at_(5, i, d)));
      y.push_back(torch::value_of(c_.format, at_(3, i, d)));
    }
    const std::uint32_t dot = torch::output_dot(rule_, x.data(), y.data(), c_.dimension);
    for (std::int64_t j = first; j < end; ++j) {
      const bool hidden = c_.options.causal && j > i;
      const std::uint32_t value =
          hidden ? 0 : torch::backward_probability(rule_, rows_product(0, i, 1, j), at_(4, i, 0));
      const std::uint32_t gradient =
          torch::score_gradient(rule_, value, rows_product(5, i, 2, j), dot);
      p.push_back(torch::code_of(c_.format, value));
      ds.push_back(torch::code_of(c_.format, gradient));
    }
  }

  const attention_case& c_;
  const call_site& site_;
  std::int64_t batch_, head_;
  bool flash_;
  torch::attention_rule rule_{};
  numerics::accumulate_rule unit_{};
};

}  // namespace

returned_values attention_by_rule(const attention_case& c, const call_site& site) {
  for (std::int64_t batch = 0; batch < c.batch; ++batch) {
    for (std::int64_t head = 0; head < c.heads; ++head) {
      const head_rule rule(c, site, batch, head);
      c.backward ? rule.backward() : rule.forward();
    }
  }
  return {};
}

}  // namespace samebits::support
