// Stands in for the concurrent map that Bösen expects to find beside its sources: locks by stripe, iterators over a copy.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

template <class Key, class Value>
class cuckoohash_map {
 public:
  explicit cuckoohash_map(std::size_t = 0) {}

  class const_iterator {
   public:
    explicit const_iterator(std::vector<std::pair<Key, Value>> all) : all_(std::move(all)) {}
    bool is_end() const { return at_ >= all_.size(); }
    const_iterator& operator++() { return ++at_, *this; }
    void operator++(int) { ++at_; }
    const std::pair<Key, Value>* operator->() const { return &all_[at_]; }

   private:
    std::vector<std::pair<Key, Value>> all_;
    std::size_t at_ = 0;
  };

  bool find(const Key& key, Value& value) const {
    const Stripe& stripe = stripe_of(key);
    const std::lock_guard lock(stripe.mutex);
    const auto found = stripe.map.find(key);
    if (found == stripe.map.end()) return false;
    value = found->second;
    return true;
  }
  bool insert(const Key& key, const Value& value) {
    Stripe& stripe = stripe_of(key);
    const std::lock_guard lock(stripe.mutex);
    return stripe.map.emplace(key, value).second;
  }
  bool erase(const Key& key) {
    Stripe& stripe = stripe_of(key);
    const std::lock_guard lock(stripe.mutex);
    return stripe.map.erase(key) > 0;
  }
  std::size_t size() const { return all().size(); }
  const_iterator begin() const { return const_iterator(all()); }
  const_iterator cbegin() const { return begin(); }

 private:
  struct Stripe {
    mutable std::mutex mutex;
    std::unordered_map<Key, Value> map;
  };
  const Stripe& stripe_of(const Key& key) const { return stripes_[std::hash<Key>{}(key) % stripes_.size()]; }
  Stripe& stripe_of(const Key& key) { return stripes_[std::hash<Key>{}(key) % stripes_.size()]; }
  std::vector<std::pair<Key, Value>> all() const {
    std::vector<std::pair<Key, Value>> all;
    for (const Stripe& stripe : stripes_) {
      const std::lock_guard lock(stripe.mutex);
      all.insert(all.end(), stripe.map.begin(), stripe.map.end());
    }
    return all;
  }

  std::array<Stripe, 64> stripes_;
};
