// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "fake_rdma_core/objects.h"

/// Lists that a program gets and gives back: arrays of pointers, with a null at the end.
namespace fake {

/// A list stands inside this, so that it counts as an object.
template <class Item>
struct CountedList : Counted {
  std::unique_ptr<Item*[]> items;
};

/// The list begins after a pointer to its CountedList, which the program does not see.
template <class Item, class Source, class Convert>
Item** new_list(const std::vector<Source>& sources, Convert&& convert) {
  auto list = std::make_unique<CountedList<Item>>();
  list->items = std::make_unique<Item*[]>(sources.size() + 2);
  Item** const first = list->items.get() + 1;
  std::transform(sources.begin(), sources.end(), first, convert);
  first[-1] = reinterpret_cast<Item*>(list.release());
  return first;
}

template <class Item>
void free_list(Item** list) {
  if (list != nullptr) delete reinterpret_cast<CountedList<Item>*>(list[-1]);
}

}  // namespace fake
