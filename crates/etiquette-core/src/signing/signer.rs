use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::{HeaderMap, HeaderName, HeaderValue, Method, Uri};
use ring::rand::{SecureRandom, SystemRandom};

use super::{Component, MissingComponent, SignatureInput, SigningKey};
use crate::Origin;
use crate::field::base64;

const SIGNATURE: HeaderName = HeaderName::from_static("signature");
const SIGNATURE_INPUT: HeaderName = HeaderName::from_static("signature-input");
const SIGNATURE_AGENT: HeaderName = HeaderName::from_static("signature-agent");

/// The label of the one signature that is made.
const LABEL: &str = "sig1";

/// How long a signature is valid: as long as an attempt may take to arrive. It is made anew for each.
const LIFETIME: Duration = Duration::from_secs(60);

/// Signs requests. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Signer {
    key: Arc<SigningKey>,
    agent: String,
    cover: Vec<Component>,
    lifetime: Duration,
    form: AgentForm,
    nonce: bool,
}

/// The form of Signature-Agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AgentForm {
    /// A dictionary whose member goes by the label of the signature: the current draft.
    #[default]
    Dictionary,
    /// A bare string: what verifiers of earlier drafts read.
    BareString,
}

/// Why there is no [`Signer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum InvalidSigner {
    /// The link to the key directory is no `https` URL.
    AgentNotHttps,
}

impl fmt::Display for InvalidSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the link to the key directory is no https URL")
    }
}

impl Error for InvalidSigner {}

impl Signer {
    /// Signs with `key`, whose public half is found through `agent`: the `https` origin of the client's operator, or
    /// the whole link to the directory.
    ///
    /// Covered are `@authority`, `@method`, `@path` and the Signature-Agent member: what narrows a replay without
    /// breaking when a proxy rewrites a query. A signature is valid for 60 s and has no nonce.
    ///
    /// # Errors
    /// [`InvalidSigner`] when `agent` is no `https` URL.
    pub fn new(key: SigningKey, agent: impl Into<String>) -> Result<Self, InvalidSigner> {
        let agent = agent.into();
        let https = agent
            .parse::<Uri>()
            .is_ok_and(|url| Origin::of(&url).is_ok_and(|origin| origin.is_https()));
        if !https || !agent.is_ascii() {
            return Err(InvalidSigner::AgentNotHttps);
        }
        Ok(Self {
            key: Arc::new(key),
            agent,
            cover: vec![Component::Authority, Component::Method, Component::Path],
            lifetime: LIFETIME,
            form: AgentForm::default(),
            nonce: false,
        })
    }

    /// Covers these components, and Signature-Agent behind them. `@authority` is put first if neither it nor
    /// `@target-uri` is among them, because a signature that fits every host fits nobody.
    #[must_use]
    pub fn cover(mut self, components: impl IntoIterator<Item = Component>) -> Self {
        self.cover = components.into_iter().collect();
        let binds_target = |component: &Component| {
            matches!(component, Component::Authority | Component::TargetUri)
        };
        if !self.cover.iter().any(binds_target) {
            self.cover.insert(0, Component::Authority);
        }
        self
    }

    /// How long a signature is valid, in whole seconds; 60 s by default, at least 1 s.
    #[must_use]
    pub fn lifetime(mut self, lifetime: Duration) -> Self {
        self.lifetime = lifetime.max(Duration::from_secs(1));
        self
    }

    /// The form of Signature-Agent.
    #[must_use]
    pub fn agent_form(mut self, form: AgentForm) -> Self {
        self.form = form;
        self
    }

    /// Gives each signature a nonce of 32 random bytes, for verifiers that keep them against replays. Off by default.
    #[must_use]
    pub fn nonce(mut self, yes: bool) -> Self {
        self.nonce = yes;
        self
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> &Arc<SigningKey> {
        &self.key
    }

    /// Signs the head of a request at the wall time `now`: replaces Signature-Agent, Signature-Input and Signature.
    ///
    /// # Errors
    /// [`MissingComponent`] names what the request lacks of what is covered. The headers are left without a signature.
    pub fn sign(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &mut HeaderMap,
        now: SystemTime,
    ) -> Result<(), MissingComponent> {
        let mut nonce = [0; 32];
        let nonce = self.nonce.then(|| {
            // A system without randomness gives no nonce; the signature stands without one.
            SystemRandom::new().fill(&mut nonce).ok().map(|()| nonce)
        });
        let nonce = nonce.flatten().map(|nonce| base64::encode(&nonce));
        self.sign_with(method, uri, headers, now, nonce.as_deref())
    }

    /// Like [`sign`](Self::sign), with the nonce that an Accept-Signature asked for, or without any.
    ///
    /// # Errors
    /// As [`sign`](Self::sign).
    pub fn sign_with(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &mut HeaderMap,
        now: SystemTime,
        nonce: Option<&str>,
    ) -> Result<(), MissingComponent> {
        for name in [SIGNATURE, SIGNATURE_INPUT, SIGNATURE_AGENT] {
            headers.remove(name);
        }
        let agent = format!("\"{}\"", self.agent);
        let (agent, covered) = match self.form {
            AgentForm::Dictionary => (
                format!("{LABEL}={agent}"),
                Component::Member(SIGNATURE_AGENT, LABEL.to_owned()),
            ),
            AgentForm::BareString => (agent, Component::Field(SIGNATURE_AGENT)),
        };
        headers.insert(SIGNATURE_AGENT, value(&agent, &covered)?);
        let mut components = self.cover.clone();
        components.push(covered);
        let created = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let expires = created.saturating_add(self.lifetime.as_secs());
        let mut input = SignatureInput::new(&components)
            .time("created", created)
            .time("expires", expires)
            .text("keyid", self.key.public().thumbprint());
        if let Some(nonce) = nonce {
            input = input.text("nonce", nonce);
        }
        let input = input.text("tag", super::verify::TAG);
        let base = match input.base(method, uri, headers) {
            Ok(base) => base,
            Err(missing) => {
                headers.remove(SIGNATURE_AGENT);
                return Err(missing);
            }
        };
        let signature = base64::encode(&self.key.sign(&base));
        let fields = [
            (SIGNATURE_INPUT, format!("{LABEL}={}", input.to_text())),
            (SIGNATURE, format!("{LABEL}=:{signature}:")),
        ];
        for (name, text) in fields {
            let component = Component::Field(name.clone());
            headers.insert(name, value(&text, &component)?);
        }
        Ok(())
    }
}

/// Made of ASCII without controls, so it is a value; if not, `component` is what cannot be sent.
fn value(text: &str, component: &Component) -> Result<HeaderValue, MissingComponent> {
    HeaderValue::from_str(text).map_err(|_| component.missing())
}
