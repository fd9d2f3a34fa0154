// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace diwarp::rnic {

/// A list of elements that are linked by their `next`. It owns none of them; each is in one list at
/// most.
template <class T>
class ForwardList {
 public:
  class Iterator {
   public:
    explicit Iterator(T* at) : at_(at) {}
    T& operator*() const { return *at_; }
    Iterator& operator++() {
      at_ = at_->next;
      return *this;
    }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    T* at_;
  };

  bool empty() const { return first_ == nullptr; }
  /// Null where the list is empty.
  T* front() const { return first_; }
  Iterator begin() const { return Iterator(first_); }
  Iterator end() const { return Iterator(nullptr); }

  void push_back(T& item) {
    item.next = nullptr;
    (first_ == nullptr ? first_ : last_->next) = &item;
    last_ = &item;
  }
  /// `item` must be in the list. Its own `next` stays.
  void remove(T& item) {
    T* before = nullptr;
    for (T* at = first_; at != &item; at = at->next) before = at;
    (before == nullptr ? first_ : before->next) = item.next;
    if (last_ == &item) last_ = before;
  }

 private:
  T* first_ = nullptr;
  T* last_ = nullptr;
};

}  // namespace diwarp::rnic
