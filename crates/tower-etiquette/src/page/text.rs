//! The sentences of the page, one table for all languages.

/// A language that the page is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Language {
    English,
    French,
    German,
}

impl Language {
    pub(super) const ALL: [Self; 3] = [Self::English, Self::French, Self::German];

    pub(super) fn tag(self) -> &'static str {
        ["en", "fr", "de"][self as usize]
    }

    pub(super) fn say(self, what: Text) -> &'static str {
        what[self as usize]
    }
}

/// A sentence in each [`Language`]. `{token}`, `{user}`, `{minutes}` and `{seconds}` are filled in. French punctuation
/// does not part from its word.
pub(super) type Text = [&'static str; 3];

pub(super) const TITLE: Text = [
    "{token}: who this visitor is",
    "{token}\u{a0}: qui est ce visiteur",
    "{token}: wer dieser Besucher ist",
];
pub(super) const INTRO: Text = [
    "An automated client. It sends this name with every request, asks robots.txt before any page, and \
                 obeys what it says.",
    "Un client automatique. Il envoie ce nom avec chaque requête, consulte robots.txt avant toute page et \
                 le respecte.",
    "Ein automatischer Client. Er sendet diesen Namen mit jeder Anfrage, liest vor jeder Seite robots.txt \
                 und hält sich daran.",
];
pub(super) const PURPOSE: Text = ["What it is for", "À quoi il sert", "Wozu er dient"];
pub(super) const SLOW: Text = ["Slow it down", "Le ralentir", "Ihn verlangsamen"];
pub(super) const SLOW_NOTE: Text = [
    "In robots.txt; acts within {minutes} minutes, for any number of seconds up to {seconds}. Beyond that \
                 it stays away.",
    "Dans robots.txt\u{a0}; agit en {minutes} minutes au plus, pour un délai jusqu’à {seconds} secondes. \
                 Au-delà, il ne vient plus.",
    "In robots.txt; wirkt in höchstens {minutes} Minuten, für jede Zahl von Sekunden bis {seconds}. \
                 Darüber bleibt er weg.",
];
pub(super) const PAUSE: Text = [
    "Make it pause",
    "Le mettre en pause",
    "Ihn pausieren lassen",
];
pub(super) const PAUSE_NOTE: Text = [
    "As an answer to any request; acts at once. It comes back more slowly afterwards.",
    "En réponse à une requête\u{a0}; agit aussitôt. Il revient ensuite plus lentement.",
    "Als Antwort auf eine Anfrage; wirkt sofort. Danach kommt er langsamer wieder.",
];
pub(super) const PATH: Text = [
    "Keep it out of a path",
    "L’exclure d’un chemin",
    "Ihn von einem Pfad fernhalten",
];
pub(super) const PATH_NOTE: Text = [
    "In robots.txt; acts within {minutes} minutes.",
    "Dans robots.txt\u{a0}; agit en {minutes} minutes au plus.",
    "In robots.txt; wirkt in höchstens {minutes} Minuten.",
];
pub(super) const STOP: Text = [
    "Stop it altogether",
    "L’arrêter complètement",
    "Ihn ganz aussperren",
];
pub(super) const STOP_NOTE: Text = [
    "In robots.txt; acts within {minutes} minutes. Blocking the name with 403 works too: after ten \
                 refusals in a row it asks ever less often.",
    "Dans robots.txt\u{a0}; agit en {minutes} minutes au plus. Bloquer le nom par un 403 fonctionne aussi\u{a0}: \
                 après dix refus de suite, il revient de moins en moins.",
    "In robots.txt; wirkt in höchstens {minutes} Minuten. Den Namen mit 403 zu sperren geht auch: nach \
                 zehn Absagen in Folge fragt er immer seltener.",
];
pub(super) const PEOPLE: Text = [
    "Stop page fetches for people",
    "Arrêter les lectures à la demande",
    "Seitenabrufe für Menschen stoppen",
];
pub(super) const PEOPLE_NOTE: Text = [
    "A page that a person asked for is fetched once, under the name {user}. It has lines of its own; \
                 they act within {minutes} minutes.",
    "Une page demandée par une personne est lue une fois, sous le nom {user}. Il a ses propres lignes\u{a0}; \
                 elles agissent en {minutes} minutes au plus.",
    "Eine Seite, um die ein Mensch gebeten hat, wird einmal unter dem Namen {user} abgerufen. Dafür \
                 gelten eigene Zeilen; sie wirken in höchstens {minutes} Minuten.",
];
pub(super) const VERIFY: Text = [
    "Is it really us?",
    "Est-ce vraiment nous\u{a0}?",
    "Sind das wirklich wir?",
];
pub(super) const VERIFY_NOTE: Text = [
    "Anybody can send a name. A visitor with this name that ignores your line is not us.",
    "N’importe qui peut envoyer un nom. Un visiteur qui porte ce nom et ignore votre ligne n’est pas nous.",
    "Einen Namen kann jeder senden. Ein Besucher mit diesem Namen, der Ihre Zeile missachtet, sind nicht \
                 wir.",
];
pub(super) const VERIFY_KEYS: Text = [
    "Our requests are signed (RFC 9421); the keys are here:",
    "Nos requêtes sont signées (RFC 9421)\u{a0}; les clés sont ici\u{a0}:",
    "Unsere Anfragen sind signiert (RFC 9421); die Schlüssel sind hier:",
];
pub(super) const CONTACT: Text = ["Contact", "Contact", "Kontakt"];
pub(super) const CONTACT_NOTE: Text = [
    "Tell us the host, the time and a line of your log.",
    "Indiquez-nous l’hôte, l’heure et une ligne de votre journal.",
    "Nennen Sie uns Host, Uhrzeit und eine Zeile Ihres Logs.",
];
