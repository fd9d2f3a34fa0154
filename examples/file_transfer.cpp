// SPDX-License-Identifier: Apache-2.0
// A file goes to another process over RC, in Sends of 64 KiB and with its CRC32C at the end:
//   file_transfer receive ADDRESS[:PORT] FOLDER     takes one file, and never replaces one
//   file_transfer send ADDRESS:PORT FILE
#include <diwarp/verbs.h>

#include <array>
#include <boost/crc.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <vector>

#include "common.h"
#include "files.h"

using example::check, example::fail, example::next, example::text_of, example::Target;
using Crc32c = boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true>;
constexpr uint64_t kChunk = 64 << 10, kSlots = 8, kMaxSize = uint64_t{1} << 40;

/// An end with memory for some chunks on their way, which the requests use in turn. It needs no
/// flow control: Sends that find no receive wait in the connection (ReceiveNotReady::hold).
struct Party : example::End {
  explicit Party(const diwarp::Address& local)
      : End(diwarp::Device::open(local), diwarp::QpType::rc) {}
  std::byte* slot(uint64_t request) { return &memory[request % kSlots * kChunk]; }
  diwarp::Sge sge(uint64_t request, size_t length = kChunk) const {
    return chunks.sge(request % kSlots * kChunk, length);
  }
  void post_recv(uint64_t request) {
    check(qp.post_recv({.wr_id = request, .sges = sge(request)}));
  }
  std::vector<std::byte> memory = std::vector<std::byte>(kSlots * kChunk);
  diwarp::MemoryRegion chunks{pd, memory};
};

/// What the sender promises: "SIZE NAME".
struct Offer {
  explicit Offer(const std::string& text)
      : size(example::number(text.substr(0, text.find(' ')), kMaxSize)),
        name(text.substr(std::min(text.find(' '), text.size() - 1) + 1)) {}
  uint64_t size;
  std::string name;
};

/// Takes the chunks, and then the checksum of them all.
void take(Party& receiver, Target& target, uint64_t size) {
  Crc32c crc;
  for (uint64_t request = 0, got = 0;; ++request) {
    example::show_progress(got, size);
    const uint32_t length = next(receiver.cq).byte_count;
    const std::byte* chunk = receiver.slot(request);
    if (got == size) {
      if (text_of({chunk, length}) != std::to_string(crc.checksum())) fail("the checksum is wrong");
      return;
    }
    if (length == 0 || length > size - got) fail("the sender sends something else than it offered");
    target.write(chunk, length);
    crc.process_bytes(chunk, length);
    got += length;
    receiver.post_recv(request + kSlots);
  }
}

/// Tells the sender what is wrong, if it is there to be told.
void complain(Party& receiver, std::string_view reason) try {
  example::send_text(receiver, std::string(reason.substr(0, 64)));
  receiver.qp.wait_disconnected(std::chrono::seconds(1));
} catch (const std::exception&) {
  // The reason is told here.
}

void receive(const diwarp::Address& local, const char* folder) {
  if (!std::filesystem::is_directory(folder)) fail(std::string(folder) + " is no folder");
  Party receiver(local.with_port(0));
  diwarp::Listener listener(receiver.device, local.port());
  std::printf("listening at %s\n", listener.address().to_string().c_str());
  std::fflush(stdout);
  auto request = listener.get_request(std::chrono::hours(1));
  if (!request) fail("nobody sent a file");
  std::unique_ptr<Target> target;
  uint64_t size = 0;
  try {
    const Offer offer(text_of(request->private_data()));
    target = std::make_unique<Target>(folder, offer.name);
    size = offer.size;
  } catch (const std::exception& error) {
    request->reject(example::bytes_of(std::string_view(error.what()).substr(0, 500)));
    throw;
  }
  for (uint64_t slot = 0; slot < kSlots; ++slot) receiver.post_recv(slot);
  request->accept(receiver.qp);
  try {
    take(receiver, *target, size);
    target->keep();
  } catch (const std::exception& error) {
    complain(receiver, error.what());
    throw;
  }
  example::send_text(receiver, "taken");
  next(receiver.cq);
  std::printf("%s: %llu bytes\n", target->path.filename().c_str(),
              static_cast<unsigned long long>(size));
  receiver.qp.wait_disconnected(example::kPatience);
}

/// Waits for a completion: the receiver's words, or, of a Send, nothing.
std::string answer_of(Party& sender, std::span<const std::byte> answer) {
  const auto wc = next(sender.cq);
  return wc.opcode == diwarp::WcOpcode::recv ? text_of(answer.first(wc.byte_count)) : "";
}

void send(const diwarp::Address& peer, const std::filesystem::path& path) {
  const example::File file = example::open(path, "rb");
  const uint64_t size = std::filesystem::file_size(path);
  Party sender(diwarp::Address::any(peer.family()));
  std::array<std::byte, 64> answer{};
  diwarp::MemoryRegion in(sender.pd, answer);
  check(sender.qp.post_recv({.sges = in.sge()}));
  const std::string offer = std::to_string(size) + " " + path.filename().string();
  sender.qp.connect(peer, {.private_data = example::bytes_of(offer)});

  std::string words;  // the receiver's, at the end or as soon as something is wrong
  Crc32c crc;
  for (uint64_t request = 0, sent = 0; sent < size; ++request) {
    // The slot's Send before is complete: they complete in order.
    if (request >= kSlots && !(words = answer_of(sender, answer)).empty()) break;
    const size_t length = std::min(kChunk, size - sent);
    if (std::fread(sender.slot(request), 1, length, file.get()) != length)
      fail(path.string() + " became shorter, or cannot be read");
    crc.process_bytes(sender.slot(request), length);
    check(sender.qp.post_send({.sges = sender.sge(request, length)}));
    example::show_progress(sent += length, size);
  }
  if (words.empty()) example::send_text(sender, std::to_string(crc.checksum()));
  while (words.empty()) words = answer_of(sender, answer);
  if (words != "taken") fail("the receiver says: " + words);
  std::printf("%s was taken\n", path.filename().c_str());
  sender.qp.disconnect();
}

int main(int argc, char** argv) try {
  const std::string role = argc == 4 ? argv[1] : "";
  if (role == "receive")
    receive(diwarp::Address::parse(argv[2]), argv[3]);
  else if (role == "send")
    send(diwarp::Address::parse(argv[2]), argv[3]);
  else
    fail("usage: file_transfer receive ADDRESS[:PORT] FOLDER, or send ADDRESS:PORT FILE");
  example::finish_output();
} catch (const diwarp::RejectedError& error) {
  std::fprintf(stderr, "file_transfer: the receiver says no: %s\n",
               text_of(error.private_data()).c_str());
  return 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "file_transfer: %s\n", error.what());
  return 1;
}
