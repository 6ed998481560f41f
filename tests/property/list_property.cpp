// Operations over tensor lists against the oracle: lists of tensors in any formats, strides and
// alignment, on every executor and any number of threads.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "oracle/convert.hpp"
#include "oracle/list.hpp"
#include "oracle/sum_tree.hpp"
#include "samebits/tensor_list.hpp"
#include "support/backends.hpp"
#include "support/generators.hpp"
#include "support/property.hpp"
#include "support/strided_buffer.hpp"
#include "support/test_list.hpp"

namespace samebits {
namespace {

using namespace support;

using codes = std::vector<std::uint64_t>;

struct shape {
  std::int64_t rows;
  std::int64_t cols;
};

std::int64_t below(const word_source& next, std::uint64_t limit) {
  return static_cast<std::int64_t>(next() % limit);
}

/// Up to five shapes, mostly small; now and then one of several chunks.
std::vector<shape> draw_shapes(const word_source& next) {
  std::vector<shape> all(next() % 6);
  for (shape& s : all) {
    s = {below(next, 4), below(next, 40)};
    if (next() % 16 == 0) s = {1 + below(next, 3), 1 + below(next, 3000)};
    if (next() % 64 == 0) s = {1, 4096 + below(next, 4097)};
  }
  return all;
}

format_id draw_format(const word_source& next, const std::vector<format_id>& among) {
  return among[next() % among.size()];
}

const std::vector<format_id> wide = {format_id::fp32, format_id::fp16, format_id::bf16};
const std::vector<format_id> any = {format_id::fp32, format_id::fp16, format_id::bf16,
                                    format_id::e4m3, format_id::e5m2};

/// Tensors in buffers of their own, with guards around the elements.
class owned_tensors {
 public:
  owned_tensors(const std::vector<shape>& shapes, const std::vector<format_id>& among,
                const word_source& next) {
    // Some lists without NaN and Inf: where one is in nearly every list, little else is seen.
    const bool finite = next() % 2 == 0;
    for (const shape& s : shapes) {
      const format_id format = draw_format(next, among);
      layouts_.push_back(draw_layout(s.rows, s.cols, array_side::written, next));
      formats_.push_back(format);
      buffers_.emplace_back(format, layouts_.back());
      codes all;
      for (std::int64_t i = 0; i < s.rows * s.cols; ++i) {
        const auto family = static_cast<code_family>(next() % code_family_count);
        std::uint64_t code = draw_code(family, format, format_id::fp16, next);
        const auto kind = oracle::decode(row(format), code).kind;
        if (finite && kind != oracle::value_kind::finite) code = next() % 3;
        all.push_back(code);
        buffers_.back().store(at(buffers_.size() - 1, i), code);
      }
      codes_.push_back(all);
    }
  }

  static const oracle::format& row(format_id format) {
    return oracle::format_named(std::string(name(format)));
  }
  [[nodiscard]] std::size_t size() const { return buffers_.size(); }
  [[nodiscard]] const oracle::format& format(std::size_t i) const { return row(formats_[i]); }
  [[nodiscard]] const codes& given(std::size_t i) const { return codes_[i]; }
  tensor_list listed() {
    std::vector<list_tensor> all;
    for (strided_buffer& b : buffers_) all.push_back({b.view()});
    return tensor_list(all);
  }
  /// What lies there now is expected_code(tensor, element), and nothing around it has changed.
  template <class Expected>
  void require(const char* what, const Expected& expected_code) const {
    for (std::size_t t = 0; t < size(); ++t) {
      for (std::size_t i = 0; i < codes_[t].size(); ++i) {
        const std::uint64_t got = buffers_[t].load(at(t, static_cast<std::int64_t>(i)));
        const std::uint64_t expected = expected_code(t, i);
        if (got == expected) continue;
        RC_FAIL(std::string(what) + ": tensor " + std::to_string(t) + " (" +
                std::string(name(formats_[t])) + ") element " + std::to_string(i) + " is " +
                std::to_string(got) + ", by the oracle " + std::to_string(expected));
      }
      RC_ASSERT(buffers_[t].guards_are_intact());
    }
  }

 private:
  [[nodiscard]] std::int64_t at(std::size_t t, std::int64_t i) const {
    const array_layout& l = layouts_[t];
    return i / l.cols * l.row_stride + i % l.cols * l.col_stride;
  }

