// tensor_list: checks a list of tensors and splits it into chunks.
#include "samebits/tensor_list.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "backends/api/view_checks.hpp"
#include "backends/dispatch/calls/list.hpp"
#include "backends/dispatch/device_scope.hpp"
#include "backends/dispatch/refuse.hpp"

namespace samebits {
namespace backends {
namespace {

using numerics::list_row;

list_row row_of(const list_tensor& tensor, std::uint64_t first_chunk) {
  const matrix_view& v = tensor.view;
  const std::int64_t count = v.rows * v.cols;
  return {v.data,       count,        std::max<std::int64_t>(v.cols, 1),
          v.row_stride, v.col_stride, first_chunk,
          tensor.group, v.format,     is_dense(v)};
}

void check_tensor(const list_data& list, std::size_t position, const char* which) {
  const matrix_view& v = list.tensors[position].view;
  try {
    check_view(v, "");
    require(is_among(v.format, arithmetic_formats),
            ": format must be fp32, fp16, bf16, e4m3 or e5m2, got ", v.format);
    refuse_if(v.space != list.space, ": must lie in the same memory as ", which,
              "[0], host or device");
    check_distinct(v, "");
  } catch (const invalid_argument& error) {
    // The name is built only on error: names for all good tensors would cost time.
    refuse(tensor_text(list.tensors[position], position, which), error.what());
  }
}

[[noreturn]] void refuse_pair(const list_data& list, const char* which, std::size_t a,
                              std::size_t b, const char* what) {
  const auto [first, second] = std::minmax(a, b);
  refuse(tensor_text(list.tensors[first], first, which), " and ",
         tensor_text(list.tensors[second], second, which), " ", what);
}

/// Refuses overlapping tensors. A tensor that is listed twice, such as tied weights, would be
/// counted and scaled twice.
void check_shared_memory(const list_data& list, const char* which) {
  std::int64_t steps = steps_of_a_list;
  for_each_touching_pair(list.by_begin, [&](const extent& a, const extent& b) {
    if (a.begin == b.begin) {
      refuse_pair(list, which, a.position, b.position,
                  "begin at the same element, which would be worked on twice; pass one of them");
    }
    const sharing found =
        sharing_of(list.tensors[a.position].view, list.tensors[b.position].view, steps);
    if (found == sharing::none) return;
    refuse_pair(list, which, a.position, b.position,
                found == sharing::some
                    ? "overlap"
                    : "lie between each other's elements, and whether they overlap takes too long "
                      "to decide; pass tensors that lie one behind the other, or copies");
  });
}

/// Collects the sorted extents, which the later checks of the list use.
void summarize(list_data& list) {
  list.by_begin.reserve(list.tensors.size());
  for (std::size_t i = 0; i < list.tensors.size(); ++i) {
    const matrix_view& v = list.tensors[i].view;
    list.formats |= 1u << static_cast<int>(v.format);
    if (list.rows[i].count == 0) continue;
    list.by_begin.push_back(extent_of(v, i, true));
    list.end = std::max(list.end, list.by_begin.back().end);
  }
  // Allocators mostly return rising addresses.
  if (!std::is_sorted(list.by_begin.begin(), list.by_begin.end(), begins_before)) {
    std::sort(list.by_begin.begin(), list.by_begin.end(), begins_before);
  }
}

}  // namespace

std::shared_ptr<list_data> describe_list(std::vector<list_tensor> tensors, const char* which) {
  refuse_if(tensors.size() > std::numeric_limits<std::uint32_t>::max(), which,
            ": must be fewer than 2^32, got ", tensors.size());
  auto list = std::make_shared<list_data>();
  list->tensors = std::move(tensors);
  if (!list->tensors.empty()) list->space = list->tensors.front().view.space;
  list->rows.reserve(list->tensors.size());
  std::uint64_t chunks = 0;
  for (std::size_t i = 0; i < list->tensors.size(); ++i) {
    check_tensor(*list, i, which);
    const list_row row = row_of(list->tensors[i], chunks);
    list->rows.push_back(row);
    list->elements += static_cast<std::uint64_t>(row.count);
    chunks += numerics::chunks_of(row.count);
  }
  summarize(*list);
  check_shared_memory(*list, which);
  list->row_of_chunk.reserve(chunks);
  for (std::size_t i = 0; i < list->rows.size(); ++i) {
    list->row_of_chunk.insert(list->row_of_chunk.end(), numerics::chunks_of(list->rows[i].count),
                              static_cast<std::uint32_t>(i));
  }
  return list;
}

std::shared_ptr<const list_data> make_tensor_list(std::vector<list_tensor> tensors,
                                                  const char* which) {
  auto list = describe_list(std::move(tensors), which);
  if (list->space == memory_space::device) list->upload(device_of(*list, which));
  return list;
}

int device_of(const list_data& list, const char* which) {
  device_finder finder(list.space);
  for (std::size_t i = 0; i < list.tensors.size(); ++i) {
    finder.add(address_of(list.tensors[i].view),
               [&] { return tensor_text(list.tensors[i], i, which); });
  }
  return finder.device();
}

std::string tensor_text(const list_tensor& tensor, std::size_t position, const char* list) {
  return detail::cat(list_item{list, position, tensor.name});
}

}  // namespace backends

tensor_list::tensor_list() : tensor_list(std::vector<list_tensor>()) {}

tensor_list::tensor_list(std::vector<list_tensor> tensors)
    : data_(backends::make_tensor_list(std::move(tensors), "tensors")) {}

std::shared_ptr<const backends::list_data> tensor_list::describe(
    std::span<const matrix_view> tensors) {
  std::vector<list_tensor> list;
  list.reserve(tensors.size());
  for (const matrix_view& view : tensors) list.push_back({view});
  return backends::make_tensor_list(std::move(list), "tensors");
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
