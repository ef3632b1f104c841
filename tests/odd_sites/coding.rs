//! Content codings: of pages and of robots.txt.
