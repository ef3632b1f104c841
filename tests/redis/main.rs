//! What several processes share, against a real server: `redis-server` or `valkey-server` from the PATH, or the one that
//! `ETIQUETTE_REDIS_SERVER` names, which the tests start themselves on free ports of this machine. Without one each test says
//! so and is skipped.
//!
//! With `REDIS_URL` the tests that touch nothing but keys of their own use that server: the timelines, the histories, robots.txt
//! and responses. The others kill, empty or reconfigure theirs, and always start one.

// What was skipped or counted is said in one line.
#![allow(clippy::print_stdout)]

mod access;
mod cluster;
mod crawl;
mod differential;
mod faults;
mod fleet;
mod large;
mod rows;
mod script;
mod server;
mod stores;
mod traffic;
