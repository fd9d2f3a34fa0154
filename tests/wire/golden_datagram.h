// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "wire/golden.h"

/// Datagrams of every kind besides plain Sends, written out by hand from docs/wire-format.md, RFC
/// 5041 section 4 and RFC 5040 sections 4.4 and 4.8. The CRCs come from a bitwise division outside
/// of this code.
namespace diwarp::test::golden {

/// A Send of "hi" with immediate data.
inline std::vector<std::byte> datagram_send_immediate() {
  return hex(
      "10"                // version 1, class 0
      "01"                // flags: immediate
      "0000"              // reserved
      "a1b2c3d4"          // incarnation
      "0102030405060708"  // immediate
      "41"                // T 0, L 1, reserved 0000, DV 01
      "43"                // RV 01, reserved 00, opcode 3
      "00000000"          // Q_Key
      "00000000"          // QN
      "00000009"          // MSN
      "00000000"          // MO
      "6869"              // "hi"
      "c9169ce9");        // CRC32C
}

/// A Send with Invalidate of "x".
inline std::vector<std::byte> datagram_send_invalidate() {
  return hex(
      "10"          // version 1, class 0
      "00"          // flags: none
      "0000"        // reserved
      "a1b2c3d4"    // incarnation
      "41"          // T 0, L 1, reserved 0000, DV 01
      "44"          // RV 01, reserved 00, opcode 4
      "01020304"    // Invalidate STag
      "00000000"    // QN
      "00000002"    // MSN
      "00000000"    // MO
      "78"          // "x"
      "6a46412c");  // CRC32C
}

/// The first segment of a Send with Solicited Event and Invalidate with immediate data.
inline std::vector<std::byte> datagram_solicited_invalidate() {
  return hex(
      "10"                // version 1, class 0
      "03"                // flags: immediate, solicited
      "0000"              // reserved
      "a1b2c3d4"          // incarnation
      "ffffffffffffffff"  // immediate
      "01"                // T 0, L 0, reserved 0000, DV 01
      "46"                // RV 01, reserved 00, opcode 6
      "01020304"          // Invalidate STag
      "00000000"          // QN
      "00000003"          // MSN
      "00000000"          // MO
      "79"                // "y"
      "68295c09");        // CRC32C
}

/// The second of three segments of a Write-Record with immediate data and a solicited event.
inline std::vector<std::byte> datagram_record() {
  return hex(
      "10"                // version 1, class 0
      "03"                // flags: immediate, solicited
      "0000"              // reserved
      "a1b2c3d4"          // incarnation
      "0102030405060708"  // immediate
      "81"                // T 1, L 0, reserved 0000, DV 01
      "4c"                // RV 01, reserved 00, opcode 12
      "11223344"          // STag
      "0000000000001008"  // TO, that of this segment
      "00abcdef"          // MSN
      "00000008"          // MO
      "00000010"          // message length
      "61626364"          // "abcd"
      "6a33669a");        // CRC32C
}

/// A Write-Record of no bytes.
inline std::vector<std::byte> datagram_record_empty() {
  return hex(
      "10"                // version 1, class 0
      "00"                // flags: none
      "0000"              // reserved
      "00000001"          // incarnation
      "c1"                // T 1, L 1, reserved 0000, DV 01
      "4c"                // RV 01, reserved 00, opcode 12
      "11223344"          // STag
      "0000000000001000"  // TO
      "00000007"          // MSN
      "00000000"          // MO
      "00000000"          // message length
      "b5e3abc7");        // CRC32C
}

/// A Read Request for as much as one may ask for.
inline std::vector<std::byte> datagram_read_request() {
  return hex(
      "10"                // version 1, class 0
      "00"                // flags: none
      "0000"              // reserved
      "a1b2c3d4"          // incarnation
      "41"                // T 0, L 1, reserved 0000, DV 01
      "41"                // RV 01, reserved 00, opcode 1
      "00000000"          // reserved
      "00000001"          // QN
      "00000007"          // MSN
      "00000000"          // MO
      "a0a1a2a3"          // Data Sink STag
      "0000000000000400"  // Data Sink TO
      "00040000"          // RDMA Read Message size
      "c0c1c2c3"          // Data Source STag
      "d0d1d2d3d4d5d6d7"  // Data Source TO
      "64ce976e");        // CRC32C
}

/// A segment of its response.
inline std::vector<std::byte> datagram_read_response() {
  return hex(
      "10"                // version 1, class 0
      "00"                // flags: none
      "0000"              // reserved
      "00000002"          // incarnation
      "81"                // T 1, L 0, reserved 0000, DV 01
      "42"                // RV 01, reserved 00, opcode 2
      "a0a1a2a3"          // Data Sink STag
      "0000000000000402"  // Data Sink TO, that of this segment
      "6162"              // "ab"
      "13c6b6eb");        // CRC32C
}

/// A Challenge.
inline std::vector<std::byte> control_challenge() {
  return hex(
      "12"                                // version 1, class 2
      "00"                                // flags: none
      "0000"                              // reserved
      "a1b2c3d4"                          // incarnation
      "01"                                // type: Challenge
      "000000"                            // reserved
      "00112233445566778899aabbccddeeff"  // cookie
      "4de1781b");                        // CRC32C
}

/// The Echo that answers it.
inline std::vector<std::byte> control_echo() {
  return hex(
      "12"                                // version 1, class 2
      "00"                                // flags: none
      "0000"                              // reserved
      "00000001"                          // incarnation
      "02"                                // type: Echo
      "000000"                            // reserved
      "00112233445566778899aabbccddeeff"  // cookie
      "25afcfda");                        // CRC32C
}

/// The Error about datagram_record(): no such STag.
inline std::vector<std::byte> control_error_record() {
  return hex(
      "12"                // version 1, class 2
      "00"                // flags: none
      "0000"              // reserved
      "00000002"          // incarnation
      "03"                // type: Error
      "000000"            // reserved
      "11"                // layer 1 (DDP), type 1 (tagged buffer)
      "00"                // code 0 (invalid STag)
      "e000"              // M 1, D 1, R 1, reserved
      "001e"              // DDP segment length 30
      "81"                // its headers: T 1, L 0, DV 01
      "4c"                // RV 01, opcode 12
      "11223344"          // STag
      "0000000000001008"  // TO
      "00abcdef"          // MSN
      "00000008"          // MO
      "00000010"          // message length
      "9cc3782e");        // CRC32C
}

/// The Error about datagram_read_request(), which is as long as may be: no access.
inline std::vector<std::byte> control_error_request() {
  return hex(
      "12"          // version 1, class 2
      "00"          // flags: none
      "0000"        // reserved
      "00000002"    // incarnation
      "03"          // type: Error
      "000000"      // reserved
      "01"          // layer 0 (RDMAP), type 1 (protection)
      "02"          // code 2 (access rights)
      "c000"        // M 1, D 1, R 0, reserved
      "002e"        // DDP segment length 46
      "41"          // its DDP header: T 0, L 1, DV 01
      "41"          // RV 01, opcode 1
      "00000000"    // reserved
      "00000001"    // QN
      "00000007"    // MSN
      "00000000"    // MO
      "1fb8ac74");  // CRC32C
}

/// The Error about datagram_empty(): no receive was posted.
inline std::vector<std::byte> control_error_bare() {
  return hex(
      "12"          // version 1, class 2
      "00"          // flags: none
      "0000"        // reserved
      "00000002"    // incarnation
      "03"          // type: Error
      "000000"      // reserved
      "12"          // layer 1 (DDP), type 2 (untagged buffer)
      "02"          // code 2 (no buffer)
      "0000"        // M 0, D 0, R 0, reserved
      "e1421b9a");  // CRC32C
}

/// A Send of "hi" with immediate data, reliably.
inline std::vector<std::byte> reliable_data() {
  return hex(
      "11"                // version 1, class 1
      "01"                // flags: immediate
      "0000"              // reserved
      "a1b2c3d4"          // incarnation
      "01"                // kind: data
      "00"                // flags
      "0100"              // window
      "00000003"          // epoch
      "00000002"          // peer epoch
      "00000002"          // peer incarnation
      "00000009"          // sequence
      "00000004"          // acknowledged
      "0102030405060708"  // immediate
      "41"                // T 0, L 1, reserved 0000, DV 01
      "43"                // RV 01, reserved 00, opcode 3
      "00000000"          // Q_Key
      "00000000"          // QN
      "00000005"          // MSN
      "00000000"          // MO
      "6869"              // "hi"
      "cbe5fa78");        // CRC32C
}

/// What answers that when 7, 8 and 10 did not come, but 9, 11 and 71 did.
inline std::vector<std::byte> reliable_acknowledgement() {
  return hex(
      "11"                // version 1, class 1
      "00"                // flags: none
      "0000"              // reserved
      "00000002"          // incarnation
      "04"                // kind: acknowledgement
      "00"                // flags
      "00fe"              // window
      "00000002"          // epoch
      "00000003"          // peer epoch
      "a1b2c3d4"          // peer incarnation
      "00000000"          // sequence
      "00000006"          // acknowledged
      "2800000000000000"  // map: 9, 11
      "8000000000000000"  // 71
      "43f0710b");        // CRC32C
}

/// An open of the first try.
inline std::vector<std::byte> reliable_open() {
  return hex(
      "11"                                // version 1, class 1
      "00"                                // flags: none
      "0000"                              // reserved
      "a1b2c3d4"                          // incarnation
      "07"                                // kind: open
      "00"                                // flags
      "0100"                              // window
      "00000003"                          // epoch
      "00000000"                          // peer epoch
      "00000000"                          // peer incarnation
      "00000000"                          // sequence
      "00000000"                          // acknowledged
      "00000000000000000000000000000000"  // cookie
      "72bc49bc");                        // CRC32C
}

/// A refusal of datagram 10: no such STag.
inline std::vector<std::byte> reliable_refusal() {
  return hex(
      "11"          // version 1, class 1
      "00"          // flags: none
      "0000"        // reserved
      "00000002"    // incarnation
      "06"          // kind: refusal
      "00"          // flags
      "0100"        // window
      "00000002"    // epoch
      "00000003"    // peer epoch
      "a1b2c3d4"    // peer incarnation
      "0000000a"    // sequence
      "00000009"    // acknowledged
      "11"          // layer 1 (DDP), type 1 (tagged buffer)
      "00"          // code 0 (invalid STag)
      "0000"        // reserved
      "b2fba340");  // CRC32C
}

}  // namespace diwarp::test::golden
