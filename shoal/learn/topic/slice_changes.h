// What was done to the rows of a slice, as bytes that are told to who has a copy of it. Words whose counts are what they were are not in it; of the
// others it has, by what takes fewer bytes,
//
//   changes   by how much which topics changed: these are added to the copy, whatever else has come to it meanwhile
//   rows      all counts as they are now: these take the place of the copy's, which must be that to which it was done
//
// Topics ascend, each as its distance from the one before, numbers are of variable length. A row that was changed by apply() has its topics ascending.
// Threads: any.
#pragma once

#include <cstdint>
#include <span>

#include "shoal/core/bytes.h"
#include "shoal/learn/topic/slice.h"

namespace shoal::learn::topic {

// or_rows: whether all copies are what `before` is when they take it.
Bytes changes_between(const Slice& before, const Slice& now, bool or_rows);

// Throws Error{mismatch} for what is none, or cannot have been done to that slice or with so many topics.
void apply(std::span<const std::byte> changes, Topic topics, Slice& slice);

}  // namespace shoal::learn::topic
