// Attention on host backends: shares the heads among threads, and computes the forward pass of one
// head by kernels. The reference kernels have one column and compute by the definition.
#include "backends/reference/functions/attention.hpp"

#include <algorithm>

#include "backends/reference/functions/attention_kernel.hpp"
#include "backends/reference/reference.hpp"
#include "backends/threads/parts.hpp"
#include "numerics/hardware/accumulate.hpp"
#include "numerics/hardware/torch_operators/tensor_format.hpp"

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

/// The queries of one panel, one per column, and their results so far.
struct query_panel {
  query_panel(const attention_packer& packer, const attention_plan& p, int columns)
      : queries(packer.b_size(p.dimension)),
        max(columns),
        sums(torch::query_threads * columns),
        out(p.dimension * columns) {}

  aligned_words queries, max, sums, out;
};

class forward_head {
 public:
  forward_head(const attention_call& call, const attention_kernels& kernels, std::int64_t head)
      : p_(call.plan),
        kernels_(kernels),
        packer_(kernels, p_.format),
        q_(call.q, p_, head),
        k_(call.k, p_, head),
        v_(call.v, p_, head),
        out_(call.out, p_, head),
        lse_(call.lse, p_, head),
        blocks_(parts_of(p_.keys, p_.block)),
        block_words_(packer_.a_size(p_.block, p_.dimension)),
        keys_(blocks_ * block_words_),
        values_(blocks_ * block_words_),
        scores_(std::int64_t{p_.block} * kernels.columns),
        probabilities_(packer_.b_size(p_.block)),
        split_out_(p_.splits > 1 ? std::int64_t{p_.splits} * p_.rows * p_.dimension : 0),
        split_lse_(p_.splits * std::int64_t{p_.rows}) {}

  bool compute() {
    for (std::int64_t n = 0; n < blocks_; ++n) pack_block(n);
    const std::int64_t panels = parts_of(p_.rows, kernels_.columns);
    for (std::int64_t i = 0; i < panels; ++i) panels_.emplace_back(packer_, p_, kernels_.columns);
    for (std::int64_t row = 0; row < p_.queries && !packer_.has_special(); row += p_.rows) {
      compute_tile(row);
    }
    return !packer_.has_special();
  }

 private:
  [[nodiscard]] std::int64_t keys_of(std::int64_t block) const {
    return std::min<std::int64_t>(p_.block, p_.keys - block * p_.block);
  }

  void pack_block(std::int64_t n) {
    const std::int64_t first = n * p_.block, present = keys_of(n);
    packer_.pack_a(
        present, whole_steps(present), p_.dimension,
        [&](std::int64_t i, std::int64_t d) { return k_.load(first + i, d); },
        keys_.data() + n * block_words_);
    packer_.pack_a(
        p_.dimension, p_.dimension, present,
        [&](std::int64_t d, std::int64_t i) { return v_.load(first + i, d); },
        values_.data() + n * block_words_);
  }

  void compute_tile(std::int64_t row) {
    const std::int64_t rows = std::min<std::int64_t>(p_.rows, p_.queries - row);
    const std::int64_t used = parts_of(rows, kernels_.columns);
    for (std::int64_t i = 0; i < used; ++i) {
      const std::int64_t first = row + i * kernels_.columns;
      packer_.pack_b(
          p_.queries - first, p_.dimension,
          [&](std::int64_t d, std::int64_t j) { return q_.load(first + j, d); },
          panel(i).queries.data());
    }
    const std::int64_t in_split = parts_of(blocks_, p_.splits);
    for (std::int64_t split = 0; split < p_.splits; ++split) {
      const std::int64_t begin = split * in_split;
      std::int64_t end = std::min(blocks_, begin + in_split);
      if (p_.causal) end = std::min(end, parts_of(row + p_.rows, p_.block));
      for (std::int64_t n = begin; n < end; ++n) {
        const std::int64_t block = p_.rule.is_flash() ? begin + end - 1 - n : n;
        for (std::int64_t i = 0; i < used; ++i) {
          add_block(panel(i), row + i * kernels_.columns, block, n == begin);
        }
      }
      for (std::int64_t i = 0; i < rows; ++i) finish(row, i, split, begin < end);
    }
    if (p_.splits > 1) {
      for (std::int64_t i = 0; i < rows; ++i) combine(row, i);
    }
  }

