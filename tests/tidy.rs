//! The house keeps its own rules: layers, headers, names, sizes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
