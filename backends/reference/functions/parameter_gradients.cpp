// Gradients of parameters on host backends: adds rows of codes to the sums of PyTorch's threads by
// a backend's kernels. Threads share the columns, or the words of an embedding.
#include <algorithm>
#include <cstring>
#include <vector>

#include "backends/dispatch/calls/sums.hpp"
#include "backends/reference/functions/function_range.hpp"
#include "backends/threads/parts.hpp"
#include "numerics/hardware/torch_operators/embedding_gradient.hpp"
#include "numerics/hardware/torch_operators/tensor_format.hpp"

namespace samebits::backends {
namespace {

namespace torch = numerics::torch_2_11;

/// Columns that are computed together, at most.
constexpr std::int64_t columns_at_once = 256;

/// Neighbours of a row as codes in neighbouring memory; copied if they are none there.
class dense_codes {
 public:
  const std::byte* of(const const_matrix_view& v, std::int64_t row, std::int64_t col,
                      std::int64_t count) {
    const element_row from = row_of(v, row, col);
    const std::int64_t bytes = spec_of(v.format).storage_bits / 8;
    if (from.step == bytes) return from.data;
    for (std::int64_t i = 0; i < count; ++i) {
      std::memcpy(copy_ + i * bytes, from.data + i * from.step, static_cast<std::size_t>(bytes));
    }
    return copy_;
  }

 private:
  std::byte copy_[columns_at_once * sizeof(std::uint32_t)];
};

/// Computes the sums of one block for some columns.
class norm_columns {
 public:
  norm_columns(const norm_parameters_call& call, const sum_kernels& sums)
      : call_(call),
        sums_(sums),
        weight_(static_cast<std::size_t>(call.order.threads * columns_at_once)),
        bias_(weight_.size()) {}

  void compute(std::int64_t block, std::int64_t col, std::int64_t n) {
    const torch::parameter_order& order = call_.order;
    std::fill(weight_.begin(), weight_.end(), 0u);
    std::fill(bias_.begin(), bias_.end(), 0u);
    const std::int64_t begin = block * order.rows_of_block;
    const std::int64_t end = std::min(begin + order.rows_of_block, call_.in.rows);
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t at = order.thread_of(row) * n;
      torch::row_statistics of_row;
      if (call_.mean.data != nullptr) load_words(call_.mean, row, 0, 1, &of_row.mean);
      load_words(call_.rstd, row, 0, 1, &of_row.rstd);
      sums_.add_products(weight_.data() + at, bias_.data() + at, grad_.of(call_.grad, row, col, n),
                         in_.of(call_.in, row, col, n), n, call_.in.format, of_row);
    }
    store(call_.weight, block, col, n, weight_.data());
    store(call_.bias, block, col, n, bias_.data());
  }

 private:
  void store(const matrix_view& out, std::int64_t block, std::int64_t col, std::int64_t n,
             std::uint32_t* sums) {
    if (out.data == nullptr) return;
    for (std::int64_t half = call_.order.threads / 2 * n; half >= n; half /= 2) {
      sums_.add(sums, reinterpret_cast<const std::byte*>(sums + half), half, format_id::fp32,
                false);
    }
    store_numbers(out, block, col, n, sums);
  }

  const norm_parameters_call& call_;
  const sum_kernels& sums_;
  std::vector<std::uint32_t> weight_, bias_;
  dense_codes grad_, in_;
};

}  // namespace

void norm_parameters_on_threads(const norm_parameters_call& call, const executor& where,
                                const sum_kernels& sums) {
  const std::int64_t cols = call.in.cols, chunks = (cols + columns_at_once - 1) / columns_at_once;
  const std::int64_t rows = std::min(call.order.rows_of_block, call.in.rows);
  for_each_part(
      chunks * call.order.blocks, where.threads,
      [&](element_range range) {
        norm_columns worker(call, sums);
        sums.in_scope([&] {
          for (std::int64_t i = range.begin; i < range.end; ++i) {
            const std::int64_t col = i % chunks * columns_at_once;
            worker.compute(i / chunks, col, std::min(columns_at_once, cols - col));
          }
        });
      },
      items_worth_a_thread(rows * std::min(columns_at_once, cols)));
}

namespace {

/// Writes the gradient of the word with rows [begin, end) of the call.
void write_word(const embedding_call& call, std::int64_t begin, std::int64_t end,
                const sum_kernels& sums) {
  std::uint32_t total[columns_at_once], part[columns_at_once];
  dense_codes codes;
  const format_id format = call.out.format;
  const std::int64_t* const rows = call.rows.data() + begin;
  const std::int64_t word = call.words[static_cast<std::size_t>(begin)];
  for (std::int64_t col = 0; col < call.out.cols; col += columns_at_once) {
    const std::int64_t n = std::min(columns_at_once, call.out.cols - col);
    std::fill_n(total, n, 0u);
    std::int64_t first = 0;
    for (std::int64_t i = 0; i < end - begin;) {
      std::fill_n(part, n, 0u);
      for (; i < end - begin && torch::in_part(call.few, rows, first, i); ++i) {
        sums.add(part, codes.of(call.grad, rows[i], col, n), n, format, false);
      }
      first = i;
      for (std::int64_t c = 0; c < n; ++c) {
        total[c] = torch::with_part(call.few, format, total[c], part[c]);
      }
    }
    store_numbers(call.out, word, col, n, total);
  }
}

}  // namespace

void embedding_gradient_on_threads(const embedding_call& call, const executor& where,
                                   const sum_kernels& sums) {
  std::vector<std::int64_t> firsts;  // of each word's rows
  for (std::size_t i = 0; i < call.words.size(); ++i) {
    if (i == 0 || call.words[i] != call.words[i - 1]) {
      firsts.push_back(static_cast<std::int64_t>(i));
    }
  }
  const auto count = static_cast<std::int64_t>(firsts.size());
  firsts.push_back(static_cast<std::int64_t>(call.words.size()));
  for_each_part(
      count, where.threads,
      [&](element_range range) {
        sums.in_scope([&] {
          for (auto i = static_cast<std::size_t>(range.begin);
               i < static_cast<std::size_t>(range.end); ++i) {
            write_word(call, firsts[i], firsts[i + 1], sums);
          }
        });
      },
      items_worth_a_thread(call.out.cols));
}

}  // namespace samebits::backends
