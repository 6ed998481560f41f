// Checks of samebits.testing: those of the C++ test kit, which call a Python function. Every call is made
// with the GIL, on the calling thread.
#include <memory>
#include <random>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "call.hpp"
#include "engine/inputs/families.hpp"
#include "engine/kit/conversion.hpp"
#include "engine/kit/function.hpp"
#include "engine/kit/quantize.hpp"
#include "engine/kit/report.hpp"
#include "samebits/options.hpp"

namespace samebits::python {
namespace {

using namespace samebits::testkit;

/// Bytes as a memoryview, for the time of one call.
nb::object memory_of(const void* first, std::size_t bytes, bool writable = false) {
  constexpr int read = 0x100, write = 0x200;  // PyBUF_READ, PyBUF_WRITE
  static char none = 0;
  char* const at = bytes == 0 ? &none : const_cast<char*>(static_cast<const char*>(first));
  return nb::steal(
      PyMemoryView_FromMemory(at, static_cast<Py_ssize_t>(bytes), writable ? write : read));
}
nb::object memory_of(guarded_array& a, format_id format, bool writable) {
  return memory_of(a.elements(), a.size() * static_cast<std::size_t>(storage_bytes(format)),
                   writable);
}

std::vector<std::uint64_t> codes_of(nb::handle list) {
  std::vector<std::uint64_t> codes;
  for (const nb::handle code : list) codes.push_back(nb::cast<std::uint64_t>(code));
  return codes;
}

std::int64_t size_of(nb::handle n) { return integer_of<std::int64_t>(n, "shapes", 0); }

/// A predicate of many codes, where(codes) -> a byte for each, as one of single codes.
class predicate {
 public:
  explicit predicate(nb::handle where) : where_(nb::borrow(where)) {}

  void prepare(std::span<const std::uint64_t> codes) {
    known_.clear();
    ask(codes);
  }
  bool accepts(std::uint64_t code) {
    const auto found = known_.find(code);
    if (found != known_.end()) return found->second;
    ask({&code, 1});
    return known_.at(code);
  }

 private:
  void ask(std::span<const std::uint64_t> codes) {
    if (codes.empty()) return;
    const nb::bytes answers =
        nb::cast<nb::bytes>(where_(memory_of(codes.data(), codes.size_bytes())));
    for (std::size_t i = 0; i < codes.size(); ++i) {
      known_.emplace(codes[i], answers.c_str()[i] != 0);
    }
  }

