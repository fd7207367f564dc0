// Matrices of 32-bit floating-point numbers by name, in files of the format safetensors: eight bytes that say how long the header is, a header of
// JSON that says where each tensor lies, then their bytes. Other tools read and write it; nothing in it runs. Values.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace shoal::learn {

struct Tensor {
  std::vector<std::uint64_t> shape;
  std::vector<float> values;  // row after row
};
using Tensors = std::map<std::string, Tensor>;

// Throws Error{mismatch} unless there is one of this name and shape.
const Tensor& tensor_of(const Tensors& tensors, const std::string& name, const std::vector<std::uint64_t>& shape);

struct TensorFile {
  Tensors tensors;
  std::map<std::string, std::string> metadata;
};

// Written aside and renamed. Throws Error{io}.
void write_tensor_file(const std::filesystem::path& file, const TensorFile& content);
// Throws Error{invalid_argument} for what is no such file, is cut short, or has tensors of another type.
TensorFile read_tensor_file(const std::filesystem::path& file);

}  // namespace shoal::learn
