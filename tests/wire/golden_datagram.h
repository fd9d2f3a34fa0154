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
      "20"                // version 2, class 0
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
      "bc779dbe");        // CRC32C
}

/// A Send with Invalidate of "x".
inline std::vector<std::byte> datagram_send_invalidate() {
  return hex(
      "20"          // version 2, class 0
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
      "c4b9703b");  // CRC32C
}

/// The first segment of a Send with Solicited Event and Invalidate with immediate data.
inline std::vector<std::byte> datagram_solicited_invalidate() {
  return hex(
      "20"                // version 2, class 0
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
      "1eb98e31");        // CRC32C
}

/// The second of three segments of a Write-Record with immediate data and a solicited event.
inline std::vector<std::byte> datagram_record() {
  return hex(
      "20"                // version 2, class 0
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
      "067cbea1");        // CRC32C
}

/// A Write-Record of no bytes.
inline std::vector<std::byte> datagram_record_empty() {
  return hex(
      "20"                // version 2, class 0
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
      "0d9311d9");        // CRC32C
}

/// A Read Request for as much as one may ask for.
inline std::vector<std::byte> datagram_read_request() {
  return hex(
      "20"                // version 2, class 0
      "00"                // flags: none
      "0000"              // reserved
      "a1b2c3d4"          // incarnation
      "41"                // T 0, L 1, reserved 0000, DV 01
      "41"                // RV 01, reserved 00, opcode 1
      "90919293"          // nonce
      "00000001"          // QN
      "00000007"          // MSN
      "00000000"          // MO
      "a0a1a2a3"          // Data Sink STag
      "4041424344454647"  // Data Sink TO
      "00040000"          // RDMA Read Message size
      "c0c1c2c3"          // Data Source STag
      "d0d1d2d3d4d5d6d7"  // Data Source TO
      "729e0a11");        // CRC32C
}

/// A segment of its response.
inline std::vector<std::byte> datagram_read_response() {
  return hex(
      "20"                // version 2, class 0
      "00"                // flags: none
      "0000"              // reserved
      "00000002"          // incarnation
      "81"                // T 1, L 0, reserved 0000, DV 01
      "42"                // RV 01, reserved 00, opcode 2
      "a0a1a2a3"          // Data Sink STag
      "4041424344454649"  // Data Sink TO, that of this segment
      "6162"              // "ab"
      "4170b160");        // CRC32C
}

/// A Challenge.
inline std::vector<std::byte> control_challenge() {
  return hex(
      "22"                                // version 2, class 2
      "00"                                // flags: none
      "0000"                              // reserved
      "a1b2c3d4"                          // incarnation
      "01"                                // type: Challenge
      "000000"                            // reserved
      "0f1e2d3c4b5a6978"                  // nonce
      "00112233445566778899aabbccddeeff"  // cookie
      "f9dadd75");                        // CRC32C
}

/// The Echo that answers it.
inline std::vector<std::byte> control_echo() {
  return hex(
      "22"                                // version 2, class 2
      "00"                                // flags: none
      "0000"                              // reserved
      "00000001"                          // incarnation
      "02"                                // type: Echo
      "000000"                            // reserved
      "0f1e2d3c4b5a6978"                  // nonce
      "00112233445566778899aabbccddeeff"  // cookie
      "76abc1df");                        // CRC32C
}

/// The Error about datagram_record(): no such STag.
inline std::vector<std::byte> control_error_record() {
  return hex(
      "22"                // version 2, class 2
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
      "e65df505");        // CRC32C
}

/// The Error about datagram_read_request(), which is as long as may be: no access.
inline std::vector<std::byte> control_error_request() {
  return hex(
      "22"          // version 2, class 2
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
      "90919293"    // nonce
      "00000001"    // QN
      "00000007"    // MSN
      "00000000"    // MO
      "deced187");  // CRC32C
}

/// The Error about datagram_empty(): no receive was posted.
inline std::vector<std::byte> control_error_bare() {
  return hex(
      "22"          // version 2, class 2
      "00"          // flags: none
      "0000"        // reserved
      "00000002"    // incarnation
      "03"          // type: Error
      "000000"      // reserved
      "12"          // layer 1 (DDP), type 2 (untagged buffer)
      "02"          // code 2 (no buffer)
      "0000"        // M 0, D 0, R 0, reserved
      "203b71a0");  // CRC32C
}

/// The numbers of the first datagrams of the association below: SipHash-2-4 of "sequence" with the
/// keys a1b2c3d4 00000003 00000002 00000002, and the same with its halves exchanged.
inline constexpr uint32_t kFirstSequence = 0x9b2b8096;
inline constexpr uint32_t kFirstPeerSequence = 0xd7b54dce;

