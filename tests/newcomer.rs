//! What somebody meets who has never seen striatum: the first command, the pages, the examples.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests; what a page shows and a test can't type is said on standard error"
)]

#[path = "newcomer/console.rs"]
mod console;
#[path = "newcomer/examples.rs"]
mod examples;
#[path = "newcomer/help.rs"]
mod help;
#[path = "newcomer/pages.rs"]
mod pages;
#[path = "newcomer/quickstart.rs"]
mod quickstart;
#[path = "newcomer/world.rs"]
mod world;
