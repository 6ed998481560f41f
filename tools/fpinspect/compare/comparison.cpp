// The comparison of two files, tensor by tensor, with or without an original of both.
#include "fpinspect/compare/comparison.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <limits>
#include <utility>

#include "fpinspect/cli/error.hpp"
#include "fpinspect/cli/files.hpp"
#include "fpinspect/cli/parallel.hpp"
#include "fpinspect/cli/text/text.hpp"
#include "fpinspect/quantize/quantize_source.hpp"
#include "fpinspect/tensors/element_statistics.hpp"
#include "samebits/cast_statistics.hpp"
#include "samebits/convert.hpp"
#include "samebits/error.hpp"
#include "samebits/quantize.hpp"
#include "samebits/view.hpp"
#include "tensor_file/error.hpp"
#include "tensor_file/escape.hpp"

namespace fpinspect {

// --- The tensors of one side of a comparison ------------------------------------------------------

namespace {

using samebits::format_id;

compared_tensor tensor_of(shown_tensor shown, std::string_view option, const std::string& from) {
  compared_tensor result;
  if (!from.empty() && holds_integers(shown.info)) {
    if (const auto how = reading_of(shown.info, option, from, from_scope::integers)) {
      shown.how = *how;
      shown.note.clear();
    }
  }
  result.name = shown.info.name;
  result.shape = shown.info.shape;
  result.count = shown.info.count;
  result.note = shown.note;
  if (shown.has_numbers()) {
    result.format = shown.format();
    result.type = type_text(shown.info, shown.how);
  }
  result.stored = std::move(shown);
  return result;
}

/// codes * scales, as `dequantize` writes them.
compared_tensor dequantized(const quantized_file& file, const samebits::tile_shape& tile) {
  const quantized_output stored = file.output("", tile);
  const samebits::const_matrix_view& codes = stored.codes.view;
  owned_matrix values(format_id::fp32, {codes.rows, codes.cols});
  stored.dequantize(file.path, values.view());
  return {.name = "values",
          .shape = extents_of(values.shape),
          .count = static_cast<std::uint64_t>(codes.rows * codes.cols),
          .type = "codes x scales",
          .made = std::make_shared<std::vector<std::byte>>(std::move(values.bytes))};
}

}  // namespace

std::optional<std::span<const std::byte>> compared_tensor::in_place() const {
  if (stored) return stored->view();
  return *made;
}

void compared_tensor::read(std::uint64_t first, std::uint64_t elements, std::byte* out) const {
  if (stored) return stored->read(first, elements, out);
  std::memcpy(out, made->data() + first * sizeof(float),
              static_cast<std::size_t>(elements) * sizeof(float));
}

const compared_tensor* compared_file::find(std::string_view name) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const compared_tensor& t) { return t.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

compared_file open_compared(const std::string& input, const std::vector<std::string>& names,
                            std::string_view option, const std::string& from) {
  tensor_selection selection;
  selection.files = {input};
  const bool whole = !locate(input).tensor;
  std::vector<shown_tensor> shown = tensors_to_show(selection);
  compared_file result = {.input = input};
  if (whole && !shown.empty()) {
    const quantized_file file = {input, shown.front().file};
    if (const auto tile = file.tile()) {
      if (!names.empty() || !from.empty()) {
        throw usage_error(cat(names.empty() ? option : "--tensor", ": ",
                              samebits::tensor_file::escape_path(input),
                              " holds one quantized tensor; leave it out"));
      }
      result.tensors.push_back(dequantized(file, *tile));
      return result;
    }
  }
  if (!names.empty()) {
    selection.tensors = names;
    shown = tensors_to_show(selection);
  }
  const bool any_integers = std::any_of(
      shown.begin(), shown.end(), [](const shown_tensor& one) { return holds_integers(one.info); });
  if (!from.empty() && !any_integers) {
    throw usage_error(cat(option, ": none of the tensors of ",
                          samebits::tensor_file::escape_path(input),
                          " holds integers; leave it out"));
  }
  for (shown_tensor& one : shown) {
    result.tensors.push_back(tensor_of(std::move(one), option, from));
  }
  return result;
}

// --- The comparison of two files ------------------------------------------------------------------

namespace {

using samebits::format_id;

constexpr std::uint64_t chunk = 1 << 15;  // elements

std::size_t bytes_of(format_id format) {
  return static_cast<std::size_t>(samebits::storage_bytes(format));
}

/// Reads a tensor chunk by chunk: codes as stored and values.
class chunk_reader {
 public:
  chunk_reader(const compared_tensor& tensor, const samebits::executor& where)
      : tensor_(tensor), where_(where) {
    const auto room = static_cast<std::size_t>(std::min(tensor.count, chunk));
    codes_.resize(room * bytes_of(tensor.format));
    values_.resize(room);
    rounded_.resize(room * sizeof(std::uint64_t));
  }

  void load(std::uint64_t first, std::uint64_t count) {
    size_ = static_cast<std::size_t>(count);
    tensor_.read(first, count, codes_.data());
    decode(tensor_.format, codes_.data(), std::span(values_).first(size_));
  }

  [[nodiscard]] format_id format() const { return tensor_.format; }
  [[nodiscard]] std::span<const double> values() const { return std::span(values_).first(size_); }
  [[nodiscard]] const std::byte* codes() const { return codes_.data(); }

  /// The elements rounded to nearest even, with saturation. Valid until the next call.
  const std::byte* rounded_to(format_id to) {
    if (to == tensor_.format) return codes_.data();
    const auto cols = static_cast<std::int64_t>(size_);
    samebits::convert(
        samebits::view_of_codes(tensor_.format, static_cast<const void*>(codes_.data()), 1, cols),
        samebits::view_of_codes(to, rounded_.data(), 1, cols),
        {.overflow = samebits::overflow::saturate}, {where_.backend, 1});
    return rounded_.data();
  }

 private:
  const compared_tensor& tensor_;
  samebits::executor where_;
  std::size_t size_ = 0;
  std::vector<std::byte> codes_;
  std::vector<double> values_;
  std::vector<std::byte> rounded_;
};

/// Number of codes of the chunk that differ.
std::uint64_t different_codes(const chunk_reader& a, const chunk_reader& b) {
  const std::size_t bytes = bytes_of(a.format());
  std::uint64_t differ = 0;
  for (std::size_t i = 0; i < a.values().size(); ++i) {
    differ += std::memcmp(a.codes() + i * bytes, b.codes() + i * bytes, bytes) != 0 ? 1u : 0u;
  }
  return differ;
}

/// The figures of two readers over the same chunks.
class pair_meter {
 public:
  pair_meter(chunk_reader& a, chunk_reader& b)
      : a_(a), b_(b), format_(coarser(a.format(), b.format())), meter_(format_) {}

  void add() {
    meter_.add(a_.values(), b_.values(), a_.rounded_to(format_), b_.rounded_to(format_));
    if (a_.format() == b_.format()) meter_.add_bits(different_codes(a_, b_));
  }
  [[nodiscard]] difference_figures result() const { return meter_.result(); }

 private:
  chunk_reader& a_;
  chunk_reader& b_;
  format_id format_;
  difference_meter meter_;
};

/// Calls f(first, count) for each chunk of a tensor.
template <class Function>
void for_each_range(std::uint64_t count, const Function& f) {
  for (std::uint64_t first = 0; first < count; first += chunk) {
    f(first, std::min(chunk, count - first));
  }
}

/// Whether all bytes are equal.
bool are_equal(std::span<const std::byte> a, std::span<const std::byte> b, std::size_t threads) {
  if (a.size() != b.size()) return false;
  constexpr std::size_t part = 1 << 20;
  std::atomic<bool> equal = true;
  for_each_index((a.size() + part - 1) / part, threads, [&](std::size_t i, std::size_t) {
    const std::size_t at = i * part;
    const std::size_t size = std::min(part, a.size() - at);
    if (equal && std::memcmp(a.data() + at, b.data() + at, size) != 0) equal = false;
  });
  return equal;
}

/// The figures of a pair of equal codes, which need the elements of one tensor only. Returns whether
/// the pair is one whose codes are in place.
bool measure_equal(compared_pair& pair, const samebits::executor& where) {
  const compared_tensor& t = *pair.a;
  if (pair.original != nullptr || t.format != pair.b->format || t.count == 0) return false;
  const auto codes = t.in_place();
  const auto others = pair.b->in_place();
  if (!codes || !others || !are_equal(*codes, *others, static_cast<std::size_t>(where.threads))) {
    return false;
  }
  const samebits::cast_statistics s = samebits::statistics_of(
      samebits::view_of_codes(t.format, static_cast<const void*>(codes->data()), 1,
                              static_cast<std::int64_t>(t.count)),
      {.sums = true}, where);
  difference_figures& f = pair.figures;
  f.ulp_format = t.format;
  f.count = s.count;
  f.bits_differ = 0;
  f.paired = f.steps[0] = s.finite();
  f.nonzero = s.nonzero();
  f.signal = s.squares;
  return true;
}

void measure(compared_pair& pair, const samebits::executor& where) {
  chunk_reader a(*pair.a, where);
  chunk_reader b(*pair.b, where);
  if (pair.original == nullptr) {
    pair_meter meter(a, b);
    for_each_range(pair.a->count, [&](std::uint64_t first, std::uint64_t count) {
      a.load(first, count);
      b.load(first, count);
      meter.add();
    });
    pair.figures = meter.result();
    return;
  }
  chunk_reader original(*pair.original, where);
  pair_meter with_a(original, a);
  pair_meter with_b(original, b);
  original_figures figures;
  for_each_range(pair.a->count, [&](std::uint64_t first, std::uint64_t count) {
    original.load(first, count);
    a.load(first, count);
    b.load(first, count);
    with_a.add();
    with_b.add();
    figures.closer.add(original.values(), a.values(), b.values());
  });
  figures.a = with_a.result();
  figures.b = with_b.result();
  pair.against = figures;
}

/// Whether a quantized matrix may stand for the tensor: its leading dimensions are merged to rows.
bool same_shape(const compared_tensor& x, const compared_tensor& y) {
  if (x.shape == y.shape) return true;
  const bool merged = x.made != nullptr || y.made != nullptr;
  const std::uint64_t last_x = x.shape.empty() ? 1 : x.shape.back();
  const std::uint64_t last_y = y.shape.empty() ? 1 : y.shape.back();
  return merged && x.count == y.count && last_x == last_y;
}

/// Why two tensors are not compared; empty if they are.
std::string obstacle(const compared_tensor& x, const compared_tensor& y) {
  if (!x.note.empty()) return x.note;
  if (!y.note.empty()) return y.note;
  if (same_shape(x, y)) return {};
  return cat("shapes [", comma_separated(x.shape), "] and [", comma_separated(y.shape), "]");
}

/// The name in text: that of the file for a tensor without a name.
std::string text_name(const compared_tensor& t, const std::string& input) {
  return t.name.empty() ? samebits::tensor_file::escape_path(input)
                        : samebits::tensor_file::escape(t.name, 256);
}

/// The partner of a tensor: of the same name, or the only one if both files have only one.
const compared_tensor* partner(const compared_tensor& t, const compared_file& of,
                               const compared_file& in) {
  if (of.tensors.size() == 1 && in.tensors.size() == 1) return &in.tensors.front();
  return in.find(t.name);
}

double badness(const compared_pair& pair) {
  const difference_figures& f = pair.against ? pair.against->b : pair.figures;
  const sqnr ratio = f.ratio();
  if (ratio.db) return -*ratio.db;
  return ratio.exact ? -std::numeric_limits<double>::infinity()
                     : std::numeric_limits<double>::infinity();
}

}  // namespace

std::vector<const compared_pair*> comparison::different() const {
  std::vector<const compared_pair*> result;
  for (const compared_pair& pair : pairs) {
    const bool equal = !pair.against && pair.figures.differ == 0;
    if (pair.reason.empty() && !equal) result.push_back(&pair);
  }
  std::stable_sort(result.begin(), result.end(),
                   [](const auto* x, const auto* y) { return badness(*x) > badness(*y); });
  return result;
}

comparison compare_files(const compared_file& a, const compared_file& b,
                         const compared_file* original, const samebits::executor& where) {
  comparison result;
  for (const compared_tensor& t : a.tensors) {
    const compared_tensor* in_b = partner(t, a, b);
    const compared_tensor* in_original = original == nullptr ? nullptr : partner(t, a, *original);
    compared_pair pair = {
        .name = text_name(t, a.input), .a = &t, .b = in_b, .original = in_original};
    if (in_b == nullptr) {
      result.only_in_a.push_back(pair.name);
      continue;
    }
    // Values of a quantized file are called so; the partner has the tensor's own name.
    if (t.made && in_original != nullptr) pair.name = text_name(*in_original, original->input);
    pair.reason = obstacle(t, *in_b);
    if (original != nullptr && in_original == nullptr) {
      pair.reason = "the original has no such tensor";
    } else if (original != nullptr && pair.reason.empty()) {
      pair.reason = obstacle(*in_original, t);
    }
    result.pairs.push_back(pair);
  }
  for (const compared_tensor& t : b.tensors) {
    if (partner(t, b, a) == nullptr) result.only_in_b.push_back(text_name(t, b.input));
  }
  if (result.pairs.empty()) {
    throw samebits::tensor_file::file_error(
        samebits::tensor_file::error_kind::no_such_tensor,
        cat(samebits::tensor_file::escape_path(b.input), ": has no tensor of a name that ",
            samebits::tensor_file::escape_path(a.input), " has"));
  }
  std::vector<compared_pair*> others;
  for (compared_pair& pair : result.pairs) {
    if (pair.reason.empty() && !measure_equal(pair, where)) others.push_back(&pair);
  }
  for_each_index(others.size(), static_cast<std::size_t>(where.threads),
                 [&](std::size_t i, std::size_t) { measure(*others[i], where); });
  return result;
}

}  // namespace fpinspect
