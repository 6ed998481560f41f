// Reference tensor list operations: one element after another, in integers.
#include "backends/dispatch/list.hpp"

#include <cstring>

#include "backends/dispatch/visit.hpp"
#include "backends/reference/reference.hpp"
#include "numerics/bits/decode.hpp"
#include "numerics/tensor_list/inspect.hpp"
#include "numerics/tensor_list/list.hpp"
#include "numerics/tensor_list/list_ops.hpp"

namespace samebits::backends {
namespace {

using numerics::list_chunk;
using numerics::list_row;
using numerics::tensor_tables;

constexpr std::size_t bytes_of(const format_spec& f) {
  return static_cast<std::size_t>(f.storage_bits / 8);
}

/// Loads (load) and stores (store) the code of element i.
template <class Format>
std::uint32_t load(const Format& format, const list_row& row, std::int64_t i) {
  std::uint32_t code = 0;
  std::memcpy(&code, numerics::element_at(row, i), bytes_of(format.spec()));
  return code;
}
template <class Format>
void store(const Format& format, const list_row& row, std::int64_t i, std::uint32_t code) {
  std::memcpy(numerics::element_at(row, i), &code, bytes_of(format.spec()));
}

/// Calls f(chunk number, chunk) for each chunk of a range.
template <class Function>
void for_each_chunk(const tensor_tables& list, element_range chunks, const Function& f) {
  for (std::int64_t n = chunks.begin; n < chunks.end; ++n) {
    f(n, numerics::chunk_at(list, static_cast<std::uint64_t>(n)));
  }
}

template <class Format>
numerics::chunk_statistics inspected(Format format, const list_row& row, const list_chunk& chunk,
                                     inspect_counts counts, std::uint64_t* exponents) {
  numerics::chunk_statistics statistics = {};
  numerics::square_sum squares;
  for (std::int64_t i = chunk.first; i < chunk.first + chunk.count; ++i) {
    const auto x = numerics::decode<std::uint32_t>(Format::spec(), load(format, row, i));
    squares.add(numerics::square(x));
    numerics::count_element(statistics, x);
    if (counts == inspect_counts::distribution) {
      numerics::count_small(statistics, x, numerics::min_normal(Format::spec()));
      ++exponents[numerics::exponent_bucket(x)];
    }
  }
  statistics.squares = squares.value();
  return statistics;
}

void inspect(const tensor_tables& list, element_range chunks, inspect_counts counts,
             numerics::chunk_statistics* partial_statistics, std::uint64_t* exponents) {
  for_each_chunk(list, chunks, [&](std::int64_t n, const list_chunk& chunk) {
    const list_row& row = list.rows[chunk.tensor];
    visit_list_format(row.format, [&](auto format) {
      partial_statistics[n] = inspected(format, row, chunk, counts, exponents);
    });
  });
}

template <class Format>
numerics::scale_statistics scaled(Format format, const list_row& row, const list_chunk& chunk,
                                  std::uint32_t factor) {
  numerics::scale_statistics statistics = {};
  for (std::int64_t i = chunk.first; i < chunk.first + chunk.count; ++i) {
    const std::uint32_t before = load(format, row, i);
    const std::uint32_t after = numerics::scaled_code(Format::spec(), before, factor);
    store(format, row, i, after);
    numerics::count_scaled(Format::spec(), statistics, before, after);
  }
  return statistics;
}

void scale(const tensor_tables& list, element_range chunks, std::uint32_t factor,
           numerics::scale_statistics* partial_statistics) {
  for_each_chunk(list, chunks, [&](std::int64_t n, const list_chunk& chunk) {
    const list_row& row = list.rows[chunk.tensor];
    visit_list_format(row.format, [&](auto format) {
      partial_statistics[n] = scaled(format, row, chunk, factor);
    });
  });
}

void axpby(const axpby_call& call, element_range chunks) {
  for_each_chunk(call.out, chunks, [&](std::int64_t, const list_chunk& chunk) {
    const list_row& out = call.out.rows[chunk.tensor];
    const list_row& x = call.x.rows[chunk.tensor];
    const list_row& y = call.y.rows[chunk.tensor];
    visit_list_format(out.format, [&](auto format) {
      const any_format x_format{spec_of(x.format)};
      const any_format y_format{spec_of(y.format)};
      for (std::int64_t i = chunk.first; i < chunk.first + chunk.count; ++i) {
        store(format, out, i,
              numerics::combined_code(format.spec(), call.a, x_format.spec(), load(x_format, x, i),
                                      call.b, y_format.spec(), load(y_format, y, i)));
      }
    });
  });
}

void accumulate(const accumulate_call& call, element_range chunks) {
  for_each_chunk(call.acc, chunks, [&](std::int64_t, const list_chunk& chunk) {
    const list_row& acc = call.acc.rows[chunk.tensor];
    const list_row& gradient = call.gradients.rows[chunk.tensor];
    const std::uint32_t scale = call.scale_of(chunk.tensor);
    visit_list_format(acc.format, [&](auto format) {
      visit_list_format(gradient.format, [&](auto gradient_format) {
        for (std::int64_t i = chunk.first; i < chunk.first + chunk.count; ++i) {
          store(format, acc, i,
                numerics::accumulated_code(format.spec(), load(format, acc, i),
                                           gradient_format.spec(),
                                           load(gradient_format, gradient, i), scale));
        }
      });
    });
  });
}

}  // namespace

const list_kernels reference_list_kernels = {
    .inspect = inspect, .scale = scale, .axpby = axpby, .accumulate = accumulate};

}  // namespace samebits::backends
