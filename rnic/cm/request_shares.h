// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <unordered_map>

#include "base/keyed_hash.h"
#include "base/siphash.h"
#include "diwarp/address.h"
#include "rnic/cm/acceptor.h"

namespace diwarp::rnic {

/// The places of a listener's requests that the application has not fetched, shared between the
/// addresses they come from.
class RequestShares {
 public:
  /// Where all places are taken: the element of `waiting` that gives way to `newcomer`, which is
  /// the newest one of the address with most of them. Null where the newcomer's address would have
  /// as many. `request_of` returns an element's IncomingRequest*, null if it is none of the
  /// listener's. May throw std::bad_alloc.
  template <class Waiting, class RequestOf>
  typename Waiting::value_type* giving_way(Waiting& waiting, const IncomingRequest& newcomer,
                                           RequestOf request_of) const {
    std::unordered_map<Address, size_t, KeyedHash<Address>> counts(waiting.size(), hash_);
    for (auto& one : waiting)
      if (const IncomingRequest* const request = request_of(one)) ++counts[host_of(*request)];
    const size_t of_newcomer = counts[host_of(newcomer)];
    const auto fullest = std::ranges::max_element(
        counts, {}, [](const auto& of_address) { return of_address.second; });
    // guard(request-shares): => return nullptr;
    // guard(cm-request-shares): => return nullptr;
    if (of_newcomer + 1 >= fullest->second) return nullptr;
    const auto newest = std::find_if(waiting.rbegin(), waiting.rend(), [&](auto& one) {
      const IncomingRequest* const request = request_of(one);
      return request != nullptr && host_of(*request) == fullest->first;
    });
    return &*newest;
  }

 private:
  static Address host_of(const IncomingRequest& request) {
    return request.stream->peer_address().with_port(0);
  }

  KeyedHash<Address> hash_{random_sip_key()};  // guard(counted-keys): random_sip_key() => SipKey{}
};

}  // namespace diwarp::rnic
