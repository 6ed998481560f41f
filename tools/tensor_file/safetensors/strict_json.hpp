// JSON of unknown origin: objects that repeat no key, of bounded depth.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tensor_file/error.hpp"
#include "tensor_file/escape.hpp"

namespace samebits::tensor_file {

/// Parses a text.
/// @tparam json  nlohmann::json, or ordered_json, whose members keep their order and whose objects
///   take quadratic time
/// @throws file_error  (malformed) unless it is JSON whose objects repeat no key, with at most 64
///   levels
template <class json>
json parse_strictly(std::string_view text) {
  constexpr int deepest = 64;
  std::vector<std::set<std::string>> keys;  // of the objects around a position
  const auto check = [&](int depth, typename json::parse_event_t event, const json& parsed) {
    if (depth > deepest) malformed("nested too deeply");
    if (event == json::parse_event_t::object_start) keys.emplace_back();
    if (event == json::parse_event_t::object_end) keys.pop_back();
    if (event != json::parse_event_t::key) return true;
    const auto& key = parsed.template get_ref<const std::string&>();
    if (!keys.back().insert(key).second) malformed(quote(key) + " occurs twice");
    return true;
  };
  try {
    return json::parse(text.begin(), text.end(), check);
  } catch (const typename json::parse_error& error) {
    malformed("not JSON at byte " + std::to_string(error.byte));
  } catch (const typename json::out_of_range&) {
    malformed("a number beyond binary64");
  }
}

}  // namespace samebits::tensor_file
