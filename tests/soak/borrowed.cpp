// SPDX-License-Identifier: Apache-2.0
#include "soak/borrowed.h"

#include <algorithm>
#include <string>
#include <vector>

namespace soak {

using diwarp::QpType;

void Borrowed::take(uint32_t index, std::istream& words) {
  Lent lent;
  int type = 0, use = 0;
  words >> lent.id >> type >> use >> lent.stag >> lent.base >> lent.length >> lent.windowed;
  lent.type = static_cast<QpType>(type);
  lent.use = static_cast<Use>(use);
  std::vector<Lent>& all = process_.remotes[index].lent;
  if (all.size() >= kMostOffers) all.erase(all.begin());
  all.push_back(lent);
}

Lent* Borrowed::pick(uint32_t remote, QpType type, Use use) {
  std::vector<Lent>& all = process_.remotes[remote].lent;
  if (all.empty()) return nullptr;
  const size_t first = process_.random.below(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    Lent& lent = all[(first + i) % all.size()];
    if (lent.type == type && lent.use == use && !lent.asked_back) return &lent;
  }
  return nullptr;
}

void Borrowed::forget(uint32_t remote, uint64_t id) {
  std::erase_if(process_.remotes[remote].lent, [id](const Lent& lent) { return lent.id == id; });
}

void Borrowed::give_back(uint32_t index, uint64_t id) {
  std::vector<Lent>& all = process_.remotes[index].lent;
  const auto found = std::ranges::find(all, id, &Lent::id);
  if (found == all.end() || !found->asked_back || found->readers != 0) return;
  all.erase(found);
  process_.tell(index, "released " + std::to_string(id));
}

void Borrowed::release_reader(const Request& request) {
  if (request.offer == 0 || request.offer_life != process_.remotes[request.remote].life) return;
  std::vector<Lent>& all = process_.remotes[request.remote].lent;
  const auto found = std::ranges::find(all, request.offer, &Lent::id);
  if (found == all.end() || found->readers == 0) return;
  --found->readers;
  give_back(request.remote, request.offer);
}

}  // namespace soak
