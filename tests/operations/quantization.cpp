// Quantization of a matrix and of a list, and back.
#include <algorithm>
#include <bit>
#include <ostream>
#include <random>

#include "operations/operations.hpp"
#include "samebits/quantize.hpp"
#include "samebits/quantize_list.hpp"
#include "support/case_generator.hpp"
#include "support/quantize_cases.hpp"

namespace samebits::support {
namespace {

std::int64_t below(std::int64_t limit, const word_source& next) {
  return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(limit));
}

/// Which outputs are wanted.
struct wanted_outputs {
  bool codes = true;
  bool scales = true;
  bool codes_transposed = false;
  bool scales_transposed = false;
  bool statistics = false;

  friend constexpr bool operator==(const wanted_outputs&, const wanted_outputs&) = default;
};

/// Whether a flag that may turn the call off is given, and what it holds.
enum class skip_flag : std::uint8_t { none, zero, one };

struct quantization : quantize_case {
  wanted_outputs wanted = {};
  bool inverse_scales = false;
  skip_flag skip = skip_flag::none;
};

void print_wanted(std::ostream& out, const quantization& c) {
  out << "; wanted:" << (c.wanted.codes ? " codes" : "") << (c.wanted.scales ? " scales" : "")
      << (c.wanted.codes_transposed ? " codes_transposed" : "")
      << (c.wanted.scales_transposed ? " scales_transposed" : "")
      << (c.wanted.statistics ? " statistics" : "")
      << (c.inverse_scales ? "; inverse_scales given" : "");
}

std::ostream& operator<<(std::ostream& out, const quantization& c) {
  out << static_cast<const quantize_case&>(c);
  print_wanted(out, c);
  if (c.skip != skip_flag::none) out << "; skip flag " << (c.skip == skip_flag::one ? 1 : 0);
  return out;
}

/// Shapes that the kernels of a GPU convert in one pass: rows of whole vectors, several tiles and
/// block tiles each way, and rows that take a block several turns.
matrix_shape draw_large_shape(const word_source& next) {
  switch (below(8, next)) {
    case 0: return {1 + below(3, next), 1024 * (1 + below(3, next))};
    case 1: return {1 + below(20, next), 128 * (1 + below(8, next))};
    case 2: return {100 + below(60, next), 128 * (1 + below(2, next))};
    case 3: return {1, 8 * (1 + below(2500, next))};
    default: return {1 + below(70, next), 8 * (1 + below(24, next))};
  }
}

quantization draw_quantization(const word_source& next) {
  quantization c{draw_quantize_case(next)};
  if (below(3, next) == 0) {
    c.plain = below(8, next) != 0;
    const matrix_shape s = draw_large_shape(next);
    lay_out(c, s.rows, s.cols, next);
  }
  if (below(2, next) == 0) {  // what draws random bits by whole blocks asks for
    c.options.random.offset &= ~std::uint64_t{15};
    if (c.options.random.pitch) *c.options.random.pitch &= ~std::uint64_t{15};
    c.options.upper_bound = quantize_options{}.upper_bound;
    c.options.overflow = overflow::saturate;
    c.options.nan = nan_policy::canonical;
  }
  c.wanted.codes_transposed = below(3, next) == 0;
  c.wanted.codes = !c.wanted.codes_transposed || below(2, next) == 0;
  c.wanted.scales = below(4, next) != 0;
  c.wanted.scales_transposed = below(4, next) == 0;
  c.wanted.statistics = below(4, next) == 0;
  c.inverse_scales = c.scale_format == format_id::fp32 && below(6, next) == 0;
  if (below(16, next) == 0) c.skip = static_cast<skip_flag>(1 + below(2, next));
  return c;
}

/// The same with another base; inverse_scales are of fp32 scales.
quantization with_base(const quantization& c, const quantize_case& base) {
  quantization other = c;
  static_cast<quantize_case&>(other) = base;
  return other;
}

std::vector<wanted_outputs> simpler_wants(const wanted_outputs& w) {
  std::vector<wanted_outputs> all;
  for (bool wanted_outputs::*which :
       {&wanted_outputs::statistics, &wanted_outputs::scales_transposed, &wanted_outputs::scales,
        &wanted_outputs::codes_transposed, &wanted_outputs::codes}) {
    if (!(w.*which)) continue;
    wanted_outputs fewer = w;
    fewer.*which = false;
    if (fewer.codes || fewer.codes_transposed) all.push_back(fewer);
  }
  return all;
}

std::vector<quantization> simpler_quantizations(const quantization& c) {
  std::vector<quantization> all;
  for (const quantize_case& base : simpler_shapes(c)) all.push_back(with_base(c, base));
  for (const quantize_case& base : simpler_options(c)) all.push_back(with_base(c, base));
  for (const wanted_outputs& fewer : simpler_wants(c.wanted)) {
    all.push_back(c);
    all.back().wanted = fewer;
  }
  if (c.inverse_scales) {
    all.push_back(c);
    all.back().inverse_scales = false;
  }
  if (c.skip != skip_flag::none) {
    all.push_back(c);
    all.back().skip = skip_flag::none;
  }
  return all;
}

/// Numbers of all kinds, as scales or inverse_scales.
strided_buffer random_scales(const quantize_case& c, format_id format, const array_layout& layout) {
  strided_buffer buffer(format, layout);
  std::mt19937_64 engine(c.content + 1);
  for (std::int64_t i = 0; i < layout.span(); ++i) {
    if (format == format_id::e8m0) {
      buffer.store(i, engine() & 0xFF);
      continue;
    }
    const auto field = static_cast<std::uint32_t>(100 + engine() % 55);
    const auto family = static_cast<code_family>(engine() % code_family_count);
    const bool ordinary = engine() % 4 != 0;
    buffer.store(i, ordinary
                        ? field << 23 | static_cast<std::uint32_t>(engine() >> 41)
                        : draw_code(family, format_id::fp32, c.from, [&] { return engine(); }));
  }
  return buffer;
}

// The buffers of a tensor, in their order.
constexpr std::size_t at_in = 0, at_inverse_scales = 1, at_codes = 2, at_scales = 3,
                      at_codes_transposed = 4, at_scales_transposed = 5, buffers_of_tensor = 6;

void add_tensor(std::vector<case_buffer>& all, const quantization& c, const std::string& prefix) {
  quantize_result r(c);
  all.push_back({prefix + "in", buffer_use::given, matrix_of(c)});
  all.push_back({prefix + "inverse_scales",
                 c.inverse_scales ? buffer_use::given : buffer_use::result,
                 c.inverse_scales ? random_scales(c, format_id::fp32, c.scales)
                                  : strided_buffer(format_id::fp32, {})});
  all.push_back({prefix + "codes", buffer_use::result, std::move(r.codes)});
  all.push_back({prefix + "scales", buffer_use::result, std::move(r.scales)});
  all.push_back({prefix + "codes_transposed", buffer_use::result, std::move(r.codes_transposed)});
  all.push_back({prefix + "scales_transposed", buffer_use::result, std::move(r.scales_transposed)});
}

/// The outputs of a tensor whose buffers begin at `first`.
quantize_outputs outputs_of(const quantization& c, const call_site& site, std::size_t first) {
  const auto view = [&](std::size_t at, bool wanted) {
    return wanted ? site.views[first + at] : matrix_view{};
  };
  return {.codes = view(at_codes, c.wanted.codes),
          .scales = view(at_scales, c.wanted.scales),
          .codes_transposed = view(at_codes_transposed, c.wanted.codes_transposed),
          .scales_transposed = view(at_scales_transposed, c.wanted.scales_transposed)};
}

constexpr std::size_t at_statistics = buffers_of_tensor, at_skip = buffers_of_tensor + 1;

std::vector<case_buffer> memory_of_quantization(const quantization& c) {
  std::vector<case_buffer> all;
  add_tensor(all, c, "");
  constexpr auto numbers = static_cast<std::int64_t>(sizeof(quantize_statistics) / 8);
  all.push_back({"statistics", buffer_use::result,
                 strided_buffer(format_id::fp64, {1, numbers, numbers, 1, 0})});
  strided_buffer flag(format_id::fp32, {1, 1, 1, 1, 0});
  flag.store(0, c.skip == skip_flag::one ? 1 : 0);
  all.push_back({"skip flag", buffer_use::result, std::move(flag)});
  return all;
}

returned_values quantize_on(const quantization& c, const call_site& site) {
  quantize_outputs outputs = outputs_of(c, site, 0);
  if (c.wanted.statistics) outputs.statistics = site.pointer<quantize_statistics>(at_statistics);
  quantize_options options = c.options;
  if (c.inverse_scales) options.inverse_scales = site.views[at_inverse_scales];
  if (c.skip != skip_flag::none) options.skip_if_nonzero = site.pointer<std::uint32_t>(at_skip);
  quantize(site.views[at_in], outputs, options, site.target.where(c.threads));
  return {};
}

std::vector<quantize_case> simpler_dequantizations(const quantize_case& c) {
  std::vector<quantize_case> all = simpler_shapes(c);
  if (c.scale_format != format_id::fp32) {
    all.push_back(c);
    all.back().scale_format = format_id::fp32;
  }
  return all;
}

std::vector<case_buffer> memory_of_dequantization(const quantize_case& c) {
  strided_buffer codes(c.to, c.codes);
  std::mt19937_64 engine(c.content);
  for (std::int64_t i = 0; i < c.codes.span(); ++i) codes.store(i, engine() & 0xFF);
  return {{"codes", buffer_use::given, std::move(codes)},
          {"scales", buffer_use::given, random_scales(c, c.scale_format, c.scales)},
          {"out", buffer_use::result, strided_buffer(c.from, c.codes)}};
}

returned_values dequantize_on(const quantize_case& c, const call_site& site) {
  dequantize(site.views[0], site.views[1], site.views[2], c.options.tile,
             site.target.where(c.threads));
  return {};
}

/// Tensors with the rule and the formats of the first.
struct list_quantization {
  std::vector<quantization> tensors;
  int threads = 1;
};

std::ostream& operator<<(std::ostream& out, const list_quantization& c) {
  out << c.tensors.size() << " tensors, " << c.threads << " threads";
  for (const quantization& t : c.tensors) out << "\n    " << t;
  return out;
}

list_quantization draw_list(const word_source& next) {
  list_quantization list;
  list.threads = static_cast<int>(below(5, next));
  const quantization first = draw_quantization(next);
  const bool plain = below(2, next) == 0, transposed = below(3, next) == 0;
  const std::int64_t tensors = below(7, next);
  for (std::int64_t i = 0; i < tensors; ++i) {
    quantization t = first;
    t.plain = plain;
    if (below(3, next) == 0) {
      const matrix_shape s = draw_large_shape(next);
      lay_out(t, s.rows, s.cols, next);
    } else {
      lay_out(t, below(40, next), plain ? 8 * below(12, next) : below(90, next), next);
    }
    t.wanted = {true, below(4, next) != 0, transposed, below(4, next) == 0, false};
    if (transposed) t.wanted.codes = below(2, next) == 0;
    t.inverse_scales = t.scale_format == format_id::fp32 && below(8, next) == 0;
    t.content = next();
    list.tensors.push_back(std::move(t));
  }
  return list;
}

std::vector<list_quantization> simpler_lists(const list_quantization& list) {
  std::vector<list_quantization> all;
  for (std::size_t i = 0; i < list.tensors.size(); ++i) {
    all.push_back(list);
    all.back().tensors.erase(all.back().tensors.begin() + static_cast<std::ptrdiff_t>(i));
  }
  if (list.threads != 1) {
    all.push_back(list);
    all.back().threads = 1;
  }
  for (std::size_t i = 0; i < list.tensors.size(); ++i) {
    const auto add = [&](const quantization& t) {
      all.push_back(list);
      all.back().tensors[i] = t;
    };
    const quantization& t = list.tensors[i];
    for (const quantize_case& base : simpler_shapes(t)) add(with_base(t, base));
    for (const wanted_outputs& fewer : simpler_wants(t.wanted)) {
      quantization other = t;
      other.wanted = fewer;
      add(other);
    }
    if (!t.inverse_scales) continue;
    quantization other = t;
    other.inverse_scales = false;
    add(other);
  }
  if (list.tensors.empty()) return all;
  for (const quantize_case& base : simpler_options(list.tensors[0])) {  // one rule for all
    all.push_back(list);
    for (quantization& t : all.back().tensors) {
      t.options = base.options;
      t.scale_format = base.scale_format;
    }
  }
  return all;
}

std::vector<case_buffer> memory_of_list(const list_quantization& list) {
  std::vector<case_buffer> all;
  for (std::size_t i = 0; i < list.tensors.size(); ++i) {
    add_tensor(all, list.tensors[i], "tensor " + std::to_string(i) + " ");
  }
  return all;
}

returned_values quantize_list_on(const list_quantization& list, const call_site& site) {
  std::vector<quantize_item> items;
  for (std::size_t i = 0; i < list.tensors.size(); ++i) {
    const std::size_t first = i * buffers_of_tensor;
    quantize_item item{.in = site.views[first + at_in],
                       .outputs = outputs_of(list.tensors[i], site, first)};
    if (list.tensors[i].inverse_scales) item.inverse_scales = site.views[first + at_inverse_scales];
    items.push_back(std::move(item));
  }
  const quantize_options options =
      list.tensors.empty() ? quantize_options{} : list.tensors[0].options;
  // A list of no tensors lies on the host.
  if (list.tensors.empty()) return {};
  quantize(quantize_list(std::move(items), options), site.target.where(list.threads));
  return {};
}

}  // namespace

array_operation quantize_operation() {
  return make_operation<quantization>(
      "quantize", case_generator<quantization>(draw_quantization, simpler_quantizations),
      memory_of_quantization, quantize_on);
}

array_operation dequantize_operation() {
  return make_operation<quantize_case>(
      "dequantize", case_generator<quantize_case>(draw_quantize_case, simpler_dequantizations),
      memory_of_dequantization, dequantize_on);
}

array_operation quantize_list_operation() {
  return make_operation<list_quantization>(
      "quantize_list", case_generator<list_quantization>(draw_list, simpler_lists), memory_of_list,
      quantize_list_on, 512);
}

}  // namespace samebits::support
