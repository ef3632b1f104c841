//! Freshening stored responses by a 304 and by the response to a HEAD (RFC 9111, 4.3.4 and 4.3.5).

use http::header::{
    AGE, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_RANGE, DATE, HeaderMap, HeaderName,
    LAST_MODIFIED,
};

use super::connection::remove_connection_fields;
use super::stored::{ResponseTimes, StoredResponse, http_date};
use super::validators::{Compared, compare};
use super::vary::Selecting;

impl StoredResponse {
    /// Freshens the stored response by a 304 to a request that was conditional on it (RFC 9111, 4.3.4); `None` when the
    /// 304 is about another representation, and the stored one is invalid.
    ///
    /// A 304 that names another tag or date is about another representation. One that names none is about this one:
    /// it confirms the only tag that was sent, unless `others_asked`: the caller's tags went along.
    #[must_use]
    pub fn freshen(
        &self,
        response: &HeaderMap,
        selecting: Selecting,
        times: &ResponseTimes,
        shared: bool,
        others_asked: bool,
    ) -> Option<Self> {
        match compare(self.headers(), response, times.response_time.wall) {
            Compared::Different => None,
            Compared::Unknown if others_asked => None,
            _ => Some(self.freshened(response, selecting, times, shared)),
        }
    }

    /// Freshens this response to a GET by the response to a HEAD (RFC 9111, 4.3.5); `None` when the two are not of one
    /// representation, and the stored one is invalid.
    #[must_use]
    pub fn freshen_by_head(
        &self,
        response: &HeaderMap,
        selecting: Selecting,
        times: &ResponseTimes,
        shared: bool,
    ) -> Option<Self> {
        let compared = compare(self.headers(), response, times.response_time.wall);
        let different = compared == Compared::Different
            || differs(self.headers(), response, &LAST_MODIFIED)
            || differs(self.headers(), response, &CONTENT_LENGTH);
        (!different).then(|| self.freshened(response, selecting, times, shared))
    }

    fn freshened(
        &self,
        response: &HeaderMap,
        selecting: Selecting,
        times: &ResponseTimes,
        shared: bool,
    ) -> Self {
        let mut headers = self.updated_fields(response);
        if !response.contains_key(DATE) {
            headers.insert(DATE, http_date(times.response_time.wall));
        }
        Self::new(
            self.status(),
            self.version(),
            &headers,
            selecting,
            self.extent(),
            times,
            shared,
        )
    }

    /// The stored fields, those that a newer response has too replaced (RFC 9111, 3.2). What belongs to the stored bytes
    /// stays with them.
    pub(super) fn updated_fields(&self, response: &HeaderMap) -> HeaderMap {
        let mut news = response.clone();
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
    use crate::decide::cache_policy::samples::{at, map, stored, times};

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
                &times(20, 20),
                true,
                false,
            )
        };
        let Some(new) = answer(&[
            ("etag", "\"a\""),
            ("x", "new"),
            ("y", "1"),
            ("content-length", "9"),
        ]) else {
            panic!("another representation")
        };
        assert_eq!(new.headers()["x"], "new");
        assert_eq!(new.headers()["y"], "1");
        assert_eq!(new.headers()["link"], "1");
        assert_eq!(new.headers()["content-length"], "5");
        assert_eq!(new.age(&at(21)).as_secs(), 1);
        assert!(answer(&[("etag", "\"b\"")]).is_none());
        assert!(answer(&[]).is_some());
        let ambiguous = old.freshen(&map(&[]), Selecting::default(), &times(20, 20), true, true);
        assert!(ambiguous.is_none());
    }

    #[test]
    fn a_head_that_shows_another_length_or_date_invalidates() {
        let date = "Sun, 06 Nov 1994 08:49:27 GMT";
        let old = stored(&[("content-length", "5"), ("last-modified", date)]);
        let head =
            |lines| old.freshen_by_head(&map(lines), Selecting::default(), &times(20, 20), true);
        assert!(head(&[("content-length", "5")]).is_some());
        assert!(head(&[("content-length", "6")]).is_none());
        assert!(head(&[("last-modified", "Sun, 06 Nov 1994 08:49:28 GMT")]).is_none());
    }
}
