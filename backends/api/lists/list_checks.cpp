// Checks shared by all operations on tensor lists.
#include "backends/api/lists/list_checks.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "backends/api/view_checks.hpp"
#include "backends/dispatch/access.hpp"
#include "backends/dispatch/calls/list.hpp"
#include "backends/dispatch/overlap.hpp"
#include "backends/dispatch/refuse.hpp"

namespace samebits::backends {
namespace {

void check_list_format(const list_item& tensor, format_id format,
                       std::span<const format_id> among) {
  if (std::find(among.begin(), among.end(), format) != among.end()) return;
  std::string names;
  for (const format_id f : among) {
    if (f == among.back()) {
      names += " or ";
    } else if (!names.empty()) {
      names += ", ";
    }
    names += name(f);
  }
  refuse(tensor, ": format must be ", names, ", got ", format);
}

list_item item_of(const tensor_list& list, const char* which, std::size_t position) {
  return {which, position, list[position].name};
}

bool has_shapes_of(const list_data& out, const list_data& in) {
  for (std::size_t i = 0; i < out.rows.size(); ++i) {
    const numerics::list_row& to = out.rows[i];
    const numerics::list_row& from = in.rows[i];
    // The table row of an empty tensor does not hold its full shape; compare the views.
    if (to.count == 0 || to.count != from.count || to.cols != from.cols) {
      const matrix_view& a = out.tensors[i].view;
      const matrix_view& b = in.tensors[i].view;
      if (a.rows != b.rows || a.cols != b.cols) return false;
    }
  }
  return true;
}

void check_shapes(const tensor_list& out, const char* out_name, const tensor_list& in,
                  const char* in_name) {
  refuse_if(out.size() != in.size(), out_name, ": must have as many tensors as ", in_name, ", ",
            in.size(), ", got ", out.size());
  if (has_shapes_of(data_of(out), data_of(in))) return;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const matrix_view& to = out[i].view;
    const matrix_view& from = in[i].view;
    require(shape_of(to) == shape_of(from), item_of(out, out_name, i), ": shape must be that of ",
            item_of(in, in_name, i), ", ", shape_of(from), ", got ", shape_of(to));
  }
}

/// Whether every tensor of `out` has the same elements as the tensor of `in` at its position.
/// Requires equal shapes.
bool is_in_place(const list_data& out, const list_data& in) {
  for (std::size_t i = 0; i < out.tensors.size(); ++i) {
    if (!are_same_elements(out.tensors[i].view, in.tensors[i].view)) return false;
  }
  return true;
}

/// Whether the memory ranges of the two lists are disjoint.
bool are_distant(const list_data& a, const list_data& b) {
  if (a.by_begin.empty() || b.by_begin.empty()) return true;
  return a.end <= b.by_begin.front().begin || b.end <= a.by_begin.front().begin;
}

void check_overlap(const tensor_list& out, const char* out_name, const tensor_list& in,
                   const char* in_name) {
  if (are_distant(data_of(out), data_of(in))) return;
  const std::vector<extent>& to = data_of(out).by_begin;
  std::vector<extent> from = data_of(in).by_begin;
  for (extent& e : from) e.written = false;
  std::vector<extent> both(to.size() + from.size());
  std::merge(to.begin(), to.end(), from.begin(), from.end(), both.begin(), begins_before);
  std::int64_t steps = steps_of_a_list;
  for_each_touching_pair(both, [&](const extent& a, const extent& b) {
    if (a.written == b.written) return;  // both in one list: checked when the list was made
    const extent& w = a.written ? a : b;
    const extent& r = a.written ? b : a;
    const matrix_view& written = out[w.position].view;
    const matrix_view& read = in[r.position].view;
    if (w.position == r.position && are_same_elements(written, read)) return;
    const sharing found = sharing_of(written, read, steps);
    if (found == sharing::none) return;
    const list_item which = item_of(out, out_name, w.position);
    const list_item other = item_of(in, in_name, r.position);
    refuse_if(found == sharing::some, which, ": overlaps ", other,
              "; they must be disjoint, or the same elements at the same position");
    refuse(which, ": ", undecided_overlap(detail::cat(other)));
  });
}

void check_space(std::span<const matrix_view> tensors, memory_space space, const char* which) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    require(tensors[i].space == space, list_item{which, i}, ": must lie in ", space, " memory");
  }
}

}  // namespace

void check_list(const tensor_list& list, const char* which, std::span<const format_id> among) {
  std::uint32_t others = data_of(list).formats;
  for (const format_id f : among) others &= ~(1u << static_cast<int>(f));
  if (others == 0) return;
  for (std::size_t i = 0; i < list.size(); ++i) {
    check_list_format(item_of(list, which, i), list[i].view.format, among);
  }
}

std::shared_ptr<const list_data> checked_list(std::span<const matrix_view> tensors,
                                              memory_space space, const char* which) {
  check_space(tensors, space, which);
  std::vector<list_tensor> copies;
  copies.reserve(tensors.size());
  for (const matrix_view& view : tensors) {
    check_list_format({which, copies.size()}, view.format, number_formats);
    copies.push_back({view});
  }
  auto list = describe_list(std::move(copies), which);
  if (space == memory_space::device) list->device = device_of(*list, which);
  return list;
}

void check_written(const tensor_list& out, const char* out_name, const tensor_list& in,
                   const char* in_name) {
  if (&data_of(out) == &data_of(in)) return;  // in place, on a list that was already checked
  check_shapes(out, out_name, in, in_name);
  if (out.size() == 0) return;
  refuse_if(out.space() != in.space(), out_name, ": must lie in the same memory as ", in_name,
            ", host or device");
  // If every tensor is written over itself, the check of the list suffices.
  if (!is_in_place(data_of(out), data_of(in))) check_overlap(out, out_name, in, in_name);
}

void check_number(float value, const char* which) {
  refuse_if(value != value, which, ": must not be NaN");
}

device_scope scope_of(std::initializer_list<named_list> lists, named_address memory, void* stream,
                      completion ends) {
  const memory_space space = lists.begin()->list.space();
  device_finder finder(space);
  for (const named_list& p : lists) finder.add_device(data_of(p.list).device, p.name);
  finder.add(memory.address, memory.name);
  return device_scope(space, finder.device(), stream, ends);
}

}  // namespace samebits::backends
