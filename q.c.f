rc_lat:
192.0.2.2: failed to connect
