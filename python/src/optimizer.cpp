// Optimizer steps on memory that is passed as addresses. The Python code keeps the arrays that own the
// memory.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/optimizer/described_list.hpp"
#include "call.hpp"
#include "samebits/optimizer.hpp"

namespace samebits::python {
namespace {

// Where samebits.torch writes fields.
static_assert(sizeof(step_report) == 64 && offsetof(step_report, applied_steps) == 8 &&
              offsetof(step_report, grad_mul) == 48 && offsetof(step_report, applied) == 60);

template <class T>
T* at(std::uintptr_t address) {
  return reinterpret_cast<T*>(address);
}

// Reads the fields of a row one after another.
class fields {
 public:
  explicit fields(nb::handle row) : row_(row) {}

  template <class T>
  T next() {
    return nb::cast<T>(row_[next_++]);
  }
  template <class T>
  T* pointer() {
    return at<T>(next<std::uintptr_t>());
  }
  template <class Enum>
  Enum enumerator() {
    return static_cast<Enum>(next<int>());
  }
  // Three fields: codes, scales, format.
  stored_array stored() {
    void* const codes = pointer<void>();
    auto* const scales = pointer<float>();
    return {codes, enumerator<stored_format>(), scales};
  }

 private:
  nb::handle row_;
  std::size_t next_ = 0;
};

// A row: weights, master, first state, second state, each as (codes, scales, format); low, low_kind,
// gradient_format, count, first_index, stream, group, block.
optimizer_tensor tensor_of(nb::handle row, std::string name) {
  fields f(row);
  optimizer_tensor t;
  t.weights = f.stored();
  t.master = f.stored();
  t.states[0] = f.stored();
  t.states[1] = f.stored();
  t.low = f.pointer<void>();
  t.low_kind = f.enumerator<low_part>();
  t.gradient.format = f.enumerator<stored_format>();
  t.count = f.next<std::int64_t>();
  t.first_index = f.next<std::uint64_t>();
  t.stream = f.next<std::uint32_t>();
  t.group = f.next<std::uint32_t>();
  t.block = f.next<std::uint32_t>();
  t.name = std::move(name);
  return t;
}

// A row: rule, profile, nesterov, learning_rate, beta1, beta2, epsilon, weight_decay, momentum,
// dampening.
optimizer_settings settings_of(nb::handle row) {
  fields f(row);
  optimizer_settings s;
  s.rule = f.enumerator<update_rule>();
  s.profile = f.enumerator<update_profile>();
  s.nesterov = f.next<int>() != 0;
  s.learning_rate = f.next<double>();
  s.beta1 = f.next<double>();
  s.beta2 = f.next<double>();
  s.epsilon = f.next<double>();
  s.weight_decay = f.next<double>();
  s.momentum = f.next<double>();
  s.dampening = f.next<double>();
  return s;
}

// A list of the library. The arrays may be gone; the caller compares addresses before each use.
class optimizer_step_list {
 public:
  explicit optimizer_step_list(backends::described_list list) : list_(std::move(list)) {}

  [[nodiscard]] std::size_t tables_size() const { return list_.tables_bytes(); }
  void write_tables(std::uintptr_t tables, std::size_t size, std::uintptr_t on_device) {
    if (size != tables_size() || on_device % 16 != 0) raise_internal("tables: wrong memory");
    list_.write_tables(at<std::byte>(tables), at<const std::byte>(on_device));
  }
  void step(nb::list groups, std::uint64_t applied_steps, double grad_mul, std::uintptr_t decision,
            std::uintptr_t learning_rates, std::uint64_t seed, nb::handle threads,
            nb::handle backend, nb::handle stream) const {
    if (!list_.has_tables()) raise_internal("the list has no tables");
    std::vector<optimizer_settings> settings;
    settings.reserve(nb::len(groups));
    for (const nb::handle group : groups) settings.push_back(settings_of(group));
    const auto elements = static_cast<std::int64_t>(list_.list().elements());
    const step_input input = {.applied_steps = applied_steps,
                              .grad_mul = static_cast<float>(grad_mul),
                              .decision = at<const step_report>(decision),
                              .learning_rates = at<const float>(learning_rates),
                              .seed = seed};
    const executor where = executor_of(threads, backend, stream, array(), elements);
    run_to_end(elements, [&] { optimizer_step(list_.list(), settings, input, where); });
  }

