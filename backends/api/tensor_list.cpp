// tensor_list: checks a list of tensors and splits it into chunks.
#include "samebits/tensor_list.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "backends/api/view_checks.hpp"
#include "backends/dispatch/device_scope.hpp"
#include "backends/dispatch/plan.hpp"
#include "samebits/error.hpp"

namespace samebits {
namespace backends {
namespace {

using numerics::plan_row;

bool is_plan_format(format_id format) {
  using enum format_id;
  return format == fp32 || format == fp16 || format == bf16 || format == e4m3 || format == e5m2;
}

/// Whether element i is i elements after the first one.
bool is_dense(const matrix_view& v) {
  const bool row_is_dense = v.cols == 1 || v.col_stride == 1;
  return row_is_dense && (v.rows == 1 || v.row_stride == v.cols);
}

plan_row row_of(const list_tensor& tensor, std::uint64_t first_chunk) {
  const matrix_view& v = tensor.view;
  const std::int64_t count = v.rows * v.cols;
  return {v.data,       count,        std::max<std::int64_t>(v.cols, 1),
          v.row_stride, v.col_stride, first_chunk,
          tensor.group, v.format,     count == 0 || is_dense(v)};
}

void check_tensor(const plan_data& plan, std::size_t position, const char* list) {
  const matrix_view& v = plan.tensors[position].view;
  try {
    check_view(v, "");
    if (!is_plan_format(v.format)) {
      throw invalid_argument(": format must be fp32, fp16, bf16, e4m3 or e5m2, got " +
                             std::string(name(v.format)));
    }
    if (v.space != plan.space) {
      throw invalid_argument(": must lie in the same memory as " + std::string(list) +
                             "[0], host or device");
    }
    check_distinct(v, "");
  } catch (const invalid_argument& error) {
    // The name is built only on error: names for all good tensors would cost time.
    throw invalid_argument(tensor_text(plan.tensors[position], position, list) + error.what());
  }
}

[[noreturn]] void refuse_pair(const plan_data& plan, const char* list, std::size_t a, std::size_t b,
                              const char* what) {
  const auto [first, second] = std::minmax(a, b);
  throw invalid_argument(tensor_text(plan.tensors[first], first, list) + " and " +
                         tensor_text(plan.tensors[second], second, list) + " " + what);
}

/// Refuses overlapping tensors. A tensor that is listed twice, such as tied weights, would be
/// counted and scaled twice.
void check_shared_memory(const plan_data& plan, const char* list) {
  std::int64_t steps = steps_of_a_list;
  for_each_touching_pair(plan.by_begin, [&](const extent& a, const extent& b) {
    if (a.begin == b.begin) {
      refuse_pair(plan, list, a.position, b.position,
                  "begin at the same element, which would be worked on twice");
    }
    const sharing found =
        sharing_of(plan.tensors[a.position].view, plan.tensors[b.position].view, steps);
    if (found == sharing::none) return;
    refuse_pair(plan, list, a.position, b.position,
                found == sharing::some
                    ? "overlap"
                    : "lie between each other's elements, and whether they overlap takes too long "
                      "to decide; pass tensors that lie one behind the other, or copies");
  });
}

/// Collects the sorted extents, which the later checks of the list use.
void summarize(plan_data& plan) {
  plan.by_begin.reserve(plan.tensors.size());
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    const matrix_view& v = plan.tensors[i].view;
    plan.formats |= 1u << static_cast<int>(v.format);
    if (plan.rows[i].count == 0) continue;
    plan.by_begin.push_back(extent_of(v, i, true));
    plan.end = std::max(plan.end, plan.by_begin.back().end);
  }
  // Allocators mostly return rising addresses.
  if (!std::is_sorted(plan.by_begin.begin(), plan.by_begin.end(), begins_before)) {
    std::sort(plan.by_begin.begin(), plan.by_begin.end(), begins_before);
  }
}

/// Copies the tables of a list to the device memory of its tensors, in one allocation.
void copy_to_device(plan_data& plan) {
  const device_memory& memory = *resolve({}, memory_space::device, [](const backend& b) {
                                   return b.memory != nullptr;
                                 }).memory;
  const std::size_t chunks_bytes = plan.row_of_chunk.size() * sizeof(plan.row_of_chunk[0]);
  auto* const first = static_cast<std::byte*>(memory.allocate(plan.rows_bytes() + chunks_bytes));
  plan.on_device = {first,
                    [&memory](const std::byte* p) { memory.release(const_cast<std::byte*>(p)); }};
  memory.upload(first, plan.rows.data(), plan.rows_bytes());
  if (chunks_bytes != 0) {
    memory.upload(first + plan.rows_bytes(), plan.row_of_chunk.data(), chunks_bytes);
  }
}

}  // namespace

std::shared_ptr<plan_data> describe_plan(std::vector<list_tensor> tensors, const char* which) {
  if (tensors.size() > std::numeric_limits<std::uint32_t>::max()) {
    throw invalid_argument(std::string(which) + ": must be fewer than 2^32, got " +
                           std::to_string(tensors.size()));
  }
  auto plan = std::make_shared<plan_data>();
  plan->tensors = std::move(tensors);
  if (!plan->tensors.empty()) plan->space = plan->tensors.front().view.space;
  plan->rows.reserve(plan->tensors.size());
  std::uint64_t chunks = 0;
  for (std::size_t i = 0; i < plan->tensors.size(); ++i) {
    check_tensor(*plan, i, which);
    const plan_row row = row_of(plan->tensors[i], chunks);
    plan->rows.push_back(row);
    plan->elements += static_cast<std::uint64_t>(row.count);
    chunks += numerics::chunks_of(row.count);
  }
  summarize(*plan);
  check_shared_memory(*plan, which);
  plan->row_of_chunk.reserve(chunks);
  for (std::size_t i = 0; i < plan->rows.size(); ++i) {
    plan->row_of_chunk.insert(plan->row_of_chunk.end(), numerics::chunks_of(plan->rows[i].count),
                              static_cast<std::uint32_t>(i));
  }
  return plan;
}

std::shared_ptr<const plan_data> make_plan(std::vector<list_tensor> tensors, const char* which) {
  auto plan = describe_plan(std::move(tensors), which);
  if (plan->space == memory_space::device) {
    plan->device = device_of(*plan, which);
    const device_scope on(plan->space, plan->device, nullptr);
    copy_to_device(*plan);
    // The device that holds the tables.
    if (plan->device == no_device) plan->device = current_device_number();
  }
  return plan;
}

int device_of(const plan_data& plan, const char* which) {
  device_finder finder(plan.space);
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    finder.add(address_of(plan.tensors[i].view),
               [&] { return tensor_text(plan.tensors[i], i, which); });
  }
  return finder.device();
}

std::string tensor_text(const list_tensor& tensor, std::size_t position, const char* plan) {
  const std::string text = std::string(plan) + "[" + std::to_string(position) + "]";
  return tensor.name.empty() ? text : text + " '" + tensor.name + "'";
}

}  // namespace backends

tensor_list::tensor_list() : tensor_list(std::vector<list_tensor>()) {}

tensor_list::tensor_list(std::vector<list_tensor> tensors)
    : data_(backends::make_plan(std::move(tensors), "tensors")) {}

std::vector<list_tensor> tensor_list::named(std::span<const matrix_view> tensors) {
  std::vector<list_tensor> list;
  list.reserve(tensors.size());
  for (const matrix_view& view : tensors) list.push_back({view});
  return list;
}

std::size_t tensor_list::size() const { return data_->tensors.size(); }

const list_tensor& tensor_list::operator[](std::size_t position) const {
  return data_->tensors[position];
}

std::string tensor_list::name(std::size_t position) const {
  const std::string& given = data_->tensors[position].name;
  return given.empty() ? "tensors[" + std::to_string(position) + "]" : given;
}

std::uint64_t tensor_list::elements() const { return data_->elements; }

memory_space tensor_list::space() const { return data_->space; }

}  // namespace samebits
