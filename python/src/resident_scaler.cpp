// Loss scaling in memory of a framework: gradients of one optimizer, and the state of a scaler.
//
// Memory is passed as addresses. The Python code keeps the tensors that own it.
#include <cstdint>
#include <string>
#include <vector>

#include "loss_scaler.hpp"

namespace samebits::python {
namespace {

template <class T>
T* at(std::uintptr_t address) {
  return reinterpret_cast<T*>(address);
}

// Owns the description of an optimizer's gradients. The gradients themselves may be gone; the
// caller compares their addresses before each use.
class gradients {
 public:
  // None stands for a parameter without a gradient.
  gradients(nb::list arrays, nb::list names) {
    const std::size_t count = nb::len(arrays);
    std::vector<array> described(count);
    std::vector<std::string> texts(count);
    std::vector<samebits_list_tensor> tensors(count);
    const array* first = nullptr;
    for (std::size_t i = 0; i < count; ++i) {
      texts[i] = nb::cast<std::string>(nb::str(names[i]));
      if (nb::handle(arrays[i]).is_none()) continue;
      const std::string label = "gradient of " + texts[i];
      described[i] = array_of(arrays[i], {.name = label.c_str(), .needs = access::write});
      tensors[i] = {c::view_of({&described[i], label.c_str()}), texts[i].c_str(), 0, 0};
      elements_ += described[i].size();
      if (first == nullptr) first = &described[i];
    }
    if (first == nullptr) raise_invalid("gradients: no parameter has a gradient");
    for (std::size_t i = 0; i < count; ++i) {
      if (!nb::handle(arrays[i]).is_none()) continue;
      tensors[i].view =
          c::view_of(matrix_view{.format = first->format, .col_stride = 0, .space = first->memory});
      tensors[i].name = texts[i].c_str();
    }
    c::check(samebits_gradients_create(tensors.data(), tensors.size(), &gradients_));
  }
  ~gradients() { samebits_gradients_destroy(gradients_); }
  gradients(const gradients&) = delete;
  gradients& operator=(const gradients&) = delete;

  [[nodiscard]] const samebits_gradients* get() const { return gradients_; }
  [[nodiscard]] std::int64_t elements() const { return elements_; }

