// Operations over lists of tensors.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <ostream>
#include <random>

#include "operations/operations.hpp"
#include "samebits/quantize.hpp"
#include "samebits/tensor_list.hpp"
#include "support/case_generator.hpp"
#include "support/rules.hpp"
#include "support/test_list.hpp"

namespace samebits::support {
namespace {

constexpr std::size_t max_lists = 3;

std::size_t lists_of(list_call which) {
  if (which == list_call::axpby) return 3;
  return which == list_call::accumulate || which == list_call::cast ? 2 : 1;
}

/// A tensor in each of the lists.
struct listed_tensor {
  std::int64_t rows = 0, cols = 0;
  std::array<format_id, max_lists> formats = {};
  std::array<array_layout, max_lists> layouts = {};
};

struct list_case {
  list_call which = list_call::scale;
  std::vector<listed_tensor> tensors = {};
  float a = 1, b = 1;
  double max_norm = 1;
  bool has_scales = false;
  inspect_counts counts = inspect_counts::nonfinite;
  convert_options cast = {};
  std::size_t out = 2;  ///< the list that axpby writes
  list_content kind = list_content::ordinary;
  int threads = 1;
  std::uint64_t content = 0;
};

std::ostream& operator<<(std::ostream& out, const list_case& c) {
  out << name(c.which) << " of " << c.tensors.size() << " tensors, a " << std::hexfloat << c.a
      << ", b " << c.b << ", max_norm " << c.max_norm << std::defaultfloat
      << (c.has_scales ? ", scales given" : "") << ", counts " << static_cast<int>(c.counts)
      << ", writes list " << c.out << ", "
      << text_of({c.cast.rounding, c.cast.overflow, c.cast.nan}) << ", seed " << c.cast.random.seed
      << " stream " << c.cast.random.stream << " offset " << c.cast.random.offset;
  if (c.cast.random.pitch) out << " pitch " << *c.cast.random.pitch;
  out << " K " << c.cast.random.bits << ", " << c.threads << " threads, content " << c.content
      << " of kind " << static_cast<int>(c.kind);
  for (const listed_tensor& t : c.tensors) {
    out << "\n    [" << t.rows << ", " << t.cols << "]";
    for (std::size_t k = 0; k < lists_of(c.which); ++k) {
      const array_layout& l = t.layouts[k];
      out << "; " << name(t.formats[k]) << " strides " << l.row_stride << ", " << l.col_stride
          << ", " << l.misalignment << " bytes off";
    }
  }
  return out;
}

std::int64_t below(std::int64_t limit, const word_source& next) {
  return static_cast<std::int64_t>(next() % static_cast<std::uint64_t>(limit));
}

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
    t.layouts[k] = plain ? array_layout{s.rows, s.cols, s.cols, 1, 0}
                         : draw_layout(s.rows, s.cols, array_side::written, next);
  }
  return t;
}

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
  c.counts = static_cast<inspect_counts>(below(enum_count<inspect_counts>, next));
  c.out = static_cast<std::size_t>(below(3, next));
  c.kind = static_cast<list_content>(below(3, next));
  if (below(2, next) == 0)
    c.cast.rounding = static_cast<rounding>(below(enum_count<rounding>, next));
  c.cast.overflow = static_cast<overflow>(below(enum_count<overflow>, next));
  if (below(2, next) == 0)
    c.cast.nan = static_cast<nan_policy>(below(enum_count<nan_policy>, next));
  c.cast.random = {next(), draw_number(next), draw_number(next), std::nullopt,
                   1 + static_cast<int>(below(32, next))};
  if (below(2, next) == 0) c.cast.random.offset &= ~std::uint64_t{15};
  if (below(3, next) == 0) c.cast.random.pitch = draw_number(next);
  c.threads = static_cast<int>(below(5, next));
  c.content = next();
  return c;
}

bool is_dense(const array_layout& l) {
  return l.row_stride == l.cols && l.col_stride == 1 && l.misalignment == 0;
}

