// The comparison of two files, tensor by tensor, with or without an original of both.
#include "fpinspect/compare/comparison.hpp"

#include "fpinspect/cli/files.hpp"
#include "fpinspect/cli/parallel.hpp"

namespace fpinspect {

// --- The tensors of one side of a comparison -----------------------------------------------------

namespace {

compared_tensor tensor_of(shown_tensor shown, std::string_view option, const std::string& from) {
  if (!from.empty() && holds_integers(shown.info)) {
    if (const auto how = reading_of(shown.info, option, from, from_scope::integers)) {
      shown.how = *how;
      shown.note.clear();
    }
  }
  return {std::move(shown)};
}

/// codes * scales, as `dequantize` writes them.
compared_tensor dequantized(const quantized_tensor& stored, const std::string& name) {
  compared_tensor result = {stored.codes, std::make_shared<const quantized_matrix>(stored)};
  result.in.info.name = name;
  return result;
}

}  // namespace

compared_file open_compared(const std::string& input, const std::vector<std::string>& names,
                            std::string_view option, const std::string& from) {
  tensor_selection selection;
  selection.files = {input};
  const bool whole = !locate(input).tensor;
  std::vector<shown_tensor> shown = tensors_to_show(selection);
  compared_file result = {.input = input};
  const std::vector<quantized_tensor> quantized =
      whole ? quantized_among(shown, false) : std::vector<quantized_tensor>();
  if (whole && !shown.empty()) {
    const auto& file = shown.front().file;
    if (const auto tile = noted_tile(*file, input)) {
      if (!names.empty() || !from.empty()) {
        throw usage_error(names.empty() ? option : "--tensor", ": ", escape_path(input),
                          " holds one quantized tensor; leave it out");
      }
      result.tensors.push_back(dequantized(quantized_output(file, input, "", *tile), "values"));
      return result;
    }
  }
  if (!names.empty()) {
    selection.tensors = names;
    shown = tensors_to_show(selection);
  }
  const bool any_integers =
      std::ranges::any_of(shown, [](const shown_tensor& one) { return holds_integers(one.info); });
  refuse_if(!from.empty() && !any_integers, option, ": none of the tensors of ", escape_path(input),
            " holds integers; leave it out");
  for (shown_tensor& one : shown) {
    const auto is = [&](const shown_tensor& other) {
      return one.file == other.file && one.info.name == other.info.name;
    };
    const auto codes =
        std::ranges::find_if(quantized, [&](const auto& pair) { return is(pair.codes); });
    if (codes != quantized.end()) {
      result.tensors.push_back(dequantized(*codes, one.info.name));
    } else if (std::ranges::none_of(quantized, [&](const auto& pair) { return is(pair.scales); })) {
      result.tensors.push_back(tensor_of(std::move(one), option, from));
    }
  }
  return result;
}

// --- The comparison of two files -----------------------------------------------------------------

namespace {

/// Whether a quantized matrix may stand for the tensor: its leading dimensions are merged to rows.
bool same_shape(const compared_tensor& x, const compared_tensor& y) {
  const bool merged = x.made != nullptr || y.made != nullptr;
  const tensor_info& in_x = x.in.info;
  const tensor_info& in_y = y.in.info;
  return in_x.shape == in_y.shape ||
         (merged && in_x.count == in_y.count && matrix_of(in_x).cols == matrix_of(in_y).cols);
}

/// Why two tensors are not compared; empty if they are.
std::string obstacle(const compared_tensor& x, const compared_tensor& y) {
  if (!x.in.has_numbers()) return x.in.note;
  if (!y.in.has_numbers()) return y.in.note;
  if (same_shape(x, y)) return {};
  return cat("shapes ", shape_text(x.in.info.shape), " and ", shape_text(y.in.info.shape));
}

/// The name in text: that of the file for a tensor without a name.
std::string text_name(const compared_tensor& t, const std::string& input) {
  const std::string& name = t.in.info.name;
  return name.empty() ? escape_path(input) : escape(name, 256);
}

/// The partner of a tensor: of the same name, or the only one if both files have only one.
const compared_tensor* partner(const compared_tensor& t, const compared_file& of,
                               const compared_file& in) {
  if (of.tensors.size() == 1 && in.tensors.size() == 1) return &in.tensors.front();
  return find_by(in.tensors, t.in.info.name,
                 [](const compared_tensor& one) { return one.in.info.name; });
}

}  // namespace

comparison compare_files(const compared_file& a, const compared_file& b,
                         const compared_file* original, const executor& where) {
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
    throw file_error(
        error_kind::no_such_tensor,
        cat(escape_path(b.input), ": has no tensor of a name that ", escape_path(a.input), " has"));
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
