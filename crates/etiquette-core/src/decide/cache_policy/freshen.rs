//! What an answer without a body says about a stored response.

use http::header::{
    AGE, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, DATE, HeaderMap, HeaderName,
    LAST_MODIFIED,
};

use super::connection::remove_connection_fields;
use super::stored::{Exchange, StoredResponse, http_date};
use super::validators::{Compared, compare};
use super::vary::Selecting;

/// What an answer to our question made of a stored response.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Freshened {
    /// It is still right; these are its new headers and its new age.
    Updated(Box<StoredResponse>),
    /// The answer is about another representation: the stored one is outdated.
    Outdated,
}

impl StoredResponse {
    /// Takes a 304 to our question as news about this response (RFC 9111, 3.2 and 4.3.4).
    ///
    /// A 304 that names another tag or date is about another representation. One that names none is about this one:
    /// it answers the only tag that was ours to ask about, unless `others_asked`: the caller's tags went along.
    #[must_use]
    pub fn freshen(
        &self,
        answer: &HeaderMap,
        selecting: Selecting,
        exchange: &Exchange,
        shared: bool,
        others_asked: bool,
    ) -> Freshened {
        match compare(self.headers(), answer, exchange.received.wall) {
            Compared::Different => return Freshened::Outdated,
            Compared::Unknown if others_asked => return Freshened::Outdated,
            Compared::Same | Compared::Unknown => {}
        }
        self.merged(answer, selecting, exchange, shared)
    }

    /// Takes the answer to a HEAD as news about this response to a GET (RFC 9111, 4.3.5).
    #[must_use]
    pub fn freshen_by_head(
        &self,
        answer: &HeaderMap,
        selecting: Selecting,
        exchange: &Exchange,
        shared: bool,
    ) -> Freshened {
        let other_length = match (
            self.headers().get(CONTENT_LENGTH),
            answer.get(CONTENT_LENGTH),
        ) {
            (Some(stored), Some(new)) => stored != new,
            _ => false,
        };
        let different = compare(self.headers(), answer, exchange.received.wall)
            == Compared::Different
            || differs(self.headers(), answer, &LAST_MODIFIED)
            || other_length;
        if different {
            return Freshened::Outdated;
        }
        self.merged(answer, selecting, exchange, shared)
    }

    fn merged(
        &self,
        answer: &HeaderMap,
        selecting: Selecting,
        exchange: &Exchange,
        shared: bool,
    ) -> Freshened {
        let mut headers = self.updated_fields(answer);
        if !answer.contains_key(DATE) {
            headers.insert(DATE, http_date(exchange.received.wall));
        }
        Freshened::Updated(Box::new(Self::new(
            self.status(),
            self.version(),
            &headers,
            selecting,
            self.extent(),
            exchange,
            shared,
        )))
    }

    /// The stored fields, those that a newer answer has too replaced (RFC 9111, 3.2). What belongs to the stored bytes
    /// stays with them.
    pub(super) fn updated_fields(&self, answer: &HeaderMap) -> HeaderMap {
        let mut news = answer.clone();
        remove_connection_fields(&mut news);
        for kept in [CONTENT_LENGTH, CONTENT_ENCODING, CONTENT_RANGE] {
            news.remove(kept);
        }
        let mut headers = self.headers().clone();
        headers.remove(AGE);
        for name in news.keys() {
            headers.remove(name);
        }
        for (name, value) in &news {
            headers.append(name, value.clone());
        }
        headers
    }
}

/// Whether both have the field and it differs.
fn differs(a: &HeaderMap, b: &HeaderMap, name: &HeaderName) -> bool {
    matches!((a.get(name), b.get(name)), (Some(a), Some(b)) if a != b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::cache_policy::samples::{at, exchange, map, stored};

    #[test]
    fn a_304_updates_fields_and_age_and_leaves_the_bytes_alone() {
        let old = stored(&[
            ("etag", "\"a\""),
            ("x", "old"),
            ("link", "1"),
            ("content-length", "5"),
        ]);
        let answer = |lines| {
            old.freshen(
                &map(lines),
                Selecting::default(),
                &exchange(20, 20),
                true,
                false,
            )
        };
        let Freshened::Updated(new) = answer(&[
            ("etag", "\"a\""),
            ("x", "new"),
            ("y", "1"),
            ("content-length", "9"),
        ]) else {
            panic!("outdated")
        };
        assert_eq!(new.headers()["x"], "new");
        assert_eq!(new.headers()["y"], "1");
        assert_eq!(new.headers()["link"], "1");
        assert_eq!(new.headers()["content-length"], "5");
        assert_eq!(new.age(&at(21)).as_secs(), 1);
        assert!(matches!(answer(&[("etag", "\"b\"")]), Freshened::Outdated));
        assert!(matches!(answer(&[]), Freshened::Updated(_)));
        let ambiguous = old.freshen(
            &map(&[]),
            Selecting::default(),
            &exchange(20, 20),
            true,
            true,
        );
        assert!(matches!(ambiguous, Freshened::Outdated));
    }

    #[test]
    fn a_head_that_shows_another_length_or_date_outdates() {
        let date = "Sun, 06 Nov 1994 08:49:27 GMT";
        let old = stored(&[("content-length", "5"), ("last-modified", date)]);
        let head =
            |lines| old.freshen_by_head(&map(lines), Selecting::default(), &exchange(20, 20), true);
        assert!(matches!(
            head(&[("content-length", "5")]),
            Freshened::Updated(_)
        ));
        assert!(matches!(
            head(&[("content-length", "6")]),
            Freshened::Outdated
        ));
        assert!(matches!(
            head(&[("last-modified", "Sun, 06 Nov 1994 08:49:28 GMT")]),
            Freshened::Outdated
        ));
    }
}