std::vector<list_case> simpler_lists(const list_case& c) {
  std::vector<list_case> all;
  for (std::size_t i = 0; i < c.tensors.size(); ++i) {
    all.push_back(c);
    all.back().tensors.erase(all.back().tensors.begin() + static_cast<std::ptrdiff_t>(i));
  }
  for (std::size_t i = 0; i < c.tensors.size(); ++i) {
    const auto [rows, cols, formats, layouts] = c.tensors[i];
    const auto resize = [&](std::int64_t to_rows, std::int64_t to_cols, bool plain) {
      all.push_back(c);
      listed_tensor& t = all.back().tensors[i];
      t.rows = to_rows;
      t.cols = to_cols;
      for (array_layout& l : t.layouts) {
        if (plain || is_dense(l)) {
          l = {to_rows, to_cols, to_cols, 1, 0};
        } else {
          l.rows = to_rows;
          l.cols = to_cols;
        }
      }
    };
    if (rows > 1) resize(1, cols, false);
    if (cols > 1) resize(rows, cols / 2, false);
    if (rows > 1) resize(rows - 1, cols, false);
    if (cols > 128) resize(rows, cols - 128, false);
    if (cols > 8) resize(rows, cols - 8, false);
    if (cols > 1) resize(rows, cols - 1, false);
    if (!std::all_of(layouts.begin(), layouts.end(), is_dense)) resize(rows, cols, true);
  }
  const auto set = [&](auto list_case::*member, const auto& value) {
    if (c.*member == value) return;
    all.push_back(c);
    all.back().*member = value;
  };
  set(&list_case::a, 1.0f);
  set(&list_case::b, 1.0f);
  set(&list_case::has_scales, false);
  set(&list_case::counts, inspect_counts::nonfinite);
  set(&list_case::out, std::size_t{2});
  set(&list_case::threads, 1);
  const auto reset_cast = [&](auto convert_options::*option) {
    if (c.cast.*option == convert_options{}.*option) return;
    all.push_back(c);
    all.back().cast.*option = convert_options{}.*option;
  };
  reset_cast(&convert_options::rounding);
  reset_cast(&convert_options::overflow);
  reset_cast(&convert_options::nan);
  const auto reset_random = [&](auto random_stream::*part) {
    if (c.cast.random.*part == random_stream{}.*part) return;
    all.push_back(c);
    all.back().cast.random.*part = random_stream{}.*part;
  };
  reset_random(&random_stream::seed);
  reset_random(&random_stream::stream);
  reset_random(&random_stream::offset);
  reset_random(&random_stream::pitch);
  return all;
}

strided_buffer random_tensor(const list_case& c, format_id format, const array_layout& layout,
                             std::uint64_t seed) {
  strided_buffer buffer(format, layout);
  std::mt19937_64 engine(seed);
  const word_source next = [&engine] { return engine(); };
  for (std::int64_t row = 0; row < layout.rows; ++row) {
    for (std::int64_t col = 0; col < layout.cols; ++col) {
      std::uint64_t code = draw_list_code(format, c.kind, next);
      if (next() % 16 == 0 && c.kind == list_content::any_bits) {
        const auto family = static_cast<code_family>(next() % code_family_count);
        code = draw_code(family, format, format_id::fp16, next);
      }
      buffer.store(row * layout.row_stride + col * layout.col_stride, code);
    }
  }
  return buffer;
}

/// The tensors of the lists, one list after another, then the scales.
std::vector<case_buffer> memory_of_list(const list_case& c) {
  std::vector<case_buffer> all;
  for (std::size_t k = 0; k < lists_of(c.which); ++k) {
    for (std::size_t i = 0; i < c.tensors.size(); ++i) {
      const listed_tensor& t = c.tensors[i];
      all.push_back({"list " + std::to_string(k) + " tensor " + std::to_string(i),
                     buffer_use::given,
                     random_tensor(c, t.formats[k], t.layouts[k], c.content + 97 * k + i)});
    }
  }
  const auto count = static_cast<std::int64_t>(c.tensors.size());
  strided_buffer scales(format_id::fp32, {1, count, count, 1, 0});
  std::mt19937_64 engine(c.content);
  for (std::int64_t i = 0; i < count; ++i) {
    scales.store(i, std::bit_cast<std::uint32_t>(draw_list_factor([&] { return engine(); })));
  }
  all.push_back({"scales", buffer_use::result, std::move(scales)});
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
    case list_call::scale: scale(list_at(0), c.a, where); return {};
    case list_call::clip: {
      const clip_report r = clip(list_at(0), c.max_norm, where);
      return {{"norm", std::bit_cast<std::uint64_t>(r.norm)},
              {"factor", std::bit_cast<std::uint32_t>(r.factor)}};
    }
    case list_call::accumulate:
      accumulate(list_at(0), list_at(1),
                 {c.has_scales ? site.pointer<const float>(2 * tensors) : nullptr}, where);
      return {};
    case list_call::axpby:
      axpby(c.a, list_at(0), c.b, list_at(1), list_at(c.out), where);
      return {};
    case list_call::cast: cast(list_at(0), list_at(1), c.cast, where); return {};
  }
  return {};
}

}  // namespace

std::string_view name(list_call which) {
  constexpr std::string_view names[] = {"inspect", "l2norm",     "unscale", "scale",
                                        "clip",    "accumulate", "axpby",   "cast"};
  return names[static_cast<int>(which)];
}

array_operation list_operation(list_call which) {
  return make_operation<list_case>(
      std::string(name(which)),
      case_generator<list_case>(
          [which](const word_source& next) { return draw_list_case(which, next); }, simpler_lists),
      memory_of_list, list_call_on);
}

}  // namespace samebits::support
