// TensorBoard's event files, written and read: events.out.tfevents.<unix seconds>.<host>.<pid>.<n> holds records of
//   u64 length, u32 masked CRC of those 8 bytes, payload, u32 masked CRC of the payload        (little endian)
// whose payload is a protocol buffer Event{1 wall_time, 2 step, 3 file_version, 5 summary{1 value{1 tag, 2 simple_value}},
// 7 session_log{1 status}}. The CRC is CRC-32C, rotated right by 15 bits plus 0xa282ead8. No library is needed for so little.
//
// A writer belongs to one thread at a time. What a killed process leaves is whole up to its last flush but one; readers
// (TensorBoard, last_step) stop at a record that is cut off.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

namespace shoal::observe {

std::uint32_t crc32c(std::string_view bytes);
std::string tensorboard_record(std::string_view payload);

class TensorBoardFile {
 public:
  // Makes the folder where there is none, and in it a file of its own. Throws Error{invalid_argument}.
  explicit TensorBoardFile(const std::filesystem::path& folder);

  // From here on the axis begins anew at `step`: TensorBoard drops what earlier files have from there on.
  void begin_session(double unix_seconds, std::int64_t step);
  void scalar(double unix_seconds, std::int64_t step, std::string_view tag, double value);
  void flush();  // throws Error{io}

  const std::filesystem::path& path() const { return path_; }

 private:
  void put(const std::string& event);

  std::filesystem::path path_;
  std::ofstream file_;
  std::string text_;  // not yet written
};

// The largest step in the folder's event files; nothing where there is none. What is damaged ends a file.
std::optional<std::int64_t> last_step(const std::filesystem::path& folder);

}  // namespace shoal::observe
