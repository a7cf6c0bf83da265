//! The operating system: processes, files, locks, clock. It does not know the store or any rule.
