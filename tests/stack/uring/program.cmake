# The cases over sockets once more, by devices that use io_uring unless told otherwise.
set(cases_over_uring stack_over_sockets)
if(NOT DIWARP_SANITIZE MATCHES "thread")
  list(APPEND cases_over_uring stack_cases)
endif()
diwarp_test(stack_uring "stack;threaded"
  SOURCES uring/choice_test.cpp uring/reset_test.cpp uring/table.cpp
  LINKS ${cases_over_uring} raw_ip_sockets)
