//! Sitemaps that are something else, or written by hand.