/// A Send of "hi" with immediate data, reliably.
inline std::vector<std::byte> reliable_data() {
  return hex(
      "21"                // version 2, class 1
      "01"                // flags: immediate
      "0000"              // reserved
      "a1b2c3d4"          // incarnation
      "01"                // kind: data
      "00"                // flags
      "0100"              // window
      "00000003"          // epoch
      "00000002"          // peer epoch
      "00000002"          // peer incarnation
      "9b2b809e"          // sequence: the ninth
      "d7b54dd1"          // acknowledged: the fourth
      "0102030405060708"  // immediate
      "41"                // T 0, L 1, reserved 0000, DV 01
      "43"                // RV 01, reserved 00, opcode 3
      "00000000"          // Q_Key
      "00000000"          // QN
      "00000005"          // MSN
      "00000000"          // MO
      "6869"              // "hi"
      "fb8cb033");        // CRC32C
}

/// What answers that when the 7th, 8th and 10th did not come, but the 9th, 11th and 71st did.
inline std::vector<std::byte> reliable_acknowledgement() {
  return hex(
      "21"                // version 2, class 1
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
      "9b2b809b"          // acknowledged: the sixth
      "2800000000000000"  // map: the 9th, the 11th
      "8000000000000000"  // the 71st
      "20f63699");        // CRC32C
}

/// An open of the first try.
inline std::vector<std::byte> reliable_open() {
  return hex(
      "21"                                // version 2, class 1
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
      "0f1e2d3c4b5a6978"                  // nonce
      "00000000000000000000000000000000"  // cookie
      "f60a04a0");                        // CRC32C
}

/// A refusal of the tenth: no such STag.
inline std::vector<std::byte> reliable_refusal() {
  return hex(
      "21"          // version 2, class 1
      "00"          // flags: none
      "0000"        // reserved
      "00000002"    // incarnation
      "06"          // kind: refusal
      "00"          // flags
      "0100"        // window
      "00000002"    // epoch
      "00000003"    // peer epoch
      "a1b2c3d4"    // peer incarnation
      "9b2b809f"    // sequence: the tenth
      "9b2b809e"    // acknowledged: the ninth
      "11"          // layer 1 (DDP), type 1 (tagged buffer)
      "00"          // code 0 (invalid STag)
      "0000"        // reserved
      "62ab5c85");  // CRC32C
}

/// What follows a Send with MSN 5 that was given up: the tenth stands for no part of it any more.
inline std::vector<std::byte> reliable_skip() {
  return hex(
      "21"          // version 2, class 1
      "00"          // flags: none
      "0000"        // reserved
      "a1b2c3d4"    // incarnation
      "02"          // kind: skip
      "00"          // flags
      "0100"        // window
      "00000003"    // epoch
      "00000002"    // peer epoch
      "00000002"    // peer incarnation
      "9b2b809f"    // sequence: the tenth
      "d7b54dd1"    // acknowledged: the fourth
      "01"          // message: Send
      "000000"      // reserved
      "00000005"    // its MSN
      "63ef7288");  // CRC32C
}

/// What ends a Read Response: the source may not be read.
inline std::vector<std::byte> reliable_failure() {
  return hex(
      "21"          // version 2, class 1
      "00"          // flags: none
      "0000"        // reserved
      "00000002"    // incarnation
      "03"          // kind: failure
      "00"          // flags
      "0100"        // window
      "00000002"    // epoch
      "00000003"    // peer epoch
      "a1b2c3d4"    // peer incarnation
      "d7b54dd2"    // sequence: the fifth
      "9b2b809e"    // acknowledged: the ninth
      "a0a1a2a3"    // Data Sink STag
      "01"          // layer 0 (RDMAP), type 1 (protection)
      "02"          // code 2 (access rights)
      "0000"        // reserved
      "6b8dfddb");  // CRC32C
}

/// A probe, after the tenth.
inline std::vector<std::byte> reliable_probe() {
  return hex(
      "21"          // version 2, class 1
      "00"          // flags: none
      "0000"        // reserved
      "a1b2c3d4"    // incarnation
      "05"          // kind: probe
      "00"          // flags
      "0100"        // window
      "00000003"    // epoch
      "00000002"    // peer epoch
      "00000002"    // peer incarnation
      "9b2b809f"    // sequence: the tenth
      "d7b54dd2"    // acknowledged: the fifth
      "7f809c94");  // CRC32C
}

/// A reset, by an end that knows nothing of it, which answers the probe.
inline std::vector<std::byte> reliable_reset() {
  return hex(
      "21"          // version 2, class 1
      "00"          // flags: none
      "0000"        // reserved
      "00000002"    // incarnation
      "08"          // kind: reset
      "00"          // flags
      "0000"        // window
      "00000002"    // epoch
      "00000003"    // peer epoch
      "a1b2c3d4"    // peer incarnation
      "9b2b809f"    // sequence: the tenth
      "00000000"    // acknowledged
      "2fc59839");  // CRC32C
}

}  // namespace diwarp::test::golden
