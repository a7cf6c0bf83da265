//! One function a verb.
