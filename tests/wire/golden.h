// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/bytes.h"

/// Whole units of the wire protocols, written out by hand from the layouts: RFC 5044 (FPDUs and
/// start-up frames), RFC 5041 (DDP headers), RFC 5040 (RDMAP's control octet) and, for datagrams,
/// docs/wire-format.md. The CRCs come from a bitwise division outside of this code.
namespace diwarp::test::golden {

/// The only segment of a Send over datagrams.
inline std::vector<std::byte> datagram_send() {
  return hex(
      "20"                        // version 2, class 0
      "00"                        // flags: none
      "0000"                      // reserved
      "a1b2c3d4"                  // incarnation
      "41"                        // T 0, L 1, reserved 0000, DV 01
      "43"                        // RV 01, reserved 00, opcode 3
      "01020304"                  // Q_Key
      "00000000"                  // QN
      "00abcdef"                  // MSN
      "00000000"                  // MO
      "68656c6c6f2c20776f726c64"  // "hello, world"
      "15b4b616");                // CRC32C
}

/// A middle segment of a Send with Solicited Event over datagrams.
inline std::vector<std::byte> datagram_solicited() {
  return hex(
      "20"          // version 2, class 0
      "02"          // flags: solicited
      "0000"        // reserved
      "a1b2c3d4"    // incarnation
      "01"          // T 0, L 0, reserved 0000, DV 01
      "45"          // RV 01, reserved 00, opcode 5
      "00000000"    // Q_Key
      "00000000"    // QN
      "ffffffff"    // MSN
      "00010000"    // MO
      "deadbeef"    // payload
      "6f083bf3");  // CRC32C
}

/// A Send of no bytes over datagrams: the shortest datagram there is.
inline std::vector<std::byte> datagram_empty() {
  return hex(
      "20"          // version 2, class 0
      "00"          // flags: none
      "0000"        // reserved
      "00000001"    // incarnation
      "41"          // T 0, L 1, reserved 0000, DV 01
      "43"          // RV 01, reserved 00, opcode 3
      "00000000"    // Q_Key
      "00000000"    // QN
      "00000007"    // MSN
      "00000000"    // MO
      "fef813e3");  // CRC32C
}

/// A Send of "ping" on a stream; no padding.
inline std::vector<std::byte> fpdu_send() {
  return hex(
      "0016"        // ULPDU length 22
      "41"          // T 0, L 1, reserved 0000, DV 01
      "43"          // RV 01, reserved 00, opcode 3
      "00000000"    // reserved (invalidate STag)
      "00000000"    // QN
      "00000001"    // MSN
      "00000000"    // MO
      "70696e67"    // "ping"
      "a5487fa7");  // CRC32C
}

/// A Send of no bytes on a stream; no padding.
inline std::vector<std::byte> fpdu_empty_send() {
  return hex(
      "0012"        // ULPDU length 18
      "41"          // T 0, L 1, reserved 0000, DV 01
      "43"          // RV 01, reserved 00, opcode 3
      "00000000"    // reserved (invalidate STag)
      "00000000"    // QN
      "00000001"    // MSN
      "00000000"    // MO
      "587be8c4");  // CRC32C
}

/// A Send of "ABC" on a stream; one byte of padding.
inline std::vector<std::byte> fpdu_pad_1() {
  return hex(
      "0015"        // ULPDU length 21
      "41"          // T 0, L 1, reserved 0000, DV 01
      "43"          // RV 01, reserved 00, opcode 3
      "00000000"    // reserved (invalidate STag)
      "00000000"    // QN
      "00000001"    // MSN
      "00000000"    // MO
      "414243"      // "ABC"
      "00"          // padding
      "d97c8fe3");  // CRC32C
}

/// A Send with Solicited Event of "AB" on a stream; two bytes of padding.
inline std::vector<std::byte> fpdu_solicited_pad_2() {
  return hex(
      "0014"        // ULPDU length 20
      "41"          // T 0, L 1, reserved 0000, DV 01
      "45"          // RV 01, reserved 00, opcode 5
      "00000000"    // reserved (invalidate STag)
      "00000000"    // QN
      "00000002"    // MSN
      "00000000"    // MO
      "4142"        // "AB"
      "0000"        // padding
      "3be23e6a");  // CRC32C
}

/// The first of two segments of a Send on a stream, "A"; three bytes of padding.
inline std::vector<std::byte> fpdu_first_pad_3() {
  return hex(
      "0013"        // ULPDU length 19
      "01"          // T 0, L 0, reserved 0000, DV 01
      "43"          // RV 01, reserved 00, opcode 3
      "00000000"    // reserved (invalidate STag)
      "00000000"    // QN
      "00000003"    // MSN
      "00000000"    // MO
      "41"          // "A"
      "000000"      // padding
      "57ced936");  // CRC32C
}

/// The second, "abcd"; no padding.
inline std::vector<std::byte> fpdu_second() {
  return hex(
      "0016"        // ULPDU length 22
      "41"          // T 0, L 1, reserved 0000, DV 01
      "43"          // RV 01, reserved 00, opcode 3
      "00000000"    // reserved (invalidate STag)
      "00000000"    // QN
      "00000003"    // MSN
      "00000001"    // MO
      "61626364"    // "abcd"
      "bcd1cd47");  // CRC32C
}

/// fpdu_send() at the very beginning of a stream with markers.
inline std::vector<std::byte> fpdu_marker_first() {
  return hex(
      "00000000"    // marker: reserved, FPDUPTR 0
      "0016"        // ULPDU length 22
      "41"          // T 0, L 1, reserved 0000, DV 01
      "43"          // RV 01, reserved 00, opcode 3
      "00000000"    // reserved (invalidate STag)
      "00000000"    // QN
      "00000001"    // MSN
      "00000000"    // MO
      "70696e67"    // "ping"
      "22634dd4");  // CRC32C, of the marker too
}

/// fpdu_send() eight bytes before a marker is due.
inline std::vector<std::byte> fpdu_marker_inside() {
  return hex(
      "0016"        // ULPDU length 22
      "41"          // T 0, L 1, reserved 0000, DV 01
      "43"          // RV 01, reserved 00, opcode 3
      "00000000"    // reserved (invalidate STag)
      "00000008"    // marker: reserved, FPDUPTR 8
      "00000000"    // QN
      "00000001"    // MSN
      "00000000"    // MO
      "70696e67"    // "ping"
      "35d12b91");  // CRC32C
}

/// fpdu_send() such that a marker is due in front of its CRC.
inline std::vector<std::byte> fpdu_marker_before_crc() {
  return hex(
      "0016"        // ULPDU length 22
      "41"          // T 0, L 1, reserved 0000, DV 01
      "43"          // RV 01, reserved 00, opcode 3
      "00000000"    // reserved (invalidate STag)
      "00000000"    // QN
      "00000001"    // MSN
      "00000000"    // MO
      "70696e67"    // "ping"
      "00000018"    // marker: reserved, FPDUPTR 24
      "b3239720");  // CRC32C
}

/// An MPA Request that asks for CRCs and not for markers.
inline std::vector<std::byte> mpa_request() {
  return hex(
      "4d504120494420526571204672616d65"  // "MPA ID Req Frame"
      "40"                                // M 0, C 1, R 0, reserved
      "01"                                // revision
      "0005"                              // private data length
      "68656c6c6f");                      // "hello"
}

/// An MPA Reply that accepts, without CRCs, markers or private data.
inline std::vector<std::byte> mpa_reply() {
  return hex(
      "4d504120494420526570204672616d65"  // "MPA ID Rep Frame"
      "00"                                // M 0, C 0, R 0, reserved
      "01"                                // revision
      "0000");                            // private data length
}

/// An MPA Reply that rejects, and says why.
inline std::vector<std::byte> mpa_reject() {
  return hex(
      "4d504120494420526570204672616d65"  // "MPA ID Rep Frame"
      "60"                                // M 0, C 1, R 1, reserved
      "01"                                // revision
      "0002"                              // private data length
      "6e6f");                            // "no"
}

/// An MPA Request of revision 2 that offers peer-to-peer with all kinds of ready-to-receive
/// message.
inline std::vector<std::byte> mpa_request_enhanced() {
  return hex(
      "4d504120494420526571204672616d65"  // "MPA ID Req Frame"
      "50"                                // M 0, C 1, R 0, S 1, reserved
      "02"                                // revision
      "0006"                              // private data length
      "c010"                              // A 1, B 1, IRD 16
      "c008"                              // C 1, D 1, ORD 8
      "6869");                            // "hi"
}

/// An MPA Reply of revision 2 that wants a Write to be made ready.
inline std::vector<std::byte> mpa_reply_enhanced() {
  return hex(
      "4d504120494420526570204672616d65"  // "MPA ID Rep Frame"
      "10"                                // M 0, C 0, R 0, S 1, reserved
      "02"                                // revision
      "0005"                              // private data length
      "8008"                              // A 1, B 0, IRD 8
      "9234"                              // C 1, D 0, ORD 0x1234
      "79");                              // "y"
}

}  // namespace diwarp::test::golden
