# The public headers, all in include/diwarp. The headers that stand here are installed;
# `tests/layers` reads both lists, which hold nothing but names.

# Data: addresses, types, errors, options, requests, completions. Every layer may include these.
set(DIWARP_DATA_HEADERS
  address.h
  attributes.h
  connect_options.h
  connection_event.h
  datagram_options.h
  device_info.h
  device_options.h
  error.h
  export.h
  flags.h
  log.h
  queue_options.h
  reliable_options.h
  sge.h
  stream_options.h
  types.h
  validity_map.h
  version.h)

# Handles: verbs, programs and tests may include these, and no layer below verbs.
set(DIWARP_HANDLE_HEADERS
  completion_queue.h
  connection.h
  connection_manager.h
  detail/handle.h
  device.h
  event_queue.h
  memory.h
  queue_pair.h
  shared_receive_queue.h
  verbs.h)
