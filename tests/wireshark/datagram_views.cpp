// SPDX-License-Identifier: Apache-2.0
// Datagrams, and what the library's decoder makes of each: a line of standard output has a name,
// the datagram in hexadecimal, and its view (view.h), with tabs between them.
//
//   datagram_views golden                       what tests/wire holds the library to
//   datagram_views generate SEED COUNT PERCENT  PERCENT of them damaged
#include <charconv>
#include <iostream>
#include <string_view>

#include "wire/golden_datagram.h"
#include "wireshark/datagram_maker.h"
#include "wireshark/view.h"

namespace {

using namespace diwarp;
using namespace diwarp::test;

void print(std::string_view name, const std::vector<std::byte>& datagram) {
  std::cout << name << '\t' << hex_of(datagram) << '\t' << view_of(datagram) << '\n';
}

struct Golden {
  std::string_view name;
  std::vector<std::byte> (*make)();
};

constexpr Golden kGolden[] = {
    {"datagram_send", golden::datagram_send},
    {"datagram_solicited", golden::datagram_solicited},
    {"datagram_empty", golden::datagram_empty},
    {"datagram_send_immediate", golden::datagram_send_immediate},
    {"datagram_send_invalidate", golden::datagram_send_invalidate},
    {"datagram_solicited_invalidate", golden::datagram_solicited_invalidate},
    {"datagram_record", golden::datagram_record},
    {"datagram_record_empty", golden::datagram_record_empty},
    {"datagram_read_request", golden::datagram_read_request},
    {"datagram_read_response", golden::datagram_read_response},
    {"control_challenge", golden::control_challenge},
    {"control_echo", golden::control_echo},
    {"control_error_record", golden::control_error_record},
    {"control_error_request", golden::control_error_request},
    {"control_error_bare", golden::control_error_bare},
    {"reliable_data", golden::reliable_data},
    {"reliable_acknowledgement", golden::reliable_acknowledgement},
    {"reliable_open", golden::reliable_open},
    {"reliable_refusal", golden::reliable_refusal},
    {"reliable_skip", golden::reliable_skip},
    {"reliable_failure", golden::reliable_failure},
    {"reliable_probe", golden::reliable_probe},
    {"reliable_reset", golden::reliable_reset},
};

uint64_t number_of(std::string_view text) {
  uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

void generate(uint64_t seed, uint64_t count, uint32_t percent) {
  DatagramMaker maker(seed);
  for (uint64_t i = 0; i < count; ++i) {
    const bool damaged = maker.chance(percent);
    print(damaged ? "damaged" : "valid", damaged ? maker.damaged() : maker.valid());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string_view> words(argv + 1, argv + argc);
  if (words.size() == 1 && words[0] == "golden") {
    for (const Golden& golden : kGolden) print(golden.name, golden.make());
  } else if (words.size() == 4 && words[0] == "generate") {
    generate(number_of(words[1]), number_of(words[2]), static_cast<uint32_t>(number_of(words[3])));
  } else {
    std::cerr << "usage: datagram_views golden | generate SEED COUNT PERCENT\n";
    return 2;
  }
  return std::cout.flush() ? 0 : 1;
}
