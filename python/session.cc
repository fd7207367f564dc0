#include "shoal/nn/session.h"

#include <deque>

#include <pybind11/stl.h>
#include <torch/csrc/utils/pybind.h>

#include "bindings.h"
#include "shoal/net/again.h"
#include "shoal/net/call.h"
#include "shoal/net/tcp.h"
#include "shoal/nn/store_rendezvous.h"
#include "shoal/nn/tensors.h"

namespace py = pybind11;

namespace shoal::python {
namespace {

using nn::Session;

Nanoseconds from_seconds(double seconds) { return std::chrono::duration_cast<Nanoseconds>(Seconds(seconds)); }

constexpr Nanoseconds kDeadWhereOthersGoOn = std::chrono::milliseconds(3500);

using Settings = std::map<std::string, std::string>;

net::JoinOptions join_options(const Settings& settings, double patience) {
  net::JoinOptions options = net::with_environment({});
  options.settings = settings;
  options.a_step = from_seconds(patience);
  options.takes_servers = true;
  options.takes_over = true;  // what cannot is refused where it begins (session.require_members_for_good)
  // Silence must be found, and told by all, within the 5 s after which a call is to return.
  if (net::goes_on(*options.on_peer_lost)) options.dead = kDeadWhereOthersGoOn;
  return options;
}

std::shared_ptr<Session> join(const Settings& settings, double patience) {
  const auto options = join_options(settings, patience);
  nn::JoinAgain again;
  if (net::replaces_lost(*options.on_peer_lost)) {
    again = [options](const net::Place& before, const std::vector<net::Rank>& lost, const std::stop_token& stop) { return net::join_again(before, lost, options, stop); };
  }
  auto job = net::join(options);
  if (job->place().size == 1) again = nullptr;
  return std::make_shared<Session>(std::move(job), from_seconds(patience), std::move(again));
}

// Under torchrun: members meet at its store. Returns whether the job's secret had to travel through it.
std::pair<std::shared_ptr<Session>, bool> join_by_store(const c10::intrusive_ptr<c10d::Store>& store, const Settings& settings,
                                                        double patience) {
  auto place = net::find_place();
  nn::StoreRendezvous rendezvous(store, place.rank);
  const auto options = join_options(settings, patience);
  const auto secret = rendezvous.secret(place.rank, options.patience);
  place.generation = rendezvous.epoch();
  return {std::make_shared<Session>(net::join_tcp(place, rendezvous, "train/", secret.bytes, options), from_seconds(patience)),
          secret.from_store};
}

std::vector<py::bytes> gather(Session& session, const std::string& own, const std::string& label) {
  std::vector<std::string> all;
  {
    const py::gil_scoped_release release;
    all = session.gather_text(own, label);
  }
  return {all.begin(), all.end()};
}

py::bytes broadcast(Session& session, const std::string& text, net::Rank root, const std::string& label) {
  std::string all;
  {
    const py::gil_scoped_release release;
    all = session.broadcast_text(text, root, label);
  }
  return all;
}

// Bytes to and from every peer since the start, by rank, and whether they go through memory of this host; zeros for oneself.
py::list links(Session& session) {
  py::list all;
  for (net::Rank r = 0; r < session.size(); ++r) {
    const auto stats = session.link(r);
    py::dict link;
    link["sent"] = stats.sent;
    link["saved"] = stats.saved;
    link["lent"] = stats.lent;
    link["received"] = stats.received;
    link["wire_sent"] = stats.wire_sent;
    link["wire_received"] = stats.wire_received;
    link["shared_memory"] = stats.shared_memory;
    all.append(link);
  }
  return all;
}

// Ends the job for everybody: this member cannot go on. What they will read names this rank.
void give_up(Session& session, const std::string& why) {
  if (session.size() == 1) return;
  auto& transport = session.transport();
  net::call(transport, [&transport, error = Error(Code::peer_lost, why, "rank " + std::to_string(session.rank()))] { transport.fail(error); });
}

// What lies in objects that show their bytes, while they live.
struct Shown {
  explicit Shown(const py::list& objects) {
    for (const py::handle object : objects) {
      const auto& bytes = buffers.emplace_back(py::reinterpret_borrow<py::buffer>(object).request());
      parts.emplace_back(static_cast<const std::byte*>(bytes.ptr), static_cast<std::size_t>(bytes.size * bytes.itemsize));
    }
  }
  std::deque<py::buffer_info> buffers;
  collective::Feed::Parts parts;
};

void feed(Session& session, const py::list& piece) {
  const Shown shown(piece);
  const py::gil_scoped_release release;
  session.feed(shown.parts);
}

void carry(Session& session, py::function write, py::function take, py::function parts_fed, py::function write_last, py::function follow, py::function digest) {
  const auto kept = [](py::function function) {
    return std::shared_ptr<py::function>(new py::function(std::move(function)), [](py::function* over) {
      const py::gil_scoped_acquire gil;
      delete over;
    });
  };
  const auto writes = [&](py::function function) {
    return [function = kept(std::move(function))] {
      const py::gil_scoped_acquire gil;
      return std::string(py::bytes((*function)()));
    };
  };
  const auto seen = [](std::span<const std::byte> bytes) {  // who is shown them copies what it keeps
    return py::memoryview::from_memory(bytes.data(), static_cast<py::ssize_t>(bytes.size()));
  };
  session.carry({writes(std::move(write)),
                 [take = kept(std::move(take)), seen](std::span<const std::byte> state) {
                   const py::gil_scoped_acquire gil;
                   (*take)(seen(state));
                 },
                 [parts = kept(std::move(parts_fed))](const std::function<void(const collective::Feed::Parts&)>& give) {
                   const py::gil_scoped_acquire gil;
                   const py::list objects = (*parts)();
                   const Shown shown(objects);
                   const py::gil_scoped_release release;
                   give(shown.parts);
                 },
                 writes(std::move(write_last)),
                 [follow = kept(std::move(follow)), seen](std::span<const std::byte> piece) {
                   const py::gil_scoped_acquire gil;
                   return (*follow)(seen(piece)).cast<bool>();
                 },
                 [digest = kept(std::move(digest))] {
                   const py::gil_scoped_acquire gil;
                   return (*digest)().cast<std::uint64_t>();
                 }});
}

// For a wait that does not run over the transport: throws what has ended it, if something has. Any thread.
void require_everybody(Session& session) {
  if (const auto failure = session.failure()) throw Error(*failure);
}

}  // namespace

void bind_session(py::module_& module) {
  module.def("find_place", [] {
    const auto place = net::find_place();
    net::require_launcher_for(net::with_environment({}), place);
    return py::make_tuple(net::name(place.launcher), place.rank, place.size, place.job);
  });
  module.def("port_range", [] {  // first and last; 0: any
    const net::PortRange ports = net::with_environment({}).ports;
    return py::make_tuple(ports.first, ports.last);
  });
  module.def("join_patience", [] { return Seconds(net::with_environment({}).patience).count(); });  // seconds
  module.def("join", &join, py::arg("settings"), py::arg("patience"), Released());
  module.def("join_by_store", &join_by_store, py::arg("store"), py::arg("settings"), py::arg("patience"), Released());

  py::class_<Session, std::shared_ptr<Session>>(module, "Session")
      .def_property_readonly("rank", &Session::rank)
      .def_property_readonly("size", &Session::size)
      .def_property_readonly("workers", &Session::workers)
      .def_property_readonly("servers", &Session::servers)
      .def_property_readonly("serves", &Session::serves)
      .def("of_workers", [](const Session& session) { return std::shared_ptr<Session>(session.of_workers()); }, Released())
      .def_property_readonly("place", &Session::place)
      .def_property_readonly("members", &Session::members)
      .def_property_readonly("outlives_losses", &Session::outlives_losses)
      .def_property_readonly("members_ahead", &Session::members_ahead)
      .def_property_readonly("rejoins", &Session::rejoins)
      .def_property_readonly("regrows", &Session::regrows)
      .def_property_readonly("may_move", &Session::may_move)
      .def_property_readonly("arriving", &Session::arriving)
      .def_property_readonly("generation", &Session::generation)
      .def_property_readonly("carries", &Session::carries)
      .def("is_lost", &Session::is_lost, py::arg("rank"))
      .def("carry", &carry, py::arg("write"), py::arg("take"), py::arg("parts_fed"), py::arg("write_last"), py::arg("follow"), py::arg("digest"))
      .def_property_readonly("feeds", &Session::feeds)
      .def("feed", &feed, py::arg("parts"))
      .def_property_readonly("has_followed", &Session::has_followed)
      .def("arrive", &Session::arrive, Released())
      .def("new_channel", &Session::new_channel)
      .def("wait_for_more", &Session::wait_for_more, Released())
      .def("stop_waiting_for_more", &Session::stop_waiting_for_more, Released())
      // Another number when members have met anew, with others in place of lost ones.
      .def_property_readonly("group", [](Session& session) { return session.job().place().generation; })
      // By all members: returns when all are there, where others come in place of lost ones also these; the group in which they are then.
      .def("meet", [](Session& session, const std::string& label) {
        session.together(label, [] {}, Session::With::all);
        return session.job().place().generation;
      }, py::arg("label"), Released())
      // Names this start of the job: the same on all members, never the same again.
      .def_property_readonly("id", [](Session& session) { return session.job().members().at(0).id; })
      .def_property_readonly("hosts", [](Session& session) {
        std::vector<std::string> hosts;
        for (const auto& member : session.job().members()) hosts.push_back(member.host);
        return hosts;
      })
      // By rank, where each member listens; of a peer the address that this one's connection to it uses.
      .def_property_readonly("addresses", [](Session& session) {
        std::vector<std::string> addresses;
        for (const auto& member : session.job().members()) addresses.push_back(member.address);
        return addresses;
      })
      .def("gather", &gather, py::arg("own"), py::arg("label"))
      .def("broadcast", &broadcast, py::arg("text"), py::arg("root"), py::arg("label"))
      .def("links", &links)
      .def("require_everybody", &require_everybody, Released())
      .def("give_up", &give_up, Released());

  module.def("digest_of", &nn::digest_of, py::arg("tensors"));
  module.def("broadcast_tensors", &nn::broadcast_tensors, py::arg("session"), py::arg("tensors"), py::arg("root"), py::arg("label"),
             Released());
  module.def(
      "require_equal_models",
      [](Session& session, const std::vector<std::pair<std::string, at::Tensor>>& tensors, const std::string& code) {
        std::vector<nn::NamedTensor> named;
        for (const auto& [name, tensor] : tensors) named.push_back({name, tensor});
        nn::require_equal_models(session, named, code);
      },
      py::arg("session"), py::arg("tensors"), py::arg("code"), Released());
}

}  // namespace shoal::python
