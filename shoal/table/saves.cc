#include "shoal/table/saves.h"

#include <sstream>
#include <utility>

#include "shoal/core/error.h"
#include "shoal/table/part_file.h"

namespace shoal::table {

Message SaveRequest::message(Kind kind, std::uint64_t table) const {
  const std::string text = (id.empty() ? "-" : id) + ' ' + std::to_string(time) + ' ' + folder.string();
  if (text.size() > kLongestText) throw Error(Code::invalid_argument, "the path is too long", folder.string());
  return Message::of_text(kind, table, text);
}

SaveRequest SaveRequest::from(const Message& message) {
  SaveRequest request;
  std::istringstream in(message.text());
  std::string folder;
  in >> request.id >> request.time;
  in.get();
  std::getline(in, folder, '\0');
  request.folder = folder;
  if (request.id == "-") request.id.clear();
  if (in.bad() || !(request.id.empty() || is_id(request.id)) || !request.folder.is_absolute()) {
    throw Error(Code::mismatch, "a snapshot is asked for as \"" + message.text() + "\"", "tables", "run the same program on all members");
  }
  return request;
}

struct Saves::Save {
  net::Rank by;
  std::uint64_t table, sequence;
  std::filesystem::path folder;
  Cut cut;

  std::unique_ptr<Image> image;       // on the loop, as the next two
  std::size_t under_way = 0;          // chunks
  std::shared_ptr<ServerBytes> moved;
  bool held = false;                  // too many of them
  std::unique_ptr<PartWriter> writer; // where the disk is, as the next
  bool broken = false;
};

Saves::Saves(net::Transport& transport, OnDisk disk, std::uint32_t part, std::uint32_t parts, Answer answer)
    : transport_(transport), disk_(std::move(disk)), part_(part), parts_(parts), answer_(std::move(answer)) {}

void Saves::begin(net::Rank by, const Message& request, const Spec& spec, Clock clock, const Rule& rule, std::unique_ptr<Image> image,
                  std::shared_ptr<ServerBytes> moved) {
  const SaveRequest asked = SaveRequest::from(request);
  const auto save = std::make_shared<Save>();
  save->by = by;
  save->table = request.header.table;
  save->sequence = request.header.sequence;
  save->folder = asked.folder;
  save->cut = {spec, clock, rule, asked.id, parts_, asked.time};
  save->image = std::move(image);
  save->moved = std::move(moved);
  saves_.insert(save);
  step(save);
}

void Saves::step(const std::shared_ptr<Save>& save) {
  constexpr std::size_t most = 32;    // chunks under way
  if (!save->image) return;           // it has failed, or all is over
  save->held = save->under_way == most;
  if (save->held) return;
  ++save->under_way;
  const Bytes chunk = save->image->next();
  const bool last = chunk.empty();
  save->moved->saved += chunk.size();
  if (last) save->image.reset();
  disk_([self = shared_from_this(), save, chunk, last] {
    std::shared_ptr<const std::string> fault;
    try {
      if (!save->writer && !save->broken) save->writer = std::make_unique<PartWriter>(save->folder, save->cut, self->part_);
      if (save->writer) last ? save->writer->finish() : save->writer->append(chunk);
    } catch (const Error& error) {
      fault = std::make_shared<const std::string>(error.what());
      save->writer.reset();
      save->broken = true;
    }
    self->transport_.post([self, save, last, fault] { self->written(save, last, fault); });
  });
  if (!last) transport_.post([self = shared_from_this(), save] { self->step(save); });
}

void Saves::written(const std::shared_ptr<Save>& save, bool last, const std::shared_ptr<const std::string>& fault) {
  --save->under_way;
  if (!answer_ || !saves_.contains(save)) return;
  if (fault || last) {
    save->image.reset();
    saves_.erase(save);
    Message message = fault ? Message::of_text(Kind::refused, save->table, fault->substr(0, kLongestText))
                            : Message::of_text(Kind::saved, save->table, name(save->cut.rule));
    message.header.sequence = save->sequence;
    answer_(save->by, std::move(message));
  } else if (save->held) {
    step(save);
  }
}

void Saves::keep(const Message& request) {
  disk_([asked = SaveRequest::from(request), part = part_, parts = parts_] { keep_parts(asked.folder, asked.id, part, parts); });
}

void Saves::end() {
  for (const auto& save : saves_) save->image.reset();
  saves_.clear();
  answer_ = nullptr;
}

}  // namespace shoal::table
