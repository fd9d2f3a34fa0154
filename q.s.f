unable to bind to listen port
