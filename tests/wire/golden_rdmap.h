// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/bytes.h"

/// ULPDUs of every RDMAP message, written out by hand from the layouts of RFC 5041 section 4, RFC
/// 5040 section 4 and RFC 7306 sections 5 and 6. Wireshark 4.0 reads the fields as they are
/// annotated here, but does not know Immediate Data, and takes a Terminate's DDP header for a
/// tagged one whenever the error's type is 1.
namespace diwarp::test::golden {

/// The second of two segments of an RDMA Write.
inline std::vector<std::byte> ulpdu_write() {
  return hex(
      "c1"                // T 1, L 1, reserved 0000, DV 01
      "40"                // RV 01, reserved 00, opcode 0
      "11223344"          // STag
      "0000000000001004"  // TO
      "65666768");        // payload
}

inline std::vector<std::byte> ulpdu_read_request() {
  return hex(
      "41"                  // T 0, L 1, reserved 0000, DV 01
      "41"                  // RV 01, reserved 00, opcode 1
      "00000000"            // reserved
      "00000001"            // QN
      "00000007"            // MSN
      "00000000"            // MO
      "a0a1a2a3"            // Data Sink STag
      "b0b1b2b3b4b5b6b7"    // Data Sink TO
      "00010002"            // RDMA Read Message size
      "c0c1c2c3"            // Data Source STag
      "d0d1d2d3d4d5d6d7");  // Data Source TO
}

/// The first of several segments of a Read Response.
inline std::vector<std::byte> ulpdu_read_response() {
  return hex(
      "81"                // T 1, L 0, reserved 0000, DV 01
      "42"                // RV 01, reserved 00, opcode 2
      "a0a1a2a3"          // Data Sink STag
      "b0b1b2b3b4b5b6b7"  // Data Sink TO
      "6162");            // payload
}

inline std::vector<std::byte> ulpdu_send_invalidate() {
  return hex(
      "41"        // T 0, L 1, reserved 0000, DV 01
      "44"        // RV 01, reserved 00, opcode 4
      "01020304"  // Invalidate STag
      "00000000"  // QN
      "00000002"  // MSN
      "00000000"  // MO
      "78");      // payload
}

inline std::vector<std::byte> ulpdu_send_solicited_invalidate() {
  return hex(
      "01"        // T 0, L 0, reserved 0000, DV 01
      "46"        // RV 01, reserved 00, opcode 6
      "01020304"  // Invalidate STag
      "00000000"  // QN
      "00000003"  // MSN
      "00000000"  // MO
      "79");      // payload
}

inline std::vector<std::byte> ulpdu_immediate() {
  return hex(
      "41"                  // T 0, L 1, reserved 0000, DV 01
      "48"                  // RV 01, reserved 00, opcode 8
      "00000000"            // reserved
      "00000000"            // QN
      "00000005"            // MSN
      "00000000"            // MO
      "0123456789abcdef");  // immediate data
}

inline std::vector<std::byte> ulpdu_fetch_add() {
  return hex(
      "41"                  // T 0, L 1, reserved 0000, DV 01
      "4a"                  // RV 01, reserved 00, opcode 10
      "00000000"            // reserved
      "00000001"            // QN
      "00000001"            // MSN
      "00000000"            // MO
      "00000000"            // reserved, AOpCode 0
      "0000002a"            // request identifier
      "11223344"            // remote STag
      "0000000000002008"    // remote TO
      "0000000000000003"    // add data
      "8000000080000000"    // add mask
      "0000000000000000"    // compare data: none
      "0000000000000000");  // compare mask: none
}

inline std::vector<std::byte> ulpdu_compare_swap() {
  return hex(
      "41"                  // T 0, L 1, reserved 0000, DV 01
      "4a"                  // RV 01, reserved 00, opcode 10
      "00000000"            // reserved
      "00000001"            // QN
      "00000002"            // MSN
      "00000000"            // MO
      "00000002"            // reserved, AOpCode 2
      "0000002b"            // request identifier
      "11223344"            // remote STag
      "0000000000002010"    // remote TO
      "00000000000000aa"    // swap data
      "00000000000000ff"    // swap mask
      "00000000000000bb"    // compare data
      "ffffffffffffffff");  // compare mask
}

inline std::vector<std::byte> ulpdu_atomic_response() {
  return hex(
      "41"                  // T 0, L 1, reserved 0000, DV 01
      "4b"                  // RV 01, reserved 00, opcode 11
      "00000000"            // reserved
      "00000003"            // QN
      "00000001"            // MSN
      "00000000"            // MO
      "0000002a"            // original request identifier
      "fedcba9876543210");  // original remote data value
}

/// What answers ulpdu_read_request() where its source lies outside of the region.
inline std::vector<std::byte> ulpdu_terminate_read() {
  return hex(
      "41"                                     // T 0, L 1, reserved 0000, DV 01
      "47"                                     // RV 01, reserved 00, opcode 7
      "00000000"                               // reserved
      "00000002"                               // QN
      "00000001"                               // MSN
      "00000000"                               // MO
      "01"                                     // layer 0 (RDMAP), type 1 (remote protection error)
      "01"                                     // code: base or bounds violation
      "e000"                                   // M 1, D 1, R 1, reserved
      "002e"                                   // DDP segment length 46
      "41410000000000000001000000070000 0000"  // DDP header
      "a0a1a2a3b0b1b2b3b4b5b6b700010002c0c1c2c3d0d1d2d3d4d5d6d7");  // RDMAP header
}

/// What answers ulpdu_write() where its STag is unknown.
inline std::vector<std::byte> ulpdu_terminate_write() {
  return hex(
      "41"                              // T 0, L 1, reserved 0000, DV 01
      "47"                              // RV 01, reserved 00, opcode 7
      "00000000"                        // reserved
      "00000002"                        // QN
      "00000001"                        // MSN
      "00000000"                        // MO
      "11"                              // layer 1 (DDP), type 1 (tagged buffer error)
      "00"                              // code: invalid STag
      "c000"                            // M 1, D 1, R 0, reserved
      "0012"                            // DDP segment length 18
      "c140112233440000000000001004");  // DDP header
}

/// What answers a bad CRC.
inline std::vector<std::byte> ulpdu_terminate_crc() {
  return hex(
      "41"        // T 0, L 1, reserved 0000, DV 01
      "47"        // RV 01, reserved 00, opcode 7
      "00000000"  // reserved
      "00000002"  // QN
      "00000001"  // MSN
      "00000000"  // MO
      "20"        // layer 2 (LLP), type 0 (MPA)
      "02"        // code: CRC error
      "0000");    // M 0, D 0, R 0, reserved
}

}  // namespace diwarp::test::golden
