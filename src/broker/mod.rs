//! The same verbs over a session's Unix socket.
