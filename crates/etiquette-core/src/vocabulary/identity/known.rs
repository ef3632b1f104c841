//! Agents that are known by name, so that nobody goes by the name of another.
//!
//! **Scope**: enough of the agents that operators write filters for, by what their operators publish and what public
//! lists state (monperrus/crawler-user-agents, ai-robots-txt/ai.robots.txt, vendors' pages). **Non-goals**: to
//! recognise or to trust a client. Strings age, and anybody can send them.

use KnownPurpose::*;

/// An agent that is known by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct KnownAgent {
    /// The token by which robots.txt and filters name it.
    pub token: &'static str,
    /// Who runs it.
    pub operator: &'static str,
    /// What it is for.
    pub purpose: KnownPurpose,
}

/// What a known agent is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KnownPurpose {
    /// A crawl for several uses.
    Crawl,
    /// A crawl for a search index.
    SearchCrawl,
    /// A crawl for the training of models.
    TrainingCrawl,
    /// A page that a person asked for.
    UserFetch,
    /// No agent: a token that controls the use of what another agent fetched.
    ControlToken,
    /// A preview of a link in a message or post.
    LinkPreview,
    /// A reader of feeds.
    Feed,
    /// A check whether a site works.
    Monitor,
    /// An archive.
    Archive,
    /// A survey of the net.
    Research,
    /// A crawl for search engine optimisation.
    Seo,
    /// A check of pages with advertisements.
    AdCheck,
    /// A library that sends its own name where its user gives none. Naming it beside the own name is honest.
    LibraryDefault,
}

/// The known agent whose token is `token`, compared as robots.txt compares: without regard to case.
#[must_use]
pub fn known_agent(token: &str) -> Option<&'static KnownAgent> {
    KNOWN
        .iter()
        .find(|agent| agent.token.eq_ignore_ascii_case(token))
}

/// The known agent that `word` names: its token alone, or followed by something that belongs to no name or by `-` or
/// `_`, as in `Googlebot-News`. A filter for the token would hit it.
pub(super) fn named_by(word: &str) -> Option<&'static KnownAgent> {
    KNOWN.iter().find(|agent| {
        word.get(..agent.token.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(agent.token))
            && !word
                .as_bytes()
                .get(agent.token.len())
                .is_some_and(u8::is_ascii_alphanumeric)
    })
}

/// Whether `value` is nothing but the name that an HTTP library sends of its own accord.
#[must_use]
pub fn is_library_default(value: &str) -> bool {
    let product = value.split([' ', '\t']).next().unwrap_or(value);
    let name = product.split('/').next().unwrap_or(product);
    known_agent(name).is_some_and(|agent| agent.purpose == LibraryDefault)
        && super::syntax::link_start(value).is_none()
}

/// Names that browsers go by, without those that only go with them, such as `Version` and `Mobile`.
const BROWSERS: &[&str] = &[
    "Mozilla",
    "AppleWebKit",
    "Chrome",
    "Chromium",
    "HeadlessChrome",
    "CriOS",
    "Safari",
    "Gecko",
    "KHTML",
    "Firefox",
    "FxiOS",
    "Edge",
    "Edg",
    "EdgA",
    "EdgiOS",
    "OPR",
    "OPiOS",
    "Opera",
    "Presto",
    "MSIE",
    "Trident",
    "Vivaldi",
    "Brave",
    "SamsungBrowser",
    "YaBrowser",
    "UCBrowser",
    "UBrowser",
    "MiuiBrowser",
    "HuaweiBrowser",
    "QQBrowser",
    "DuckDuckGo",
    "SeaMonkey",
    "PaleMoon",
    "Waterfox",
    "LibreWolf",
    "Iceweasel",
    "Epiphany",
    "Konqueror",
    "Silk",
    "Whale",
    "PhantomJS",
];

/// Whether `name` is one that browsers go by.
pub(super) fn is_browser(name: &str) -> bool {
    BROWSERS
        .iter()
        .any(|browser| browser.eq_ignore_ascii_case(name))
}

const fn agent(token: &'static str, operator: &'static str, purpose: KnownPurpose) -> KnownAgent {
    KnownAgent {
        token,
        operator,
        purpose,
    }
}