 private:
  backends::described_list list_;
};

// The tensors of an optimizer without their gradients.
class optimizer_tensors {
 public:
  optimizer_tensors(nb::list rows, nb::list names, bool on_device) {
    std::vector<optimizer_tensor> tensors;
    tensors.reserve(nb::len(rows));
    for (std::size_t i = 0; i < nb::len(rows); ++i) {
      tensors.push_back(tensor_of(rows[i], nb::cast<std::string>(nb::str(names[i]))));
    }
    const auto space = on_device ? memory_space::device : memory_space::host;
    run_to_end(0, [&] { tensors_.emplace(std::move(tensors), space); });
  }
  optimizer_tensors(const optimizer_tensors&) = delete;
  optimizer_tensors& operator=(const optimizer_tensors&) = delete;

  // Returns the list with these gradients, whose addresses are 64-bit integers; 0: the tensor takes no
  // part.
  [[nodiscard]] optimizer_step_list* with_gradients(nb::bytes addresses) const {
    std::vector<const void*> each(tensors_->size());
    if (addresses.size() != each.size() * sizeof each[0]) {
      raise_internal("one address per tensor is expected");
    }
    if (!each.empty()) std::memcpy(each.data(), addresses.data(), addresses.size());
    std::optional<backends::described_list> list;
    run_to_end(0, [&] { list.emplace(tensors_->with_gradients(each)); });
    return new optimizer_step_list(*std::move(list));
  }

 private:
  std::optional<backends::described_tensors> tensors_;
};

std::uint64_t stream_number(int purpose, std::uint32_t tensor, std::uint64_t step) {
  if (tensor >> stream_tensor_bits != 0) {
    raise_invalid("tensor: must be below 2^24, got " + std::to_string(tensor));
  }
  return random_stream_number(static_cast<stream_purpose>(purpose), tensor, step);
}

// Stores `count` values without gaps in an array, or loads the values of the array.
void store_or_load(bool stores, std::uintptr_t values, std::uint8_t format, std::uintptr_t codes,
                   std::uintptr_t scales, std::uint8_t stored, std::int64_t count,
                   std::uint32_t block, bool on_device, nb::handle stream) {
  matrix_view view = view_of_codes(format_id{format}, at<void>(values), 1, count);
  if (on_device) view.space = memory_space::device;
  const samebits::stored_array array = {at<void>(codes), stored_format{stored}, at<float>(scales)};
  const executor where = executor_of(nb::none(), nb::none(), stream, {}, count);
  run(count, [&] {
    if (stores) return store(view, array, {.block = block}, where);
    load(array, view, {.block = block}, where);
  });
}

}  // namespace

void bind_optimizer(nb::module_& m) {
  using nb::arg;
  nb::class_<optimizer_step_list>(m, "OptimizerList", "Weights, states and gradients, by address.")
      .def("tables_size", &optimizer_step_list::tables_size, "Bytes of the tables; 0 on the host.")
      .def("write_tables", &optimizer_step_list::write_tables, arg("tables"), arg("size"),
           arg("on_device"), "Writes the tables into host memory.")
      .def("step", &optimizer_step_list::step, arg("groups"), arg("applied_steps"), arg("grad_mul"),
           arg("decision"), arg("learning_rates"), arg("seed"), arg("threads").none(),
           arg("backend").none(), arg("stream").none(), "Applies one step.");
  nb::class_<optimizer_tensors>(m, "OptimizerTensors", "Weights and states, by address.")
      .def(nb::init<nb::list, nb::list, bool>(), arg("rows"), arg("names"), arg("on_device"))
      .def("with_gradients", &optimizer_tensors::with_gradients, arg("addresses"),
           nb::rv_policy::take_ownership,
           "Returns an OptimizerList; addresses are 64-bit integers.");
  m.def("store_or_load", &store_or_load, arg("stores"), arg("values"), arg("format"), arg("codes"),
        arg("scales"), arg("stored"), arg("count"), arg("block"), arg("on_device"),
        arg("stream").none(), "Stores values in an array of an optimizer, or loads them.");
  m.def(
      "optimizer_state_count",
      [](nb::handle settings) { return state_count(settings_of(settings)); }, arg("settings"),
      "Number of states of a group.");
  m.def("random_stream_number", &stream_number, arg("purpose"), arg("tensor"), arg("step"),
        "The random stream of one purpose, tensor and step.");
}

}  // namespace samebits::python
