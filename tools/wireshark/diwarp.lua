-- SPDX-License-Identifier: Apache-2.0
-- Wireshark's view of diwarp's datagrams (UD, RD, control messages), written from docs/wire-format.md,
-- version 2. docs/wireshark.md says how to install it and what it shows.
--
-- Three parts: the parser makes fields and a verdict of one datagram, the tracker connects datagrams to
-- messages, Reads and associations, and the last part shows both in Wireshark. The first two are plain
-- Lua 5.2 to 5.4: outside of Wireshark this file returns them as a table, for tests.

-- Constants of the format -----------------------------------------------------------------------------

local VERSION = 2
local UD, RD, CONTROL = 0, 1, 2
local PREFIX, TRAILER, RD_HEADER = 8, 4, 24
local UNTAGGED_HEADER, TAGGED_HEADER = 18, 14
local LONGEST_MESSAGE = 0x40000000
local LONGEST_READ = 262144
local TWO_32 = 0x100000000

local READ_REQUEST, READ_RESPONSE, WRITE_RECORD = 1, 2, 12
-- What the format says of each opcode: whether its header is tagged, the queue number, how the prefix
-- flag "solicited" has to be, whether immediate data may be there, bytes between header and payload.
local OPCODES = {
  [1] = {name = "Read Request", tagged = false, queue = 1, solicited = false, immediate = false, extra = 28},
  [2] = {name = "Read Response", tagged = true, solicited = false, immediate = false, extra = 0},
  [3] = {name = "Send", tagged = false, queue = 0, solicited = false, immediate = true, extra = 0},
  [4] = {name = "Send with Invalidate", tagged = false, queue = 0, solicited = false, immediate = true, extra = 0},
  [5] = {name = "Send with Solicited Event", tagged = false, queue = 0, solicited = true, immediate = true,
         extra = 0},
  [6] = {name = "Send with Solicited Event and Invalidate", tagged = false, queue = 0, solicited = true,
         immediate = true, extra = 0},
  [12] = {name = "Write-Record", tagged = true, immediate = true, extra = 12},
}
local CHALLENGE, ECHO, ERROR = 1, 2, 3
local CONTROL_TYPES = {[1] = "Challenge", [2] = "Echo", [3] = "Error"}
local DATA, SKIP, FAILURE, ACKNOWLEDGEMENT, PROBE, REFUSAL, OPEN, RESET = 1, 2, 3, 4, 5, 6, 7, 8
-- What the format says of each RD kind: its flags (as a mask), least and most bytes behind the header and
-- the multiple that they come in, and whether sequence and acknowledged are used.
local KINDS = {
  [1] = {name = "data", flags = 2, least = 1, most = 65535, step = 1, sequence = true, acknowledged = true},
  [2] = {name = "skip", flags = 2, least = 8, most = 8, step = 8, sequence = true, acknowledged = true},
  [3] = {name = "failure", flags = 2, least = 8, most = 8, step = 8, sequence = true, acknowledged = true},
  [4] = {name = "acknowledgement", flags = 6, least = 0, most = 512, step = 8, acknowledged = true},
  [5] = {name = "probe", flags = 2, least = 0, most = 0, step = 1, sequence = true, acknowledged = true},
  [6] = {name = "refusal", flags = 2, least = 4, most = 4, step = 4, sequence = true, acknowledged = true},
  [7] = {name = "open", flags = 3, least = 24, most = 24, step = 24},
  [8] = {name = "reset", flags = 1, least = 0, most = 0, step = 1, sequence = true},
}
local SKIPPED = {[1] = "Send", [2] = "Write-Record", [3] = "Read Request", [4] = "Read Response"}
-- "layer type code", in the words of the format.
local CODES = {
  ["1 2 2"] = "no receive is posted",
  ["1 2 4"] = "the message offset is not where the last segment ended",
  ["1 2 5"] = "longer than the receive",
  ["1 1 0"] = "no such STag",
  ["1 1 1"] = "outside of the region",
  ["1 1 2"] = "the STag belongs to another protection domain or queue pair",
  ["1 1 3"] = "beyond the last 64-bit offset",
  ["0 1 0"] = "no such STag",
  ["0 1 1"] = "outside of the region",
  ["0 1 2"] = "the right is missing",
  ["0 1 3"] = "the STag belongs to another protection domain or queue pair",
  ["0 1 4"] = "beyond the last 64-bit offset",
  ["0 2 7"] = "too many Read Requests",
  ["0 2 255"] = "another rule is broken",
}
local LAYERS = {[0] = "RDMAP", [1] = "DDP", [2] = "LLP"}

-- Why a receiver drops a datagram, by the counter that it counts it in.
local DROPS = {
  drop_truncated = "The datagram ends within a header",
  drop_version = "Another version of the format",
  drop_class = "No such class",
  drop_flags = "Flags that this datagram must not have, or lacks",
  drop_reserved = "Reserved bits are not 0",
  drop_crc = "The CRC is wrong",
  drop_ddp_version = "The DDP version is not 1",
  drop_rdmap_version = "The RDMAP version is not 1",
  drop_opcode = "No such opcode, or T is not that of the opcode",
  drop_queue_number = "The queue number is not that of the opcode",
  drop_oversized = "Longer than allowed",
  drop_contradiction = "The fields contradict each other",
  drop_bounds = "Beyond the last 64-bit offset",
  drop_rd_header = "The RD header breaks a rule",
  drop_control = "The control message breaks a rule",
  drop_group = "Must not come to a group",
}

-- Bits ------------------------------------------------------------------------------------------------

-- Lua 5.3 has operators for bits, which Lua 5.2 cannot even read; 5.2 has bit32, and Wireshark's own
-- library is bit, whose results may be negative.
local function choose_bits()
  local compile = loadstring or load
  local native = compile([[
    return {name = "operators",
            band = function(a, b) return a & b end,
            bxor = function(a, b) return a ~ b end,
            bor = function(a, b) return a | b end,
            rshift = function(a, n) return a >> n end,
            lshift = function(a, n) return a << n & 0xFFFFFFFF end}]])
  if native then return native() end
  if bit32 then
    return {name = "bit32", band = bit32.band, bxor = bit32.bxor, bor = bit32.bor, rshift = bit32.rshift,
            lshift = bit32.lshift}
  end
  local function unsigned(operation)
    return function(a, b) return operation(a, b) % TWO_32 end
  end
  return {name = "bit", band = unsigned(bit.band), bxor = unsigned(bit.bxor), bor = unsigned(bit.bor),
          rshift = unsigned(bit.rshift), lshift = unsigned(bit.lshift)}
end

local bits = choose_bits()
local band, bxor, bor, rshift, lshift = bits.band, bits.bxor, bits.bor, bits.rshift, bits.lshift

local function bit_set(value, mask) return band(value, mask) ~= 0 end

-- CRC32C ----------------------------------------------------------------------------------------------

local function make_crc_table()
  local entries = {}
  for byte = 0, 255 do
    local value = byte
    for _ = 1, 8 do
      local carry = band(value, 1)
      value = rshift(value, 1)
      if carry == 1 then value = bxor(value, 0x82F63B78) end
    end
    entries[byte] = value
  end
  return entries
end

local CRC_TABLE = make_crc_table()

-- CRC32C of the first `length` bytes of a string.
local function crc32c(text, length)
  local value, byte, entries = 0xFFFFFFFF, string.byte, CRC_TABLE
  for at = 1, length do
    value = bxor(rshift(value, 8), entries[bxor(band(value, 0xFF), byte(text, at))])
  end
  return bxor(value, 0xFFFFFFFF)
end

-- 64-bit numbers, as two halves of 32 bits -------------------------------------------------------------

local function add64(high, low, other_high, other_low)
  local sum = low + other_low
  local carry = sum >= TWO_32 and 1 or 0
  local top = high + other_high + carry
  return top % TWO_32, sum % TWO_32, top >= TWO_32
end

local function sub64(high, low, other_high, other_low)
  local borrow = low < other_low and 1 or 0
  return (high - other_high - borrow) % TWO_32, (low - other_low) % TWO_32
end

local function less64(high, low, other_high, other_low)
  return high < other_high or (high == other_high and low < other_low)
end

-- Whether the last of `length` bytes at an offset lies beyond the last 64-bit offset.
local function passes_last_offset(high, low, length)
  if length == 0 then return false end
  local _, _, over = add64(high, low, 0, length - 1)
  return over
end

local function xor64(high, low, other_high, other_low)
  return bxor(high, other_high), bxor(low, other_low)
end

local function rotate64(high, low, count)
  if count >= 32 then high, low, count = low, high, count - 32 end
  if count == 0 then return high, low end
  return bor(lshift(high, count), rshift(low, 32 - count)), bor(lshift(low, count), rshift(high, 32 - count))
end

-- SipHash-2-4 ------------------------------------------------------------------------------------------

-- The state is v0 to v3 as halves: {h0, l0, h1, l1, h2, l2, h3, l3}.
local function sip_round(v)
  v[1], v[2] = add64(v[1], v[2], v[3], v[4])
  v[3], v[4] = rotate64(v[3], v[4], 13)
  v[3], v[4] = xor64(v[3], v[4], v[1], v[2])
  v[1], v[2] = rotate64(v[1], v[2], 32)
  v[5], v[6] = add64(v[5], v[6], v[7], v[8])
  v[7], v[8] = rotate64(v[7], v[8], 16)
  v[7], v[8] = xor64(v[7], v[8], v[5], v[6])
  v[1], v[2] = add64(v[1], v[2], v[7], v[8])
  v[7], v[8] = rotate64(v[7], v[8], 21)
  v[7], v[8] = xor64(v[7], v[8], v[1], v[2])
  v[5], v[6] = add64(v[5], v[6], v[3], v[4])
  v[3], v[4] = rotate64(v[3], v[4], 17)
  v[3], v[4] = xor64(v[3], v[4], v[5], v[6])
  v[5], v[6] = rotate64(v[5], v[6], 32)
