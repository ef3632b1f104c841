//! The end of a program that would otherwise go on.

/// Ends with Ctrl-C. Without signals there is none to wait for, and it never ends.
pub async fn ctrl_c() {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
}
