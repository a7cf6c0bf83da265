//! The workflow format: read, validate, freeze.
