// Tables of rotary position embeddings.
#include "samebits/rotary.hpp"
#include "call.hpp"

namespace samebits::python {
namespace {

// `positions` are int64, `frequencies` fp64, none: by the base; cos and sin are written.
void rotary_table(const nb::bytes& positions, const nb::bytes& frequencies, nb::handle how,
                  nb::handle cos, nb::handle sin, nb::handle format, nb::handle threads) {
  const auto rows = numbers_of<std::int64_t>(positions);
  const auto columns = numbers_of<double>(frequencies);
  const array c =
      array_of(cos, {.name = "cos", .needs = access::write, .format = format_of(format)});
  const array s =
      array_of(sin, {.name = "sin", .needs = access::write, .format = format_of(format)});
  auto options = options_of<rotary_options>(how);
  options.frequencies = columns;
  const matrix_view cos_view = view_of({&c, "cos"});
  const matrix_view sin_view = view_of({&s, "sin"});
  // An entry takes as long as hundreds of conversions, whose number chooses the threads.
  const executor where = executor_of(threads, nb::none(), nb::none(), c, 100 * c.size());
  run(100 * c.size(), [&] { samebits::rotary_table(rows, cos_view, sin_view, options, where); });
}

}  // namespace

void bind_rotary(nb::module_& m) {
  def(m, "rotary_table", &rotary_table, "Writes cos and sin of rotary position embeddings.");
}

}  // namespace samebits::python
