// Checks of samebits.testing: those of the C++ test kit, which call a Python function. Every call is made
// with the GIL, on the calling thread.
#include <cstring>
#include <memory>
#include <unordered_map>
#include <vector>

#include "call.hpp"
#include "engine/kit/conversion.hpp"
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
  return nb::steal(PyMemoryView_FromMemory(at, static_cast<Py_ssize_t>(bytes),
                                           writable ? write : read));
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

nb::list list_of(const std::vector<std::uint64_t>& codes) {
  nb::list list;
  for (const std::uint64_t code : codes) list.append(code);
  return list;
}

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
    const nb::bytes answers = nb::cast<nb::bytes>(where_(memory_of(codes.data(), codes.size_bytes())));
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

// check_conversion() returns None if all results are right. Otherwise (text, codes, offset, element) of
// the smallest failing call; the text is None if call(codes, offset, results) raised.
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
  const auto function = [&](const trial& in, std::span<guarded_array> arrays) {
    call(memory_of(arrays[0], tested.from, false), in.in_offset,
         memory_of(arrays[1], tested.to, true));
  };
  conversion_outcome done;
  try {
    if (only.is_none()) {
      done = check_calls(tested, function,
                         {.batches = integer_of<int>(examples, "examples", 0), .seed = seed_of(seed)},
                         {true, integer_of<int>(offsets, "layouts", 1), 1});
    } else {
      done = check_one_call(tested, function, codes_of(only));
    }
  } catch (...) {
    raise_current({});
  }
  if (!done.failure) return nb::none();
  const failed_call& f = *done.failure;
  const bool wrong = f.found.wrong.has_value();
  const nb::object text = wrong ? nb::object(nb::str(case_text(tested, f).c_str())) : nb::none();
  return nb::make_tuple(text, list_of(f.in.codes), f.in.in_offset, wrong ? f.found.wrong->element : 0);
}

}  // namespace

void bind_testing(nb::module_& m) {
  def(m, "check_conversion", &check_conversion,
      "Checks a conversion kernel; samebits.testing.check_conversion() describes the arguments.");
}

}  // namespace samebits::python
