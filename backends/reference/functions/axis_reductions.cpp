// Reductions over axes on host backends: adds runs of elements to the sums of PyTorch's threads by
// a backend's kernel, then folds the sums.
#include "backends/dispatch/calls/sums.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "backends/reference/cells.hpp"
#include "backends/reference/functions/function_range.hpp"
#include "backends/threads/parts.hpp"
#include "numerics/hardware/torch_operators/axis_reduction.hpp"
#include "numerics/hardware/torch_operators/tensor_format.hpp"

namespace samebits::backends {
namespace {

namespace torch = numerics::torch_2_11;
using torch::axis_plan;

/// Neighbouring results that are computed together, at most. Their sums, of 16 threads at this
/// number, take 64 KiB.
constexpr std::int64_t most_columns = 256;

/// Neighbouring results: `columns` from result `first` on, whose elements are neighbours in memory.
struct result_group {
  std::int64_t first;
  std::int64_t columns;
};

/// How a call is cut into groups of results.
class result_groups {
 public:
  explicit result_groups(const axis_plan& p) {
    const bool neighbours = !p.across_x && p.reduced < p.count && p.axes[p.reduced].from == 1;
    row_ = neighbours ? p.axes[p.reduced].size : 1;
    in_row_ = (row_ + most_columns - 1) / most_columns;
    count_ = p.outputs / row_ * in_row_;
  }
  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] std::int64_t columns() const { return std::min(most_columns, row_); }
  [[nodiscard]] result_group group(std::int64_t i) const {
    const std::int64_t begin = i % in_row_ * most_columns;
    return {i / in_row_ * row_ + begin, std::min(most_columns, row_ - begin)};
  }

 private:
  std::int64_t row_, in_row_, count_;
};

/// Computes the sum of one block of threads for a group of results.
class block_sums {
 public:
  /// @param columns  results of a group, at most
  block_sums(const axis_call& call, const sum_kernels& by, std::int64_t columns)
      : call_(call),
        p_(call.plan),
        by_(by),
        format_(call.out.format),
        bytes_(spec_of(format_).storage_bits / 8),
        squares_(torch::adds_squares(p_, call.of)),
        threads_(torch::sharing_threads(p_)),
        sums_(static_cast<std::size_t>(threads_ * std::max<std::int64_t>(16, 4 * columns))),
        codes_(static_cast<std::size_t>(threads_ * bytes_)) {}

  /// result[c] = the sum of the block for result group.first + c.
  void compute(const result_group& group, std::int64_t block, std::uint32_t* result) {
    columns_ = group.columns;
    base_ = torch::place_of(p_.axes + p_.reduced, p_.count - p_.reduced, group.first);
    const int per_thread = p_.vector > 0 ? p_.vector : 4;
    std::fill_n(sums_.begin(), per_thread * threads_ * columns_, 0u);
    if (p_.vector > 0) {
      add_vectors(block);
      sort_by_place();
    } else {
      add_elements(block);
    }
    const std::int64_t of_one = threads_ * columns_;
    for (int j = 1; j < per_thread; ++j) plus(sums_.data(), sums_.data() + j * of_one, of_one);
    fold();
    std::copy_n(sums_.begin(), columns_, result);
  }

 private:
  void plus(std::uint32_t* sums, const std::uint32_t* more, std::int64_t n) const {
    by_.add(sums, reinterpret_cast<const std::byte*>(more), n, format_id::fp32, false);
  }
  void add(std::int64_t at, std::int64_t place, std::int64_t n) {
    by_.add(sums_.data() + at, call_.in + (base_ + place) * bytes_, n, format_, squares_);
  }

  /// Sum j of thread t lies at t * vector + j.
  void add_vectors(std::int64_t block) {
    const std::int64_t n = p_.vector, shift = (call_.offset + base_) % n;
    const std::int64_t head = shift > 0 ? n - shift : 0;
    const std::int64_t body = p_.inputs - head, whole = body - body % n, run = threads_ * n;
    for (std::int64_t i = 0; block == 0 && i < head; ++i) add((shift + i) * n, i, 1);
    for (std::int64_t i = block * run; i < whole; i += p_.blocks * run) {
      add(0, head + i, std::min(run, whole - i));
    }
    for (std::int64_t i = whole; block == 0 && i < body; ++i) add((i - whole) * n, head + i, 1);
  }

