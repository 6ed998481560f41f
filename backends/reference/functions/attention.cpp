// Attention on host backends: shares the heads among threads, and computes the forward pass of one
// head by kernels. The reference kernels have one column and compute by the definition.
#include "backends/reference/functions/attention.hpp"

#include <algorithm>

#include "backends/reference/functions/attention_kernel.hpp"
#include "backends/reference/reference.hpp"
#include "backends/threads/parts.hpp"
#include "numerics/hardware/accumulate.hpp"

namespace samebits::backends {
namespace {

namespace torch = numerics::torch_2_11;

/// Policy of attention_kernel.hpp for one column. A step of A or B is its codes.
struct one_column {
  using word = std::uint32_t;
  static constexpr int columns = 1, b_words = attention_step;
  static word load(const std::uint32_t* p) { return *p; }
  static void store(std::uint32_t* p, word x) { *p = x; }
  static void put(format_id, std::uint32_t* words, int p, word code) { words[p] = code; }
  static bool is_special(format_id, word) { return false; }
  static bool is_any(bool special) { return special; }
};

bool copy_codes(format_id, const std::uint32_t* codes, std::uint32_t* words) {
  std::copy(codes, codes + attention_step, words);
  return false;
}

void reference_multiply(const attention_product& p) {
  const tensor_operands kind = *tensor_operands_of(p.format, p.format);
  const auto rule =
      numerics::accumulate_rule_of(*find_tensor_row(tensor_unit::hopper_wgmma, kind), p.format,
                                   p.format, format_id::fp32, attention_step);
  numerics::tensor_operand a[attention_step], b[attention_step];
  const auto decode = [&](const std::uint32_t* codes, numerics::tensor_operand* to) {
    for (int i = 0; i < attention_step; ++i) {
      to[i] = numerics::tensor_operand_of(rule.a, rule.subnormal_exponent_a, codes[i]);
    }
  };
  decode(p.b, b);
  for (std::int64_t row = 0; row < p.rows; ++row) {
    decode(p.a + row * attention_step, a);
    p.sums[row] = numerics::accumulate(rule, a, b, attention_step, p.sums[row]);
  }
}

class forward_head : attention_head {
 public:
  forward_head(const attention_call& call, const attention_kernels& kernels, std::int64_t head)
      : attention_head(call, kernels, head),
        blocks_(torch::divide_up(p_.keys, p_.block)),
        block_words_(a_size(p_.block, p_.dimension)),
        keys_(blocks_ * block_words_),
        values_(blocks_ * block_words_),
        queries_(b_size(p_.dimension)),
        scores_(p_.block * columns_),
        probabilities_(b_size(p_.block)),
        max_(columns_),
        sums_(torch::query_threads * columns_),
        sum_(p_.dimension * columns_),
        part_out_(p_.splits * columns_ * p_.dimension),
        part_lse_(columns_ * p_.splits) {}

  bool compute() {
    for (std::int64_t n = 0; n < blocks_; ++n) {
      const auto block = [&](const const_matrix_view& v) {
        return rows_from(v, n * p_.block, p_.block);
      };
      pack_a(block(k_), keys_.data() + n * block_words_);
      pack_a(transposed(block(v_)), values_.data() + n * block_words_);
    }
    for (std::int64_t row = 0; row < p_.queries && !has_special(); row += columns_) {
      compute_panel(row);
    }
    return !has_special();
  }

 private:
  /// Computes the queries from `row` on, one per column. They belong to one tile.
  void compute_panel(std::int64_t row) {
    const const_matrix_view queries = rows_from(q_, row, columns_);
    pack_b(queries, queries_.data());
    for (int part = 0; part < p_.splits; ++part) {
      const torch::block_visits blocks = torch::key_blocks(p_, row, part);
      for (std::int64_t i = 0; i < blocks.end - blocks.begin; ++i) {
        add_block(row, blocks.at(i), i == 0);
      }
      for (std::int64_t c = 0; c < queries.rows; ++c) finish(part, c, blocks.is_empty());
    }
    for (std::int64_t c = 0; c < queries.rows; ++c) store(row + c, c);
  }