 private:
  samebits_gradients* gradients_ = nullptr;
  std::int64_t elements_ = 0;
};

nb::tuple sizes(const gradients& g) {
  std::size_t tables = 0, workspace = 0;
  c::check(samebits_gradients_sizes(g.get(), &tables, &workspace));
  return nb::make_tuple(tables, workspace);
}

void unscale(const gradients& g, std::uintptr_t tables, std::uintptr_t workspace,
             std::uintptr_t words, std::uintptr_t report, bool rewrites, bool only_clips,
             bool skips_overflow, double max_norm, std::int64_t first, nb::handle threads,
             nb::handle stream) {
  samebits_unscale_options options = SAMEBITS_UNSCALE_OPTIONS_INIT;
  options.rewrites = rewrites ? 1 : 0;
  options.only_clips = only_clips ? 1 : 0;
  options.skips_overflow = skips_overflow ? 1 : 0;
  options.max_norm = max_norm;
  options.first = first;
  const samebits_executor where =
      c::executor_of(threads, nb::none(), stream, array(), g.elements());
  c::run_to_end(g.elements(), [&] {
    return samebits_gradients_unscale(g.get(), at<const void>(tables), at<void>(workspace),
                                      at<const samebits_scaler_words>(words),
                                      at<samebits_gradient_report>(report), &options, &where);
  });
}

std::size_t resident_size(scaler& s) {
  std::size_t bytes = 0;
  s.locked([&](samebits_loss_scaler* l) { return samebits_resident_size(l, &bytes); });
  return bytes;
}

void resident_store(scaler& s, std::uintptr_t state, std::uintptr_t words) {
  const std::size_t bytes = resident_size(s);
  s.locked([&](samebits_loss_scaler* l) {
    return samebits_resident_store(l, at<void>(state), bytes, at<samebits_scaler_words>(words));
  });
}

void resident_load(scaler& s, std::uintptr_t state) {
  const std::size_t bytes = resident_size(s);
  s.locked([&](samebits_loss_scaler* l) {
    return samebits_resident_load(l, at<const void>(state), bytes);
  });
}

void resident_update(scaler& s, bool on_device, std::uintptr_t state, std::uintptr_t words,
                     std::uintptr_t reports, std::size_t count, std::uintptr_t ring,
                     std::uint64_t capacity, nb::handle stream) {
  void* const on = stream_of(stream);
  s.locked([&](samebits_loss_scaler* l) {
    return samebits_resident_update(l, on_device ? SAMEBITS_MEMORY_DEVICE : SAMEBITS_MEMORY_HOST,
                                    at<void>(state), at<samebits_scaler_words>(words),
                                    at<const samebits_gradient_report>(reports), count,
                                    at<void>(ring), capacity, on);
  });
}

// Returns (next, lost, report), the report None or (step, applied, cause, change, stop, norm,
// scale, applied_steps, first_bad, grad_mul).
nb::tuple poll_report(std::uintptr_t ring, std::uint64_t capacity, std::uint64_t next,
                      std::uint64_t lost) {
  samebits_step_report r = {};
  std::int32_t arrived = 0;
  c::check(samebits_report_ring_poll(at<const void>(ring), capacity, &next, &lost, &r, &arrived));
  if (arrived == 0) return nb::make_tuple(next, lost, nb::none());
  const host_guard guard;  // grad_mul may be a subnormal
  return nb::make_tuple(
      next, lost,
      nb::make_tuple(r.step, r.applied != 0, samebits_enum_name(SAMEBITS_ENUM_STEP_CAUSE, r.cause),
                     samebits_enum_name(SAMEBITS_ENUM_SCALE_CHANGE, r.change), r.stop != 0, r.norm,
                     r.scale, r.applied_steps, r.first_bad, r.grad_mul));
}

}  // namespace

void bind_resident_scaler(nb::module_& m) {
  using nb::arg;
  nb::class_<gradients>(m, "Gradients", "The gradients of one optimizer, by address.")
      .def(nb::init<nb::list, nb::list>(), arg("arrays"), arg("names"))
      .def("sizes", &sizes, "Returns the bytes of the tables and of the workspace.")
      .def(
          "write_tables",
          [](const gradients& g, std::uintptr_t address, std::size_t size) {
            c::check(samebits_gradients_write_tables(g.get(), at<void>(address), size));
          },
          arg("address"), arg("size"), "Writes the tables into host memory.")
      .def("unscale", &unscale, arg("tables"), arg("workspace"), arg("words"), arg("report"),
           arg("rewrites"), arg("only_clips"), arg("skips_overflow"), arg("max_norm"), arg("first"),
           arg("threads").none(), arg("stream").none(),
           "Unscales in place and writes a gradient report.");
  m.def("resident_size", &resident_size, arg("scaler"), "Bytes of a scaler's state.");
  m.def("resident_store", &resident_store, arg("scaler"), arg("state"), arg("words"),
        "Writes a scaler's state into host memory.");
  m.def("resident_load", &resident_load, arg("scaler"), arg("state"),
        "Continues a scaler from a state in host memory.");
  m.def("resident_update", &resident_update, arg("scaler"), arg("on_device"), arg("state"),
        arg("words"), arg("reports"), arg("count"), arg("ring"), arg("capacity"),
        arg("stream").none(), "Ends a step: sets the next scale.");
  m.def("poll_report", &poll_report, arg("ring"), arg("capacity"), arg("next"), arg("lost"),
        "Returns the next report of a ring, without waiting.");
  m.attr("report_slot_bytes") = SAMEBITS_REPORT_SLOT_BYTES;
}

}  // namespace samebits::python
