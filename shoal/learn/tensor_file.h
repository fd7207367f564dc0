// Matrices by name, in files of the format safetensors: eight bytes that say how long the header is, a header of JSON that says where each tensor
// lies, then their bytes. Other tools read and write it; nothing in it runs. Values.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace shoal::learn {

template <class Number>
struct TensorOf {
  std::vector<std::uint64_t> shape;
  std::vector<Number> values;  // row after row
};
using Tensor = TensorOf<float>;
using Tensors = std::map<std::string, Tensor>;
// Of the other types that are written and read: F64, U32 and U64.
template <class Number>
struct ViewOf {                // of numbers that lie elsewhere, and stay there while they are written; none is read
  std::vector<std::uint64_t> shape;
  std::span<const Number> values;
};
using OtherTensor = std::variant<TensorOf<double>, TensorOf<std::uint32_t>, TensorOf<std::uint64_t>, ViewOf<std::uint32_t>, ViewOf<float>>;

// Throws Error{mismatch} unless there is one of this name and shape.
const Tensor& tensor_of(const Tensors& tensors, const std::string& name, const std::vector<std::uint64_t>& shape);

struct TensorFile {
  Tensors tensors;
  std::map<std::string, std::string> metadata;
  std::map<std::string, OtherTensor> others = {};  // no name is also in tensors
};

// Written aside and renamed. Throws Error{io}.
void write_tensor_file(const std::filesystem::path& file, const TensorFile& content);
// Throws Error{invalid_argument} for what is no such file, is cut short, or has tensors of another type.
TensorFile read_tensor_file(const std::filesystem::path& file);

}  // namespace shoal::learn
