rc_lat:
    latency  =  72.7 us
