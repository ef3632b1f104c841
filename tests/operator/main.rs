//! The promises, end to end: real clients, real sockets, and judged by the log of the site alone.
//!
//! Times are real, so only lower bounds are asserted. What is played here is played once with hyper-util's client and
//! once with reqwest.

mod accept;
mod address;
mod bare;
mod cache;
mod client;
mod crawl;
mod https;
mod identity;
mod machine;
mod pace;
mod pause;
mod robots;
mod signatures;
mod visit;

/// Plays each scenario, an `async fn(HttpClient)`, with both clients at the same time: they wait more than they work.
macro_rules! with_both_clients {
    ($($scenario:ident),+ $(,)?) => {
        mod with_both_clients {
            use crate::client::HttpClient;

            $(
                #[tokio::test]
                async fn $scenario() {
                    let hyper = tokio::spawn(super::$scenario(HttpClient::Hyper));
                    let reqwest = tokio::spawn(super::$scenario(HttpClient::Reqwest));
                    let (hyper, reqwest) = tokio::join!(hyper, reqwest);
                    hyper.expect("with hyper-util's client");
                    reqwest.expect("with reqwest");
                }
            )+
        }
    };
}

use with_both_clients;
