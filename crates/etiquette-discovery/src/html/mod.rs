//! The links of a page, without building its tree.
//!
//! # Flow
//! [`HtmlScanner`] takes the URI of the page after redirects, its `Content-Type` and its bytes, and gives a [`Page`]:
//! the base, the `<link>` elements, the `<a>` and `<area>` elements, and what the page says to robots. The scan uses
//! html5ever's tokenizer, so that comments, scripts, unquoted attributes and character references are what a browser
//! takes them for.
//!
//! # Scope
//! HTML as served: no script runs, so `<noscript>` counts and what scripts would write does not. The content of a
//! `<template>` is no part of the page (unless it is a declarative shadow root) and is passed over. The first `<base>`
//! holds for the whole page, links above it included.
//!
//! # Bounds
//! At most `limit` bytes are read (128 KiB by default: a head that declares its feeds later than that is not known)
//! and at most [`MAX_LINKS`] links kept, 4 MiB of URIs in all. A tag with so many attributes that checking them for
//! duplicates would take longer than a fifth of a second ends the scan. [`Page::is_truncated`] tells.
//!
//! # Non-goals
//! A tree, text, images and other sub-resources, anything that scripts or styles refer to.

mod charset;
mod page;
mod scanner;
mod sink;

pub use page::{Anchor, MAX_LINKS, MetaRobots, Page, PageLink};
pub use scanner::{DEFAULT_LIMIT, HtmlScanner};