  nb::object where_;
  std::unordered_map<std::uint64_t, bool> known_;  // of the last codes that were prepared
};

input_domain domain_of(nb::handle where) {
  if (where.is_none()) return {};
  const auto inputs = std::make_shared<predicate>(where);
  return {.accepts = [inputs](std::uint64_t code) { return inputs->accepts(code); },
          .prepare = [inputs](std::span<const std::uint64_t> codes) { inputs->prepare(codes); }};
}

/// Returns a seed of the C++ checks, to which 0 means a new one.
std::uint64_t seed_of(nb::handle seed) {
  return integer_of<std::uint64_t>(seed, "examples_seed") % ~std::uint64_t{0} + 1;
}

/// Returns the failure of one call, if `only` is (rows, columns, codes), or else of the check check().
/// Each check returns None if all results are right. Otherwise (text, codes, offset, rows, columns, wrong
/// element) of the smallest failing call; the text is None if the call raised.
template <class Tested, class Check>
nb::object failure_of(const Tested& tested, const array_function& function, nb::handle only,
                      const Check& check) {
  std::optional<failed_call> failure;
  try {
    if (only.is_none()) {
      failure = check().failure;
    } else {
      trial in{size_of(only[0]), size_of(only[1]), codes_of(only[2])};
      failure = check_one_call(tested, function, std::move(in)).failure;
    }
  } catch (...) {
    raise_current({});
  }
  if (!failure) return nb::none();
  const auto& [in, found] = std::tie(failure->in, failure->found);
  nb::object text = nb::none();
  if (found.wrong) text = nb::str(case_text(tested, *failure).c_str());
  return nb::make_tuple(text, list_of(in.codes), in.in_offset, in.rows, in.cols,
                        found.wrong ? found.wrong->element : 0);
}

/// call(codes, offset, results) as a function of arrays.
array_function elementwise(nb::handle call, format_id from, format_id to) {
  return [=](const trial& in, std::span<guarded_array> arrays) {
    call(memory_of(arrays[0], from, false), in.in_offset, memory_of(arrays[1], to, true));
  };
}

nb::object check_conversion(nb::handle call, nb::handle source, nb::handle target, nb::handle how,
                            nb::handle any_nan, nb::handle where, nb::handle only,
                            nb::handle offsets, nb::handle examples, nb::handle seed) {
  const auto options = options_of<convert_options>(how);
  const conversion_under_test tested{
      .from = format_named(source, "source"),
      .to = format_named(target, "target"),
      .rule = {options.rounding, options.overflow, options.nan},
      .random = options.random,
      .nan = flag_of(any_nan, "nan") ? nan_result::any : nan_result::by_rule,
      .domain = domain_of(where)};
  const array_function function = elementwise(call, tested.from, tested.to);
  return failure_of(tested, function, only, [&] {
    return check_calls(tested, function,
                       {.batches = integer_of<int>(examples, "examples", 0), .seed = seed_of(seed)},
                       {true, integer_of<int>(offsets, "layouts", 1), 1});
  });
}

nb::object check_quantize(nb::handle call, nb::handle source, nb::handle to,
                          nb::handle scale_format, nb::handle rules, nb::handle how,
                          nb::handle any_nan, nb::handle where, nb::handle only, nb::handle shapes,
                          nb::handle examples, nb::handle seed) {
  const auto rule_count = static_cast<int>(nb::len(rules));
  const quantizer_under_test tested{
      .from = format_named(source, "source"),
      .to = format_named(to, "to"),
      .options = options_by<quantize_options>([&](int i, const char*) {
        return i < rule_count ? item(rules, i) : item(how, i - rule_count);
      }),
      .scale_format = format_named(scale_format, "scale_format"),
      .nan = flag_of(any_nan, "nan") ? nan_result::any : nan_result::by_rule,
      .domain = domain_of(where)};
  const array_function function = [&](const trial& in, std::span<guarded_array> arrays) {
    call(memory_of(arrays[0], tested.from, false), in.rows, in.cols,
         memory_of(arrays[2], tested.to, true), memory_of(arrays[1], tested.scale_format, true));
  };
  return failure_of(tested, function, only, [&] {
    std::vector<matrix_shape> all;
    for (const nb::handle s : shapes) all.push_back({size_of(s[0]), size_of(s[1])});
    const int count = static_cast<int>(all.size()) + integer_of<int>(examples, "examples", 0);
    return check_quantizer_calls(tested, function, {.matrices = count, .seed = seed_of(seed)}, all);
  });
}

nb::object check_function(nb::handle call, nb::handle name, nb::handle format, nb::handle rule,
                          nb::handle parameter, nb::handle any_nan, nb::handle where,
                          nb::handle only, nb::handle offsets, nb::handle examples,
                          nb::handle seed) {
  function_under_test tested{.of = enumerator_of<function>(name, "function"),
                             .format = format_named(format, "format"),
                             .options = {.rule = enumerator_of<function_rule>(rule, "rule")},
                             .nan = flag_of(any_nan, "nan") ? nan_result::any : nan_result::by_rule,
                             .domain = domain_of(where)};
  if (!parameter.is_none()) tested.options.parameter = nb::cast<double>(parameter);
  const array_function kernel = elementwise(call, tested.format, tested.format);
  return failure_of(tested, kernel, only, [&] {
    return check_function_calls(tested, kernel,
                                {.offsets = integer_of<int>(offsets, "layouts", 1),
                                 .examples = integer_of<int>(examples, "examples", 0),
                                 .seed = seed_of(seed)});
  });
}

nb::list simpler_codes(nb::handle format, std::uint64_t code) {
  return list_of(support::simpler_codes(format_named(format, "format"), code));
}

nb::list special_codes(nb::handle format) {
  return list_of(support::special_codes(format_named(format, "format")));
}

std::string code_text(nb::handle format, std::uint64_t code) {
  return short_code_text(format_named(format, "format"), code);
}

/// Returns codes, 8 bytes each, that conversions to the target get wrong.
nb::bytes draw_codes(nb::handle source, nb::handle target, std::size_t count, std::uint64_t seed) {
  const format_id from = format_named(source, "source"), to = format_named(target, "target");
  std::mt19937_64 engine(seed);
  const auto next = [&engine] { return engine(); };
  std::vector<std::uint64_t> codes(count);
  for (std::uint64_t& code : codes) code = support::draw_any_code(from, to, next);
  return nb::bytes(reinterpret_cast<const char*>(codes.data()), count * sizeof(std::uint64_t));
}

}  // namespace

void bind_testing(nb::module_& m) {
  def(m, "check_conversion", &check_conversion,
      "Checks a conversion kernel; samebits.testing.check_conversion() describes the arguments.");
  def(m, "check_function", &check_function,
      "Checks a function; samebits.testing.check_function() describes the arguments.");
  def(m, "check_quantize", &check_quantize,
      "Checks a quantizer; samebits.testing.check_quantize() describes the arguments.");
  def(m, "code_text", &code_text, "Returns a code and its value, such as 0x3F80 = 1.");
  def(m, "draw_codes", &draw_codes, "Draws codes that conversions get wrong.");
  def(m, "simpler_codes", &simpler_codes,
      "Returns codes that are simpler than a code, the simplest first.");
  def(m, "special_codes", &special_codes,
      "Returns the codes that a check of the format always tries.");
}

}  // namespace samebits::python