  /// Sum j of thread t for column c lies at (j * threads + t) * columns + c.
  void add_elements(std::int64_t block) {
    const bool dense = p_.reduced <= 1 && columns_ == 1 && p_.axes[0].from == 1;
    std::int64_t turn = 0;
    for (std::int64_t i = block * threads_; i < p_.inputs; i += p_.blocks * threads_, ++turn) {
      const std::int64_t n = std::min<std::int64_t>(threads_, p_.inputs - i);
      const std::int64_t at = turn % 4 * threads_ * columns_;
      if (dense) {
        add(at, i, n);
      } else if (columns_ > 1) {
        for (std::int64_t t = 0; t < n; ++t) add(at + t * columns_, place(i + t), columns_);
      } else {
        for (std::int64_t t = 0; t < n; ++t) {
          std::memcpy(codes_.data() + t * bytes_, call_.in + (base_ + place(i + t)) * bytes_,
                      static_cast<std::size_t>(bytes_));
        }
        by_.add(sums_.data() + at, codes_.data(), n, format_, squares_);
      }
    }
  }
  [[nodiscard]] std::int64_t place(std::int64_t element) const {
    return torch::place_of(p_.axes, p_.reduced, element);
  }

  /// Moves sum j of thread t from t * vector + j to j * threads + t.
  void sort_by_place() {
    const std::int64_t n = p_.vector, count = n * threads_;
    std::uint32_t* const sorted = sums_.data() + count;
    for (std::int64_t i = 0; i < count; ++i) sorted[i % n * threads_ + i / n] = sums_[at(i)];
    std::copy_n(sorted, count, sums_.data());
  }
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

  /// As torch::fold_block(): in x, then in y.
  void fold() {
    const std::int64_t width = p_.across_x ? p_.width : 1, height = threads_ / width;
    std::uint32_t* const sums = sums_.data();
    for (std::int64_t y = 0; y < height; ++y) {
      std::uint32_t* const row = sums + y * width * columns_;
      for (std::int64_t step = width / 2 * columns_; step >= columns_; step /= 2) {
        plus(row, row + step, step);
      }
      std::copy_n(row, columns_, sums + y * columns_);
    }
    for (std::int64_t step = height / 2 * columns_; step >= columns_; step /= 2) {
      plus(sums, sums + step, step);
    }
  }

  const axis_call& call_;
  const axis_plan& p_;
  const sum_kernels& by_;
  format_id format_;
  std::int64_t bytes_;
  bool squares_;
  std::int64_t threads_;
  std::vector<std::uint32_t> sums_;
  std::vector<std::byte> codes_;
  std::int64_t columns_ = 1;
  std::int64_t base_ = 0;  ///< elements from the tensor's first one to the group's
};

/// Where each result of the plan lies in the call's `out`, in C order.
std::int64_t result_place(const axis_plan& p, std::int64_t index) {
  std::int64_t place = 0;
  for (int i = p.reduced; i < p.count; ++i) {
    place += index % p.axes[i].size * p.axes[i].to;
    index /= p.axes[i].size;
  }
  return place;
}

/// Writes a result from the sums of its blocks, `stride` words apart.
void store_result(const axis_call& call, std::int64_t index, const std::uint32_t* sums,
                  std::int64_t stride) {
  const axis_plan& p = call.plan;
  std::uint32_t sum = sums[0];
  if (p.blocks > 1) {
    std::uint32_t threads[torch::most_block_threads] = {};
    const int count = torch::sharing_threads(p), columns = p.across_x ? p.width : 1;
    for (std::int64_t block = 0; block < p.blocks; ++block) {
      std::uint32_t& total = threads[block % count];
      total = numerics::ptx::add(total, sums[block * stride]);
    }
    sum = torch::fold_block(threads, columns, count / columns, false);
  }
  const std::uint32_t code = torch::code_of(call.out.format, torch::axis_result(p, call.of, sum));
  const std::int64_t place = result_place(p, index);
  store_words(call.out, place / call.out.cols, place % call.out.cols, 1, &code);
}

}  // namespace

void reduce_axes_on_threads(const axis_call& call, const executor& where, const sum_kernels& by) {
  const axis_plan& p = call.plan;
  const result_groups groups(p);
  const std::int64_t items = groups.count() * p.blocks;
  std::vector<std::uint32_t> sums(static_cast<std::size_t>(p.outputs * p.blocks));
  for_each_part(
      items, where.threads,
      [&](element_range range) {
        block_sums worker(call, by, groups.columns());
        by.in_scope([&] {
          for (std::int64_t i = range.begin; i < range.end; ++i) {
            const result_group group = groups.group(i / p.blocks);
            const std::int64_t block = i % p.blocks;
            worker.compute(group, block,
                           sums.data() + group.first * p.blocks + block * group.columns);
          }
        });
      },
      items_worth_a_thread(p.inputs * p.outputs / items));
  for (std::int64_t i = 0; i < groups.count(); ++i) {
    const result_group group = groups.group(i);
    for (std::int64_t c = 0; c < group.columns; ++c) {
      store_result(call, group.first + c, sums.data() + group.first * p.blocks + c, group.columns);
    }
  }
}

}  // namespace samebits::backends
