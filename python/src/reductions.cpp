// Reductions: each returns numbers that describe an array.
#include "samebits/reductions.hpp"

#include <functional>
#include <numeric>
#include <vector>

#include "call.hpp"
#include "exchange.hpp"
#include "samebits/hash.hpp"

namespace samebits::python {
namespace {

// An argument and the executor of a call with a result.
struct input : viewed {
  executor where;

  input(nb::handle x, const char* name, nb::handle format, nb::handle on)
      : viewed(x, {.name = name, .format = format_of(format), .stream = stream_in(on)}),
        where(executor_of(on, a, a.size())) {}
};

nb::object reduce(std::string_view what, nb::handle x, nb::handle format, nb::handle where) {
  const input in(x, "x", format, where);
  const auto reduced = [&](auto* reduction) {
    decltype(reduction(in.view, in.where)) result = {};
    run(in.a.size(), [&] { result = reduction(in.view, in.where); });
    return result;
  };
  const host_guard guard;  // a subnormal float stays one as a Python number
  if (what == "amax") return nb::cast(reduced(amax));
  if (what == "sum") return nb::cast(reduced(sum));
  if (what == "sum_of_squares") return nb::cast(reduced(sum_of_squares));
  const element_counts c = reduced(counts);
  return nb::make_tuple(c.elements, c.nan, c.inf, c.zeros, c.subnormals);
}

double dot(nb::handle x, nb::handle y, nb::handle format, nb::handle how, nb::handle where) {
  const input a(x, "x", format, where);
  const input b(y, "y", format, where);
  check_shape({&b.a, "y"}, a.a.dims, a.a.shape);
  const auto options = options_of<dot_options>(how);
  double result = 0;
  run(a.a.size(), [&] { result = samebits::dot(a.view, b.view, options, a.where); });
  return result;
}

/// The largest code that is no NaN; 0 for integers and formats with one NaN.
std::uint64_t largest_of(dl_data_type type) {
  switch (type.code << 8 | type.bits) {
    case dl_code::real << 8 | 64: return 0x7FF0'0000'0000'0000;
    case dl_code::real << 8 | 32: return 0x7F80'0000;
    case dl_code::real << 8 | 16: return 0x7C00;
    case dl_code::bfloat << 8 | 16: return 0x7F80;
    case dl_code::e5m2 << 8 | 8: return 0x7C;
    case dl_code::e4m3fn << 8 | 8: return 0x7E;
    default: return 0;
  }
}

/// Writes hashes of contiguous torch tensors of one device.
void hash_codes(nb::list tensors, std::uintptr_t results, bool on_device, int threads,
                nb::handle stream) {
  const nb::object helper = nb::module_::import_("samebits.arrays");
  std::vector<code_array> codes;
  codes.reserve(nb::len(tensors));
  for (const nb::handle x : tensors) {
    const exchange_table* const table = exchange_table_of(x, helper);
    if (table == nullptr) raise_invalid("tensors: one has no memory of its own");
    const dl_tensor t = describe_tensor(*table, x);
    const auto count =
        std::accumulate(t.shape, t.shape + t.dims, std::int64_t{1}, std::multiplies<>());
    codes.push_back({t.data, count, t.type.bits / 8, largest_of(t.type)});
  }
  const executor where{.threads = threads, .stream = stream_of(stream)};
  run([&] {
    samebits::hash_codes(codes, {at<std::uint64_t>(results), codes.size()},
                         on_device ? memory_space::device : memory_space::host, where);
  });
}

}  // namespace

void bind_reductions(nb::module_& m) {
  def(m, "reduce", &reduce, "Returns amax, sum, sum_of_squares or counts of an array.");
  def(m, "dot", &dot, "Returns the dot product of two arrays.");
  def(m, "hash_codes", &hash_codes, "Writes hashes of contiguous torch tensors.");
}

}  // namespace samebits::python
