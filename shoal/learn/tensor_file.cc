#include "shoal/learn/tensor_file.h"

#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <type_traits>
#include <utility>

#include "shoal/core/aside.h"
#include "shoal/core/error.h"

namespace shoal::learn {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");
constexpr std::uint64_t kLongestHeader = 100'000'000;  // what other readers accept
constexpr std::size_t kAlignment = 8;

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& what) {
  throw Error(Code::invalid_argument, what, file.string(), "is it a model that was written whole?");
}

template <class Number>
constexpr const char* kType = nullptr;
template <>
constexpr const char* kType<float> = "F32";
template <>
constexpr const char* kType<double> = "F64";
template <>
constexpr const char* kType<std::uint32_t> = "U32";
template <>
constexpr const char* kType<std::uint64_t> = "U64";

// visit(name, tensor) of all in the order of the file: wide numbers first, so that all are aligned.
template <class Visit>
void in_order(const TensorFile& content, const Visit& visit) {
  for (const std::size_t bytes : {8, 4}) {
    for (const auto& named : content.others) {
      const auto of_this_size = [&](const auto& tensor) {
        if (sizeof(tensor.values[0]) == bytes) visit(named.first, tensor);
      };
      std::visit(of_this_size, named.second);
    }
  }
  for (const auto& [name, tensor] : content.tensors) visit(name, tensor);
}

template <class Tensor>
using NumberOf = std::remove_cvref_t<decltype(std::declval<Tensor>().values[0])>;

template <class Tensor>
std::uint64_t bytes_of(const Tensor& tensor) {
  return tensor.values.size() * sizeof(NumberOf<Tensor>);
}

std::string header_of(const TensorFile& content) {
  nlohmann::ordered_json header;
  if (!content.metadata.empty()) header["__metadata__"] = content.metadata;
  std::uint64_t end = 0;
  in_order(content, [&]<class Tensor>(const std::string& name, const Tensor& tensor) {
    const std::uint64_t begin = end;
    end += bytes_of(tensor);
    header[name] = {{"dtype", kType<NumberOf<Tensor>>}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
  });
  std::string text = header.is_null() ? "{}" : header.dump();
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  return text;
}

// Where a tensor's bytes lie, behind the header.
struct Extent {
  std::uint64_t begin, end;
};

template <class Number>
TensorOf<Number> read_tensor(std::ifstream& in, const std::filesystem::path& file, const std::string& name, const nlohmann::json& entry,
                             Extent bytes) {
  TensorOf<Number> tensor{entry.at("shape").get<std::vector<std::uint64_t>>(), {}};
  std::uint64_t left = (bytes.end - bytes.begin) / sizeof(Number), count = 1;  // count stays at most left, so the product cannot overflow
  for (const std::uint64_t extent : tensor.shape) {
    if (extent != 0 && count > left / extent) refuse(file, "tensor " + name + " has another size than its shape says");
    count *= extent;
  }
  if (count * sizeof(Number) != bytes.end - bytes.begin) refuse(file, "tensor " + name + " has another size than its shape says");
  tensor.values.resize(count);
  in.seekg(static_cast<std::streamoff>(bytes.begin));
  in.read(reinterpret_cast<char*>(tensor.values.data()), static_cast<std::streamsize>(bytes.end - bytes.begin));
  if (!in) refuse(file, "cannot be read");
  return tensor;
}

}  // namespace

const Tensor& tensor_of(const Tensors& tensors, const std::string& name, const std::vector<std::uint64_t>& shape) {
  const auto found = tensors.find(name);
  if (found != tensors.end() && found->second.shape == shape) return found->second;
  std::string wanted;
  for (const std::uint64_t extent : shape) wanted += (wanted.empty() ? "" : " x ") + std::to_string(extent);
  throw Error(Code::mismatch, "the model has no tensor " + name + " of " + wanted, {}, "is it a model of the same data and options?");
}

void write_tensor_file(const std::filesystem::path& file, const TensorFile& content) {
  write_aside(file, [&](const std::filesystem::path& aside) {
    const std::string header = header_of(content);
    const std::uint64_t length = header.size();
    std::ofstream out(aside, std::ios::binary);
    out.write(reinterpret_cast<const char*>(&length), sizeof length);
    out << header;
    in_order(content, [&out](const std::string&, const auto& tensor) {
      out.write(reinterpret_cast<const char*>(tensor.values.data()), static_cast<std::streamsize>(bytes_of(tensor)));
    });
    out.close();
    if (!out) throw Error(Code::io, "cannot be written: " + std::generic_category().message(errno), file.string());
  });
}

TensorFile read_tensor_file(const std::filesystem::path& file) try {
  std::ifstream in(file, std::ios::binary);
  std::error_code none;
  const std::uint64_t size = std::filesystem::file_size(file, none);
  std::uint64_t length = 0;
  if (!in || none) refuse(file, "cannot be read");
  in.read(reinterpret_cast<char*>(&length), sizeof length);
  if (!in || length > kLongestHeader || length > size - sizeof length) refuse(file, "is no safetensors file");
  std::string text(length, '\0');
  in.read(text.data(), static_cast<std::streamsize>(length));
  const auto header = nlohmann::json::parse(text);
  const std::uint64_t begins = sizeof length + length;

  TensorFile content;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      content.metadata = entry.get<std::map<std::string, std::string>>();
      continue;
    }
    const std::uint64_t begin = entry.at("data_offsets").at(0), end = entry.at("data_offsets").at(1);
    if (begin > end || end > size - begins) refuse(file, "is cut short: tensor " + name + " is not all there");
    const Extent bytes{begins + begin, begins + end};
    const std::string type = entry.at("dtype");
    if (type == "F32") {
      content.tensors.emplace(name, read_tensor<float>(in, file, name, entry, bytes));
    } else if (type == "F64") {
      content.others.emplace(name, read_tensor<double>(in, file, name, entry, bytes));
    } else if (type == "U32") {
      content.others.emplace(name, read_tensor<std::uint32_t>(in, file, name, entry, bytes));
    } else if (type == "U64") {
      content.others.emplace(name, read_tensor<std::uint64_t>(in, file, name, entry, bytes));
    } else {
      refuse(file, "tensor " + name + " is " + type + ", and F32, F64, U32 and U64 are read");
    }
  }
  return content;
} catch (const nlohmann::json::exception&) {
  refuse(file, "is no safetensors file");
}

}  // namespace shoal::learn
