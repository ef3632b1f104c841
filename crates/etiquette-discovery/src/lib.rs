//! Machine formats of a web site: feeds, sitemaps, APIs and llms.txt, found, ranked and read.
//!
//! The cheapest page is the one not crawled: a feed, a sitemap, an API or llms.txt tells the same at a fraction of the
//! requests. Everything here is pure but for one thin driver: functions take bytes, fields and a time, and return
//! values. None of them panics, and none uses memory or time beyond its documented limits, whatever a server sends.
//!
//! | You have | Module |
//! |---|---|
//! | a site and want to know what it offers | [`Discovery`], or [`plan`] without a service |
//! | a response or a robots.txt and want the sources it names | [`from_link_header`], [`from_html`], [`from_robots`] |
//! | a page and want its links | [`html`] |
//! | a reference and want a URI | [`mod@reference`] |
//! | a sitemap and want its entries | [`sitemap`] |
//! | a feed and want to know when to ask again | [`feed`] |
//! | an llms.txt or an API catalog | [`llms_txt`], [`linkset`] |
//!
//! # Features
//! `feed-rs` reads the entries of feeds (`feed::parse`), with the crate of that name.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod feed;
pub mod html;
pub mod link_header;
pub mod linkset;
pub mod llms_txt;
pub mod plan;
pub mod sitemap;

mod service;
mod source;

pub use etiquette_core::vocabulary::reference;
pub use service::{Discovery, DiscoveryError, FetchSitemapError, fetch_sitemap};
pub use source::{
    Source, SourceGroup, SourceKind, Via, from_html, from_link_header, from_robots, ranked,
};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeDoctests;
