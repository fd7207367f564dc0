// Goal: tensors come back as they were, other tools can read them, and what is damaged is refused before anything is believed.
#include "shoal/learn/tensor_file.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "shoal/core/error.h"

namespace shoal::learn {
namespace {
namespace fs = std::filesystem;

class TensorFiles : public testing::Test {
 protected:
  ~TensorFiles() override { fs::remove(file_); }
  std::string bytes() const {
    std::ifstream in(file_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void put(const std::string& text) const { std::ofstream(file_, std::ios::binary) << text; }
  void put(const std::string& header, const std::string& data) const {
    const std::uint64_t length = header.size();
    put(std::string(reinterpret_cast<const char*>(&length), sizeof length) + header + data);
  }
  std::string refusal() const {
    try {
      read_tensor_file(file_);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      return error.fact();
    }
    return "accepted";
  }
  const fs::path file_ = fs::temp_directory_path() / ("shoal-tensors-" + std::to_string(::getpid()));
  const TensorFile some_{{{"b", {{2, 3}, {1, 2, 3, 4, 5, 6}}}, {"a", {{1}, {-0.5f}}}, {"empty", {{0, 7}, {}}}}, {{"epochs", "3"}}};
};

TEST_F(TensorFiles, come_back_as_they_were) {
  write_tensor_file(file_, some_);
  const TensorFile back = read_tensor_file(file_);
  EXPECT_EQ(back.metadata, some_.metadata);
  ASSERT_EQ(back.tensors.size(), 3u);
  for (const auto& [name, tensor] : some_.tensors) {
    EXPECT_EQ(back.tensors.at(name).shape, tensor.shape);
    EXPECT_EQ(back.tensors.at(name).values, tensor.values);
  }
}

TEST_F(TensorFiles, of_other_types_come_back_and_lie_where_their_numbers_are_aligned) {
  TensorFile content{{{"a", {{1}, {2.5f}}}}, {}};
  content.others["narrow"] = TensorOf<std::uint32_t>{{3}, {1, 2, 0xFFFFFFFF}};
  content.others["wide"] = TensorOf<std::uint64_t>{{2}, {1ull << 63, 7}};
  content.others["zeros"] = TensorOf<double>{{1, 2}, {0.1, -1e300}};
  write_tensor_file(file_, content);
  const TensorFile back = read_tensor_file(file_);
  EXPECT_EQ(back.tensors.at("a").values, content.tensors.at("a").values);
  ASSERT_EQ(back.others.size(), 3u);
  EXPECT_EQ(std::get<TensorOf<std::uint32_t>>(back.others.at("narrow")).values, (std::vector<std::uint32_t>{1, 2, 0xFFFFFFFF}));
  EXPECT_EQ(std::get<TensorOf<std::uint64_t>>(back.others.at("wide")).values, (std::vector<std::uint64_t>{1ull << 63, 7}));
  EXPECT_EQ(std::get<TensorOf<double>>(back.others.at("zeros")).shape, (std::vector<std::uint64_t>{1, 2}));
  EXPECT_EQ(std::get<TensorOf<double>>(back.others.at("zeros")).values, (std::vector<double>{0.1, -1e300}));
  EXPECT_THAT(bytes(), testing::HasSubstr(R"("zeros":{"dtype":"F64","shape":[1,2],"data_offsets":[16,32]})"));
  EXPECT_THAT(bytes(), testing::HasSubstr(R"("narrow":{"dtype":"U32","shape":[3],"data_offsets":[32,44]})"));
}

// The format's text is fixed: this is what its own library reads.
TEST_F(TensorFiles, have_the_format_of_safetensors) {
  write_tensor_file(file_, {{{"a", {{2}, {1, 2}}}}, {}});
  const std::string header = R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  const std::uint64_t length = padded.size();
  const float values[] = {1, 2};
  EXPECT_EQ(bytes(), std::string(reinterpret_cast<const char*>(&length), 8) + padded + std::string(reinterpret_cast<const char*>(values), 8));
}

TEST_F(TensorFiles, cut_short_anywhere_they_are_refused) {
  write_tensor_file(file_, some_);
  const std::string whole = bytes();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    put(whole.substr(0, length));
    EXPECT_NE(refusal(), "accepted") << length << " of " << whole.size();
  }
}

TEST_F(TensorFiles, what_is_none_is_refused_in_words) {
  EXPECT_EQ(refusal(), "cannot be read");
  put(std::string(64, 'x'));
  EXPECT_EQ(refusal(), "is no safetensors file");
  put("[1]", "");
  EXPECT_EQ(refusal(), "is no safetensors file");
  put(R"({"w":{"dtype":"F16","shape":[4],"data_offsets":[0,8]}})", "12345678");
  EXPECT_EQ(refusal(), "tensor w is F16, and F32, F64, U32 and U64 are read");
  put(R"({"w":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", "12345678");
  EXPECT_EQ(refusal(), "tensor w has another size than its shape says");
  put(R"({"w":{"dtype":"F32","shape":[4294967296,4294967296,2],"data_offsets":[0,8]}})", "12345678");
  EXPECT_EQ(refusal(), "tensor w has another size than its shape says");
  put(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[8,4]}})", "12345678");
  EXPECT_EQ(refusal(), "is cut short: tensor w is not all there");
  put(R"({"w":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", "1234");
  EXPECT_NE(refusal(), "accepted");
}

}  // namespace
}  // namespace shoal::learn
