//! The programs behind the examples: each example is a thin main over a `run` in here, so that tests call the same.
//!
//! A program has `args` (its command line), `mod` (`run`: what it does) and, where it says much, `report` (what it says).

pub mod axum_service;
pub mod cli;
pub mod crawl;
pub mod discover;
pub mod feeds;
pub mod fetch;
pub mod gateway;
pub mod hyper_client;
pub mod reqwest_client;
pub mod robots;
pub mod site;
