// Operations over lists of tensors.
#include <bit>
#include <cmath>
#include <random>

#include "engine/cases/lists.hpp"
#include "engine/cases/operations.hpp"
#include "engine/core/text.hpp"
#include "engine/inputs/families.hpp"
#include "samebits/quantize.hpp"
#include "samebits/scalar.hpp"
#include "samebits/tensor_list.hpp"

namespace samebits::support {
namespace {

/// Small, of several vectors a lane, and of several chunks.
matrix_shape draw_shape(const word_source& next) {
  switch (below(24, next)) {
    case 0: return {1, 4096 + below(4097, next)};
    case 1:
    case 2: return {1 + below(3, next), 1 + below(1500, next)};
    default: return {below(4, next), below(70, next)};
  }
}

format_id draw_format(list_call which, std::size_t list, const word_source& next) {
  constexpr format_id all[] = {format_id::fp32, format_id::fp16, format_id::bf16, format_id::e4m3,
                               format_id::e5m2};
  const bool any = which == list_call::cast || (which == list_call::accumulate && list == 1);
  return all[below(any ? 5 : 3, next)];
}

listed_tensor draw_tensor(list_call which, bool plain, const word_source& next) {
  const matrix_shape s = draw_shape(next);
  listed_tensor t{s.rows, s.cols, {}, {}};
  for (std::size_t k = 0; k < max_lists; ++k) {
    t.formats[k] = draw_format(which, k, next);
    t.layouts[k] = plain ? dense_layout(s.rows, s.cols)
                         : draw_layout(s.rows, s.cols, array_side::written, next);
  }
  return t;
}

/// On both sides of what rounds otherwise from fp32 into shorter formats.
constexpr std::uint32_t low_halves[] = {0,      1,      0x0FFF, 0x1000, 0x1001,
                                        0x2FFF, 0x3000, 0x7FFF, 0x8000, 0x8001};

/// Codes of a kind. Among them codes of all families, which take long to choose; finite ones unless
/// any bits are asked for.
strided_buffer random_tensor(const list_case& c, std::size_t list, std::size_t tensor) {
  const format_id format = c.tensors[tensor].formats[list];
  const array_layout& layout = c.tensors[tensor].layouts[list];
  strided_buffer buffer(format, layout);
  const word_source next = words_from(c.content + 97 * list + tensor);
  const bool any = c.kind == list_content::any_bits;
  const std::uint64_t every = layout.rows * layout.cols > 100 ? 16 : 2;
  if (c.kind == list_content::every_code) {
    for (std::int64_t i = 0; i < layout.cols; ++i) {
      const auto n = static_cast<std::uint64_t>(i);
      constexpr std::uint64_t lows = std::size(low_halves);
      buffer.store(i, format == format_id::fp32 ? n / lows << 16 | low_halves[n % lows] : n);
    }
    return buffer;
  }
  const format_id beside =
      c.which == list_call::cast ? c.tensors[tensor].formats[1] : format_id::fp16;
  for (std::int64_t i = 0; i < layout.rows * layout.cols; ++i) {
    std::uint64_t code = draw_list_code(format, c.kind, next);
    if (next() % every == 0) {
      const std::uint64_t special = draw_any_code(format, beside, next);
      if (any || is_finite(format, special)) code = special;
    }
    buffer.store(layout.at(i), code);
  }
  return buffer;
}

/// The tensors of the lists, one list after another, then the scales.
buffers memory_of_list(const list_case& c) {
  buffers all;
  for (std::size_t k = 0; k < lists_of(c.which); ++k) {
    for (std::size_t i = 0; i < c.tensors.size(); ++i) {
      const std::string name = "list " + std::to_string(k) + " tensor " + std::to_string(i);
      if (k == 1 && c.which == list_call::cast && c.out == 0) {
        const listed_tensor& t = c.tensors[i];
        all.push_back({.name = name, .memory = {t.formats[1], {}}, .over = static_cast<int>(i)});
      } else {
        all.push_back({name, buffer_use::given, random_tensor(c, k, i)});
      }
    }
  }
  const auto count = static_cast<std::int64_t>(c.tensors.size());
  strided_buffer scales(format_id::fp32, dense_layout(1, count));
  std::mt19937_64 engine(c.content);
  for (std::int64_t i = 0; i < count; ++i) {
    scales.store(i, std::bit_cast<std::uint32_t>(draw_list_factor([&] { return engine(); })));
  }
  all.push_back({"scales", buffer_use::fixed, std::move(scales)});
  return all;
}

void add(returned_values& all, const tensor_statistics& s) {
  for (const returned_value& f :
       {returned_value{"count", s.elements}, returned_value{"nan", s.nan},
        returned_value{"inf", s.inf}, returned_value{"zeros", s.zeros},
        returned_value{"subnormals", s.subnormals}, returned_value{"amax", s.amax_bits},
        returned_value{"squares", std::bit_cast<std::uint64_t>(s.squares)}}) {
    all.push_back(f);
  }
}

returned_values returned_by(const inspect_report& r) {
  returned_values all;
  add(all, r.total);
  for (const tensor_statistics& s : r.tensors) add(all, s);
  all.push_back({"first_bad", static_cast<std::uint64_t>(r.first_bad)});
  for (const std::uint64_t n : r.exponents) all.push_back({"exponents", n});
  return all;
}

returned_values returned_by(const unscale_report& r) {
  return {{"count", r.elements},
          {"nonfinite", r.nonfinite},
          {"overflowed", r.overflowed},
          {"amax", r.amax_bits},
          {"first_bad", static_cast<std::uint64_t>(r.first_bad)}};
}

returned_values returned_by(const norm_report& r) {
  returned_values all = {{"norm of all", std::bit_cast<std::uint64_t>(r.total)}};
  for (const double norm : r.tensors) {
    all.push_back({"norm of a tensor", std::bit_cast<std::uint64_t>(norm)});
  }
  return all;
}

returned_values list_call_on(const list_case& c, const call_site& site) {
  const std::size_t tensors = c.tensors.size();
  const auto list_at = [&](std::size_t list) {
    return tensor_list(std::span(site.views).subspan(list * tensors, tensors));
  };
  const executor where = site.target.where(c.threads);
  switch (c.which) {
    case list_call::inspect: return returned_by(inspect(list_at(0), {c.counts}, where));
    case list_call::l2norm: return returned_by(l2norm(list_at(0), where));
    case list_call::unscale: return returned_by(unscale(list_at(0), c.a, where));
    case list_call::scale:
      site.target.enqueue([&, list = list_at(0)] { scale(list, c.a, where); });
      return {};
    case list_call::clip: {
      const clip_report r = clip(list_at(0), c.max_norm, where);
      return {{"norm", std::bit_cast<std::uint64_t>(r.norm)},
              {"factor", std::bit_cast<std::uint32_t>(r.factor)}};
    }
    case list_call::accumulate:
      site.target.enqueue([&, acc = list_at(0), x = list_at(1)] {
        accumulate(acc, x, {c.has_scales ? site.pointer<const float>(2 * tensors) : nullptr},
                   where);
      });
      return {};
    case list_call::axpby:
      site.target.enqueue([&, x = list_at(0), y = list_at(1), out = list_at(c.out)] {
        axpby(c.a, x, c.b, y, out, where);
      });
      return {};
    case list_call::cast:
      site.target.enqueue(
          [&, from = list_at(0), to = list_at(1)] { cast(from, to, c.cast, where); });
      return {};
  }
  return {};
}

/// A call on up to five tensors of up to some chunks.
list_case draw_list_case(list_call which, const word_source& next) {
  list_case c;
  c.which = which;
  c.tensors.resize(static_cast<std::size_t>(below(6, next)));
  const bool plain = below(2, next) == 0, alike = below(2, next) == 0;
  for (listed_tensor& t : c.tensors) t = draw_tensor(which, plain, next);
  if (alike) {
    for (listed_tensor& t : c.tensors) t.formats = c.tensors[0].formats;
  }
  if (which == list_call::axpby && below(2, next) == 0) {
    for (listed_tensor& t : c.tensors) t.formats[1] = t.formats[2] = t.formats[0];
  }
  c.a = draw_list_factor(next);
  if (which == list_call::unscale) c.a = std::abs(c.a);
  c.b = draw_list_factor(next);
  c.max_norm = std::ldexp(1.0 + static_cast<double>(next() >> 40) * 0x1p-24,
                          static_cast<int>(below(24, next)) - 12);
  c.has_scales = below(3, next) != 0;
  c.counts = any_enumerator<inspect_counts>(next);
  c.out = static_cast<std::size_t>(below(3, next));
  if (which == list_call::cast && c.out == 0) {  // in place: formats of one width
    for (listed_tensor& t : c.tensors) {
      if (storage_bytes(t.formats[1]) != storage_bytes(t.formats[0])) t.formats[1] = t.formats[0];
    }
  }
  c.kind = static_cast<list_content>(below(3, next));
  if (below(2, next) == 0) c.cast.rounding = any_enumerator<rounding>(next);
  c.cast.overflow = any_enumerator<overflow>(next);
  if (below(2, next) == 0) c.cast.nan = any_enumerator<nan_policy>(next);
  c.cast.random = draw_random_stream(next);
  if (below(2, next) == 0) c.cast.random.offset &= ~std::uint64_t{15};
  return c;
}

/// A tensor of up to so many elements in rows without gaps or with gaps.
listed_tensor draw_listed_tensor(list_call which, std::int64_t maximum, const word_source& next) {
  const std::int64_t count = below(maximum + 1, next);
  const std::int64_t rows = below(4, next) == 0 ? 1 + below(5, next) : 1;
  listed_tensor t{rows, count / rows, {}, {}};
  for (std::size_t k = 0; k < max_lists; ++k) {
    t.formats[k] = draw_format(which, k, next);
    t.layouts[k] = below(8, next) == 0 ? draw_layout(rows, t.cols, array_side::written, next)
                                       : dense_layout(rows, t.cols);
    t.layouts[k].misalignment = below(8, next);
  }
  return t;
}

operation_of<list_case> list_calls_of(list_call which) {
  return {[which](const word_source& next) { return draw_list_case(which, next); }, memory_of_list,
          list_call_on};
}

}  // namespace

void describe(list_case& c, case_fields& fields) {
  fields.show("of", c.which, "max_norm", c.max_norm, "content of kind", c.kind);
  fields.fewer(c.tensors);
  for (listed_tensor& t : c.tensors) {
    fields.line();
    fields.show("formats", t.formats);
    fields.matrices({{"list 0", t.layouts[0]}, {"list 1", t.layouts[1]}, {"list 2", t.layouts[2]}});
    t.rows = t.layouts[0].rows;
    t.cols = t.layouts[0].cols;
  }
  fields.line();
  fields.reset("a", c.a, 1.0F, "b", c.b, 1.0F, "scales given", c.has_scales, false, "counts",
               c.counts, inspect_counts::nonfinite, "writes list", c.out, 2U, "rounding",
               c.cast.rounding, rounding::nearest_even, "overflow", c.cast.overflow, overflow::ieee,
               "nan", c.cast.nan, nan_policy::canonical);
  fields.reset(c.cast.random);
}

std::string_view name(list_call which) {
  constexpr std::string_view names[] = {"inspect", "l2norm",     "unscale", "scale",
                                        "clip",    "accumulate", "axpby",   "cast"};
  return names[static_cast<int>(which)];
}

/// Up to some chunks, many small tensors, and enough elements for several threads.
array_operation large_lists(list_call which, std::size_t many) {
  std::vector<list_case> all;
  const auto add = [&](std::size_t tensors, std::int64_t maximum) {
    for (const list_content kind :
         {list_content::ordinary, list_content::small, list_content::any_bits}) {
      const word_source next = words_from(all.size());
      list_case c = draw_list_case(which, next);
      c.tensors.resize(tensors);
      for (listed_tensor& t : c.tensors) t = draw_listed_tensor(which, maximum, next);
      c.kind = kind;
      c.content = all.size();
      if (which == list_call::cast) c.out = 1;
      c.threads = all.size() % 2 == 0 ? 1 : 3;
      all.push_back(c);
    }
  };
  for (const std::int64_t maximum : {5, 60'000}) add(1, maximum);
  add(7, 9'000);
  for (const std::size_t tensors : {423u, 424u, 425u}) add(tensors, 300);
  add(many, 40);
  add(4, 60'000);
  return listed_operation(std::string(name(which)), list_calls_of(which), all, 4);
}

array_operation casts_of_every_code(std::size_t step) {
  constexpr format_id formats[] = {format_id::fp32, format_id::fp16, format_id::bf16,
                                   format_id::e4m3, format_id::e5m2};
  constexpr std::int64_t counts[] = {65536 * std::size(low_halves), 65536, 65536, 256, 256};
  constexpr std::size_t rules =
      enum_count<rounding> * enum_count<overflow> * enum_count<nan_policy>;
  std::vector<list_case> all;
  for (std::size_t i = 0; i < std::size(formats) * std::size(formats) * rules; i += step) {
    const std::size_t from = i / rules % 5, to = i / rules / 5, rule = i % rules;
    const array_layout dense = dense_layout(1, counts[from]);
    list_case c{.which = list_call::cast, .kind = list_content::every_code, .threads = 0};
    c.tensors = {{1, counts[from], {formats[from], formats[to]}, {dense, dense}}};
    c.cast = {.rounding = static_cast<rounding>(rule % enum_count<rounding>),
              .overflow = static_cast<overflow>(rule / enum_count<rounding> % enum_count<overflow>),
              .nan = static_cast<nan_policy>(rule / enum_count<rounding> / enum_count<overflow>),
              .random = {.seed = 5, .stream = 7, .bits = 12}};
    all.push_back(c);
  }
  return listed_operation("cast", list_calls_of(list_call::cast), all, 32);
}

array_operation list_operation(list_call which) {
  return make_operation(std::string(name(which)), list_calls_of(which));
}

}  // namespace samebits::support
