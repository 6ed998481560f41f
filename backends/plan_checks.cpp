// Checks that the operations over plans share.
#include "backends/plan_checks.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "backends/plan.hpp"
#include "backends/view_checks.hpp"
#include "samebits/error.hpp"

namespace samebits::backends {
namespace {

void check_format(const std::string& tensor, format_id format, std::span<const format_id> among) {
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
  throw invalid_argument(tensor + ": format must be " + names + ", got " +
                         std::string(name(format)));
}

std::string text_of(const tensor_plan& plan, const char* which, std::size_t position) {
  return tensor_text(plan[position], position, which);
}

void check_shapes(const tensor_plan& out, const char* out_name, const tensor_plan& in,
                  const char* in_name) {
  if (out.size() != in.size()) {
    throw invalid_argument(std::string(out_name) + ": must have as many tensors as " + in_name +
                           ", " + std::to_string(in.size()) + ", got " +
                           std::to_string(out.size()));
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    const matrix_view& to = out[i].view;
    const matrix_view& from = in[i].view;
    if (to.rows == from.rows && to.cols == from.cols) continue;
    throw invalid_argument(text_of(out, out_name, i) + ": shape must be that of " +
                           text_of(in, in_name, i) + ", " + shape_text(from.rows, from.cols) +
                           ", got " + shape_text(to.rows, to.cols));
  }
}

bool are_same_elements(const matrix_view& a, const matrix_view& b) {
  return a.data == b.data && storage_bytes(a.format) == storage_bytes(b.format) &&
         (a.rows == 1 || a.row_stride == b.row_stride) &&
         (a.cols == 1 || a.col_stride == b.col_stride);
}

/// The bytes from a tensor's first to behind its last element.
struct extent {
  std::uintptr_t begin;
  std::uintptr_t end;
  std::size_t position;
};

extent extent_of(const matrix_view& v, std::size_t position) {
  const auto begin = reinterpret_cast<std::uintptr_t>(v.data);
  const std::int64_t last = (v.rows - 1) * v.row_stride + (v.cols - 1) * v.col_stride;
  return {begin, begin + static_cast<std::uintptr_t>((last + 1) * storage_bytes(v.format)),
          position};
}

std::vector<extent> extents_of(const tensor_plan& plan) {
  std::vector<extent> all;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    if (!is_empty(plan[i].view)) all.push_back(extent_of(plan[i].view, i));
  }
  return all;
}

/// The bytes from the first to behind the last of all; begin is the largest address where there are
/// none.
extent hull_of(const std::vector<extent>& all) {
  extent hull = {std::numeric_limits<std::uintptr_t>::max(), 0, 0};
  for (const extent& e : all) {
    hull.begin = std::min(hull.begin, e.begin);
    hull.end = std::max(hull.end, e.end);
  }
  return hull;
}

void check_overlap(const tensor_plan& out, const char* out_name, const tensor_plan& in,
                   const char* in_name) {
  std::vector<extent> written = extents_of(out);
  const std::vector<extent> all_read = extents_of(in);
  // Lists that lie apart need no sorting, which of 10,000 tensors takes a millisecond.
  const extent to = hull_of(written), from = hull_of(all_read);
  if (to.end <= from.begin || from.end <= to.begin) return;
  const auto in_order = [](const extent& a, const extent& b) { return a.begin < b.begin; };
  if (!std::is_sorted(written.begin(), written.end(), in_order)) {
    std::sort(written.begin(), written.end(), in_order);
  }
  std::vector<std::uintptr_t> end_so_far;
  end_so_far.reserve(written.size());
  for (const extent& e : written) {
    end_so_far.push_back(end_so_far.empty() ? e.end : std::max(end_so_far.back(), e.end));
  }
  for (const extent& read : all_read) {
    // Backwards from the last that begins before this one ends, while any may reach into it.
    auto k = static_cast<std::size_t>(
        std::lower_bound(written.begin(), written.end(), extent{read.end, 0, 0}, in_order) -
        written.begin());
    for (; k > 0 && end_so_far[k - 1] > read.begin; --k) {
      const extent& w = written[k - 1];
      if (w.end <= read.begin) continue;
      if (w.position == read.position &&
          are_same_elements(out[w.position].view, in[read.position].view)) {
        continue;
      }
      throw invalid_argument(text_of(out, out_name, w.position) + ": overlaps " +
                             text_of(in, in_name, read.position) +
                             "; they must be disjoint, or the same elements at the same position");
    }
  }
}

void check_space(std::span<const matrix_view> tensors, memory_space space, const char* which) {
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (tensors[i].space == space) continue;
    throw invalid_argument(tensor_text({}, i, which) + ": must lie in " +
                           (space == memory_space::host ? "host" : "device") + " memory");
  }
}

}  // namespace

void check_plan(const tensor_plan& plan, const char* which, std::span<const format_id> among) {
  for (std::size_t i = 0; i < plan.size(); ++i) {
    check_format(text_of(plan, which, i), plan[i].view.format, among);
  }
}

void check_host(std::span<const matrix_view> tensors, const char* which) {
  check_space(tensors, memory_space::host, which);
}

std::shared_ptr<const plan_data> checked_list(std::span<const matrix_view> tensors,
                                              memory_space space, const char* which) {
  check_space(tensors, space, which);
  std::vector<plan_tensor> list;
  list.reserve(tensors.size());
  for (const matrix_view& view : tensors) {
    check_format(tensor_text({}, list.size(), which), view.format, wide_plan_formats);
    list.push_back({view});
  }
  auto plan = describe_plan(std::move(list), which);
  if (space == memory_space::device) plan->device = device_of(*plan, which);
  return plan;
}

void check_written(const tensor_plan& out, const char* out_name, const tensor_plan& in,
                   const char* in_name) {
  check_shapes(out, out_name, in, in_name);
  if (out.size() == 0) return;
  if (out.space() != in.space()) {
    throw invalid_argument(std::string(out_name) + ": must lie in the same memory as " + in_name +
                           ", host or device");
  }
  // Where every tensor is written over itself, the plan has been checked already.
  bool in_place = true;
  for (std::size_t i = 0; i < out.size() && in_place; ++i) {
    in_place = are_same_elements(out[i].view, in[i].view);
  }
  if (!in_place) check_overlap(out, out_name, in, in_name);
}

void check_number(float value, const char* which) {
  if (value != value) throw invalid_argument(std::string(which) + ": must not be NaN");
}

device_scope scope_of(std::initializer_list<named_plan> plans, named_address memory, void* stream,
                      completion ends) {
  const memory_space space = plans.begin()->plan.space();
  device_finder finder(space);
  for (const named_plan& p : plans) finder.add_device(p.plan.data().device, p.name);
  finder.add(memory.address, memory.name);
  return device_scope(space, finder.device(), stream, ends);
}

const backend& plan_backend(const tensor_plan& plan, const executor& where) {
  check_threads(where);
  const backend& chosen = resolve(where, plan.space(), [](const backend& b) {
    return b.plans != nullptr || b.device_plans != nullptr;
  });
  if (plan.size() != 0) check_memory(chosen, plan.space());  // no tensors, no memory
  if (chosen.plans == nullptr && chosen.device_plans == nullptr) {
    throw unsupported("backend '" + std::string(chosen.name) + "' has no operations over plans");
  }
  return chosen;
}

}  // namespace samebits::backends
