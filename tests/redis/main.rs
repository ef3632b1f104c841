//! What several processes share, against a real server: `redis-server` or `valkey-server` from the PATH, which the tests
//! start themselves on free ports of this machine. Without one each test says so and is skipped.

// What was skipped or counted is said in one line.
#![allow(clippy::print_stdout)]

mod faults;
mod large;
mod rows;
mod server;
mod stores;
