//! The programs behind the examples: each example is a thin main over a `run` in here, so that tests call the same.

pub mod axum_service;
pub mod crawl;
pub mod discover;
pub mod feeds;
pub mod fetch;
pub mod gateway;
pub mod hyper_client;
pub mod named;
pub mod reqwest_client;
pub mod resolve;
pub mod robots;
pub mod site;
