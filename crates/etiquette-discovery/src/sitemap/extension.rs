//! What other vocabularies say about an entry: translations, images, videos, news.

use quick_xml::events::BytesStart;

use super::date::LastMod;
use super::escape::attribute;

/// Things of one kind that are kept for one entry; sitemaps.org's extensions allow 1,000 images.
const MAX_EACH: usize = 1_000;

/// What the image, video, news and XHTML vocabularies say about an entry.
///
/// References are as written, since none of them is a page of the sitemap; resolve them before use, and let robots.txt
/// decide.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Extensions {
    /// The same page in other languages: language and location.
    pub alternates: Vec<(String, String)>,
    /// Locations of images on the page.
    pub images: Vec<String>,
    /// Locations of videos on the page, of the file where it is told, else of the player.
    pub videos: Vec<String>,
    /// When the article was published, and its title.
    pub news: Option<News>,
}

/// What a news sitemap says about an article.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct News {
    /// The title of the article.
    pub title: Option<String>,
    /// When it was published.
    pub published: Option<LastMod>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Image,
    VideoFile,
    VideoPlayer,
    NewsTitle,
    NewsDate,
}

#[derive(Debug, Default)]
pub(super) struct Extra {
    pub(super) extensions: Extensions,
    /// Inside `<news:news>`.
    news: bool,
    /// Inside `<video:video>`, and whether its file is known.
    video: Option<bool>,
    image: bool,
    on: bool,
}

impl Extra {
    /// What was said, if anybody asked.
    pub(super) fn wanted(&self) -> Option<&Extensions> {
        self.on.then_some(&self.extensions)
    }

    pub(super) fn turn_on(&mut self) {
        self.on = true;
    }

    pub(super) fn clear(&mut self) {
        if !self.on {
            return;
        }
        let extensions = &mut self.extensions;
        extensions.alternates.clear();
        extensions.images.clear();
        extensions.videos.clear();
        extensions.news = None;
        self.news = false;
        self.video = None;
        self.image = false;
    }

    /// An element of another vocabulary begins; says whether its text is wanted.
    pub(super) fn start(&mut self, local: &str, start: &BytesStart<'_>) -> Option<Field> {
        match local {
            "image" => self.image = true,
            "video" => self.video = Some(false),
            "news" => {
                self.news = true;
                self.extensions.news.get_or_insert_default();
            }
            "link" if self.extensions.alternates.len() < MAX_EACH => {
                let alternate = attribute(start, "rel").is_some_and(|rel| rel == "alternate");
                if let (true, Some(language), Some(href)) = (
                    alternate,
                    attribute(start, "hreflang"),
                    attribute(start, "href"),
                ) {
                    self.extensions
                        .alternates
                        .push((language, href.trim().to_owned()));
                }
            }
            "loc" if self.image => return Some(Field::Image),
            "content_loc" if self.video.is_some() => return Some(Field::VideoFile),
            "player_loc" if self.video.is_some() => return Some(Field::VideoPlayer),
            "publication_date" if self.news => return Some(Field::NewsDate),
            "title" if self.news => return Some(Field::NewsTitle),
            _ => {}
        }
        None
    }

    pub(super) fn end(&mut self, name: &str) {
        if !self.on {
            return;
        }
        match name.rsplit(':').next() {
            Some("image") => self.image = false,
            Some("video") => self.video = None,
            Some("news") => self.news = false,
            _ => {}
        }
    }

    pub(super) fn set(&mut self, field: Field, text: &str) {
        let extensions = &mut self.extensions;
        match field {
            Field::Image if extensions.images.len() < MAX_EACH => {
                extensions.images.push(text.to_owned())
            }
            Field::VideoFile if extensions.videos.len() < MAX_EACH => {
                // The file takes the place of its own player.
                if self.video == Some(true) {
                    extensions.videos.pop();
                }
                self.video = Some(true);
                extensions.videos.push(text.to_owned());
            }
            Field::VideoPlayer
                if self.video == Some(false) && extensions.videos.len() < MAX_EACH =>
            {
                self.video = Some(true);
                extensions.videos.push(text.to_owned());
            }
            Field::NewsTitle => {
                if let Some(news) = &mut extensions.news {
                    news.title = Some(text.to_owned());
                }
            }
            Field::NewsDate => {
                if let Some(news) = &mut extensions.news {
                    news.published = LastMod::parse(text);
                }
            }
            _ => {}
        }
    }
}