end

local function little_endian32(text, at)
  local a, b, c, d = string.byte(text, at, at + 3)
  return (a or 0) + (b or 0) * 0x100 + (c or 0) * 0x10000 + (d or 0) * 0x1000000
end

local function siphash(k0_high, k0_low, k1_high, k1_low, text)
  local v = {bxor(k0_high, 0x736f6d65), bxor(k0_low, 0x70736575), bxor(k1_high, 0x646f7261),
             bxor(k1_low, 0x6e646f6d), bxor(k0_high, 0x6c796765), bxor(k0_low, 0x6e657261),
             bxor(k1_high, 0x74656462), bxor(k1_low, 0x79746573)}
  local function compress(high, low)
    v[7], v[8] = xor64(v[7], v[8], high, low)
    sip_round(v)
    sip_round(v)
    v[1], v[2] = xor64(v[1], v[2], high, low)
  end
  local whole = #text - #text % 8
  for at = 1, whole, 8 do
    compress(little_endian32(text, at + 4), little_endian32(text, at))
  end
  compress(bor(little_endian32(text, whole + 5), lshift(#text % 256, 24)), little_endian32(text, whole + 1))
  v[6] = bxor(v[6], 0xFF)
  for _ = 1, 4 do sip_round(v) end
  local high, low = xor64(v[1], v[2], v[3], v[4])
  high, low = xor64(high, low, v[5], v[6])
  return xor64(high, low, v[7], v[8])
end

-- The first number of a direction of an association.
local function first_number(sender_incarnation, sender_epoch, receiver_incarnation, receiver_epoch)
  local _, low = siphash(sender_incarnation, sender_epoch, receiver_incarnation, receiver_epoch, "sequence")
  return low
end

-- a - b in serial number arithmetic.
local function serial_distance(a, b)
  local distance = (a - b) % TWO_32
  return distance >= 0x80000000 and distance - TWO_32 or distance
end

-- The parser ------------------------------------------------------------------------------------------

-- A datagram under parsing. `items` are what the tree shows: {field, offset, length}, {field, value = v},
-- or {title, offset, length, items = {...}}. `faults` are {counter, text}, in the order in which a receiver
-- checks; the first is the verdict. Every offset has been compared with `captured`, the bytes that are
-- there, before anything is read or shown; `reported` is how many there were on the wire.
local Datagram = {}
Datagram.__index = Datagram

local function new_datagram(raw, reported)
  return setmetatable({raw = raw, captured = #raw, reported = math.max(reported, #raw), items = {},
                       faults = {}, notes = {}}, Datagram)
end

function Datagram:fault(counter, text)
  self.faults[#self.faults + 1] = {counter = counter, text = text}
end

-- Whether these bytes are part of the datagram's body, and in the capture.
function Datagram:on_wire(offset, length) return offset + length <= self.limit end

function Datagram:has(offset, length)
  if offset + length <= self.captured then return true end
  self.cut = true
  return false
end

function Datagram:u8(offset) return (string.byte(self.raw, offset + 1)) end

function Datagram:u16(offset)
  local a, b = string.byte(self.raw, offset + 1, offset + 2)
  return a * 0x100 + b
end

function Datagram:u32(offset)
  local a, b, c, d = string.byte(self.raw, offset + 1, offset + 4)
  return ((a * 0x100 + b) * 0x100 + c) * 0x100 + d
end

function Datagram:bytes(offset, length) return string.sub(self.raw, offset + 1, offset + length) end

-- Shows fields that follow each other: {name, length} in order; a length of 0 stays at the same bytes as
-- the field that comes next.
local function show(list, offset, fields)
  for _, field in ipairs(fields) do
    list[#list + 1] = {field = field[1], offset = offset, length = field[3] or field[2]}
    offset = offset + field[2]
  end
end

local function group(list, title, offset, length)
  local new = {title = title, offset = offset, length = length, items = {}}
  list[#list + 1] = new
  return new.items
end

-- The bits of one octet or word, which stand before the fields behind it.
local function show_bits(list, offset, length, names)
  for _, name in ipairs(names) do list[#list + 1] = {field = name, offset = offset, length = length} end
end

-- {layer, error type, code} of the first word of a Terminate.
function Datagram:read_code(offset)
  local first = self:u8(offset)
  return {layer = rshift(first, 4), type = band(first, 15), code = self:u8(offset + 1)}
end

local function code_text(code)
  local words = CODES[string.format("%d %d %d", code.layer, code.type, code.code)]
  return string.format("%s, type %d, code %d%s", LAYERS[code.layer] or ("layer " .. code.layer), code.type,
                       code.code, words and ": " .. words or "")
end

-- Whether these bytes can be read. A fault if the datagram ends before; none if the capture does.
function Datagram:whole(offset, length, what)
  if not self:on_wire(offset, length) then
    self:fault("drop_truncated", string.format("%s takes %d bytes, and %d are there", what, length,
                                               math.max(self.limit - offset, 0)))
    return false
  end
  return self:has(offset, length)
end

-- DDP and RDMAP headers -------------------------------------------------------------------------------

-- Names of the header's fields: of a segment ("diwarp.ddp.msn"), or of the copy that an Error has.
local function header_bits(prefix)
  return {prefix .. "tagged", prefix .. "last", prefix .. "reserved", prefix .. "version"},
         {prefix .. "rdmap_version", prefix .. "rdmap_reserved", prefix .. "opcode"}
end

local WORDS = {[1] = "nonce", [3] = "q_key", [4] = "invalidate_stag", [5] = "q_key", [6] = "invalidate_stag"}

-- Reads and shows the DDP header at an offset; all of its bytes are there.
local function parse_ddp_header(d, list, offset, prefix)
  local first, second = d:u8(offset), d:u8(offset + 1)
  local header = {tagged = bit_set(first, 0x80), last = bit_set(first, 0x40), reserved = band(first, 0x3C),
                  version = band(first, 3), rdmap_version = rshift(second, 6),
                  rdmap_reserved = band(second, 0x30), opcode = band(second, 15), offset = offset}
  header.length = header.tagged and TAGGED_HEADER or UNTAGGED_HEADER
  local items = group(list, "DDP header", offset, header.length)
  local ddp, rdmap = header_bits(prefix)
  show_bits(items, offset, 1, ddp)
  show_bits(items, offset + 1, 1, rdmap)
  if header.tagged then
    header.stag, header.to_high, header.to_low = d:u32(offset + 2), d:u32(offset + 6), d:u32(offset + 10)
    show(items, offset + 2, {{prefix .. "stag", 4}, {prefix .. "to", 8}})
    return header
  end
  header.word, header.queue = d:u32(offset + 2), d:u32(offset + 6)
  header.msn, header.mo = d:u32(offset + 10), d:u32(offset + 14)
  show(items, offset + 2, {{prefix .. (WORDS[header.opcode] or "word"), 4}, {prefix .. "qn", 4},
                           {prefix .. "msn", 4}, {prefix .. "mo", 4}})
  return header
end

-- What stands between the DDP header and the payload, for opcodes that have it; all bytes are there.
local function parse_extra(d, list, header, offset, prefix)
  if header.opcode == WRITE_RECORD then
    header.msn, header.mo, header.message_length = d:u32(offset), d:u32(offset + 4), d:u32(offset + 8)
    show(group(list, "Write-Record", offset, 12), offset,
         {{prefix .. "msn", 4}, {prefix .. "mo", 4}, {prefix .. "message_length", 4}})
  elseif header.opcode == READ_REQUEST then
    header.sink_stag, header.sink_high, header.sink_low = d:u32(offset), d:u32(offset + 4), d:u32(offset + 8)
    header.size, header.source_stag = d:u32(offset + 12), d:u32(offset + 16)
    header.sink_bytes = d:bytes(offset + 4, 8)
    show(group(list, "Read Request", offset, 28), offset,
         {{prefix .. "sink_stag", 4}, {prefix .. "sink_to", 8}, {prefix .. "read_size", 4},
          {prefix .. "source_stag", 4}, {prefix .. "source_to", 8}})
  end
end

-- Whether the prefix's flags are as the table of opcodes says.
local function check_segment_flags(d, opcode)
  local rules = OPCODES[opcode]
  local immediate, solicited = bit_set(d.flags, 1), bit_set(d.flags, 2)
  if immediate and not rules.immediate then
    d:fault("drop_flags", "a " .. rules.name .. " has no immediate data")
  elseif rules.solicited ~= nil and solicited ~= rules.solicited then
    d:fault("drop_flags", "a " .. rules.name .. (solicited and " is not" or " has to be") .. " solicited")
  end
end

local function check_send(d, header)
  if header.mo + header.payload_length > LONGEST_MESSAGE then
    d:fault("drop_oversized", "the message is longer than 2^30 bytes")
  end
end

local function check_record(d, header)
  local ends = header.mo + header.payload_length
  if header.message_length > LONGEST_MESSAGE or ends > header.message_length then
    d:fault("drop_oversized", header.message_length > LONGEST_MESSAGE and "the message is longer than 2^30 bytes" or
            "the payload ends beyond the message length")
  end
  if header.last ~= (ends == header.message_length) then
    d:fault("drop_contradiction", header.last and "L is set, and the payload does not reach the message length" or
            "L is not set, and the payload reaches the message length")
  end
  if less64(header.to_high, header.to_low, 0, header.mo) then
    d:fault("drop_bounds", "the tagged offset is less than the message offset")
    return
  end
  local high, low = sub64(header.to_high, header.to_low, 0, header.mo)
  if passes_last_offset(high, low, header.message_length) then
    d:fault("drop_bounds", "the message ends beyond the last 64-bit offset")
  end
end

local function check_read_request(d, header)
  if header.payload_length ~= 0 or header.mo ~= 0 then
    d:fault("drop_oversized", header.mo ~= 0 and "the message offset of a Read Request is 0" or
            "something follows the Read Request")
  end
  if not header.last then d:fault("drop_contradiction", "a Read Request has L") end
  if header.size > LONGEST_READ then d:fault("drop_oversized", "one Read Request asks for at most 262144 bytes") end
  if passes_last_offset(header.sink_high, header.sink_low, header.size) then
    d:fault("drop_bounds", "the sink ends beyond the last 64-bit offset")
  end
end

local function check_read_response(d, header)
  if passes_last_offset(header.to_high, header.to_low, header.payload_length) then
    d:fault("drop_bounds", "the payload ends beyond the last 64-bit offset")
  end
end

local CHECKS = {[1] = check_read_request, [2] = check_read_response, [3] = check_send, [4] = check_send,
                [5] = check_send, [6] = check_send, [12] = check_record}

-- The rules of the two control octets and the opcode; whether the rest can be read.
local function check_octets(d, header)
  if header.version ~= 1 then d:fault("drop_ddp_version", "DV is " .. header.version) end
  if header.reserved ~= 0 or header.rdmap_reserved ~= 0 then
    d:fault("drop_reserved", "reserved bits of the DDP header are set")
  end
  if header.rdmap_version ~= 1 then d:fault("drop_rdmap_version", "RV is " .. header.rdmap_version) end
  local rules = OPCODES[header.opcode]
  if not rules then
    d:fault("drop_opcode", string.format("opcode %d has no place on datagrams", header.opcode))
    return false
  end
  if header.tagged ~= rules.tagged then
    d:fault("drop_opcode", "T is not that of a " .. rules.name)
    return false
  end
  if not rules.tagged and header.queue ~= rules.queue then
    d:fault("drop_queue_number", string.format("the queue of a %s is %d, not %d", rules.name, rules.queue,
                                               header.queue))
  end
  check_segment_flags(d, header.opcode)
  return true
end

-- The immediate data, if flagged; the offset behind them, or nil if they are not whole.
local function parse_immediate(d, offset)
  if not bit_set(d.flags, 1) then return offset end
  if not d:whole(offset, 8, "the immediate data") then return nil end
  d.immediate = d:bytes(offset, 8)
  show(d.items, offset, {{"immediate", 8}})
  return offset + 8
end

local function parse_payload(d, header, offset)
  header.payload_offset, header.payload_length = offset, d.limit - offset
  local there = math.min(header.payload_length, math.max(d.captured - offset, 0))
  header.payload = d:bytes(offset, there)
  if there < header.payload_length then d.cut = true end
  if there > 0 then d.items[#d.items + 1] = {field = "payload", offset = offset, length = there} end
  d.items[#d.items + 1] = {field = "payload_length", value = header.payload_length}
end

local function parse_segment(d, offset)
  offset = parse_immediate(d, offset)
  if not offset then return end
  if not d:whole(offset, 1, "a DDP header") then return end
  local length = bit_set(d:u8(offset), 0x80) and TAGGED_HEADER or UNTAGGED_HEADER
  if not d:whole(offset, length, "the DDP header") then return end
  local header = parse_ddp_header(d, d.items, offset, "ddp.")
  d.segment = header
  if not check_octets(d, header) then return end
  offset = offset + length
  local extra = OPCODES[header.opcode].extra
  if not d:whole(offset, extra, "what a " .. OPCODES[header.opcode].name .. " has behind it") then return end
  parse_extra(d, d.items, header, offset, "ddp.")
  parse_payload(d, header, offset + extra)
  header.complete = true
  CHECKS[header.opcode](d, header)
  if d.group and (header.opcode == READ_REQUEST or header.opcode == READ_RESPONSE) then
    d:fault("drop_group", "Reads must not come to a group")
  end
end

-- Control messages ------------------------------------------------------------------------------------

local function parse_challenge(d, offset)
  local left = d.limit - offset
  if not d:whole(offset, 24, "nonce and cookie") then return end
  d.nonce, d.cookie = d:bytes(offset, 8), d:bytes(offset + 8, 16)
  show(d.items, offset, {{"control.nonce", 8}, {"control.cookie", 16}})
  if left > 24 then d:fault("drop_control", string.format("%d bytes follow the cookie", left - 24)) end
end

-- The copy of the offending segment's headers, behind the DDP segment length.
local function parse_error_headers(d, offset, with_extra)
  local length_field = d:u16(offset)
  show(d.items, offset, {{"error.segment_length", 2}})
  offset = offset + 2
  if not d:whole(offset, 1, "a DDP header") then return end
  local length = bit_set(d:u8(offset), 0x80) and TAGGED_HEADER or UNTAGGED_HEADER
  if not d:whole(offset, length, "the DDP header") then return end
  local items = group(d.items, "Offending segment", offset, length)
  local header = parse_ddp_header(d, items, offset, "error.ddp.")
  d.about = header
  offset = offset + length
  local headers = length
  if with_extra then
    local rules = OPCODES[header.opcode]
    local extra = rules and rules.tagged == header.tagged and rules.extra or 0
    if extra == 0 then
      d:fault("drop_control", "R is set, and such a segment has nothing behind its DDP header")
      return
    end
    if not d:on_wire(offset, extra) then
      d:fault("drop_control", "what stands behind the DDP header is not whole")
      return
    end
    if not d:has(offset, extra) then return end
    parse_extra(d, items, header, offset, "error.ddp.")
    offset, headers = offset + extra, headers + extra
  end
  if d.limit ~= offset then d:fault("drop_control", "something follows the headers") end
  if length_field < headers then d:fault("drop_control", "the DDP segment length is less than the headers") end
end

local function parse_error(d, offset)
  if not d:whole(offset, 4, "layer, type, code and flags") then return end
  d.code = d:read_code(offset)
  local items = group(d.items, "Error: " .. code_text(d.code), offset, 4)
  show_bits(items, offset, 1, {"error.layer", "error.type"})
  show(items, offset + 1, {{"error.code", 1}})
  show_bits(items, offset + 2, 1, {"error.m", "error.d", "error.r"})
  show(items, offset + 2, {{"error.reserved", 2}})
  local flags = d:u8(offset + 2)
  if band(flags, 0x1F) ~= 0 or d:u8(offset + 3) ~= 0 then
    d:fault("drop_reserved", "reserved bits of the Error are set")
  end
  local included, left = rshift(flags, 5), d.limit - offset - 4
  if included == 0 then
    if left ~= 0 then d:fault("drop_control", "something follows an Error without headers") end
    return
  end
  if included ~= 6 and included ~= 7 then
    d:fault("drop_control", "M, D and R are 000, 110 or 111")
    return
  end
  if not d:whole(offset + 4, 2, "the DDP segment length") then return end
  parse_error_headers(d, offset + 4, included == 7)
end

local function parse_control(d)
  if not d:whole(PREFIX, 4, "the type, and what is reserved,") then return end
  d.control = d:u8(PREFIX)
  show(d.items, PREFIX, {{"control.type", 1}, {"control.reserved", 3}})
  if not CONTROL_TYPES[d.control] then
    d:fault("drop_control", string.format("no such type: %d", d.control))
    return
  end
  if d:bytes(PREFIX + 1, 3) ~= "\0\0\0" then d:fault("drop_reserved", "the bytes behind the type are not 0") end
  if d.control == ERROR then
    parse_error(d, PREFIX + 4)
  else
    parse_challenge(d, PREFIX + 4)
  end
  if d.group then d:fault("drop_group", "control messages must not come to a group") end
end

-- Reliable datagrams ----------------------------------------------------------------------------------

local function check_rd_header(d, rd, kind)
  if band(rd.flags, 0xFF - kind.flags) ~= 0 then
    d:fault("drop_rd_header", "flags that a " .. kind.name .. " has not")
  end
  if not kind.sequence and rd.sequence ~= 0 then
    d:fault("drop_rd_header", "the sequence of a " .. kind.name .. " is 0")
  end
  if not kind.acknowledged and rd.acknowledged ~= 0 then
    d:fault("drop_rd_header", "\"acknowledged\" of a " .. kind.name .. " is 0")
  end
  if rd.kind == RESET and rd.window ~= 0 then d:fault("drop_rd_header", "the window of a reset is 0") end
  if rd.epoch == 0 then d:fault("drop_rd_header", "the epoch is 0") end
  if (rd.peer_epoch == 0) ~= (rd.kind == OPEN) then
    d:fault("drop_rd_header", "the peer epoch is 0 in an open, and in no other")
  end
end

-- The numbers that a map shows as there, as distances from "acknowledged".
local function parse_map(d, offset, length)
  local came = {}
  for at = 0, length - 4, 4 do
    local word = d:u32(offset + at)
    for bit = 0, 31 do
      if word == 0 then break end
      if bit_set(word, lshift(1, 31 - bit)) then came[#came + 1] = at * 8 + bit + 1 end
    end
  end
  return came
end

-- Where the capture ends within a map, the words that it has.
local function parse_acknowledgement(d, rd, offset, length)
  local there = math.min(length, math.max(d.captured - offset, 0))
  there = there - there % 8
  if there < length then d.cut = true end
  for at = offset, offset + there - 8, 8 do show(d.items, at, {{"rd.map", 8}}) end
  rd.came = parse_map(d, offset, there)
end

local function parse_skip(d, rd, offset)
  rd.skip_kind, rd.skip_number = d:u8(offset), d:u32(offset + 4)
  show(d.items, offset, {{"rd.skip.kind", 1}, {"rd.skip.reserved", 3}, {"rd.skip.number", 4}})
  if not SKIPPED[rd.skip_kind] then d:fault("drop_rd_header", "no such kind of message: " .. rd.skip_kind) end
  if d:bytes(offset + 1, 3) ~= "\0\0\0" then
    d:fault("drop_rd_header", "the bytes behind the kind of message are not 0")
  end
end

local function show_code(d, offset)
  d.code = d:read_code(offset)
  local items = group(d.items, "Code: " .. code_text(d.code), offset, 4)
  show_bits(items, offset, 1, {"rd.code.layer", "rd.code.type"})
  show(items, offset + 1, {{"rd.code.code", 1}, {"rd.code.rest", 2}})
end

local CONTENTS = {
  [SKIP] = parse_skip,
  [FAILURE] = function(d, rd, offset)
    rd.sink_stag = d:u32(offset)
    show(d.items, offset, {{"rd.failure.sink_stag", 4}})
    show_code(d, offset + 4)
  end,
  [REFUSAL] = function(d, _, offset) show_code(d, offset) end,
  [OPEN] = function(d, _, offset)
    d.nonce, d.cookie = d:bytes(offset, 8), d:bytes(offset + 8, 16)
    show(d.items, offset, {{"rd.nonce", 8}, {"rd.cookie", 16}})
  end,
}

local function read_rd_header(d)
  local items = group(d.items, "RD header", PREFIX, RD_HEADER)
  local rd = {kind = d:u8(8), flags = d:u8(9), window = d:u16(10), epoch = d:u32(12), peer_epoch = d:u32(16),
              peer_incarnation = d:u32(20), sequence = d:u32(24), acknowledged = d:u32(28)}
  show(items, PREFIX, {{"rd.kind", 1}, {"rd.flags", 1}})
  show_bits(items, PREFIX + 1, 1, {"rd.flags.broken", "rd.flags.remembers", "rd.flags.waits", "rd.flags.reserved"})
  show(items, PREFIX + 2, {{"rd.window", 2}, {"rd.epoch", 4}, {"rd.peer_epoch", 4}, {"rd.peer_incarnation", 4},
                           {"rd.sequence", 4}, {"rd.acknowledged", 4}})
  rd.items = items
  return rd
end

-- Whether the kind is known, and what follows it has a length that it may have.
local function check_kind(d, rd, length)
  local kind = KINDS[rd.kind]
  if not kind then
    d:fault("drop_rd_header", "no such kind: " .. rd.kind)
  elseif length < kind.least or length > kind.most or length % kind.step ~= 0 then
    d:fault("drop_rd_header", string.format("%d bytes follow the header of a %s", length, kind.name))
  else
    return kind
  end
end

local function parse_reliable(d)
  if d.group then d:fault("drop_group", "RD must not come to a group") end
  local content = PREFIX + RD_HEADER
  if not d:on_wire(PREFIX, RD_HEADER) then
    d:fault("drop_rd_header", string.format("the RD header takes 24 bytes, and %d are there", d.limit - PREFIX))
    return
  end
  if not d:has(PREFIX, RD_HEADER) then return end
  local rd, length = read_rd_header(d), d.limit - content
  d.rd = rd
  local kind = check_kind(d, rd, length)
  if not kind then return end
  check_rd_header(d, rd, kind)
  if rd.kind == ACKNOWLEDGEMENT then
    parse_acknowledgement(d, rd, content, length)
  elseif CONTENTS[rd.kind] and d:has(content, length) then
    CONTENTS[rd.kind](d, rd, content)
  end
  if rd.kind ~= DATA and d.flags ~= 0 then d:fault("drop_flags", "only data have flags in the prefix") end
  if rd.kind == DATA then parse_segment(d, content) end
end

-- The envelope ----------------------------------------------------------------------------------------

local CRC_BAD, CRC_GOOD, CRC_UNCHECKED = 0, 1, 2

local function check_crc(d, wanted)
  d.crc_status, d.crc_items = CRC_UNCHECKED, {}
  if d.captured < d.reported then
    d.cut = true
    return
  end
  local offset = d.reported - TRAILER
  d.crc_items[1] = {field = "crc", offset = offset, length = 4, little = true}
  if not wanted then return end
  local a, b, c, e = string.byte(d.raw, offset + 1, offset + 4)
  local right = crc32c(d.raw, offset)
  d.crc_status = ((e * 0x100 + c) * 0x100 + b) * 0x100 + a == right and CRC_GOOD or CRC_BAD
  if d.crc_status == CRC_BAD then
    d:fault("drop_crc", string.format("the CRC is wrong: 0x%08x would be right", right))
    d.crc_items[2] = {field = "crc.right", value = right}
  end
end

local function check_prefix(d)
  if d.version ~= VERSION then
    d:fault("drop_version", string.format("version %d", d.version))
    return false
  end
  if d.class > CONTROL then
    d:fault("drop_class", string.format("class %d", d.class))
    return false
  end
  if band(d.flags, 0xFC) ~= 0 or (d.class == CONTROL and d.flags ~= 0) then
    d:fault("drop_flags", d.class == CONTROL and "control messages have no flags" or "unknown flags")
  end
  if d.reserved ~= 0 then d:fault("drop_reserved", "bytes 2 and 3 are not 0") end
  return true
end

local PARSERS = {[UD] = function(d) parse_segment(d, PREFIX) end, [RD] = parse_reliable, [CONTROL] = parse_control}

local function parse_prefix(d)
  local items = group(d.items, "Prefix", 0, PREFIX)
  show_bits(items, 0, 1, {"version", "class"})
  show(items, 1, {{"flags", 1}})
  show_bits(items, 1, 1, {"flags.immediate", "flags.solicited", "flags.reserved"})
  show(items, 2, {{"reserved", 2}, {"incarnation", 4}})
  d.version, d.class, d.flags = rshift(d:u8(0), 4), band(d:u8(0), 15), d:u8(1)
  d.reserved, d.incarnation = d:u16(2), d:u32(4)
end

local function verdict_of(d)
  if d.faults[1] then return d.faults[1].counter end
  return d.cut and "capture_cut" or "accepted"
end

-- All that one datagram says. `raw` are the bytes that were captured, of `reported` on the wire.
-- `options.group`: its destination is a group; `options.crc` is false where CRCs shall not be checked.
local function parse(raw, reported, options)
  local d = new_datagram(raw, reported)
  d.group = options.group
  d.limit = d.reported
  if d.reported < PREFIX + TRAILER then
    d:fault("drop_truncated", string.format("%d bytes, and no datagram has fewer than 12", d.reported))
  elseif d:has(0, PREFIX) then
    d.limit = d.reported - TRAILER
    parse_prefix(d)
    if check_prefix(d) then
      check_crc(d, options.crc ~= false)
      PARSERS[d.class](d)
      for _, item in ipairs(d.crc_items) do d.items[#d.items + 1] = item end
    end
  end
  d.verdict = verdict_of(d)
  return d
end

-- Whether something that came over UDP is a datagram of this format. The CRC decides: a chance of one in
-- 2^32 remains that it is something else.
local function recognise(raw, reported)
  if #raw < reported or #raw < PREFIX + TRAILER then return false end
  local first, flags, r1, r2 = string.byte(raw, 1, 4)
  if rshift(first, 4) ~= VERSION or band(first, 15) > CONTROL or flags > 3 or r1 ~= 0 or r2 ~= 0 then
    return false
  end
  local a, b, c, e = string.byte(raw, #raw - 3, #raw)
  return ((e * 0x100 + c) * 0x100 + b) * 0x100 + a == crc32c(raw, #raw - TRAILER)
end

-- The tracker -----------------------------------------------------------------------------------------

-- A table of at most `limit` entries: a new one pushes out the oldest.
local Bounded = {}
Bounded.__index = Bounded

local function bounded(limit, on_remove)
  return setmetatable({limit = math.max(limit, 1), on_remove = on_remove, map = {}, order = {}, first = 1,
                       last = 0}, Bounded)
end

function Bounded:get(key)
  local entry = self.map[key]
  return entry and entry.value
end

function Bounded:remove_oldest()
  local entry = self.order[self.first]
  self.order[self.first] = nil
  self.first = self.first + 1
  if self.map[entry.key] == entry then self.map[entry.key] = nil end
  if self.on_remove then self.on_remove(entry.value) end
end

function Bounded:put(key, value)
  local entry = {key = key, value = value}
  self.last = self.last + 1
  self.order[self.last], self.map[key] = entry, entry
  if self.last - self.first + 1 > self.limit then self:remove_oldest() end
  return value
end

-- A message under reassembly, or the answer to a Read Request: which bytes came (`ranges`, in order, each
-- {begin, end}), and what they are (`pieces`), as long as there is room.
local MOST_RANGES = 256  -- as a receiver has it
local MOST_FRAMES = 1000  -- of a message that are listed
local PIECE_BYTES = 128  -- that Lua needs for a piece besides its payload

local function new_message(frame, title)
  return {title = title, first_frame = frame, last_frame = frame, frames = {}, ranges = {}, pieces = {}, kept = 0,
          bytes = 0}
end

-- Where a range of bytes stands among those that came: "new", "duplicate", "overlap", or "full"; and the
-- index before which it belongs.
local function place_of(message, from, to)
  local ranges, index = message.ranges, #message.ranges + 1
  while index > 1 and ranges[index - 1][1] >= to and to > from do index = index - 1 end
  local before = ranges[index - 1]
  if not before or before[2] <= from then
    local joins = (before and before[2] == from) or (ranges[index] and ranges[index][1] == to)
    if #ranges >= MOST_RANGES and not joins then return "full" end
    return "new", index
  end
  if before[1] <= from and before[2] >= to then return "duplicate" end
  return "overlap"
end

local function add_range(message, index, from, to)
  local ranges = message.ranges
  local before, after = ranges[index - 1], ranges[index]
  if before and before[2] == from then
    before[2] = to
    if after and after[1] == to then
      before[2] = after[2]
      table.remove(ranges, index)
    end
  elseif after and after[1] == to then
    after[1] = from
  else
    table.insert(ranges, index, {from, to})
  end
end

-- "3-7, 9-11": the bytes that are missing before `ends`.
local function missing_text(message, ends)
  local texts, at = {}, 0
  for _, range in ipairs(message.ranges) do
    if range[1] > at then texts[#texts + 1] = string.format("%d-%d", at, range[1] - 1) end
    at = math.max(at, range[2])
    if #texts == 8 then return table.concat(texts, ", ") .. ", ..." end
  end
  if ends and at < ends then texts[#texts + 1] = string.format("%d-%d", at, ends - 1) end
  return table.concat(texts, ", ")
end

local Tracker = {}
Tracker.__index = Tracker

-- `limits.entries` bounds each table, `limits.frames` the notes that are kept for frames, and
-- `limits.bytes` the payload that is kept for reassembly.
local function new_tracker(limits)
  local self = setmetatable({limits = limits, kept = 0}, Tracker)
  local function drop_pieces(message) self:release(message) end
  local function forget_number(entry)
    entry.gone = true
    local waiting = entry.direction.waiting
    while waiting[waiting.first] and waiting[waiting.first].gone do
      waiting[waiting.first] = nil
      waiting.first = waiting.first + 1
    end
  end
  self.frames = bounded(limits.frames)
  self.messages = bounded(limits.entries, drop_pieces)
  self.reads = bounded(limits.entries, drop_pieces)
  self.whole = bounded(limits.entries, drop_pieces)
  self.subjects = bounded(limits.entries)
  self.causes = bounded(limits.entries)
  self.cookies = bounded(limits.entries)
  self.spaces = bounded(limits.entries)
  self.directions = bounded(limits.entries)
  self.numbers = bounded(limits.entries, forget_number)
  self.firsts = bounded(limits.entries)
  return self
end

-- Frees the payload that a message holds.
function Tracker:release(message)
  self.kept = self.kept - message.kept
  message.kept, message.pieces, message.data = 0, nil, nil
end

-- Room for payload: the oldest whole messages give up theirs, then the oldest of the others.
function Tracker:make_room(length)
  if length > self.limits.bytes then return false end
  for _, from in ipairs({self.whole, self.messages, self.reads}) do
    while self.kept + length > self.limits.bytes and from.first <= from.last do from:remove_oldest() end
  end
  return self.kept + length <= self.limits.bytes
end

function Tracker:keep(message, from, payload, length)
  if not message.pieces then return end
  local needed = length + PIECE_BYTES
  if #payload < length or not self:make_room(needed) then
    self:release(message)
    return
  end
  if not message.pieces then return end  -- it was the oldest itself
  message.pieces[#message.pieces + 1] = {from = from, payload = payload}
  message.kept = message.kept + needed
  self.kept = self.kept + needed
end

-- Puts the payload of a whole message together.
function Tracker:complete(message, frame)
  message.complete_frame = frame
  if not message.pieces or #message.pieces < 2 then
    self:release(message)
    return
  end
  table.sort(message.pieces, function(a, b) return a.from < b.from end)
  local texts = {}
  for index, piece in ipairs(message.pieces) do texts[index] = piece.payload end
  message.pieces, message.data = {}, table.concat(texts)
  self.whole:put({}, message)
end

local function note(seen, expert, text) seen.notes[#seen.notes + 1] = {expert = expert, text = text} end

-- A segment's bytes: [from, from + length) of a message whose end is known if it is not nil.
function Tracker:add_segment(message, seen, from, length, payload, last)
  message.last_frame = seen.frame
  if #message.frames < MOST_FRAMES then message.frames[#message.frames + 1] = seen.frame end
  if last then message.ends = message.ends or from + length end
  if length > 0 then
    local place, index = place_of(message, from, from + length)
    if place == "duplicate" then note(seen, "duplicate", "these bytes came before") end
    if place == "overlap" then note(seen, "contradiction", "some of these bytes came before, and some did not") end
    if place == "full" then note(seen, "forgotten", "more gaps in one message than are kept track of") end
    if place ~= "new" then return end
    local reached = message.ranges[#message.ranges]
    reached = reached and reached[2] or 0
    if from > reached and not seen.reliable then
      note(seen, "gap", string.format("bytes %d-%d of the message did not come before this", reached, from - 1))
    end
    add_range(message, index, from, from + length)
    message.bytes = message.bytes + length
    self:keep(message, from, payload, length)
  end
  if message.ends and not message.complete_frame and message.bytes == message.ends then
    self:complete(message, seen.frame)
  end
end

-- Sends and Write-Records.

local function message_kind(opcode) return opcode == WRITE_RECORD and "Write-Record" or "Send" end

local function describe(d)
  local s = d.segment
  local base = ""
  if s.opcode == WRITE_RECORD then
    local high, low = sub64(s.to_high, s.to_low, 0, s.mo)
    base = string.format("%x %x %x %x", s.stag, high, low, s.message_length)
  else
    base = string.format("%x", s.word)
  end
  return string.format("%d %d %s %s", s.opcode, d.flags, d.immediate or "", base)
end

-- MSNs that this capture does not have between two messages of a queue pair. Those of RD go by their
-- sequence instead.
local FARTHEST_MSN = 1024  -- beyond, the queue pair started anew

function Tracker:check_msn(seen, kind, msn)
  local key = seen.source .. " " .. kind
  local space = self.spaces:get(key) or self.spaces:put(key, {})
  local step = space.newest and serial_distance(msn, space.newest)
  if step and step > 1 and step <= FARTHEST_MSN then
    note(seen, "msn_gap", string.format("%d %s of this source before this one %s not in the capture: lost, late, " ..
         "or sent elsewhere", step - 1, kind .. (step > 2 and "s" or ""), step > 2 and "are" or "is"))
  end
  if not step or step > 0 or step < -FARTHEST_MSN then space.newest = msn end
end

function Tracker:see_message(d, seen)
  local s, kind = d.segment, message_kind(d.segment.opcode)
  local key = string.format("%s %s %d", seen.flow, kind, s.msn)
  local message = self.messages:get(key)
  if not message then
    message = self.messages:put(key, new_message(seen.frame, kind))
    message.description = describe(d)
    self.subjects:put(string.format("%s %s %d", seen.path, kind, s.msn), seen.frame)
    if d.class == UD then self:check_msn(seen, kind, s.msn) end
  elseif message.description ~= describe(d) then
    note(seen, "contradiction", "the segments of one message describe it in different ways")
  end
  seen.message = message
  if s.opcode == WRITE_RECORD then message.ends = s.message_length end
  self:add_segment(message, seen, s.mo, s.payload_length, s.payload, s.last)
end

-- Reads: a response names its request by sink STag and TO.

function Tracker:see_read_request(d, seen)
  local s = d.segment
  local key = string.format("%s %d", seen.path, s.sink_stag)
  local read = self.reads:get(key)
  self.causes:put(seen.path .. s.sink_bytes, seen.frame)
  self.subjects:put(string.format("%s request %d %d", seen.path, s.msn, s.word), seen.frame)
  if read and read.sink_high == s.sink_high and read.sink_low == s.sink_low and read.size == s.size then
    seen.message, seen.again = read, true
    if read.bytes == 0 then  -- the one before was challenged, or lost
      read.request_frame, read.request_time, read.last_frame = seen.frame, seen.time, seen.frame
    end
    return
  end
  read = self.reads:put(key, new_message(seen.frame, "Read"))
  read.sink_high, read.sink_low, read.size, read.ends = s.sink_high, s.sink_low, s.size, s.size
  read.request_frame, read.request_time = seen.frame, seen.time
  seen.message = read
  if d.class == UD then self:check_msn(seen, "Read Request", s.msn) end
end

function Tracker:see_read_response(d, seen)
  local s = d.segment
  local read = self.reads:get(string.format("%s %d", seen.reverse, s.stag))
  if not read then
    note(seen, "unmatched", "no Read Request in this capture has this sink STag")
    return
  end
  local high, low = sub64(s.to_high, s.to_low, read.sink_high, read.sink_low)
  if high ~= 0 or low + s.payload_length > read.size then
    note(seen, "unmatched", "these bytes are not among those that the Read Request asked for")
    return
  end
  if s.last ~= (low + s.payload_length == read.size) then
    note(seen, "contradiction", "L is not where the size of the Read Request says")
  end
  seen.message, seen.request_frame, seen.request_time = read, read.request_frame, read.request_time
  read.response_frame = read.response_frame or seen.frame
  self:add_segment(read, seen, low, s.payload_length, s.payload, s.last and low + s.payload_length == read.size)
end

function Tracker:see_segment(d, seen)
  if not d.segment.complete then return end
  if d.segment.opcode == READ_REQUEST then
    self:see_read_request(d, seen)
  elseif d.segment.opcode == READ_RESPONSE then
    self:see_read_response(d, seen)
  else
    self:see_message(d, seen)
  end
end

-- Control messages.

local NO_COOKIE = string.rep("\0", 16)

function Tracker:see_control(d, seen)
  if d.control == CHALLENGE and d.nonce then
    seen.about = self.causes:get(seen.reverse .. d.nonce)
    self.cookies:put(seen.reverse .. d.cookie, seen.frame)
    if not seen.about then note(seen, "unmatched", "nothing in this capture can have caused this Challenge") end
  elseif d.control == ECHO and d.cookie then
    seen.about = self.cookies:get(seen.path .. d.cookie)
    if not seen.about then note(seen, "unmatched", "no Challenge in this capture has this cookie") end
  elseif d.control == ERROR and d.about then
    seen.about = self:subject_of(d.about, seen)
  end
end

-- The frame of the segment that an Error is about.
function Tracker:subject_of(header, seen)
  if header.opcode == READ_REQUEST then
    return self.subjects:get(string.format("%s request %d %d", seen.reverse, header.msn, header.word))
  elseif header.msn and OPCODES[header.opcode] then
    return self.subjects:get(string.format("%s %s %d", seen.reverse, message_kind(header.opcode), header.msn))
  end
end

-- RD: numbers, and what acknowledges them.

function Tracker:first_of(sender, sender_epoch, receiver, receiver_epoch)
  local key = string.format("%x %x %x %x", sender, sender_epoch, receiver, receiver_epoch)
  return self.firsts:get(key) or
         self.firsts:put(key, first_number(sender, sender_epoch, receiver, receiver_epoch))
end

-- One direction of an association, named by both ends. A reset does not tell the incarnation that its sender
-- had, so the receiver's is no part of the key.
local function direction_key(path, sender, sender_epoch, receiver_epoch)
  return string.format("%s %x %x %x", path, sender, sender_epoch, receiver_epoch)
end

function Tracker:direction(path, sender, sender_epoch, receiver, receiver_epoch)
  local key = direction_key(path, sender, sender_epoch, receiver_epoch)
  local direction = self.directions:get(key) or
                    self.directions:put(key, {key = key, waiting = {first = 1, last = 0}})
  direction.first = self:first_of(sender, sender_epoch, receiver, receiver_epoch)
  return direction
end

-- Into the numbers that wait for an acknowledgement, which are nearly in order.
local function enqueue(waiting, entry)
  local at = waiting.last + 1
  while at > waiting.first and at > waiting.last - 64 and waiting[at - 1] and
        serial_distance(waiting[at - 1].number, entry.number) > 0 do
    waiting[at] = waiting[at - 1]
    at = at - 1
  end
  waiting[at] = entry
  waiting.last = waiting.last + 1
end

-- Data, a skip or a failure with its number.
function Tracker:see_number(d, seen, own)
  local number = d.rd.sequence
  local key = string.format("%s %d", own.key, number)
  local entry = self.numbers:get(key)
  if entry then
    seen.number = entry
    seen.sent_before = entry.frame
    note(seen, "sent_again", string.format("sent before, in frame %d", entry.frame))
    return
  end
  entry = {frame = seen.frame, number = number, direction = own}
  seen.number = entry
  local step = serial_distance(number, own.newest or (own.first - 1) % TWO_32)
  if step > 1 and own.newest then
    note(seen, "sequence_gap", string.format("%d of the sequence before this one did not come before it", step - 1))
  end
  if step > 0 or not own.newest then own.newest = number end
  enqueue(own.waiting, entry)
  self.numbers:put(key, entry)
end

function Tracker:see_acknowledged(d, seen, other)
  local acknowledged, waiting = d.rd.acknowledged, other.waiting
  local newly = 0
  while waiting.first <= waiting.last do
    local entry = waiting[waiting.first]
    if entry and serial_distance(entry.number, acknowledged) > 0 then break end
    if entry and not entry.gone then
      entry.acknowledged_in = seen.frame
      newly = newly + 1
    end
    waiting[waiting.first] = nil
    waiting.first = waiting.first + 1
  end
  seen.newly = newly
  local last = self.numbers:get(string.format("%s %d", other.key, acknowledged))
  seen.acknowledged_frame = last and last.frame
  self:see_map(d, seen, other)
end

function Tracker:see_map(d, seen, other)
  local came = d.rd.came
  if not came or #came == 0 then return end
  for _, distance in ipairs(came) do
    local entry = self.numbers:get(string.format("%s %d", other.key, (d.rd.acknowledged + distance) % TWO_32))
    if entry and not entry.shown_in then entry.shown_in = seen.frame end
  end
  local missing = came[#came] - #came
  note(seen, "map_gap", string.format("of the %d after what is acknowledged, %d came early and %d are missing",
                                      came[#came], #came, missing))
end

-- Numbers counted from the first of their direction, which has 1. A refusal names one of the peer's.
function Tracker:see_names(d, seen, own, other)
  local rd = d.rd
  if rd.kind == REFUSAL then
    self:see_peer_number(rd, seen, other)
  elseif rd.kind ~= ACKNOWLEDGEMENT then
    seen.relative = (rd.sequence - own.first + 1) % TWO_32
  end
  seen.relative_acknowledged = (rd.acknowledged - other.first + 1) % TWO_32
end

function Tracker:see_peer_number(rd, seen, other)
  local named = self.numbers:get(string.format("%s %d", other.key, rd.sequence))
  seen.about = named and named.frame
  seen.relative = (rd.sequence - other.first + 1) % TWO_32
end

function Tracker:see_open(d, seen)
  self.causes:put(seen.path .. d.nonce, seen.frame)
  if d.cookie ~= NO_COOKIE then seen.about = self.cookies:get(seen.path .. d.cookie) end
end

-- A reset names the datagram that it answers.
function Tracker:see_reset(d, seen)
  local rd = d.rd
  local other = self.directions:get(direction_key(seen.reverse, rd.peer_incarnation, rd.peer_epoch, rd.epoch))
  if other then self:see_peer_number(rd, seen, other) end
  note(seen, "reset", "the association is not there, or no longer")
end

function Tracker:see_reliable(d, seen)
  local rd = d.rd
  if rd.kind == OPEN then return self:see_open(d, seen) end
  if rd.kind == RESET then return self:see_reset(d, seen) end
  local own = self:direction(seen.path, d.incarnation, rd.epoch, rd.peer_incarnation, rd.peer_epoch)
  local other = self:direction(seen.reverse, rd.peer_incarnation, rd.peer_epoch, d.incarnation, rd.epoch)
  self:see_names(d, seen, own, other)
  if rd.kind == DATA or rd.kind == SKIP or rd.kind == FAILURE then self:see_number(d, seen, own) end
  self:see_acknowledged(d, seen, other)
  if rd.kind == DATA and d.segment then self:see_segment(d, seen) end
end

-- What is known of a frame besides its own bytes. A frame is looked at once, in the order of the capture:
-- Wireshark shows frames again, in any order. `from` and `to` are addresses with ports, as texts.
function Tracker:see(frame, time, from, to, d)
  local seen = self.frames:get(frame)
  if seen then return seen end
  seen = self.frames:put(frame, {frame = frame, time = time, source = from, path = from .. ">" .. to,
                                 reverse = to .. ">" .. from, notes = {}, reliable = d.class == RD})
  if d.faults[1] or not d.incarnation then return seen end
  seen.flow = string.format("%s %x %x", seen.path, d.incarnation, d.rd and d.rd.epoch or 0)
  if d.class == RD then
    if d.rd and (d.rd.kind ~= OPEN or d.nonce) then self:see_reliable(d, seen) end
  elseif d.class == CONTROL then
    self:see_control(d, seen)
  elseif d.segment then
    self:see_segment(d, seen)
  end
  return seen
end

-- Notes on what a whole capture shows, and its beginning does not.
local function late_notes(seen)
  local notes, message = {}, seen.message
  if not message or message.complete_frame then return notes end
  if message.request_frame == seen.frame and not message.response_frame then
    notes[1] = {expert = "unanswered", text = "no Read Response in this capture answers this"}
  elseif message.last_frame == seen.frame and not seen.again then
    notes[1] = {expert = "incomplete", text = string.format("this is the last of the message, and missing are %s",
                message.ends and "the bytes " .. missing_text(message, message.ends) or
                "its end" .. (#message.ranges > 1 and ", and the bytes " .. missing_text(message) or ""))}
  end
  return notes
end

-- One line about a datagram, for the column "Info" -----------------------------------------------------

local function segment_text(d)
  local s = d.segment
  local rules = OPCODES[s.opcode]
  local name = rules and rules.name or ("opcode " .. s.opcode)
  if not s.complete then return name end
  if s.opcode == READ_REQUEST then
    return string.format("%s MSN=%d STag=0x%08x Size=%d Sink=0x%08x", name, s.msn, s.source_stag, s.size, s.sink_stag)
  elseif s.opcode == READ_RESPONSE then
    return string.format("%s Sink=0x%08x TO=0x%08x%08x Len=%d%s", name, s.stag, s.to_high, s.to_low,
                         s.payload_length, s.last and " L" or "")
  elseif s.opcode == WRITE_RECORD then
    return string.format("%s MSN=%d MO=%d Len=%d of %d STag=0x%08x%s", name, s.msn, s.mo, s.payload_length,
                         s.message_length, s.stag, s.last and " L" or "")
  end
  return string.format("%s MSN=%d MO=%d Len=%d%s", name, s.msn, s.mo, s.payload_length, s.last and " L" or "")
end

local function reliable_text(d, seen)
  local rd = d.rd
  local kind = KINDS[rd.kind]
  local texts = {kind and kind.name or ("kind " .. rd.kind)}
  if seen.relative then texts[#texts + 1] = "Seq=" .. seen.relative end
  if seen.relative_acknowledged then texts[#texts + 1] = "Ack=" .. seen.relative_acknowledged end
  texts[#texts + 1] = "Win=" .. rd.window
  if rd.came and #rd.came > 0 then texts[#texts + 1] = "Early=" .. #rd.came end
  if rd.skip_kind then texts[#texts + 1] = "of " .. (SKIPPED[rd.skip_kind] or "?") .. " " .. rd.skip_number end
  if d.code then texts[#texts + 1] = code_text(d.code) end
  if d.segment then texts[#texts + 1] = segment_text(d) end
  return table.concat(texts, " ")
end

local function control_text(d)
  local name = CONTROL_TYPES[d.control] or ("control message " .. d.control)
  return d.code and name .. ": " .. code_text(d.code) or name
end

local function info_text(d, seen)
  local fault = d.faults[1] and "[" .. d.faults[1].counter .. "] " or ""
  if d.rd then return fault .. reliable_text(d, seen) end
  if d.control then return fault .. control_text(d) end
  if d.segment then return fault .. segment_text(d) end
  return fault == "" and "datagram" or fault
end

local logic = {bits = bits, crc32c = crc32c, siphash = siphash, first_number = first_number, parse = parse,
               recognise = recognise, new_tracker = new_tracker, late_notes = late_notes, info_text = info_text,
               serial_distance = serial_distance, add64 = add64, sub64 = sub64}

if not Proto then return logic end

-- In Wireshark ----------------------------------------------------------------------------------------

local diwarp = Proto("diwarp", "diwarp datagrams")

local F = {}  -- fields by the names that the parser uses

local function field(name, make, ...) F[name] = make("diwarp." .. name, ...) end

local HEX, DEC, BOTH = base.HEX, base.DEC, base.DEC_HEX
local OPCODE_NAMES, KIND_NAMES = {}, {}
for opcode, rules in pairs(OPCODES) do OPCODE_NAMES[opcode] = rules.name end
for kind, rules in pairs(KINDS) do KIND_NAMES[kind] = rules.name end

field("version", ProtoField.uint8, "Version", DEC, nil, 0xF0)
field("class", ProtoField.uint8, "Class", DEC, {[0] = "UD", [1] = "RD", [2] = "control"}, 0x0F)
field("flags", ProtoField.uint8, "Flags", HEX)
field("flags.immediate", ProtoField.bool, "Immediate data", 8, nil, 0x01)
field("flags.solicited", ProtoField.bool, "Solicited", 8, nil, 0x02)
field("flags.reserved", ProtoField.uint8, "Reserved", HEX, nil, 0xFC)
field("reserved", ProtoField.uint16, "Reserved", HEX)
field("incarnation", ProtoField.uint32, "Incarnation", HEX)
field("immediate", ProtoField.uint64, "Immediate data", HEX)
field("payload", ProtoField.bytes, "Payload")
field("payload_length", ProtoField.uint32, "Payload length", DEC)
field("crc", ProtoField.uint32, "CRC", HEX)
field("crc.status", ProtoField.uint8, "CRC status", DEC, {[0] = "bad", [1] = "good", [2] = "unchecked"})
field("crc.right", ProtoField.uint32, "Right CRC", HEX)
field("verdict", ProtoField.string, "Verdict")

for prefix, whose in pairs({["ddp."] = "", ["error.ddp."] = ""}) do
  field(prefix .. "tagged", ProtoField.bool, whose .. "T, tagged", 8, nil, 0x80)
  field(prefix .. "last", ProtoField.bool, whose .. "L, last", 8, nil, 0x40)
  field(prefix .. "reserved", ProtoField.uint8, whose .. "Reserved", HEX, nil, 0x3C)
  field(prefix .. "version", ProtoField.uint8, whose .. "DDP version", DEC, nil, 0x03)
  field(prefix .. "rdmap_version", ProtoField.uint8, whose .. "RDMAP version", DEC, nil, 0xC0)
  field(prefix .. "rdmap_reserved", ProtoField.uint8, whose .. "Reserved", HEX, nil, 0x30)
  field(prefix .. "opcode", ProtoField.uint8, whose .. "Opcode", DEC, OPCODE_NAMES, 0x0F)
  field(prefix .. "word", ProtoField.uint32, whose .. "Word", HEX)
  field(prefix .. "q_key", ProtoField.uint32, whose .. "Q_Key", HEX)
  field(prefix .. "invalidate_stag", ProtoField.uint32, whose .. "STag to invalidate", HEX)
  field(prefix .. "nonce", ProtoField.uint32, whose .. "Nonce", HEX)
  field(prefix .. "qn", ProtoField.uint32, whose .. "Queue number", DEC)
  field(prefix .. "msn", ProtoField.uint32, whose .. "MSN", DEC)
  field(prefix .. "mo", ProtoField.uint32, whose .. "Message offset", DEC)
  field(prefix .. "stag", ProtoField.uint32, whose .. "STag", HEX)
  field(prefix .. "to", ProtoField.uint64, whose .. "Tagged offset", HEX)
  field(prefix .. "message_length", ProtoField.uint32, whose .. "Message length", DEC)
  field(prefix .. "sink_stag", ProtoField.uint32, whose .. "Data Sink STag", HEX)
  field(prefix .. "sink_to", ProtoField.uint64, whose .. "Data Sink TO", HEX)
  field(prefix .. "read_size", ProtoField.uint32, whose .. "RDMA Read Message Size", DEC)
  field(prefix .. "source_stag", ProtoField.uint32, whose .. "Data Source STag", HEX)
  field(prefix .. "source_to", ProtoField.uint64, whose .. "Data Source TO", HEX)
end

field("control.type", ProtoField.uint8, "Type", DEC, CONTROL_TYPES)
field("control.reserved", ProtoField.uint24, "Reserved", HEX)
field("control.nonce", ProtoField.uint64, "Nonce", HEX)
field("control.cookie", ProtoField.bytes, "Cookie")
field("error.layer", ProtoField.uint8, "Layer", DEC, LAYERS, 0xF0)
field("error.type", ProtoField.uint8, "Error type", DEC, nil, 0x0F)
field("error.code", ProtoField.uint8, "Error code", DEC)
field("error.m", ProtoField.bool, "M, the DDP segment length is there", 8, nil, 0x80)
field("error.d", ProtoField.bool, "D, the DDP header is there", 8, nil, 0x40)
field("error.r", ProtoField.bool, "R, what stands behind the DDP header is there", 8, nil, 0x20)
field("error.reserved", ProtoField.uint16, "Reserved", HEX, nil, 0x1FFF)
field("error.segment_length", ProtoField.uint16, "DDP segment length", DEC)

field("rd.kind", ProtoField.uint8, "Kind", DEC, KIND_NAMES)
field("rd.flags", ProtoField.uint8, "Flags", HEX)
field("rd.flags.broken", ProtoField.bool, "Broken", 8, nil, 0x01)
field("rd.flags.remembers", ProtoField.bool, "Remembers", 8, nil, 0x02)
field("rd.flags.waits", ProtoField.bool, "Waits", 8, nil, 0x04)
field("rd.flags.reserved", ProtoField.uint8, "Reserved", HEX, nil, 0xF8)
field("rd.window", ProtoField.uint16, "Window", DEC)
field("rd.epoch", ProtoField.uint32, "Epoch", HEX)
field("rd.peer_epoch", ProtoField.uint32, "Peer epoch", HEX)
field("rd.peer_incarnation", ProtoField.uint32, "Peer incarnation", HEX)
field("rd.sequence", ProtoField.uint32, "Sequence", BOTH)
field("rd.acknowledged", ProtoField.uint32, "Acknowledged", BOTH)
field("rd.map", ProtoField.uint64, "Map of what came early", HEX)
field("rd.skip.kind", ProtoField.uint8, "Kind of message", DEC, SKIPPED)
field("rd.skip.reserved", ProtoField.uint24, "Reserved", HEX)
field("rd.skip.number", ProtoField.uint32, "MSN or sink STag", BOTH)
field("rd.failure.sink_stag", ProtoField.uint32, "Sink STag", HEX)
field("rd.code.layer", ProtoField.uint8, "Layer", DEC, LAYERS, 0xF0)
field("rd.code.type", ProtoField.uint8, "Error type", DEC, nil, 0x0F)
field("rd.code.code", ProtoField.uint8, "Error code", DEC)
field("rd.code.rest", ProtoField.uint16, "Not looked at", HEX)
field("rd.nonce", ProtoField.uint64, "Nonce", HEX)
field("rd.cookie", ProtoField.bytes, "Cookie")
field("rd.relative", ProtoField.uint32, "Sequence, from 1", DEC)
field("rd.relative_acknowledged", ProtoField.uint32, "Acknowledged, from 1", DEC)
field("rd.early", ProtoField.uint32, "Came early, from 1", DEC)
field("rd.newly", ProtoField.uint32, "Newly acknowledged", DEC)

-- Links to other frames.
local REQUEST, RESPONSE, ACK, NONE = frametype.REQUEST, frametype.RESPONSE, frametype.ACK, frametype.NONE
field("rd.acknowledged_frame", ProtoField.framenum, "Acknowledges up to", base.NONE, ACK)
field("rd.acknowledged_in", ProtoField.framenum, "Acknowledged in", base.NONE, ACK)
field("rd.shown_in", ProtoField.framenum, "First shown in a map in", base.NONE, ACK)
field("rd.sent_before", ProtoField.framenum, "Sent before in", base.NONE, frametype.RETRANS_PREV)
field("message.first_frame", ProtoField.framenum, "First segment in", base.NONE, NONE)
field("message.complete_frame", ProtoField.framenum, "Whole in", base.NONE, NONE)
field("message.frame", ProtoField.framenum, "Segment in", base.NONE, NONE)
field("message.length", ProtoField.uint32, "Length of the message", DEC)
field("message.data", ProtoField.bytes, "Reassembled message")
field("read.request_frame", ProtoField.framenum, "Read Request in", base.NONE, REQUEST)
field("read.response_frame", ProtoField.framenum, "First Read Response in", base.NONE, RESPONSE)
field("read.time", ProtoField.double, "Seconds since the Read Request")
field("about_frame", ProtoField.framenum, "About", base.NONE, REQUEST)

diwarp.fields = F

-- Expert notes: a field for each reason to drop, named like the counter, and one for each observation.
local E = {}
local GROUPS = {drop_crc = expert.group.CHECKSUM, drop_truncated = expert.group.MALFORMED}
for counter, text in pairs(DROPS) do
  E[counter] = ProtoExpert.new("diwarp." .. counter, text, GROUPS[counter] or expert.group.PROTOCOL,
                               expert.severity.ERROR)
end
local SEQUENCE, PROTOCOL = expert.group.SEQUENCE, expert.group.PROTOCOL
local CHAT, NOTE, WARN = expert.severity.CHAT, expert.severity.NOTE, expert.severity.WARN
for name, of in pairs({
  gap = {"A gap in a message", SEQUENCE, NOTE},
  msn_gap = {"A gap between messages", SEQUENCE, NOTE},
  sequence_gap = {"A gap in the sequence", SEQUENCE, NOTE},
  map_gap = {"The receiver misses datagrams", SEQUENCE, NOTE},
  sent_again = {"Sent again", SEQUENCE, NOTE},
  duplicate = {"The bytes came before", SEQUENCE, NOTE},
  incomplete = {"The message is not whole in this capture", SEQUENCE, NOTE},
  unanswered = {"A Read Request without an answer", SEQUENCE, NOTE},
  unmatched = {"What this answers is not in this capture", SEQUENCE, NOTE},
  contradiction = {"The datagrams contradict each other", SEQUENCE, WARN},
  forgotten = {"More than is kept track of", PROTOCOL, NOTE},
  reset = {"A reset", SEQUENCE, NOTE},
  reported = {"The peer reports an error", expert.group.RESPONSE_CODE, WARN},
  waits = {"A datagram waits for the application", SEQUENCE, CHAT},
  zero_incarnation = {"The incarnation is 0", PROTOCOL, WARN},
  capture_cut = {"The capture has a part of the datagram", PROTOCOL, NOTE},
}) do
  E[name] = ProtoExpert.new("diwarp." .. name, of[1], of[2], of[3])
end
diwarp.experts = E

diwarp.prefs.ports = Pref.range("UDP ports", "", "Ports whose datagrams are diwarp's, whatever their bytes; " ..
                                "of others those whose bytes and CRC are right are found", 65535)
diwarp.prefs.check_crc = Pref.bool("Check CRCs", true, "Compute the CRC of each datagram")
diwarp.prefs.heuristic = Pref.bool("Find datagrams on any port", true,
                                   "Take what comes over UDP for diwarp's if prefix and CRC are right")
diwarp.prefs.reassemble = Pref.bool("Connect datagrams", true,
                                    "Reassemble messages, match Reads and acknowledgements, note gaps")
diwarp.prefs.entries = Pref.uint("Most entries of a table", 65536,
                                 "Open messages, Reads, and numbers that are kept; the oldest are forgotten first")
diwarp.prefs.megabytes = Pref.uint("Megabytes for reassembly", 64, "Payload that is kept; the oldest is given up first")
diwarp.prefs.frames = Pref.uint("Most frames with notes", 1000000,
                                "Frames for which links and notes are kept; the oldest are forgotten first")

local tracker

function diwarp.init()
  local prefs = diwarp.prefs
  tracker = new_tracker({entries = prefs.entries, frames = prefs.frames, bytes = prefs.megabytes * 0x100000})
end

local function is_group(address)
  local first = tonumber(string.match(address, "^(%d+)%.%d+%.%d+%.%d+$"))
  if first then return (first >= 224 and first <= 239) or address == "255.255.255.255" end
  return string.match(address, "^[fF][fF]%x%x:") ~= nil
end

local function add_items(tree, tvb, items)
  for _, item in ipairs(items) do
    if item.items then
      local there = math.min(item.length, tvb:len() - item.offset)
      if there > 0 then add_items(tree:add(tvb(item.offset, there), item.title), tvb, item.items) end
    elseif item.value then
      tree:add(F[item.field], item.value):set_generated()
    elseif item.little then
      tree:add_le(F[item.field], tvb(item.offset, item.length))
    else
      tree:add(F[item.field], tvb(item.offset, item.length))
    end
  end
end

local function add_generated(tree, name, value)
  if value ~= nil then tree:add(F[name], value):set_generated() end
end

local function add_reassembled(tree, message)
  local data = message.data
  if not data or #data == 0 then return end
  local tvb = ByteArray.new(data, true):tvb("Reassembled " .. message.title)
  tree:add(F["message.data"], tvb(0, #data))
end

local function add_message(tree, seen)
  local message = seen.message
  if not message then return end
  local branch = tree:add(message.title .. (message.complete_frame and "" or ", not whole")):set_generated()
  add_generated(branch, "message.first_frame", message.first_frame)
  add_generated(branch, "message.length", message.ends)
  add_generated(branch, "message.complete_frame", message.complete_frame)
  if message.complete_frame ~= seen.frame then return end
  for _, frame in ipairs(message.frames) do add_generated(branch, "message.frame", frame) end
  add_reassembled(branch, message)
end

local function add_links(tree, d, seen)
  add_generated(tree, "about_frame", seen.about)
  add_generated(tree, "read.request_frame", seen.request_frame)
  if seen.request_time then add_generated(tree, "read.time", seen.time - seen.request_time) end
  if seen.message and seen.message.request_frame == seen.frame then
    add_generated(tree, "read.response_frame", seen.message.response_frame)
  end
  add_generated(tree, "rd.relative", seen.relative)
  add_generated(tree, "rd.relative_acknowledged", seen.relative_acknowledged)
  for _, distance in ipairs(d.rd and seen.relative_acknowledged and d.rd.came or {}) do
    add_generated(tree, "rd.early", (seen.relative_acknowledged + distance) % TWO_32)
  end
  add_generated(tree, "rd.newly", seen.newly)
  add_generated(tree, "rd.acknowledged_frame", seen.acknowledged_frame)
  add_generated(tree, "rd.sent_before", seen.sent_before)
  if seen.number then
    add_generated(tree, "rd.acknowledged_in", seen.number.acknowledged_in)
    add_generated(tree, "rd.shown_in", seen.number.shown_in)
  end
end

local function add_notes(tree, d, seen, visited)
  for _, fault in ipairs(d.faults) do tree:add_proto_expert_info(E[fault.counter], fault.text) end
  for _, of in ipairs(seen.notes) do tree:add_proto_expert_info(E[of.expert], of.text) end
  if visited then
    for _, of in ipairs(late_notes(seen)) do tree:add_proto_expert_info(E[of.expert], of.text) end
  end
  if d.incarnation == 0 then tree:add_proto_expert_info(E.zero_incarnation, "the incarnation is never 0") end
  if d.code and not d.faults[1] then tree:add_proto_expert_info(E.reported, code_text(d.code)) end
  if d.rd and band(d.rd.flags, 4) ~= 0 and not d.faults[1] then
    tree:add_proto_expert_info(E.waits, "the next datagram came, and waits for the application")
  end
  if d.cut then
    local text = string.format("%d of %d bytes are in the capture", d.captured, d.reported)
    tree:add_proto_expert_info(E.capture_cut, text)
  end
end

-- A tracker that is switched off sees nothing.
local function see(pinfo, d)
  if not diwarp.prefs.reassemble then return {notes = {}} end
  local from = string.format("%s %d", tostring(pinfo.src), pinfo.src_port)
  local to = string.format("%s %d", tostring(pinfo.dst), pinfo.dst_port)
  return tracker:see(pinfo.number, pinfo.rel_ts, from, to, d)
end

local CLASS_NAMES = {[UD] = "diwarp UD", [RD] = "diwarp RD", [CONTROL] = "diwarp control"}

local function raw_of(tvb) return tvb:len() > 0 and tvb:raw(0, tvb:len()) or "" end

function diwarp.dissector(tvb, pinfo, tree)
  if not tracker then diwarp.init() end
  local d = parse(raw_of(tvb), tvb:reported_len(),
                  {group = is_group(tostring(pinfo.dst)), crc = diwarp.prefs.check_crc})
  local seen = see(pinfo, d)
  pinfo.cols.protocol = CLASS_NAMES[d.class] or "diwarp"
  pinfo.cols.info = info_text(d, seen)
  local top = tree:add(diwarp, tvb(), "diwarp datagram")
  add_items(top, tvb, d.items)
  if d.crc_status then add_generated(top, "crc.status", d.crc_status) end
  add_generated(top, "verdict", d.verdict)
  add_links(top, d, seen)
  add_message(top, seen)
  add_notes(top, d, seen, pinfo.visited)
  return tvb:len()
end

diwarp:register_heuristic("udp", function(tvb, pinfo, tree)
  if not diwarp.prefs.heuristic or not recognise(raw_of(tvb), tvb:reported_len()) then return false end
  pinfo.conversation = diwarp  -- so that those of its datagrams that are damaged are shown too
  diwarp.dissector(tvb, pinfo, tree)
  return true
end)

local udp_ports = DissectorTable.get("udp.port")
udp_ports:add_for_decode_as(diwarp)
local registered = ""

function diwarp.prefs_changed()
  if diwarp.prefs.ports ~= registered then
    if registered ~= "" then udp_ports:remove(registered, diwarp) end
    registered = diwarp.prefs.ports
    if registered ~= "" then udp_ports:add(registered, diwarp) end
  end
end

return logic
