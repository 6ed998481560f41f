// The backward pass of attention of one head on host backends, by kernels with one key per column.
#include <algorithm>

#include "backends/reference/functions/attention.hpp"
#include "numerics/hardware/torch_operators/tensor_format.hpp"

namespace samebits::backends {
namespace {

namespace torch = numerics::torch_2_11;
using numerics::ptx::add;

/// The keys of one panel, one per column, and their gradients so far.
struct key_panel {
  key_panel(const attention_packer& packer, const attention_plan& p, int columns)
      : keys(packer.b_size(p.dimension)),
        values(packer.b_size(p.dimension)),
        dk(p.dimension * columns),
        dv(p.dimension * columns) {}

  aligned_words keys, values, dk, dv;
};

class backward_head {
 public:
  backward_head(const attention_call& call, const attention_kernels& kernels, std::int64_t head)
      : p_(call.plan),
        kernels_(kernels),
        packer_(kernels, p_.format),
        q_(call.q, p_, head),
        k_(call.k, p_, head),
        v_(call.v, p_, head),
        grad_(call.grad, p_, head),
        dq_(call.dq, p_, head),
        dk_(call.dk, p_, head),
        dv_(call.dv, p_, head),
        tiles_(parts_of(p_.queries, p_.rows)),
        tile_words_(packer_.a_size(p_.rows, p_.dimension)),
        queries_(tiles_ * tile_words_),
        queries_across_(tiles_ * tile_words_),
        grads_(tiles_ * tile_words_),
        grads_across_(tiles_ * tile_words_),
        keys_across_(packer_.a_size(p_.dimension, p_.block)),
        visible_(tiles_ * p_.rows),
        lse_(tiles_ * p_.rows),
        dots_(tiles_ * p_.rows),
        scores_(std::int64_t{p_.rows} * kernels.columns),
        products_(std::int64_t{p_.rows} * kernels.columns),
        probabilities_(packer_.b_size(p_.rows)),
        gradients_(packer_.b_size(p_.rows)),
        codes_(std::int64_t{p_.rows} * (p_.block + most_attention_columns)),
        across_(packer_.b_size(p_.block)),
        part_(dq_.is_wanted() ? p_.queries * p_.dimension : 0),
        dq_sum_(dq_.is_wanted() ? p_.queries * p_.dimension : 0) {
    const head_matrix out(call.out, p_, head), lse(call.lse, p_, head);
    for (std::int64_t row = 0; row < p_.queries; ++row) {
      visible_[row] = static_cast<std::uint32_t>(p_.causal ? row + 1 : p_.keys);
      lse_[row] = lse.load<std::uint32_t>(row);
      dots_[row] = dot_of(out, row);
    }
  }

  bool compute() {
    for (std::int64_t m = 0; m < tiles_; ++m) pack_tile(m);
    const std::int64_t panels = parts_of(p_.block, kernels_.columns);
    for (std::int64_t i = 0; i < panels; ++i) panels_.emplace_back(packer_, p_, kernels_.columns);
    const std::int64_t blocks = parts_of(p_.keys, p_.block);
    for (std::int64_t buffer = 0; buffer < std::min(blocks, p_.dq_buffers); ++buffer) {
      for (std::int64_t n = buffer; n < blocks; n += p_.dq_buffers) {
        if (packer_.has_special()) return false;
        compute_block(n);
      }
      if (dq_.is_wanted()) end_buffer();
    }
    if (dq_.is_wanted()) {
      for (std::int64_t i = 0; i < p_.queries * p_.dimension; ++i) {
        const std::uint32_t y = torch::scaled_gradient(p_.rule, dq_sum_[i]);
        dq_.store(i / p_.dimension, i % p_.dimension, torch::code_of(p_.format, y));
      }
    }
    return !packer_.has_special();
  }

 private:
  std::uint32_t dot_of(const head_matrix& out, std::int64_t row) const {
    std::uint32_t x[128], y[128];
    for (int d = 0; d < p_.dimension; ++d) {
      x[d] = torch::value_of(p_.format, grad_.load(row, d));
      y[d] = torch::value_of(p_.format, out.load(row, d));
    }
    return torch::output_dot(p_.rule, x, y, p_.dimension);
  }
  [[nodiscard]] std::int64_t rows_of(std::int64_t tile) const {
    return std::min<std::int64_t>(p_.rows, p_.queries - tile * p_.rows);
  }

  void pack_tile(std::int64_t m) {
    const std::int64_t first = m * p_.rows, present = rows_of(m);
    const auto pack = [&](const head_matrix& x, aligned_words& rows, aligned_words& across) {
      packer_.pack_a(
          present, whole_steps(present), p_.dimension,
          [&](std::int64_t i, std::int64_t d) { return x.load(first + i, d); },
          rows.data() + m * tile_words_);
      packer_.pack_a(
          p_.dimension, p_.dimension, present,
          [&](std::int64_t d, std::int64_t i) { return x.load(first + i, d); },
          across.data() + m * tile_words_);
    };
    pack(q_, queries_, queries_across_);
    pack(grad_, grads_, grads_across_);
  }