  void add_block(query_panel& q, std::int64_t row, std::int64_t n, bool first) {
    const std::int64_t present = keys_of(n), keys = whole_steps(present);
    if (first) {
      std::fill_n(q.max.data(), kernels_.columns, torch::minus_inf);
      std::fill_n(q.out.data(), p_.dimension * kernels_.columns, 0u);
    }
    std::fill_n(scores_.data(), keys * kernels_.columns, 0u);
    packer_.multiply(keys_.data() + n * block_words_, q.queries.data(), scores_.data(), keys,
                     p_.dimension);
    std::uint32_t visible[most_attention_columns];
    for (int c = 0; c < kernels_.columns; ++c) {
      const std::int64_t before = row + c + 1 - n * p_.block;
      visible[c] = static_cast<std::uint32_t>(
          p_.causal ? std::clamp<std::int64_t>(before, 0, present) : present);
    }
    packer_.see(kernels_.block({&p_.rule, p_.format, scores_.data(), static_cast<int>(keys),
                                p_.dimension, first, visible, q.max.data(), q.sums.data(),
                                q.out.data(), probabilities_.data()}));
    packer_.multiply(values_.data() + n * block_words_, probabilities_.data(), q.out.data(),
                     p_.dimension, keys);
  }

  /// Stores the results of query i of the tile, or of its part of the keys.
  void finish(std::int64_t row, std::int64_t i, std::int64_t split, bool has_keys) {
    const bool whole = p_.splits == 1;
    query_panel& q = panel(i / kernels_.columns);
    const std::int64_t columns = kernels_.columns, c = i % columns;
    torch::query_end end{numerics::binary32::one, torch::minus_inf};
    if (has_keys) {
      std::uint32_t sums[torch::query_threads];
      for (int t = 0; t < torch::query_threads; ++t) sums[t] = q.sums[t * columns + c];
      end = torch::end_of_query(p_.rule, q.max[c], sums,
                                whole ? numerics::binary32::inf : torch::minus_inf);
    }
    std::uint32_t* const parts = split_out_.data() + (split * p_.rows + i) * p_.dimension;
    for (int d = 0; d < p_.dimension; ++d) {
      const std::uint32_t y =
          has_keys ? numerics::ptx::mul(q.out[d * columns + c], end.factor) : 0u;
      if (whole) {
        out_.store(row + i, d, torch::code_of(p_.format, y));
      } else {
        parts[d] = y;
      }
    }
    if (whole) return store_lse(row + i, end.lse);
    split_lse_[i * p_.splits + split] = end.lse;
  }

  void combine(std::int64_t row, std::int64_t i) {
    const std::uint32_t* lse = split_lse_.data() + i * p_.splits;
    const std::uint32_t all = torch::combined_lse(lse, p_.splits, p_.dimension);
    std::uint32_t factors[torch::max_splits];
    for (int s = 0; s < p_.splits; ++s) factors[s] = torch::split_factor(lse[s], all);
    for (int d = 0; d < p_.dimension; ++d) {
      std::uint32_t y = 0;
      for (int s = 0; s < p_.splits; ++s) {
        y = numerics::ptx::fma(factors[s], split_out_[(s * p_.rows + i) * p_.dimension + d], y);
      }
      out_.store(row + i, d, torch::code_of(p_.format, y));
    }
    store_lse(row + i, all);
  }

  void store_lse(std::int64_t row, std::uint32_t lse) {
    if (lse_.is_wanted()) lse_.store<std::uint32_t>(row, 0, lse);
  }

  query_panel& panel(std::int64_t i) { return panels_[static_cast<std::size_t>(i)]; }

  const attention_plan& p_;
  const attention_kernels& kernels_;
  attention_packer packer_;
  head_matrix q_, k_, v_, out_, lse_;
  std::int64_t blocks_, block_words_;
  aligned_words keys_, values_, scores_, probabilities_, split_out_, split_lse_;
  std::vector<query_panel> panels_;
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

bool attention_head(const attention_call& call, const attention_kernels& kernels,
                    std::int64_t head) {
  return forward_head(call, kernels, head).compute();
}

void attention_on_threads(const attention_call& call, const executor& where,
                          const attention_kernels& kernels, attention_scope scope) {
  const auto one = call.grad.data != nullptr ? attention_backward_head : attention_head;
  for_each_part(
      call.plan.batch * call.plan.heads, where.threads,
      [&](element_range range) {
        for (std::int64_t head = range.begin; head < range.end; ++head) {
          bool done = false;
          scope([&] { done = one(call, kernels, head); });
          if (!done) one(call, reference_attention_kernels, head);
        }
      },
      1);
}

void reference_attention(const attention_call& call, const executor& where) {
  attention_on_threads(call, where, reference_attention_kernels, [](const auto& work) { work(); });
}

}  // namespace samebits::backends