/// Sorted by token, without regard to case.
const KNOWN: &[KnownAgent] = &[
    agent("360Spider", "Qihoo 360", SearchCrawl),
    agent("AddSearchBot", "AddSearch", SearchCrawl),
    agent("AdIdxBot", "Microsoft", AdCheck),
    agent("AdsBot-Google", "Google", AdCheck),
    agent("AdsBot-Google-Mobile", "Google", AdCheck),
    agent("AhrefsBot", "Ahrefs", Seo),
    agent("AhrefsSiteAudit", "Ahrefs", Seo),
    agent("AI2Bot", "Ai2", TrainingCrawl),
    agent("aiHitBot", "aiHit", Crawl),
    agent("aiohttp", "aiohttp users", LibraryDefault),
    agent("amazon-kendra", "Amazon", Crawl),
    agent("Amazonbot", "Amazon", SearchCrawl),
    agent("AmazonBuyForMe", "Amazon", UserFetch),
    agent("Amzn-SearchBot", "Amazon", SearchCrawl),
    agent("Amzn-User", "Amazon", UserFetch),
    agent("Andibot", "Andi", SearchCrawl),
    agent("anthropic-ai", "Anthropic", TrainingCrawl),
    agent("Apache-HttpClient", "HttpClient users", LibraryDefault),
    agent("ApifyBot", "Apify", Crawl),
    agent("ApifyWebsiteContentCrawler", "Apify", Crawl),
    agent("APIs-Google", "Google", Crawl),
    agent("Applebot", "Apple", SearchCrawl),
    agent("Applebot-Extended", "Apple", ControlToken),
    agent("archive.org_bot", "Internet Archive", Archive),
    agent("ArchiveBot", "Archive Team", Archive),
    agent("Arquivo-web-crawler", "Arquivo.pt", Archive),
    agent("atlassian-bot", "Atlassian", SearchCrawl),
    agent("attohttpc", "attohttpc users", LibraryDefault),
    agent("Awario", "Awario", Crawl),
    agent("awc", "actix users", LibraryDefault),
    agent("axios", "axios users", LibraryDefault),
    agent("AzureAI-SearchBot", "Microsoft", SearchCrawl),
    agent("Baiduspider", "Baidu", SearchCrawl),
    agent("Barkrowler", "Babbar", Seo),
    agent("BazQux", "BazQux", Feed),
    agent("bedrockbot", "Amazon", Crawl),
    agent("BetterStackBot", "Better Stack", Monitor),
    agent("bingbot", "Microsoft", SearchCrawl),
    agent("BingPreview", "Microsoft", LinkPreview),
    agent("BitSightBot", "BitSight", Research),
    agent("BLEXBot", "SEO PowerSuite", Seo),
    agent("Bloglovin", "Bloglovin", Feed),
    agent("Bravebot", "Brave", SearchCrawl),
    agent("Brightbot", "Bright Data", Crawl),
    agent("Bytespider", "ByteDance", TrainingCrawl),
    agent("Cardyb", "Bluesky", LinkPreview),
    agent("CCBot", "Common Crawl", Crawl),
    agent("CensysInspect", "Censys", Research),
    agent("ChatGLM-Spider", "Zhipu", TrainingCrawl),
    agent("ChatGPT-User", "OpenAI", UserFetch),
    agent("Checkly", "Checkly", Monitor),
    agent("Chrome-Lighthouse", "Google", Monitor),
    agent("Claude-Code", "Anthropic", UserFetch),
    agent("Claude-SearchBot", "Anthropic", SearchCrawl),
    agent("Claude-User", "Anthropic", UserFetch),
    agent("Claude-Web", "Anthropic", TrainingCrawl),
    agent("ClaudeBot", "Anthropic", TrainingCrawl),
    agent("Cliqzbot", "Cliqz", SearchCrawl),
    agent("Cloudflare-AutoRAG", "Cloudflare", Crawl),
    agent("CloudVertexBot", "Google", Crawl),
    agent("coccocbot-web", "Coc Coc", SearchCrawl),
    agent("cohere-ai", "Cohere", UserFetch),
    agent("cohere-training-data-crawler", "Cohere", TrainingCrawl),
    agent("Colly", "Colly users", LibraryDefault),
    agent("CommaFeed", "CommaFeed users", Feed),
    agent("Cotoyogi", "ROIS", TrainingCrawl),
    agent("Crawl4AI", "Crawl4AI users", LibraryDefault),
    agent("Crawlspace", "Crawlspace", Crawl),
    agent("curl", "curl users", LibraryDefault),
    agent("DatadogSynthetics", "Datadog", Monitor),
    agent("DataForSeoBot", "DataForSEO", Seo),
    agent("Daum", "Kakao", SearchCrawl),
    agent("DeepSeekBot", "DeepSeek", TrainingCrawl),
    agent("Devin", "Cognition", UserFetch),
    agent("Diffbot", "Diffbot", Crawl),
    agent("Discordbot", "Discord", LinkPreview),
    agent("DotBot", "Moz", Seo),
    agent("DuckAssistBot", "DuckDuckGo", UserFetch),
    agent("DuckDuckBot", "DuckDuckGo", SearchCrawl),
    agent("EchoboxBot", "Echobox", LinkPreview),
    agent("Embedly", "Embedly", LinkPreview),
    agent("Exabot", "Exalead", SearchCrawl),
    agent("FacebookBot", "Meta", TrainingCrawl),
    agent("facebookcatalog", "Meta", Crawl),
    agent("facebookexternalhit", "Meta", LinkPreview),
    agent("Factset_spyderbot", "FactSet", Crawl),
    agent("Faraday", "Faraday users", LibraryDefault),
    agent("Feedbin", "Feedbin", Feed),
    agent("FeedFetcher-Google", "Google", Feed),
    agent("Feedly", "Feedly", Feed),
    agent("FeedlyBot", "Feedly", Feed),
    agent("Feedspot", "Feedspot", Feed),
    agent("FirecrawlAgent", "Firecrawl", Crawl),
    agent("FlipboardProxy", "Flipboard", LinkPreview),
    agent("FreshRSS", "FreshRSS users", Feed),
    agent("Friendica", "Friendica instances", LinkPreview),
    agent("FriendlyCrawler", "unknown", TrainingCrawl),
    agent("GarlikCrawler", "Garlik", Crawl),
    agent("Gemini-Deep-Research", "Google", UserFetch),
    agent("Gigabot", "Gigablast", SearchCrawl),
    agent("Go-http-client", "Go users", LibraryDefault),
    agent("Google-Agent", "Google", UserFetch),
    agent("Google-CloudVertexBot", "Google", Crawl),
    agent("Google-CWS", "Google", UserFetch),
    agent("Google-Extended", "Google", ControlToken),
    agent("Google-Firebase", "Google", UserFetch),
    agent("Google-Gemini-CLI", "Google", UserFetch),
    agent("Google-InspectionTool", "Google", UserFetch),
    agent("Google-NotebookLM", "Google", UserFetch),
    agent("Google-PageRenderer", "Google", LinkPreview),
    agent("Google-Read-Aloud", "Google", UserFetch),
    agent("Google-Safety", "Google", Research),
    agent("Google-Site-Verification", "Google", UserFetch),
    agent("GoogleAgent-Mariner", "Google", UserFetch),
    agent("Googlebot", "Google", SearchCrawl),
    agent("Googlebot-Image", "Google", SearchCrawl),
    agent("GoogleOther", "Google", Crawl),
    agent("GoogleProducer", "Google", Feed),
    agent("GPTBot", "OpenAI", TrainingCrawl),
    agent("GrapeshotCrawler", "Oracle", AdCheck),
    agent("GTmetrix", "GTmetrix", Monitor),
    agent("GuzzleHttp", "Guzzle users", LibraryDefault),
    agent("heritrix", "Heritrix users", LibraryDefault),
    agent("HetrixTools", "HetrixTools", Monitor),
    agent("http.rb", "http.rb users", LibraryDefault),
    agent("HTTPie", "HTTPie users", LibraryDefault),
    agent("HTTrack", "HTTrack users", LibraryDefault),
    agent("hyper", "hyper users", LibraryDefault),
    agent("hyper-util", "hyper users", LibraryDefault),
    agent("ia_archiver", "Internet Archive", Archive),
    agent("iAskBot", "iAsk", SearchCrawl),
    agent("iaskspider", "iAsk", SearchCrawl),
    agent("IbouBot", "Ibou", SearchCrawl),
    agent("ICC-Crawler", "NICT", Crawl),
    agent("Iframely", "Iframely", LinkPreview),
    agent("ImagesiftBot", "Hive", TrainingCrawl),
    agent("img2dataset", "img2dataset users", TrainingCrawl),
    agent("inoreader", "Inoreader", Feed),
    agent("InternetMeasurement", "driftnet", Research),
    agent("isahc", "isahc users", LibraryDefault),
    agent("Java", "Java users", LibraryDefault),
    agent("Java-http-client", "Java users", LibraryDefault),
    agent("kagi-fetcher", "Kagi", UserFetch),
    agent("Kagibot", "Kagi", SearchCrawl),
    agent("KlaviyoAIBot", "Klaviyo", Crawl),
    agent("laion-huggingface-processor", "LAION", TrainingCrawl),
    agent("LAIONDownloader", "LAION", TrainingCrawl),
    agent("LeakIX", "LeakIX", Research),
    agent("libwww-perl", "libwww-perl users", LibraryDefault),
    agent("LinerBot", "Liner", SearchCrawl),
    agent("linkdexbot", "Linkdex", Seo),
    agent("LinkedInBot", "LinkedIn", LinkPreview),
    agent("LinkupBot", "Linkup", SearchCrawl),
    agent("lwp-trivial", "libwww-perl users", LibraryDefault),
    agent("Manus-User", "Butterfly Effect", UserFetch),
    agent("Mastodon", "Mastodon instances", LinkPreview),
    agent("Mechanize", "Mechanize users", LibraryDefault),
    agent("Mediapartners-Google", "Google", AdCheck),
    agent("MegaIndex", "MegaIndex", Seo),
    agent("meta-externalads", "Meta", AdCheck),
    agent("meta-externalagent", "Meta", TrainingCrawl),
    agent("meta-externalfetcher", "Meta", UserFetch),
    agent("meta-webindexer", "Meta", SearchCrawl),
    agent("MicrosoftPreview", "Microsoft", LinkPreview),
    agent("Miniflux", "Miniflux users", Feed),
    agent("Misskey", "Misskey instances", LinkPreview),
    agent("MistralAI-User", "Mistral AI", UserFetch),
    agent("MJ12bot", "Majestic", Seo),
    agent("MojeekBot", "Mojeek", SearchCrawl),
    agent("msnbot", "Microsoft", SearchCrawl),
    agent("Neevabot", "Neeva", SearchCrawl),
    agent("NetcraftSurveyAgent", "Netcraft", Research),
    agent("NetNewsWire", "NetNewsWire users", Feed),
    agent("NewRelicPinger", "New Relic", Monitor),
    agent("NewsBlur", "NewsBlur", Feed),
    agent("Nextcloud-News", "Nextcloud users", Feed),
    agent("node-fetch", "node-fetch users", LibraryDefault),
    agent("NotebookLM", "Google", UserFetch),
    agent("NovaAct", "Amazon", UserFetch),
    agent("Nutch", "Apache Nutch users", LibraryDefault),
    agent("OAI-AdsBot", "OpenAI", AdCheck),
    agent("OAI-SearchBot", "OpenAI", SearchCrawl),
    agent("okhttp", "OkHttp users", LibraryDefault),
    agent("omgili", "Webz.io", Crawl),
    agent("omgilibot", "Webz.io", Crawl),
    agent("opencode", "opencode users", UserFetch),
    agent("PanguBot", "Huawei", TrainingCrawl),
    agent("Panscient", "Panscient", Crawl),
    agent("Perplexity-User", "Perplexity", UserFetch),
    agent("PerplexityBot", "Perplexity", SearchCrawl),
    agent("PetalBot", "Huawei", SearchCrawl),
    agent("PhindBot", "Phind", SearchCrawl),
    agent("phpcrawl", "phpcrawl users", LibraryDefault),
    agent("Pingdom", "Pingdom", Monitor),
    agent("Pinterestbot", "Pinterest", LinkPreview),
    agent("Pleroma", "Pleroma instances", LinkPreview),
    agent("PostmanRuntime", "Postman users", LibraryDefault),
    agent("proximic", "Comscore", AdCheck),
    agent("Puppeteer", "Puppeteer users", LibraryDefault),
    agent("python-httpx", "httpx users", LibraryDefault),
    agent("python-requests", "requests users", LibraryDefault),
    agent("Python-urllib", "Python users", LibraryDefault),
    agent("QualifiedBot", "Qualified", Crawl),
    agent("QuillBot", "QuillBot", Crawl),
    agent("Qwantify", "Qwant", SearchCrawl),
    agent("redditbot", "Reddit", LinkPreview),
    agent("reqwest", "reqwest users", LibraryDefault),
    agent("rest-client", "rest-client users", LibraryDefault),
    agent("rogerbot", "Moz", Seo),
    agent("SBIntuitionsBot", "SB Intuitions", TrainingCrawl),
    agent("Scrapy", "Scrapy users", LibraryDefault),
    agent("SeekportBot", "SISTRIX", SearchCrawl),
    agent("SemrushBot", "Semrush", Seo),
    agent("SEOkicks", "SEOkicks", Seo),
    agent("serpstatbot", "Serpstat", Seo),
    agent("SeznamBot", "Seznam", SearchCrawl),
    agent("Shap-User", "Parallel", UserFetch),
    agent("ShapBot", "Parallel", Crawl),
    agent("Site24x7", "Site24x7", Monitor),
    agent("SiteAuditBot", "Semrush", Seo),
    agent("SkypeUriPreview", "Microsoft", LinkPreview),
    agent("Slack-ImgProxy", "Slack", LinkPreview),
    agent("Slackbot", "Slack", LinkPreview),
    agent("Slurp", "Yahoo", SearchCrawl),
    agent("Snap-URL-Preview-Service", "Snap", LinkPreview),
    agent("Sogou", "Sogou", SearchCrawl),
    agent("special_archiver", "Internet Archive", Archive),
    agent("SSL_Labs", "Qualys", Research),
    agent("StatusCake", "StatusCake", Monitor),
    agent("Storebot-Google", "Google", SearchCrawl),
    agent("SummalyBot", "Misskey instances", LinkPreview),
    agent("Superfeedr", "Superfeedr", Feed),
    agent("surf", "surf users", LibraryDefault),
    agent("Symfony", "Symfony users", LibraryDefault),
    agent("TavilyBot", "Tavily", SearchCrawl),
    agent("TelegramBot", "Telegram", LinkPreview),
    agent("Teoma", "Ask", SearchCrawl),
    agent("TerraCotta", "Ceramic AI", Crawl),
    agent("TheOldReader", "The Old Reader", Feed),
    agent("Thinkbot", "Thinkbot", Crawl),
    agent("TikTokSpider", "ByteDance", LinkPreview),
    agent("Timpibot", "Timpi", SearchCrawl),
    agent("TurnitinBot", "Turnitin", Crawl),
    agent("Twitterbot", "X", LinkPreview),
    agent("Typhoeus", "Typhoeus users", LibraryDefault),
    agent("undici", "undici users", LibraryDefault),
    agent("UptimeRobot", "UptimeRobot", Monitor),
    agent("ureq", "ureq users", LibraryDefault),
    agent("VelenPublicWebCrawler", "Velen", Crawl),
    agent("vkShare", "VK", LinkPreview),
    agent("W3C-checklink", "W3C", Monitor),
    agent("W3C_CSS_Validator", "W3C", Monitor),
    agent("W3C_Validator", "W3C", Monitor),
    agent("WARDBot", "WEBSPARK", Crawl),
    agent("Webzio-Extended", "Webz.io", ControlToken),
    agent("Wget", "Wget users", LibraryDefault),
    agent("WhatsApp", "Meta", LinkPreview),
    agent("woriobot", "Worio", Crawl),
    agent("wpbot", "QuantumCloud", Crawl),
    agent("wpull", "wpull users", LibraryDefault),
    agent("WRTNBot", "Wrtn", Crawl),
    agent("yacybot", "YaCy peers", SearchCrawl),
    agent("YandexAdditional", "Yandex", TrainingCrawl),
    agent("YandexBot", "Yandex", SearchCrawl),
    agent("YandexImages", "Yandex", SearchCrawl),
    agent("YandexMobileBot", "Yandex", SearchCrawl),
    agent("Yeti", "Naver", SearchCrawl),
    agent("YouBot", "You.com", SearchCrawl),
    agent("ZoomBot", "SEOZoom", Seo),
    agent("ZoominfoBot", "ZoomInfo", Crawl),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_token_stands_once_and_in_order() {
        for pair in KNOWN.windows(2) {
            assert!(
                pair[0].token.to_ascii_lowercase() < pair[1].token.to_ascii_lowercase(),
                "{} before {}",
                pair[0].token,
                pair[1].token
            );
        }
    }

    #[test]
    fn what_names_an_agent() {
        assert_eq!(named_by("googlebot/2.1").unwrap().token, "Googlebot");
        assert_eq!(
            named_by("Baiduspider-render/2.0").unwrap().token,
            "Baiduspider"
        );
        assert_eq!(named_by("Googlebots"), None);
        assert_eq!(named_by("MyGooglebot"), None);
    }

    #[test]
    fn names_of_libraries() {
        for name in [
            "curl/8.5.0",
            "reqwest/0.13.5",
            "python-requests",
            "aiohttp/3.9 x",
        ] {
            assert!(is_library_default(name), "{name}");
        }
        for name in [
            "",
            "curler/1",
            "Mozilla/5.0",
            "curl/8 (+https://www.example.com/)",
        ] {
            assert!(!is_library_default(name), "{name}");
        }
    }
}
