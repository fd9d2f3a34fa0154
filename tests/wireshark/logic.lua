-- SPDX-License-Identifier: Apache-2.0
-- The parts of the dissector that need no Wireshark: logic.lua DISSECTOR MODE [FILE]. An error ends it with a
-- status that is not 0.

local dissector, mode, file = arg[1], arg[2], arg[3]

local function hex(high, low) return string.format("%08x%08x", high, low) end

local function check_vectors(logic)
  assert(logic.crc32c(string.rep("\0", 32), 32) == 0x8A9136AA)
  assert(logic.crc32c("123456789", 9) == 0xE3069283)
  assert(logic.crc32c("", 0) == 0)
  local bytes = {}
  for byte = 0, 14 do bytes[#bytes + 1] = string.char(byte) end
  local high, low = logic.siphash(0x07060504, 0x03020100, 0x0F0E0D0C, 0x0B0A0908, table.concat(bytes))
  assert(hex(high, low) == "a129ca6149be45e5")
  assert(logic.first_number(0xA1B2C3D4, 3, 2, 2) == 0x9B2B8096)
  assert(logic.first_number(2, 2, 0xA1B2C3D4, 3) == 0xD7B54DCE)
end

local function check_numbers(logic)
  assert(logic.serial_distance(1, 0xFFFFFFFF) == 2)
  assert(logic.serial_distance(0xFFFFFFFF, 1) == -2)
  assert(logic.serial_distance(0x80000000, 0) == -0x80000000)
  assert(hex(logic.add64(0xFFFFFFFF, 0xFFFFFFFF, 0, 1)) == "0000000000000000")
  assert(select(3, logic.add64(0xFFFFFFFF, 0xFFFFFFFF, 0, 1)) == true)
  assert(select(3, logic.add64(0, 0xFFFFFFFF, 0, 1)) == false)
  assert(hex(logic.sub64(1, 0, 0, 1)) == "00000000ffffffff")
  assert(hex(logic.sub64(0, 0, 0, 1)) == "ffffffffffffffff")
end

-- What Lua 5.2 in Wireshark has besides: a library whose results are signed.
local function with_signed_bits()
  local native = dofile(dissector).bits
  local function signed(operation)
    return function(a, b)
      local value = operation(a % 0x100000000, b % 0x100000000)
      return value >= 0x80000000 and value - 0x100000000 or value
    end
  end
  local shift = function(operation) return function(a, n) return signed(function(x) return operation(x, n) end)(a, 0) end end
  bit = {band = signed(native.band), bxor = signed(native.bxor), bor = signed(native.bor),
         rshift = shift(native.rshift), lshift = shift(native.lshift)}
  bit32, loadstring = nil, function() return nil end  -- no operators
  local logic = dofile(dissector)
  assert(logic.bits.name == "bit", logic.bits.name)
  return logic
end

local function bytes_of(digits)
  return (string.gsub(digits, "%x%x", function(pair) return string.char(tonumber(pair, 16)) end))
end

-- Lines of datagram_views: the verdicts are the decoder's, and the tracker sees all without an error.
local function check_views(logic)
  local tracker = logic.new_tracker({entries = 100, frames = 1000, bytes = 10000})
  local count = 0
  for line in io.lines(file) do
    local digits, verdict = string.match(line, "^%S+\t(%x*)\tverdict=(%S+)")
    local raw = bytes_of(digits)
    local d = logic.parse(raw, #raw, {})
    assert(d.verdict == verdict, string.format("%s: %s, not %s", digits, d.verdict, verdict))
    assert(logic.recognise(raw, #raw) or d.verdict ~= "accepted")
    count = count + 1
    local ends = count % 3 == 0 and {"a 1", "b 2"} or {"b 2", "a 1"}
    local seen = tracker:see(count, count / 1000, ends[1], ends[2], d)
    logic.late_notes(seen)
    logic.info_text(d, seen)
    assert(tracker.kept <= 10000 and tracker.kept >= 0, tracker.kept)
  end
  for name, of in pairs(tracker) do
    if type(of) == "table" and of.order then
      local held = 0
      for _ in pairs(of.order) do held = held + 1 end
      assert(held <= of.limit, name)
    end
  end
  print(count)
end

local logic = mode == "bit" and with_signed_bits() or dofile(dissector)
if mode == "views" then
  check_views(logic)
else
  check_vectors(logic)
  check_numbers(logic)
  print(logic.bits.name)
end
