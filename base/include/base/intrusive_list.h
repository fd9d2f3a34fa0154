// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>

namespace diwarp {

/// Derive from this to be put into an IntrusiveList; `Tag` tells the lists apart that an object can
/// be in at the same time. A node that dies leaves its list.
template <class Tag = void>
class ListNode {
 public:
  ListNode() = default;
  ListNode(const ListNode&) = delete;
  ListNode& operator=(const ListNode&) = delete;
  ~ListNode() { unlink(); }

  bool linked() const { return next_ != this; }

  void unlink() {
    previous_->next_ = next_;
    next_->previous_ = previous_;
    next_ = previous_ = this;
  }

 private:
  template <class, class>
  friend class IntrusiveList;

  void insert_before(ListNode& position) {
    assert(!linked());
    next_ = &position;
    previous_ = position.previous_;
    previous_->next_ = this;
    position.previous_ = this;
  }

  // A circle; alone, a node is its own neighbour. The list's anchor is one of the circle.
  ListNode* next_ = this;
  ListNode* previous_ = this;
};

/// A doubly linked list that owns nothing. T derives from ListNode<Tag>, and need not be known
/// where a list only lives and dies. For one thread.
template <class T, class Tag = void>
class IntrusiveList {
  using Node = ListNode<Tag>;

 public:
  ~IntrusiveList() { clear(); }

  bool empty() const { return !anchor_.linked(); }

  void push_back(T& item) { node(item).insert_before(anchor_); }
  void push_front(T& item) { node(item).insert_before(*anchor_.next_); }

  /// The first, or nullptr.
  T* front() { return item(anchor_.next_); }
  /// The last, or nullptr.
  T* back() { return item(anchor_.previous_); }
  /// The one after `current`, or nullptr.
  T* next(T& current) { return item(node(current).next_); }

  /// Takes out the first and returns it; nullptr when empty.
  T* pop_front() {
    T* first = front();
    if (first != nullptr) node(*first).unlink();
    return first;
  }

  /// `item` must be in this list, or in none.
  void remove(T& item) { node(item).unlink(); }

  void clear() {
    while (!empty()) anchor_.next_->unlink();
  }

 private:
  static Node& node(T& item) { return item; }
  T* item(Node* found) { return found == &anchor_ ? nullptr : static_cast<T*>(found); }

  Node anchor_;
};

}  // namespace diwarp