  std::vector<array_layout> layouts_;
  std::vector<format_id> formats_;
  std::vector<strided_buffer> buffers_;
  std::vector<codes> codes_;
};

/// Words from an engine whose seed the property draws: lists are too long to be shrunk.
word_source words() {
  const auto engine = std::make_shared<std::mt19937_64>(*rc::gen::arbitrary<std::uint64_t>());
  return [engine] { return (*engine)(); };
}

/// Any host executor, on any number of threads.
executor draw_executor(const word_source& next) {
  const std::vector<std::string> names = supported_backends();
  return find_executor(names[next() % names.size()], static_cast<int>(next() % 5));
}

void require_equal(const char* what, std::uint64_t got, std::uint64_t expected) {
  if (got == expected) return;
  RC_FAIL(std::string(what) + ": " + std::to_string(got) + ", by the oracle " +
          std::to_string(expected));
}

void require_statistics(const tensor_statistics& got, const oracle::inspected& expected,
                        std::uint64_t count, inspect_counts counts) {
  const bool all = counts == inspect_counts::distribution;
  require_equal("count", got.elements, count);
  require_equal("nan", got.nan, expected.nan);
  require_equal("inf", got.inf, expected.inf);
  require_equal("zeros", got.zeros, all ? expected.zeros : 0);
  require_equal("subnormals", got.subnormals, all ? expected.subnormals : 0);
  require_equal("amax", got.amax_bits, expected.amax);
  require_equal("squares", std::bit_cast<std::uint64_t>(got.squares), expected.squares);
}

TEST(ListProperty, Inspect) {
  expect_holds("inspect", 600, [] {
    const word_source next = words();
    owned_tensors list(draw_shapes(next), wide, next);
    const auto counts = static_cast<inspect_counts>(next() % 2);
    const inspect_report got = inspect(list.listed(), {counts}, draw_executor(next));
    oracle::inspected total;
    std::vector<std::uint64_t> sums;
    std::uint64_t elements = 0;
    std::int64_t first_bad = -1;
    RC_ASSERT(got.tensors.size() == list.size());
    for (std::size_t t = 0; t < list.size(); ++t) {
      const oracle::inspected one = oracle::inspect(list.format(t), list.given(t));
      require_statistics(got.tensors[t], one, list.given(t).size(), counts);
      elements += list.given(t).size();
      sums.push_back(one.squares);
      total.nan += one.nan;
      total.inf += one.inf;
      total.zeros += one.zeros;
      total.subnormals += one.subnormals;
      total.amax = std::max(total.amax, one.amax);
      for (std::size_t f = 0; f < 256; ++f) total.exponents[f] += one.exponents[f];
      if (first_bad < 0 && one.nan + one.inf != 0) first_bad = static_cast<std::int64_t>(t);
    }
    total.squares = oracle::sum_tree(sums);
    require_statistics(got.total, total, elements, counts);
    RC_ASSERT(got.first_bad == first_bad);
    if (counts == inspect_counts::nonfinite) total.exponents = {};
    RC_ASSERT(got.exponents == total.exponents);
    list.require("inspect", [&](std::size_t t, std::size_t i) { return list.given(t)[i]; });
  });
}

TEST(ListProperty, Unscale) {
  expect_holds("unscale", 400, [] {
    const word_source next = words();
    owned_tensors list(draw_shapes(next), wide, next);
    const float factor = std::abs(draw_list_factor(next));
    const auto bits = std::bit_cast<std::uint32_t>(factor);
    const unscale_report got = unscale(list.listed(), factor, draw_executor(next));
    unscale_report expected;
    list.require("unscale", [&](std::size_t t, std::size_t i) {
      return oracle::scaled(list.format(t), list.given(t)[i], bits);
    });
    for (std::size_t t = 0; t < list.size(); ++t) {
      const auto is_finite = [&](std::uint64_t code) {
        return oracle::decode(list.format(t), code).kind == oracle::value_kind::finite;
      };
      const oracle::inspected before = oracle::inspect(list.format(t), list.given(t));
      expected.elements += list.given(t).size();
      expected.nonfinite += before.nan + before.inf;
      expected.amax_bits = std::max(expected.amax_bits, before.amax);
      bool bad = before.nan + before.inf != 0;
      for (const std::uint64_t code : list.given(t)) {
        if (!is_finite(code) || is_finite(oracle::scaled(list.format(t), code, bits))) continue;
        ++expected.overflowed;
        bad = true;
      }
      if (bad && expected.first_bad < 0) expected.first_bad = static_cast<std::int64_t>(t);
    }
    RC_ASSERT(got == expected);
  });
}

TEST(ListProperty, Scale) {
  expect_holds("scale", 200, [] {
    const word_source next = words();
    owned_tensors list(draw_shapes(next), wide, next);
    const float factor = draw_list_factor(next);
    scale(list.listed(), factor, draw_executor(next));
    list.require("scale", [&](std::size_t t, std::size_t i) {
      return oracle::scaled(list.format(t), list.given(t)[i], std::bit_cast<std::uint32_t>(factor));
    });
  });
}

TEST(ListProperty, Accumulate) {
  expect_holds("accumulate", 500, [] {
    const word_source next = words();
    const std::vector<shape> shapes = draw_shapes(next);
    owned_tensors acc(shapes, wide, next);
    owned_tensors gradients(shapes, any, next);
    std::vector<float> scales;
    for (std::size_t i = 0; i < shapes.size(); ++i) scales.push_back(draw_list_factor(next));
    const bool scaled = next() % 3 != 0;
    accumulate(acc.listed(), gradients.listed(), {scaled ? scales.data() : nullptr},
               draw_executor(next));
    acc.require("accumulate", [&](std::size_t t, std::size_t i) {
      const float scale = scaled ? scales[t] : 1.0f;
      return oracle::accumulated(acc.format(t), acc.given(t)[i], gradients.format(t),
                                 gradients.given(t)[i], std::bit_cast<std::uint32_t>(scale));
    });
    gradients.require("gradients",
                      [&](std::size_t t, std::size_t i) { return gradients.given(t)[i]; });
  });
}

TEST(ListProperty, Axpby) {
  expect_holds("axpby", 400, [] {
    const word_source next = words();
    const std::vector<shape> shapes = draw_shapes(next);
    owned_tensors x(shapes, wide, next);
    owned_tensors y(shapes, wide, next);
    owned_tensors other(shapes, wide, next);
    const float a = draw_list_factor(next);
    const float b = draw_list_factor(next);
    owned_tensors* const outs[] = {&other, &x, &y};
    owned_tensors& out = *outs[next() % 3];
    axpby(a, x.listed(), b, y.listed(), out.listed(), draw_executor(next));
    out.require("axpby", [&](std::size_t t, std::size_t i) {
      return oracle::combined(out.format(t), std::bit_cast<std::uint32_t>(a), x.format(t),
                              x.given(t)[i], std::bit_cast<std::uint32_t>(b), y.format(t),
                              y.given(t)[i]);
    });
  });
}

TEST(ListProperty, Cast) {
  expect_holds("cast", 300, [] {
    const word_source next = words();
    const std::vector<shape> shapes = draw_shapes(next);
    owned_tensors from(shapes, any, next);
    owned_tensors to(shapes, any, next);
    convert_options o;
    o.rounding = static_cast<rounding>(next() % enum_count<rounding>);
    o.overflow = static_cast<overflow>(next() % enum_count<overflow>);
    o.nan = static_cast<nan_policy>(next() % enum_count<nan_policy>);
    o.random.seed = next();
    o.random.stream = draw_number(next);
    cast(from.listed(), to.listed(), o, draw_executor(next));
    to.require("cast", [&](std::size_t t, std::size_t i) {
      random_stream random = o.random;
      random.stream += t;  // each tensor draws from a stream of its own
      const random_bits bits{random_word(random.seed, random.stream, i), random.bits};
      return oracle::convert(from.format(t), to.format(t), from.given(t)[i],
                             {o.rounding, o.overflow, o.nan}, bits);
    });
  });
}

TEST(ListProperty, ClipFactor) {
  expect_holds("clip_factor", 3000, [] {
    const word_source next = words();
    const auto number = [&] {
      const auto near = std::uint64_t{1023 - 30} + next() % 60;
      std::uint64_t code = near << 52 | (next() >> 12);
      if (next() % 16 == 0) code = next() % 0x7FF0000000000001u;
      if (next() % 32 == 0) code = 0;
      return code;
    };
    const std::uint64_t norm = next() % 64 == 0 ? 0x7FF8000000000001u : number();
    const std::uint64_t max_norm = number();
    const float got = clip_factor(std::bit_cast<double>(norm), std::bit_cast<double>(max_norm));
    require_equal("clip_factor", std::bit_cast<std::uint32_t>(got),
                  oracle::clip_factor(norm, max_norm));
  });
}

}  // namespace
}  // namespace samebits