  void add_block(std::int64_t row, std::int64_t n, bool first) {
    const std::int64_t present = std::min<std::int64_t>(p_.block, p_.keys - n * p_.block);
    const std::int64_t keys = whole_steps(present);
    if (first) {
      std::fill_n(max_.data(), columns_, torch::minus_inf);
      sum_.clear();
    }
    scores_.clear();
    multiply(keys_.data() + n * block_words_, queries_.data(), scores_.data(), keys, p_.dimension);
    std::uint32_t visible[most_attention_columns];
    for (int c = 0; c < columns_; ++c) {
      visible[c] = static_cast<std::uint32_t>(
          std::clamp<std::int64_t>(torch::visible_keys(p_, row + c) - n * p_.block, 0, present));
    }
    see(kernels_.block({&p_.rule, p_.format, scores_.data(), static_cast<int>(keys), p_.dimension,
                        first, visible, max_.data(), sums_.data(), sum_.data(),
                        probabilities_.data()}));
    multiply(values_.data() + n * block_words_, probabilities_.data(), sum_.data(), p_.dimension,
             keys);
  }

  /// Ends a part of the keys for the query of a column.
  void finish(int part, std::int64_t c, bool has_no_keys) {
    torch::query_end end{numerics::binary32::one, torch::minus_inf};
    if (!has_no_keys) {
      std::uint32_t sums[torch::query_threads];
      for (int t = 0; t < torch::query_threads; ++t) sums[t] = sums_[t * columns_ + c];
      end = torch::end_of_query(p_.rule, max_[c], sums,
                                p_.splits == 1 ? numerics::binary32::inf : torch::minus_inf);
    }
    std::uint32_t* const out = part_out_.data() + (part * columns_ + c) * p_.dimension;
    for (int d = 0; d < p_.dimension; ++d) {
      out[d] = has_no_keys ? 0u : numerics::ptx::mul(sum_[d * columns_ + c], end.factor);
    }
    part_lse_[c * p_.splits + part] = end.lse;
  }

  /// Stores the results of a query from those of its parts.
  void store(std::int64_t row, std::int64_t c) {
    std::uint32_t* const out = part_out_.data() + c * p_.dimension;
    const std::uint32_t* const lse = part_lse_.data() + c * p_.splits;
    std::uint32_t all = lse[0];
    if (p_.splits > 1) {
      all = torch::combined_lse(lse, p_.splits, p_.dimension);
      std::uint32_t factors[torch::max_splits];
      for (int s = 0; s < p_.splits; ++s) factors[s] = torch::split_factor(lse[s], all);
      for (int d = 0; d < p_.dimension; ++d) {
        std::uint32_t y = 0;
        for (int s = 0; s < p_.splits; ++s) {
          y = numerics::ptx::fma(factors[s], out[s * columns_ * p_.dimension + d], y);
        }
        out[d] = y;
      }
    }
    store_numbers(out_, row, 0, p_.dimension, out);
    if (lse_.data != nullptr) store_words(lse_, row, 0, 1, &all);
  }

  std::int64_t blocks_, block_words_;
  aligned_words keys_, values_;  ///< A: blocks of keys, and of values, transposed
  aligned_words queries_, scores_, probabilities_;
  aligned_words max_, sums_, sum_;  ///< of the part so far; sum_: [dimension][columns]
  aligned_words part_out_;          ///< [splits][columns][dimension]
  aligned_words part_lse_;          ///< [columns][splits]
};

}  // namespace

const attention_kernels reference_attention_kernels = {
    1,
    attention_step,
    attention_step,
    copy_codes,
    [](format_id format, const std::uint32_t* codes, std::uint32_t* words, int) {
      return copy_codes(format, codes, words);
    },
    reference_multiply,
    attention_block_of<one_column>,
    gradients_of<one_column>};

bool attention_forward_head(const attention_call& call, const attention_kernels& kernels,
                            std::int64_t head) {
  return forward_head(call, kernels, head).compute();
}

void attention_on_threads(const attention_call& call, const executor& where,
                          const attention_kernels& kernels, kernel_scope scope) {
  const auto one = call.grad.data != nullptr ? attention_backward_head : attention_forward_head;
  for_each_item(call.plan.batch * call.plan.heads, elements_worth_a_thread, where.threads,
                [&](std::int64_t head) {
                  bool done = false;
                  scope([&] { done = one(call, kernels, head); });
                  if (!done) one(call, reference_attention_kernels, head);
                });
}

void reference_attention(const attention_call& call, const executor& where) {
  attention_on_threads(call, where, reference_attention_kernels, in_any_state);
}

}  // namespace samebits::backends
