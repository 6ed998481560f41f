// The backward pass of attention of one head on host backends, by kernels with one key per column.
#include <algorithm>

#include "backends/reference/functions/attention.hpp"

namespace samebits::backends {
namespace {

namespace torch = numerics::torch_2_11;
using numerics::ptx::add;

class backward_head : attention_head {
 public:
  backward_head(const attention_call& call, const attention_kernels& kernels, std::int64_t head)
      : attention_head(call, kernels, head),
        grad_(head_of(call.grad, head)),
        dq_(head_of(call.dq, head)),
        dk_(head_of(call.dk, head)),
        dv_(head_of(call.dv, head)),
        tiles_(torch::divide_up(p_.queries, p_.rows)),
        tile_words_(a_size(p_.rows, p_.dimension)),
        code_stride_(p_.block + most_attention_columns),
        queries_(tiles_ * tile_words_),
        queries_across_(tiles_ * tile_words_),
        grads_(tiles_ * tile_words_),
        grads_across_(tiles_ * tile_words_),
        keys_across_(a_size(p_.dimension, p_.block)),
        visible_(p_.queries),
        query_lse_(p_.queries),
        dots_(p_.queries),
        keys_(b_size(p_.dimension)),
        values_(b_size(p_.dimension)),
        dk_sum_(p_.dimension * columns_),
        dv_sum_(p_.dimension * columns_),
        scores_(p_.rows * columns_),
        products_(p_.rows * columns_),
        probabilities_(b_size(p_.rows)),
        gradients_(b_size(p_.rows)),
        codes_(p_.queries * code_stride_),
        codes_across_(b_size(p_.block)),
        dq_product_(p_.dimension * columns_),
        part_(wants_dq() ? p_.queries * p_.dimension : 0),
        dq_sum_(wants_dq() ? p_.queries * p_.dimension : 0) {}

  bool compute() {
    for (std::int64_t row = 0; row < p_.queries; ++row) read_query(row);
    for (std::int64_t m = 0; m < tiles_; ++m) {
      pack_tile(q_, m, queries_, queries_across_);
      pack_tile(grad_, m, grads_, grads_across_);
    }
    const std::int64_t blocks = torch::divide_up(p_.keys, p_.block);
    for (std::int64_t buffer = 0; buffer < std::min(blocks, p_.dq_buffers); ++buffer) {
      for (std::int64_t n = buffer; n < blocks; n += p_.dq_buffers) {
        if (has_special()) return false;
        compute_block(n);
      }
      if (wants_dq()) end_buffer();
    }
    for (std::int64_t row = 0; wants_dq() && row < p_.queries; ++row) {
      store(dq_, row, dq_sum_.data() + row * p_.dimension, 1, true);
    }
    return !has_special();
  }

 private:
  [[nodiscard]] bool wants_dq() const { return dq_.data != nullptr; }

  void read_query(std::int64_t row) {
    std::uint32_t x[128], y[128];
    load_numbers(grad_, row, 0, p_.dimension, x);
    load_numbers(out_, row, 0, p_.dimension, y);
    dots_[row] = torch::output_dot(p_.rule, x, y, p_.dimension);
    load_words(lse_, row, 0, 1, &query_lse_[row]);
    visible_[row] = static_cast<std::uint32_t>(torch::visible_keys(p_, row));
  }

  void pack_tile(const const_matrix_view& v, std::int64_t m, aligned_words& rows,
                 aligned_words& across) {
    const const_matrix_view tile = rows_from(v, m * p_.rows, p_.rows);
    pack_a(tile, rows.data() + m * tile_words_);
    pack_a(transposed(tile), across.data() + m * tile_words_);
  }

  /// The gradients of one block of keys.
  void compute_block(std::int64_t n) {
    const const_matrix_view keys = rows_from(k_, n * p_.block, p_.block);
    const torch::block_visits tiles = torch::query_tiles(p_, n);
    for (std::int64_t j = 0; j < keys.rows; j += columns_) {
      const std::int64_t key = n * p_.block + j;
      pack_b(rows_from(k_, key, columns_), keys_.data());
      pack_b(rows_from(v_, key, columns_), values_.data());
      dk_sum_.clear();
      dv_sum_.clear();
      for (std::int64_t i = 0; i < tiles.end - tiles.begin; ++i) add_tile(key, j, tiles.at(i));
      for (std::int64_t c = 0; c < std::min(columns_, keys.rows - j); ++c) {
        store(dk_, key + c, dk_sum_.data() + c, columns_, true);
        store(dv_, key + c, dv_sum_.data() + c, columns_, false);
      }
    }
    if (!wants_dq()) return;
    pack_a(transposed(keys), keys_across_.data());
    for (std::int64_t row = tiles.begin * p_.rows; row < p_.queries; row += columns_) {
      add_dq(row, keys.rows);
    }
  }