  /// The gradients of one block of keys.
  void compute_block(std::int64_t n) {
    const std::int64_t first = n * p_.block;
    const std::int64_t present = std::min<std::int64_t>(p_.block, p_.keys - first);
    const std::int64_t used = parts_of(present, kernels_.columns);
    for (std::int64_t i = 0; i < used; ++i) start(panel(i), first + i * kernels_.columns);
    packer_.pack_a(
        p_.dimension, p_.dimension, present,
        [&](std::int64_t d, std::int64_t i) { return k_.load(first + i, d); }, keys_across_.data());
    const std::int64_t begin = p_.causal ? first / p_.rows : 0;
    for (std::int64_t i = begin; i < tiles_; ++i) {
      const std::int64_t m = p_.rule.is_flash() ? begin + tiles_ - 1 - i : i;
      for (std::int64_t j = 0; j < used; ++j) add_tile(panel(j), first, j, m);
      if (dq_.is_wanted()) add_dq(m, present);
    }
    for (std::int64_t i = 0; i < present; ++i) {
      key_panel& of = panel(i / kernels_.columns);
      for (int d = 0; d < p_.dimension; ++d) {
        const std::int64_t at = d * kernels_.columns + i % kernels_.columns;
        const auto put = [&](const head_matrix& to, std::uint32_t y) {
          if (to.is_wanted()) to.store(first + i, d, torch::code_of(p_.format, y));
        };
        put(dk_, torch::scaled_gradient(p_.rule, of.dk[at]));
        put(dv_, of.dv[at]);
      }
    }
  }

  void start(key_panel& of, std::int64_t first) {
    packer_.pack_b(
        p_.keys - first, p_.dimension,
        [&](std::int64_t d, std::int64_t j) { return k_.load(first + j, d); }, of.keys.data());
    packer_.pack_b(
        p_.keys - first, p_.dimension,
        [&](std::int64_t d, std::int64_t j) { return v_.load(first + j, d); }, of.values.data());
    std::fill_n(of.dk.data(), p_.dimension * kernels_.columns, 0u);
    std::fill_n(of.dv.data(), p_.dimension * kernels_.columns, 0u);
  }

  /// Adds the queries of tile m to the gradients of panel j of a block.
  void add_tile(key_panel& of, std::int64_t first, std::int64_t j, std::int64_t m) {
    const std::int64_t rows = whole_steps(rows_of(m)), words = m * tile_words_;
    const auto product = [&](aligned_words& a, aligned_words& b, aligned_words& to) {
      std::fill_n(to.data(), rows * kernels_.columns, 0u);
      packer_.multiply(a.data() + words, b.data(), to.data(), rows, p_.dimension);
    };
    product(queries_, of.keys, scores_);
    product(grads_, of.values, products_);
    std::uint32_t keys[most_attention_columns];
    for (int c = 0; c < kernels_.columns; ++c) {
      keys[c] = static_cast<std::uint32_t>(first + j * kernels_.columns + c);
    }
    const std::int64_t row = m * p_.rows;
    packer_.see(kernels_.gradients({&p_.rule, p_.format, scores_.data(), products_.data(),
                                    static_cast<int>(rows_of(m)), keys, visible_.data() + row,
                                    lse_.data() + row, dots_.data() + row, probabilities_.data(),
                                    gradients_.data(), codes_.data() + j * kernels_.columns,
                                    p_.block + most_attention_columns}));
    packer_.multiply(grads_across_.data() + words, probabilities_.data(), of.dv.data(),
                     p_.dimension, rows);
    packer_.multiply(queries_across_.data() + words, gradients_.data(), of.dk.data(), p_.dimension,
                     rows);
  }

  /// Adds the product of the score gradients of tile m with a block of keys to dQ.
  void add_dq(std::int64_t m, std::int64_t present) {
    const std::int64_t rows = rows_of(m), columns = kernels_.columns;
    const std::int64_t stride = p_.block + most_attention_columns;
    for (std::int64_t i = 0; i < rows; i += columns) {
      packer_.pack_b(
          rows - i, present,
          [&](std::int64_t k, std::int64_t j) { return codes_[(i + j) * stride + k]; },
          across_.data());
      aligned_words sums(p_.dimension * columns);
      packer_.multiply(keys_across_.data(), across_.data(), sums.data(), p_.dimension, present);
      for (std::int64_t c = 0; c < std::min(columns, rows - i); ++c) {
        for (int d = 0; d < p_.dimension; ++d) {
          std::uint32_t& y = part_[(m * p_.rows + i + c) * p_.dimension + d];
          y = add(y, sums[d * columns + c]);
        }
      }
    }
  }

  /// Adds a buffer's sum to dQ.
  void end_buffer() {
    for (std::int64_t i = 0; i < p_.queries * p_.dimension; ++i) {
      dq_sum_[i] = add(dq_sum_[i], part_[i]);
      part_[i] = 0;
    }
  }

  key_panel& panel(std::int64_t i) { return panels_[static_cast<std::size_t>(i)]; }

  const attention_plan& p_;
  const attention_kernels& kernels_;
  attention_packer packer_;
  head_matrix q_, k_, v_, grad_, dq_, dk_, dv_;
  std::int64_t tiles_, tile_words_;
  aligned_words queries_, queries_across_, grads_, grads_across_;  ///< A: rows, and transposed
  aligned_words keys_across_;  ///< A: keys of a block, transposed
  aligned_words visible_, lse_, dots_, scores_, products_, probabilities_, gradients_, codes_;
  aligned_words across_, part_, dq_sum_;
  std::vector<key_panel> panels_;
};

}  // namespace

bool attention_backward_head(const attention_call& call, const attention_kernels& kernels,
                             std::int64_t head) {
  return backward_head(call, kernels, head).compute();
}

}  // namespace samebits::backends
