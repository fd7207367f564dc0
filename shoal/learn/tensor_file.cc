#include "shoal/learn/tensor_file.h"

#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

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

std::string header_of(const TensorFile& content) {
  nlohmann::ordered_json header;
  if (!content.metadata.empty()) header["__metadata__"] = content.metadata;
  std::uint64_t end = 0;
  for (const auto& [name, tensor] : content.tensors) {
    const std::uint64_t begin = end;
    end += tensor.values.size() * sizeof(float);
    header[name] = {{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
  }
  std::string text = header.is_null() ? "{}" : header.dump();
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment, ' ');
  return text;
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
    for (const auto& [name, tensor] : content.tensors) {
      out.write(reinterpret_cast<const char*>(tensor.values.data()), static_cast<std::streamsize>(tensor.values.size() * sizeof(float)));
    }
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
    if (entry.at("dtype") != "F32") refuse(file, "tensor " + name + " is " + entry.at("dtype").get<std::string>() + ", not F32");
    Tensor tensor{entry.at("shape").get<std::vector<std::uint64_t>>(), {}};
    const std::uint64_t begin = entry.at("data_offsets").at(0), end = entry.at("data_offsets").at(1);
    if (begin > end || end > size - begins) refuse(file, "is cut short: tensor " + name + " is not all there");
    std::uint64_t left = (end - begin) / sizeof(float), count = 1;  // count stays at most left, so the product cannot overflow
    for (const std::uint64_t extent : tensor.shape) {
      if (extent != 0 && count > left / extent) refuse(file, "tensor " + name + " has another size than its shape says");
      count *= extent;
    }
    if (count * sizeof(float) != end - begin) refuse(file, "tensor " + name + " has another size than its shape says");
    tensor.values.resize(count);
    in.seekg(static_cast<std::streamoff>(begins + begin));
    in.read(reinterpret_cast<char*>(tensor.values.data()), static_cast<std::streamsize>(end - begin));
    if (!in) refuse(file, "cannot be read");
    content.tensors.emplace(name, std::move(tensor));
  }
  return content;
} catch (const nlohmann::json::exception&) {
  refuse(file, "is no safetensors file");
}

}  // namespace shoal::learn
