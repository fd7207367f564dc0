#include "shoal/net/card.h"

#include <sodium.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace shoal::net {
namespace {

constexpr std::size_t kMaxCandidates = 32, kMaxSettings = 32;

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

// The first setting, by name, that is not the same on both sides.
void check_settings(const Card& other, const std::string& them, const Card& mine, const std::string& us) {
  const auto said = [](const Card& card, const std::string& name) {
    const auto found = card.settings.find(name);
    return found == card.settings.end() ? "no " + name : name + " " + found->second;
  };
  std::map<std::string, std::string> both = mine.settings;
  both.insert(other.settings.begin(), other.settings.end());
  for (const auto& [name, value] : both) {
    if (said(other, name) == said(mine, name)) continue;
    throw Error(Code::mismatch, them + " has " + said(other, name) + ", " + us + " has " + said(mine, name), "join",
                "it must be the same on all members");
  }
}

}  // namespace

std::string fingerprint_of(const std::string& secret) {
  if (secret.empty()) return "";
  constexpr std::string_view label = "shoal: which secret";
  const Key key = derive_key(secret);
  unsigned char digest[16];
  char text[2 * sizeof digest + 1];
  crypto_generichash(digest, sizeof digest, reinterpret_cast<const unsigned char*>(label.data()), label.size(), key.data(), key.size());
  return sodium_bin2hex(text, sizeof text, digest, sizeof digest);
}

std::string write_card(const Card& card) {
  std::ostringstream out;
  out << "id " << card.info.id << "\nhost " << one_line(card.info.host) << "\nboot " << card.info.boot << "\npid "
      << card.info.pid << "\nsize " << card.size << "\n";
  if (card.info.serves) out << "role server\n";
  if (card.shares) out << "shares memory\n";
  if (!card.secret.empty()) out << "secret " << card.secret << "\n";
  for (const auto& [name, value] : card.settings) out << "setting " << one_line(name) << "=" << one_line(value) << "\n";
  for (const Endpoint& at : card.candidates) out << "at " << show(at) << "\n";
  return out.str();
}

Card read_card(const std::string& text) {
  Card card;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    const auto space = line.find(' ');
    const std::string key = line.substr(0, space);
    const std::string value = space == std::string::npos ? std::string() : line.substr(space + 1);
    if (key == "id") card.info.id = value;
    if (key == "host") card.info.host = value;
    if (key == "boot") card.info.boot = value;
    if (key == "pid") card.info.pid = static_cast<std::uint32_t>(std::strtoul(value.c_str(), nullptr, 10));
    if (key == "role") card.info.serves = value == "server";
    if (key == "size") card.size = static_cast<Rank>(std::strtoul(value.c_str(), nullptr, 10));
    if (key == "secret") card.secret = value;
    if (key == "shares") card.shares = value == "memory";
    const auto equals = value.find('=');
    if (key == "setting" && equals != std::string::npos && card.settings.size() < kMaxSettings) {
      card.settings.emplace(value.substr(0, equals), value.substr(equals + 1));
    }
    const auto at = key == "at" ? parse_endpoint(value) : std::nullopt;
    if (at && card.candidates.size() < kMaxCandidates) card.candidates.push_back(*at);
  }
  return card;
}

void check_equal(const Card& other, Rank rank, const Card& mine, Rank self) {
  const std::string them = "rank " + std::to_string(rank) + " (" + other.info.host + ")";
  const std::string us = "rank " + std::to_string(self) + " (" + mine.info.host + ")";
  if (other.size != mine.size) {
    throw Error(Code::mismatch, them + " was started with size " + std::to_string(other.size) + ", " + us + " with " +
                std::to_string(mine.size), "join", "start all members with the same size");
  }
  check_settings(other, them, mine, us);
  if (other.secret != mine.secret) {
    const bool one_lacks_it = other.secret.empty() || mine.secret.empty();
    const std::string& without = other.secret.empty() ? them : us;
    throw Error(Code::mismatch, one_lacks_it ? without + " has no secret and " + (other.secret.empty() ? us : them) + " has one"
                                             : them + " and " + us + " have different secrets",
                "SHOAL_SECRET", kOneSecret);
  }
  if (other.info.boot != mine.info.boot && mine.secret.empty()) {
    throw Error(Code::invalid_argument, "members are on different hosts (" + mine.info.host + ", " + other.info.host +
                ") but the job has no secret", "SHOAL_SECRET", kOneSecret);
  }
}

}  // namespace shoal::net
