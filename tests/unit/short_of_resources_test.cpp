// Every host operation where no thread can be started, where other threads get no memory, and where
// memory ends at any allocation: the right bits, or std::bad_alloc and nothing written.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <functional>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "samebits/samebits.hpp"
#include "support/backends.hpp"
#include "support/failing_resources.hpp"

namespace samebits {
namespace {

constexpr std::int64_t rows = 96;
constexpr std::int64_t cols = 1024;  // six threads' worth of elements
constexpr auto elements = static_cast<std::size_t>(rows * cols);

/// What operations read and write, as codes; and what they return, as words.
struct arrays {
  std::vector<std::uint32_t> x = std::vector<std::uint32_t>(elements);  ///< fp32
  std::vector<std::uint32_t> y = x;                                     ///< fp32
  std::vector<std::uint32_t> out = x;                                   ///< fp32
  std::vector<std::uint32_t> small = x;                                 ///< fp32, below 1
  std::vector<std::uint16_t> halves = std::vector<std::uint16_t>(elements);
  std::vector<std::uint8_t> codes = std::vector<std::uint8_t>(elements);
  std::vector<std::uint8_t> transposed = codes;
  std::vector<std::uint32_t> scales = x;
  std::array<std::uint64_t, 260> returned = {};

  friend bool operator==(const arrays&, const arrays&) = default;
};

/// Uniform bits; exponents from small to large, some Inf and NaN.
arrays random_arrays() {
  std::mt19937 random(7);
  const auto bits = [&] { return static_cast<std::uint32_t>(random()); };
  arrays a;
  for (std::uint32_t& word : a.x) word = bits();
  for (std::uint32_t& word : a.y) word = bits() & 0xBFFFFFFF;
  for (std::uint32_t& word : a.small) word = bits() & 0xBF7FFFFF;
  for (std::uint16_t& code : a.halves) code = static_cast<std::uint16_t>(bits());
  for (std::uint8_t& code : a.codes) code = static_cast<std::uint8_t>(bits());
  return a;
}

matrix_view fp32_view(std::vector<std::uint32_t>& v) {
  return view_of_codes(format_id::fp32, v.data(), rows, cols);
}
matrix_view view_of_e4m3(std::vector<std::uint8_t>& v, std::int64_t r = rows,
                         std::int64_t c = cols) {
  return view_of_codes(format_id::e4m3, v.data(), r, c);
}
matrix_view scales_of(arrays& a, std::int64_t r, std::int64_t c) {
  return view_of_codes(format_id::fp32, a.scales.data(), r, c);
}
tensor_list list_of(std::vector<std::uint32_t>& v) {  // two tensors
  return tensor_list({{view_of_codes(format_id::fp32, v.data(), 1, 70000)},
                      {view_of_codes(format_id::fp32, v.data() + 70000, 1, 20000)}});
}
std::uint64_t word(double x) { return std::bit_cast<std::uint64_t>(x); }

struct operation_case {
  std::string name;
  std::function<void(arrays&, const executor&)> run;
};

void put(arrays& a, const unscale_report& r) {
  a.returned = {r.elements, r.nonfinite, r.overflowed, r.amax_bits,
                static_cast<std::uint64_t>(r.first_bad)};
}

std::vector<operation_case> elementwise_cases() {
  return {
      {"convert",
       [](auto& a, const auto& by) {
         convert(fp32_view(a.x), view_of_e4m3(a.codes), {.rounding = rounding::stochastic}, by);
       }},
      {"rotary_table",
       [](auto& a, const auto& by) {
         const std::int64_t positions[] = {3, -70000, 5, 1'000'000};
         rotary_table(positions, view_of_codes(format_id::fp32, a.x.data(), 4, 500),
                      view_of_codes(format_id::fp32, a.out.data(), 4, 500), {}, by);
       }},
      {"convert in place",
       [](auto& a, const auto& by) {
         convert(view_of_codes(format_id::fp16, a.halves.data(), rows, cols),
                 view_of_codes(format_id::bf16, a.halves.data(), rows, cols), {}, by);
       }},
      {"compute",
       [](auto& a, const auto& by) {
         compute(operation::add, {fp32_view(a.x), fp32_view(a.y)}, fp32_view(a.x), {}, by);
       }},
      {"compute with flags",
       [](auto& a, const auto& by) {
         const flags raised =
             compute_with_flags(operation::div, {fp32_view(a.x), fp32_view(a.y)}, fp32_view(a.out),
                                {}, {reinterpret_cast<flags*>(a.codes.data()), cols, 1}, by);
         a.returned = {static_cast<std::uint64_t>(raised)};
       }},
      {"softmax",
       [](auto& a, const auto& by) {
         softmax(fp32_view(a.x), fp32_view(a.out), {.rule = function_rule::torch_2_11}, by);
       }},
      {"layer_norm",
       [](auto& a, const auto& by) {
         const matrix_view y = fp32_view(a.y);
         layer_norm(fp32_view(a.x), {y.data, y.format, 1, cols}, {y.data, y.format, 1, cols},
                    fp32_view(a.out), {}, {}, {.rule = function_rule::torch_2_11}, by);
       }},
      {"reductions",
       [](auto& a, const auto& by) {
         const element_counts n = counts(fp32_view(a.y), by);
         const float maximum = amax(fp32_view(a.y), by);
         a.returned = {n.nan,
                       n.zeros,
                       n.subnormals,
                       std::bit_cast<std::uint32_t>(maximum),
                       word(sum(fp32_view(a.y), by)),
                       word(sum_of_squares(fp32_view(a.y), by)),
                       word(dot(fp32_view(a.y), fp32_view(a.y), {}, by))};
       }},
  };
}

void quantize_by(arrays& a, const tile_shape& tile, bool all_outputs, const executor& by) {
  const matrix_shape s = scales_shape(rows, cols, tile);
  quantize_statistics statistics;
  quantize_outputs to{.codes = view_of_e4m3(a.codes), .scales = scales_of(a, s.rows, s.cols)};
  if (all_outputs) {
    to.codes_transposed = view_of_e4m3(a.transposed, cols, rows);
    to.statistics = &statistics;
  }
  quantize(fp32_view(a.y), to, {.tile = tile}, by);
  if (all_outputs) a.returned = {statistics.saturated, word(statistics.signal)};
}

/// Large tensors and small ones, transposed codes among them.
void quantize_list_by(arrays& a, const executor& by) {
  std::vector<quantize_item> items;
  std::int64_t first = 0, first_scale = 0;
  for (const std::int64_t r : {40, 1, 3, 2, 8, 1, 5, 36}) {
    const matrix_shape s = scales_shape(r, cols, {1, 128});
    items.push_back(
        {.in = view_of_codes(format_id::fp32, a.y.data() + first * cols, r, cols),
         .outputs = {
             .codes = view_of_codes(format_id::e4m3, a.codes.data() + first * cols, r, cols),
             .scales =
                 view_of_codes(format_id::fp32, a.scales.data() + first_scale, s.rows, s.cols),
             .codes_transposed =
                 view_of_codes(format_id::e4m3, a.transposed.data() + first * cols, cols, r)}});
    first += r;
    first_scale += s.rows * s.cols;
  }
  quantize(quantize_list(std::move(items), quantize_options{}), by);
}

std::vector<operation_case> quantize_cases() {
  return {
      {"quantize rows",
       [](auto& a, const auto& by) {
         quantize_by(a, {1, 128}, false, by);
       }},
      {"quantize whole",
       [](auto& a, const auto& by) {
         quantize_by(a, {0, 0}, false, by);
       }},
      {"quantize all outputs",
       [](auto& a, const auto& by) {
         quantize_by(a, {32, 32}, true, by);
       }},
      {"quantize list", quantize_list_by},
      {"dequantize",
       [](auto& a, const auto& by) {
         dequantize(view_of_e4m3(a.codes), view_of_codes(format_id::fp32, a.y.data(), 1, 1),
                    fp32_view(a.out), {0, 0}, by);
       }},
  };
}

std::vector<operation_case> list_cases() {
  return {
      {"inspect",
       [](auto& a, const auto& by) {
         const inspect_report r =
             inspect(list_of(a.y), {.counts = inspect_counts::distribution}, by);
         std::copy(r.exponents.begin(), r.exponents.end(), a.returned.begin() + 1);
         a.returned[0] = word(r.total.squares);
       }},
      {"l2norm",
       [](auto& a, const auto& by) { a.returned = {word(l2norm(list_of(a.y), by).total)}; }},
      {"unscale", [](auto& a, const auto& by) { put(a, unscale(list_of(a.x), 0.3f, by)); }},
      {"scale", [](auto& a, const auto& by) { scale(list_of(a.x), 0.3f, by); }},
      {"axpby",
       [](auto& a, const auto& by) {
         axpby(0.5f, list_of(a.x), 3.0f, list_of(a.y), list_of(a.x), by);
       }},
      {"accumulate",
       [](auto& a, const auto& by) { accumulate(list_of(a.x), list_of(a.y), {}, by); }},
      {"cast", [](auto& a, const auto& by) { cast(list_of(a.x), list_of(a.out), {}, by); }},
      {"evaluate",
       [](auto& a, const auto& by) {
         evaluate(function::exp, list_of(a.x), list_of(a.out), {}, by);
       }},
      {"evaluate_gradient",
       [](auto& a, const auto& by) {
         evaluate_gradient(function::gelu, list_of(a.y), list_of(a.small), list_of(a.out),
                           {.rule = function_rule::torch_2_11}, by);
       }},
      {"clip",
       [](auto& a, const auto& by) { a.returned = {word(clip(list_of(a.small), 1e-6, by).norm)}; }},
      {"loss_scaler",
       [](auto& a, const auto& by) {
         loss_scaler scaler;
         put(a, scaler.unscale(list_of(a.x), {}, by));
       }},
  };
}

std::vector<operation_case> statistics_cases() {
  return {
      {"statistics of casts", [](auto& a, const auto& by) {
         const cast_statistics s = statistics_of(
             fp32_view(a.y),
             {.casts = {format_id::e4m3}, .std = true, .column_amax = true, .percentiles = true},
             by);
         a.returned = {word(*s.std), word(s.percentiles[3]), word(s.column_amax[0]),
                       word(s.casts[0].noise), s.casts[0].changed};
       }}};
}

std::vector<operation_case> matmul_cases() {
  const auto multiplied = [](const std::string& name, const accumulator& by_what) {
    return operation_case{
        name, [by_what](arrays& a, const executor& by) {
          constexpr std::int64_t depth = 128, side = 80;
          matmul(view_of_codes(format_id::e4m3, a.codes.data(), side, depth),
                 view_of_codes(format_id::e4m3, a.codes.data() + 20000, depth, side),
                 view_of_codes(format_id::fp32, a.out.data(), side, side), by_what, {}, by);
        }};
  };
  return {multiplied("matmul on a tensor core",
                     accumulator::tensor_core(tensor_unit::hopper_wgmma, 128)),
          multiplied("matmul exact", accumulator::exact()),
          multiplied("matmul in fp32", accumulator::ieee_fp32(fp32_order::ascending)),
          multiplied("matmul in fp32 by 128", accumulator::fp32_per_128())};
}

std::vector<operation_case> all_cases() {
  std::vector<operation_case> all = elementwise_cases();
  for (const auto& more : {quantize_cases(), list_cases(), statistics_cases(), matmul_cases()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

/// Calls check(case, executor with threads, arrays before, arrays after one thread's run).
template <class Check>
void for_each_case(const Check& check) {
  const arrays before = random_arrays();
  for (const std::string& backend : support::supported_backends()) {
    for (const operation_case& c : all_cases()) {
      SCOPED_TRACE(c.name + " by " + backend);
      arrays expected = before;
      c.run(expected, {backend, 1});
      check(c, executor{backend, 6}, before, expected);
    }
  }
}

TEST(ShortOfResources, WithoutThreadsTheCallerDoesTheirWork) {
  int refused = 0;
  for_each_case([&](const operation_case& c, const executor& by, const arrays& before,
                    const arrays& expected) {
    for (const int threads : {0, 1, 3}) {
      arrays got = before;
      const support::only_threads limit(threads);
      EXPECT_NO_THROW(c.run(got, by)) << threads;
      EXPECT_TRUE(got == expected) << "with " << threads << " threads";
      refused += limit.refused();
    }
  });
  EXPECT_GT(refused, 100);  // else nothing was tested
}

/// Runs a case while Limit lives: the right bits, or std::bad_alloc and nothing written.
template <class Limit, class... Arguments>
void run_all_or_nothing(const operation_case& c, const executor& by, const arrays& before,
                        const arrays& expected, const Arguments&... of_limit) {
  arrays got = before;
  bool threw = false;
  try {
    const Limit limit(of_limit...);
    c.run(got, by);
  } catch (const std::bad_alloc&) {
    threw = true;
  }
  EXPECT_TRUE(got == (threw ? before : expected)) << (threw ? "something was written" : "");
}

TEST(ShortOfResources, ThreadsWithoutMemoryEndNoProcess) {
  for_each_case([&](const operation_case& c, const executor& by, const arrays& before,
                    const arrays& expected) {
    run_all_or_nothing<support::no_memory_elsewhere>(c, by, before, expected);
  });
}

TEST(ShortOfResources, MemoryMayEndAtAnyAllocation) {
  int failures = 0;
  for_each_case([&](const operation_case& c, const executor& by, const arrays& before,
                    const arrays& expected) {
    const executor few = {by.backend, 3};
    bool failed = true;
    for (int first = 0; failed; ++first) {
      run_all_or_nothing<support::only_allocations>(c, few, before, expected, first);
      failed = support::only_allocations::failed();
      failures += failed ? 1 : 0;
    }
  });
  EXPECT_GT(failures, 100);
}

}  // namespace
}  // namespace samebits
