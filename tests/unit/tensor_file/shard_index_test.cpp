// The index of a model in several files: what is read, and what is refused.
#include "tensor_file/safetensors/model_json.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support.hpp"
#include "tensor_file/error.hpp"

namespace samebits::tensor_file {
namespace {

using names = std::vector<std::string>;

TEST(ShardIndex, TheFileOfEachTensor) {
  EXPECT_EQ(parse_shard_index(R"({"metadata": {"total_size": 8, "x": [1, {"weight_map": "no"}]},
                                  "weight_map": {"b": "2.safetensors", "a": "1.safetensors",
                                                 "c": "2.safetensors"}, "more": null})"),
            (shard_map{{"a", "1.safetensors"}, {"b", "2.safetensors"}, {"c", "2.safetensors"}}));
  EXPECT_EQ(parse_shard_index(R"({"weight_map": {}})"), shard_map{});
  // A key may occur in several objects.
  EXPECT_EQ(parse_shard_index(R"({"a": [{"a": 1}, {"a": {"a": 1}}], "weight_map": {"a": "a"}})"),
            (shard_map{{"a", "a"}}));
  EXPECT_TRUE(is_shard_index("a/model.safetensors.index.json"));
  EXPECT_FALSE(is_shard_index("a.index.json/model.safetensors"));
}

TEST(ShardIndex, Refused) {
  const std::string deep(100, '[');
  for (const std::string& text : names{"",
                                       "[]",
                                       "1",
                                       "\"x\"",
                                       "{}",
                                       "{",
                                       R"({"weight_map": [1]})",
                                       R"({"weight_map": "x"})",
                                       R"({"weight_map": null})",
                                       R"({"weight_map": {"a": 1}})",
                                       R"({"weight_map": {"a": {}}})",
                                       R"({"weight_map": {"a": ["x"]}})",
                                       R"({"weight_map": {"a": ""}})",
                                       R"({"weight_map": {"a": "../x"}})",
                                       R"({"weight_map": {"a": "/x"}})",
                                       R"({"weight_map": {"a": ".."}})",
                                       R"({"weight_map": {"a": "x\u0000y"}})",
                                       R"({"weight_map": {}, "weight_map": {}})",
                                       R"({"weight_map": {"a": "x", "a": "x"}})",
                                       R"({"weight_map": {"a": "x", "\u0061": "y"}})",
                                       R"({"x": 1, "weight_map": {}, "x": 1})",
                                       R"({"x": [{"y": 1, "y": 1}], "weight_map": {}})",
                                       R"({"weight_map": {}} x)",
                                       R"({"x": 1e999, "weight_map": {}})",
                                       R"({"x": {"weight_map": {"a": "b"}}})",
                                       R"({"x": )" + deep}) {
    SCOPED_TRACE(text);
    testing::expect_refused([&] { parse_shard_index(text); }, error_kind::malformed, "");
  }
}

TEST(ShardIndex, MissingFile) {
  try {
    read_shard_index("/nowhere/model.index.json");
    ADD_FAILURE();
  } catch (const file_error& error) {
    EXPECT_EQ(error.kind(), error_kind::missing);
    EXPECT_TRUE(std::string(error.what()).starts_with("/nowhere/model.index.json: "));
  }
}

}  // namespace
}  // namespace samebits::tensor_file
