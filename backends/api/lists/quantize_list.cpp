// quantize() of a list: checks the list once, then splits it among threads or passes it to a
// device.
#include "samebits/quantize_list.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "backends/api/run_call.hpp"
#include "backends/dispatch/access.hpp"
#include "backends/dispatch/calls/quantize.hpp"
#include "backends/dispatch/device_scope.hpp"
#include "backends/dispatch/overlap.hpp"
#include "backends/dispatch/refuse.hpp"
#include "backends/threads/parts.hpp"
#include "samebits/recipe.hpp"

namespace samebits {
namespace backends {
namespace {

list_item named(const quantize_item& item, std::size_t position) {
  return {"items", position, item.name};
}

quantize_call call_of(const quantize_item& item, std::size_t position,
                      const quantize_options& options) {
  const list_item which = named(item, position);
  refuse_if(item.outputs.statistics != nullptr, which, ": outputs.statistics: not of a list");
  quantize_options own = options;
  own.inverse_scales = item.inverse_scales;
  own.random.stream += position;
  try {
    return checked_call(item.in, item.outputs, own);
  } catch (const invalid_argument& e) {
    refuse(which, ": ", e.what());
  }
}

bool has_scales(const quantize_call& call) {
  return call.outputs.scales.data != nullptr || call.outputs.scales_transposed.data != nullptr;
}

/// Requires one input format, one code format, one scale format and one memory in the list. Tensors
/// without elements get the list's input and code formats. Tensors without scales get the list's
/// scale format.
void make_uniform(quantize_list_data& list) {
  const auto check_format = [&](std::size_t i, const char* what, format_id expected,
                                format_id got) {
    require(got == expected, named(list.items[i], i), ": ", what, " must be that of the list, ",
            expected, ", got ", got);
  };
  const quantize_call* model = nullptr;   // first tensor with elements
  const quantize_call* scaled = nullptr;  // first tensor with scales
  for (std::size_t i = 0; i < list.calls.size(); ++i) {
    const quantize_call& call = list.calls[i];
    refuse_if(call.in.space != list.space, named(list.items[i], i),
              ": must lie in the same memory as items[0], host or device");
    if (is_empty(call.in)) continue;
    if (model == nullptr) model = &call;
    if (scaled == nullptr && has_scales(call)) scaled = &call;
    check_format(i, "in: format", model->in.format, call.in.format);
    check_format(i, "outputs: format of the codes", model->to, call.to);
    if (!has_scales(call)) continue;
    check_format(i, "outputs: format of the scales", scaled->scale_format, call.scale_format);
  }
  if (scaled == nullptr) return;
  for (quantize_call& call : list.calls) {
    call.scale_format = scaled->scale_format;
    call.scale.scale_of_zeros = scaled->scale.scale_of_zeros;
  }
}

/// Requires that no output shares memory with a view of another tensor. Views of one tensor were
/// checked before.
void check_outputs_are_apart(const quantize_list_data& list) {
  struct item_view {
    const_matrix_view view;
    std::size_t item;
  };
  std::vector<item_view> views;
  std::vector<extent> extents;
  const auto add = [&](const const_matrix_view& v, std::size_t item, bool written) {
    if (v.data == nullptr || is_empty(v)) return;
    extents.push_back(extent_of(v, views.size(), written));
    views.push_back({v, item});
  };
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    const quantize_item& item = list.items[i];
    const quantize_outputs& o = item.outputs;
    add(item.in, i, false);
    add(item.inverse_scales, i, false);
    for (const matrix_view& v : {o.codes, o.scales, o.codes_transposed, o.scales_transposed}) {
      add(v, i, true);
    }
  }
  std::sort(extents.begin(), extents.end(), begins_before);
  std::int64_t steps = steps_of_a_list;
  for_each_touching_pair(extents, [&](const extent& a, const extent& b) {
    const item_view& output = views[(b.written ? b : a).position];
    const item_view& other = views[(b.written ? a : b).position];
    if (output.item == other.item) return;
    const sharing found = sharing_of(output.view, other.view, steps);
    if (found == sharing::none) return;
    const list_item which = named(list.items[output.item], output.item);
    const list_item with = named(list.items[other.item], other.item);
    refuse_if(found == sharing::some, which, ": an output overlaps ", with);
    refuse(which, ": an output: ", undecided_overlap(detail::cat(with)));
  });
}

/// The device of a list's memory.
int device_of(const std::vector<quantize_item>& items) {
  device_finder finder(memory_space::device);
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto name = [&] { return detail::cat(named(items[i], i)); };
    const quantize_outputs& o = items[i].outputs;
    for (const const_matrix_view& v : std::initializer_list<const_matrix_view>{
             items[i].in, items[i].inverse_scales, o.codes, o.scales, o.codes_transposed,
             o.scales_transposed}) {
      finder.add(address_of(v), name);
    }
  }
  return finder.device();
}

std::shared_ptr<const quantize_list_data> make_list(std::vector<quantize_item> items,
                                                    const quantize_options& options) {
  refuse_if(options.inverse_scales.data != nullptr,
            "options.inverse_scales: a list takes those of its items");
  refuse_if(!options.workspace.empty(),
            "options.workspace: a list takes what it needs from the stream");
  auto list = std::make_shared<quantize_list_data>();
  list->items = std::move(items);
  if (!list->items.empty()) list->space = list->items.front().in.space;
  list->calls.reserve(list->items.size());
  for (std::size_t i = 0; i < list->items.size(); ++i) {
    const quantize_call call = call_of(list->items[i], i, options);
    list->elements += static_cast<std::uint64_t>(call.in.rows * call.in.cols);
    list->calls.push_back(call);
  }
  make_uniform(*list);
  check_outputs_are_apart(*list);
  if (list->space == memory_space::device) {
    list->device = device_of(list->items);
    const device_scope on(list->space, list->device, nullptr);
    const auto has = [](const backend& b) { return b.prepare_list != nullptr; };
    list->on_device = resolve({}, memory_space::device, has).prepare_list(list->calls);
    // The device that holds the tables.
    if (list->device == no_device) list->device = current_device_number();
  }
  return list;
}

const recipe& checked_rules(const recipe& rules, const std::vector<quantize_item>& items) {
  const bool delayed = rules.source == scale_source::delayed;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const quantize_item& item = items[i];
    refuse_if(delayed != (item.inverse_scales.data != nullptr) && !is_empty(item.in),
              named(item, i), ": inverse_scales: ",
              delayed ? "a delayed recipe needs them" : "a recipe of current scales takes none");
    for (const matrix_view& v : {item.outputs.scales, item.outputs.scales_transposed}) {
      refuse_if(v.data != nullptr && v.format != rules.scale_format, named(item, i),
                ": scales: format must be the recipe's, ", rules.scale_format, ", got ", v.format);
    }
  }
  return rules;
}

}  // namespace
}  // namespace backends

