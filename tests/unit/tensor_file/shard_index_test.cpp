// The index of a model in several files: what is read, and what is refused.
#include "tensor_file/safetensors/shard_index.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tensor_file/error.hpp"

namespace samebits::tensor_file {
namespace {

using names = std::vector<std::string>;

TEST(ShardIndex, EachFileOnceInOrder) {
  EXPECT_EQ(parse_shard_index(R"({"metadata": {"total_size": 8, "x": [1, {"weight_map": "no"}]},
                                  "weight_map": {"b": "2.safetensors", "a": "1.safetensors",
                                                 "c": "2.safetensors"}, "more": null})"),
            (names{"1.safetensors", "2.safetensors"}));
  EXPECT_EQ(parse_shard_index(R"({"weight_map": {}})"), names{});
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
                                       R"({"weight_map": {}} x)",
                                       R"({"x": {"weight_map": {"a": "b"}}})",
                                       R"({"x": )" + deep}) {
    try {
      parse_shard_index(text);
      ADD_FAILURE() << text;
    } catch (const file_error& error) {
      EXPECT_EQ(error.kind(), error_kind::malformed) << text;
    }
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
