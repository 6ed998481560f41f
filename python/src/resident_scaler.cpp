// Loss scaling in memory of a framework: gradients of one optimizer, and the state of a scaler.
//
// Memory is passed as addresses. The Python code keeps the tensors that own it.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backends/loss_scaler/report_ring.hpp"
#include "backends/loss_scaler/resident.hpp"
#include "loss_scaler.hpp"

namespace samebits::python {
namespace {

using numerics::gradient_report;
using numerics::report_slot;
using numerics::scaler_words;

// Where samebits.torch reads and writes fields.
static_assert(offsetof(scaler_words, inverse) == 4 && offsetof(scaler_words, bad_loss) == 8);
static_assert(offsetof(gradient_report, first_bad) == 8 &&
              offsetof(gradient_report, found_inf) == 16 &&
              offsetof(gradient_report, factor) == 32 && offsetof(gradient_report, divisor) == 36);

// Owns the description of an optimizer's gradients. The gradients themselves may be gone; the
// caller compares their addresses before each use.
class gradients {
 public:
  // None stands for a parameter without a gradient.
  gradients(nb::list arrays, nb::list names) {
    const std::size_t count = nb::len(arrays);
    std::vector<list_tensor> tensors(count);
    const matrix_view* first = nullptr;
    for (std::size_t i = 0; i < count; ++i) {
      tensors[i].name = nb::cast<std::string>(nb::str(names[i]));
      if (nb::handle(arrays[i]).is_none()) continue;
      const std::string label = "gradient of " + tensors[i].name;
      const array a = array_of(arrays[i], {.name = label.c_str(), .needs = access::write});
      tensors[i].view = view_of({&a, label.c_str()});
      elements_ += a.size();
      if (first == nullptr) first = &tensors[i].view;
    }
    if (first == nullptr) raise_invalid("gradients: no parameter has a gradient");
    for (std::size_t i = 0; i < count; ++i) {
      if (!nb::handle(arrays[i]).is_none()) continue;
      tensors[i].view = {.format = first->format, .space = first->space};
    }
    run_to_end(0, [&] { list_.emplace(std::move(tensors)); });
  }
  gradients(const gradients&) = delete;
  gradients& operator=(const gradients&) = delete;

  [[nodiscard]] const backends::gradient_list& get() const { return *list_; }
  [[nodiscard]] std::int64_t elements() const { return elements_; }

 private:
  std::optional<backends::gradient_list> list_;
  std::int64_t elements_ = 0;
};

nb::tuple sizes(const gradients& g) {
  std::size_t workspace = 0;
  run_to_end(0, [&] { workspace = g.get().workspace_bytes(); });
  return nb::make_tuple(g.get().tables_bytes(), workspace);
}

void write_tables(const gradients& g, std::uintptr_t address, std::size_t size) {
  if (size != g.get().tables_bytes()) raise_internal("the size of the tables is expected");
  g.get().write_tables(at<std::byte>(address));
}

void unscale(const gradients& g, std::uintptr_t tables, std::uintptr_t workspace,
             std::uintptr_t words, std::uintptr_t report, bool rewrites, bool only_clips,
             bool skips_overflow, double max_norm, std::int64_t first, nb::handle threads,
             nb::handle stream) {
  if (!(max_norm >= 0)) raise_invalid("max_norm: must be a number >= 0");
  const numerics::unscale_rule rule = {
      .max_norm = std::bit_cast<std::uint64_t>(max_norm) &
                  ~numerics::binary<std::uint64_t>::sign_bit,  // -0 becomes 0
      .first = first,
      .rewrites = rewrites,
      .only_clips = only_clips,
      .skips_overflow = skips_overflow};
  const backends::unscale_memory memory = {at<const std::byte>(tables), at<std::byte>(workspace),
                                           at<const scaler_words>(words),
                                           at<gradient_report>(report)};
  const executor where = executor_of(threads, nb::none(), stream, array(), g.elements());
  run_to_end(g.elements(), [&] { backends::unscale(g.get(), rule, memory, where); });
}

std::size_t resident_size(scaler& s) {
  return s.locked([](loss_scaler& l) { return backends::resident_bytes(l.settings()); });
}

void resident_store(scaler& s, std::uintptr_t state, std::uintptr_t words) {
  s.locked([&](loss_scaler& l) {
    backends::store_resident(l, at<std::byte>(state), at<scaler_words>(words));
  });
}

void resident_load(scaler& s, std::uintptr_t state) {
  s.locked([&](loss_scaler& l) {
    l = backends::load_resident(l.settings(), at<const std::byte>(state));
  });
}

void resident_update(scaler& s, bool on_device, std::uintptr_t state, std::uintptr_t words,
                     std::uintptr_t reports, std::size_t count, std::uintptr_t ring,
                     std::uint64_t capacity, nb::handle stream) {
  if (count == 0) raise_internal("a report is expected");
  const backends::update_memory memory = {at<std::byte>(state),
                                          at<scaler_words>(words),
                                          at<const gradient_report>(reports),
                                          count,
                                          at<report_slot>(ring),
                                          capacity};
  void* const on = stream_of(stream);
  s.locked([&](loss_scaler& l) {
    backends::update(l.settings(), on_device ? memory_space::device : memory_space::host, memory,
                     on);
  });
}

// Returns (next, lost, report), the report None or the fields of samebits.torch.GradStep.
nb::tuple poll_report(std::uintptr_t ring, std::uint64_t capacity, std::uint64_t next,
                      std::uint64_t lost) {
  std::optional<step_report> r;
  run_to_end(0, [&] {
    backends::report_reader reader(std::span(at<const report_slot>(ring), capacity), next);
    r = reader.poll();
    next = reader.next();
    lost += reader.lost();
  });
  if (!r) return nb::make_tuple(next, lost, nb::none());
  const host_guard guard;  // a subnormal scale stays one as a Python number
  return nb::make_tuple(next, lost,
                        nb::make_tuple(r->step, r->applied, name(r->cause), name(r->change),
                                       r->norm, r->scale, r->first_bad, r->applied_steps, r->stop));
}

}  // namespace

void bind_resident_scaler(nb::module_& m) {
  using nb::arg;
  nb::class_<gradients>(m, "Gradients", "The gradients of one optimizer, by address.")
      .def(nb::init<nb::list, nb::list>(), arg("arrays"), arg("names"))
      .def("sizes", &sizes, "Returns the bytes of the tables and of the workspace.")
      .def("write_tables", &write_tables, arg("address"), arg("size"),
           "Writes the tables into host memory.")
      .def("unscale", &unscale, arg("tables"), arg("workspace"), arg("words"), arg("report"),
           arg("rewrites"), arg("only_clips"), arg("skips_overflow"), arg("max_norm"), arg("first"),
           arg("threads").none(), arg("stream").none(),
           "Unscales in place and writes a gradient report.");
  def(m, "resident_size", &resident_size, "Bytes of a scaler's state.");
  def(m, "resident_store", &resident_store, "Writes a scaler's state into host memory.");
  def(m, "resident_load", &resident_load, "Continues a scaler from a state in host memory.");
  def(m, "resident_update", &resident_update, "Ends a step: sets the next scale.");
  def(m, "poll_report", &poll_report, "Returns the next report of a ring, without waiting.");
  m.attr("report_slot_bytes") = sizeof(report_slot);
}

}  // namespace samebits::python