quantize_list::quantize_list() : quantize_list({}, quantize_options{}) {}

quantize_list::quantize_list(std::vector<quantize_item> items, const quantize_options& options)
    : data_(backends::make_list(std::move(items), options)) {}

quantize_list quantize_list::by_recipe(std::vector<quantize_item> items, const recipe& rules) {
  quantize_list list(std::move(items), options_of(rules));
  backends::checked_rules(rules, list.data_->items);
  return list;
}

std::size_t quantize_list::size() const { return data_->items.size(); }

const quantize_item& quantize_list::operator[](std::size_t position) const {
  return data_->items[position];
}

std::string quantize_list::name(std::size_t position) const {
  const std::string& given = data_->items[position].name;
  return given.empty() ? "items[" + std::to_string(position) + "]" : given;
}

std::uint64_t quantize_list::elements() const { return data_->elements; }

memory_space quantize_list::space() const { return data_->space; }

void quantize(const quantize_list& list, const executor& where) {
  namespace b = backends;
  const b::quantize_list_data& data = b::data_of(list);
  b::check_threads(where);
  const b::device_scope on(data.space, data.device, where.stream);
  const bool empty = data.items.empty();
  const b::backend& chosen = b::backend_for(&b::backend::quantize_list, data, {data.space, empty},
                                            where, "cannot quantize lists");
  if (!empty) chosen.quantize_list.run(data, where);
}

}  // namespace samebits
