// Layouts and random streams as fields of cases.
#include "engine/core/fields.hpp"

namespace samebits::support {

void case_fields::reset(random_stream& random) {
  show("random", random);
  if (change(random.seed != 0)) random.seed = 0;
  if (change(random.stream != 0)) random.stream = 0;
  if (change(random.offset != 0)) random.offset = 0;
  if (change(random.pitch.has_value())) random.pitch.reset();
}

void case_fields::matrices(std::initializer_list<named_layout> all, std::int64_t unit) {
  for (const named_layout& m : all) show(m.name, m.layout);
  const array_layout first = all.begin()->layout;
  sizes(first.rows, first.cols / unit, [&](std::int64_t rows, std::int64_t cols) {
    for (const named_layout& m : all) m.layout.resize(rows, cols * unit);
  });
  const array_layout dense = dense_layout(first.rows, first.cols);
  for (const named_layout& m : all) {
    if (change(m.layout != dense)) m.layout = dense;
  }
}

}  // namespace samebits::support