  /// Adds the queries of tile m to the gradients of the keys from `key` on, which is number j of
  /// its block.
  void add_tile(std::int64_t key, std::int64_t j, std::int64_t m) {
    const std::int64_t row = m * p_.rows, words = m * tile_words_;
    const std::int64_t present = std::min<std::int64_t>(p_.rows, p_.queries - row);
    const std::int64_t rows = whole_steps(present);
    const auto product = [&](aligned_words& a, aligned_words& b, aligned_words& to) {
      to.clear();
      multiply(a.data() + words, b.data(), to.data(), rows, p_.dimension);
    };
    product(queries_, keys_, scores_);
    product(grads_, values_, products_);
    std::uint32_t keys[most_attention_columns];
    for (int c = 0; c < columns_; ++c) keys[c] = static_cast<std::uint32_t>(key + c);
    see(kernels_.gradients(
        {&p_.rule, p_.format, scores_.data(), products_.data(), static_cast<int>(present), keys,
         visible_.data() + row, query_lse_.data() + row, dots_.data() + row, probabilities_.data(),
         gradients_.data(), codes_.data() + row * code_stride_ + j, code_stride_}));
    multiply(grads_across_.data() + words, probabilities_.data(), dv_sum_.data(), p_.dimension,
             rows);
    multiply(queries_across_.data() + words, gradients_.data(), dk_sum_.data(), p_.dimension, rows);
  }

  /// Adds the product of the score gradients of the queries from `row` on with a block of keys.
  void add_dq(std::int64_t row, std::int64_t keys) {
    const std::int64_t count = std::min(columns_, p_.queries - row);
    pack_b({codes_.data() + row * code_stride_, format_id::fp32, count, keys, code_stride_},
           codes_across_.data());
    dq_product_.clear();
    multiply(keys_across_.data(), codes_across_.data(), dq_product_.data(), p_.dimension, keys);
    for (std::int64_t c = 0; c < count; ++c) {
      for (int d = 0; d < p_.dimension; ++d) {
        std::uint32_t& y = part_[(row + c) * p_.dimension + d];
        y = add(y, dq_product_[d * columns_ + c]);
      }
    }
  }

  /// Adds a buffer's sum to dQ.
  void end_buffer() {
    for (std::int64_t i = 0; i < p_.queries * p_.dimension; ++i) {
      dq_sum_[i] = add(dq_sum_[i], part_[i]);
    }
    part_.clear();
  }

  /// Stores a row of sums that lie `step` apart, if it is wanted. dQ and dK are scaled.
  void store(const const_matrix_view& to, std::int64_t row, const std::uint32_t* sums,
             std::int64_t step, bool scaled) const {
    if (to.data == nullptr) return;
    std::uint32_t y[128];
    for (int d = 0; d < p_.dimension; ++d) {
      y[d] = scaled ? torch::scaled_gradient(p_.rule, sums[d * step]) : sums[d * step];
    }
    store_numbers(to, row, 0, p_.dimension, y);
  }

  const_matrix_view grad_, dq_, dk_, dv_;
  std::int64_t tiles_, tile_words_, code_stride_;
  aligned_words queries_, queries_across_, grads_, grads_across_;  ///< A: tiles, and transposed
  aligned_words keys_across_;                                      ///< A: a block, transposed
  aligned_words visible_, query_lse_, dots_;                       ///< of each query
  aligned_words keys_, values_, dk_sum_, dv_sum_;                  ///< of one key per column
  aligned_words scores_, products_, probabilities_, gradients_;
  aligned_words codes_;  ///< of the score gradients of a block of keys, [queries][code_stride_]
  aligned_words codes_across_, dq_product_, part_, dq_sum_;
};

}  // namespace

bool attention_backward_head(const attention_call& call, const attention_kernels& kernels,
                             std::int64_t head) {
  return backward_head(call, kernels, head).compute();
}

}  // namespace samebits::backends
