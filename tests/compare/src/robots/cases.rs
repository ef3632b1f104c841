//! Files and URLs to measure with. All are made by the same rule at each run.

use std::fmt::Write;
use std::path::Path;

/// One or more files and the URLs that are asked about in each.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) files: Vec<Vec<u8>>,
    pub(crate) paths: Vec<String>,
    /// Built to be slow.
    pub(crate) hostile: bool,
}

/// What a file of at most this many bytes holds, all parsers read.
pub(crate) const LIMIT: usize = 512_000;

/// Numbers without a pattern (Knuth's MMIX generator).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below
    }

    fn pick<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.next(words.len())]
    }
}

const WORDS: &[&str] = &[
    "search", "user", "login", "catalog", "product", "api", "archive", "tag", "category", "print",
    "admin", "cart", "news", "forum", "profile", "images", "download", "static",
];

fn path(numbers: &mut Numbers) -> String {
    let mut path = String::new();
    for _ in 0..1 + numbers.next(3) {
        let (word, number) = (numbers.pick(WORDS), numbers.next(2_000));
        let _ = match numbers.next(3) {
            0 => write!(path, "/{word}"),
            1 => write!(path, "/{word}-{number}"),
            _ => write!(path, "/{number}/{word}"),
        };
    }
    path
}

/// Rules as sites write them: one in ten an Allow, one in twenty with a wildcard.
fn rules(file: &mut String, count: usize, numbers: &mut Numbers) {
    for _ in 0..count {
        let kind = if numbers.next(10) == 0 {
            "Allow"
        } else {
            "Disallow"
        };
        let path = path(numbers);
        let word = numbers.pick(WORDS);
        let _ = match numbers.next(60) {
            0 => writeln!(file, "{kind}: {path}/*/{word}"),
            1 => writeln!(file, "{kind}: /*?{word}={path}"),
            2 => writeln!(file, "{kind}: {path}*.{word}$"),
            _ => writeln!(file, "{kind}: {path}"),
        };
    }
}

fn plain(count: usize) -> Vec<u8> {
    let mut file = "User-agent: *\n".to_owned();
    rules(&mut file, count, &mut Numbers(count as u64));
    file.into_bytes()
}

/// A plain file of about `bytes`: what a hostile one of that size is measured against.
pub(crate) fn plain_of(bytes: usize) -> Vec<u8> {
    let mut file = plain(bytes / 20);
    file.truncate(bytes);
    file
}

fn paths() -> Vec<String> {
    let mut numbers = Numbers(7);
    (0..512)
        .map(|_| {
            let mut path = path(&mut numbers);
            match numbers.next(4) {
                0 => path += "/index.html",
                1 => path += "?page=2&sort=name",
                _ => {}
            }
            path
        })
        .collect()
}

fn many_groups() -> Vec<u8> {
    let mut numbers = Numbers(3);
    let mut file = String::new();
    for group in 0..2_000 {
        let letters: String = (0..4)
            .map(|place| (b'a' + (group / 26_usize.pow(place) % 26) as u8) as char)
            .collect();
        let _ = writeln!(file, "User-agent: {letters}Bot");
        rules(&mut file, 5, &mut numbers);
        file.push('\n');
    }
    file.push_str("User-agent: ExampleBot\n");
    rules(&mut file, 200, &mut numbers);
    file.into_bytes()
}

fn junk() -> Vec<u8> {
    let mut numbers = Numbers(5);
    (0..LIMIT)
        .map(|_| match numbers.next(60) {
            0 => b'\n',
            1 => b':',
            2 => b'/',
            3 => b' ',
            _ => numbers.next(256) as u8,
        })
        .collect()
}

/// `head`, then `line` with growing numbers until the file is full.
fn filled(head: &str, line: impl Fn(usize) -> String) -> Vec<u8> {
    let mut file = head.to_owned();
    for number in 0.. {
        let line = line(number);
        if file.len() + line.len() > LIMIT {
            break;
        }
        file += &line;
    }
    file.into_bytes()
}

fn hostile(name: &'static str, file: Vec<u8>, paths: Vec<String>) -> Case {
    Case {
        name,
        files: vec![file],
        paths,
        hostile: true,
    }
}

pub(crate) fn all() -> Vec<Case> {
    let single = |name, file| Case {
        name,
        files: vec![file],
        paths: paths(),
        hostile: false,
    };
    let star = "User-agent: *\n";
    let long_a = vec![format!("/{}", "a".repeat(1_000))];
    let mut cases = vec![
        single("rules-10", plain(10)),
        single("rules-200", plain(200)),
        single("rules-5000", plain(5_000)),
        single("rules-100000", plain(100_000)),
        single("many-groups", many_groups()),
        single("junk", junk()),
        hostile(
            "hostile-stars",
            filled(star, |_| format!("Disallow: /{}b\n", "a*".repeat(60))),
            vec![format!("/ab{}", "a".repeat(998))],
        ),
        hostile(
            "hostile-one-rule",
            filled(star, |_| {
                "Disallow: /".to_owned() + &"*a".repeat(250_000) + "b\n"
            }),
            long_a.clone(),
        ),
        hostile(
            "hostile-near-misses",
            filled(star, |_| format!("Disallow: /*{}b\n", "a".repeat(400))),
            vec![format!("/b{}", "a".repeat(999))],
        ),
        hostile(
            "hostile-wildcards",
            filled(star, |number| format!("Disallow: /*a{number}*a\n")),
            paths(),
        ),
        hostile(
            "hostile-prefixes",
            filled(star, |number| {
                format!("Disallow: /{}\n", "a".repeat(number % 990))
            }),
            long_a.clone(),
        ),
        hostile(
            "hostile-duplicates",
            filled(star, |_| "Disallow: /aaaaaaaa\n".to_owned()),
            long_a,
        ),
        hostile(
            "hostile-escapes",
            filled(star, |_| format!("Disallow: /{}\n", "%e3%61".repeat(20))),
            vec![format!("/{}", "%e3%61".repeat(20))],
        ),
        hostile(
            "hostile-agents",
            filled("", |number| {
                format!("User-agent: a{}b\n", "x".repeat(number % 300))
            }),
            paths(),
        ),
        hostile(
            "hostile-groups",
            filled("", |number| {
                format!(
                    "User-agent: ExampleBot\nUser-agent: b{}\nDisallow: /a{number}\n",
                    "x".repeat(number % 200)
                )
            }),
            paths(),
        ),
        hostile("hostile-empty-lines", vec![b'\n'; LIMIT], paths()),
    ];
    if let Some(files) = real_files() {
        cases.push(Case {
            name: "real-files",
            files,
            paths: paths(),
            hostile: false,
        });
    }
    cases
}

fn real_files() -> Option<Vec<Vec<u8>>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/vectors/robots/files");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).ok()).collect()
}
