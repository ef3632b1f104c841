use http::{HeaderMap, HeaderName, Method, Uri};

use super::component::{self, Component};
use super::{PublicKey, SignatureInput};
use crate::Origin;
use crate::field::structured::{self, Bare, Member, Parameters, Value};

/// The tag of the profile.
pub(super) const TAG: &str = "web-bot-auth";

/// What a request's signature proves.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The holder of a key in the directory of `agent` signed it.
    #[non_exhaustive]
    Verified {
        /// The link in Signature-Agent.
        agent: String,
        /// The key's thumbprint.
        keyid: String,
    },
    /// It is wrong.
    Invalid(Reason),
    /// There is nothing to decide with.
    Unverified(Reason),
    /// It is for another application.
    Ignored(Reason),
}

impl Outcome {
    /// The stable name of the outcome.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Verified { .. } => "verified",
            Self::Invalid(_) => "invalid",
            Self::Unverified(_) => "unverified",
            Self::Ignored(_) => "ignored",
        }
    }

    /// Why, unless it is verified.
    #[must_use]
    pub fn reason(&self) -> Option<Reason> {
        match self {
            Self::Verified { .. } => None,
            Self::Invalid(reason) | Self::Unverified(reason) | Self::Ignored(reason) => {
                Some(*reason)
            }
        }
    }
}

/// Why a request is not verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// There is no Signature-Input.
    SignatureInputAbsent,
    /// Signature-Input or Signature does not parse.
    Malformed,
    /// No signature has the tag of this profile.
    NotThisProfile,
    /// There is no signature under the label.
    SignatureMissing,
    /// `created`, `expires`, `keyid` or `tag` is missing.
    MissingParam,
    /// A component is covered twice.
    DuplicateComponent,
    /// Neither `@authority` nor `@target-uri` is covered.
    TargetNotCovered,
    /// There is no Signature-Agent.
    SignatureAgentAbsent,
    /// Signature-Agent is not covered.
    SignatureAgentNotCovered,
    /// The covered member of Signature-Agent has parameters.
    SignatureAgentHasParams,
    /// The link in Signature-Agent is not `https`.
    SignatureAgentNotHttps,
    /// The request lacks a covered component, or it is not understood.
    ComponentMissing,
    /// `created` lies in the future.
    CreatedInFuture,
    /// `expires` has passed.
    Expired,
    /// `alg` is not the key's.
    AlgMismatch,
    /// The directory has no such key, or none could be read.
    KeyUnknown,
    /// The signature does not fit.
    BadSignature,
}

impl Reason {
    /// The stable name of the reason.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            Self::SignatureInputAbsent => "signature_input_absent",
            Self::Malformed => "malformed",
            Self::NotThisProfile => "not_this_profile",
            Self::SignatureMissing => "signature_missing",
            Self::MissingParam => "missing_param",
            Self::DuplicateComponent => "duplicate_component",
            Self::TargetNotCovered => "target_not_covered",
            Self::SignatureAgentAbsent => "signature_agent_absent",
            Self::SignatureAgentNotCovered => "signature_agent_not_covered",
            Self::SignatureAgentHasParams => "signature_agent_has_params",
            Self::SignatureAgentNotHttps => "signature_agent_not_https",
            Self::ComponentMissing => "component_missing",
            Self::CreatedInFuture => "created_in_future",
            Self::Expired => "expired",
            Self::AlgMismatch => "alg_mismatch",
            Self::KeyUnknown => "key_unknown",
            Self::BadSignature => "bad_signature",
        }
    }
}

/// Verifies a request at `now`, in seconds since 1970. `key` finds the public key with a thumbprint in the directory
/// that a link leads to; it is asked only when everything else holds.
#[must_use]
pub fn verify(
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    now: u64,
    key: impl FnOnce(&str, &str) -> Option<PublicKey>,
) -> Outcome {
    decide(method, uri, headers, now, key).unwrap_or_else(|outcome| outcome)
}

fn decide(
    method: &Method,
    uri: &Uri,
    headers: &HeaderMap,
    now: u64,
    key: impl FnOnce(&str, &str) -> Option<PublicKey>,
) -> Result<Outcome, Outcome> {
    let invalid = |reason| Outcome::Invalid(reason);
    let (label, input) = profiled(headers)?;
    let signature = dictionary(headers, "signature")
        .ok_or(invalid(Reason::SignatureMissing))?
        .ok_or(invalid(Reason::Malformed))?
        .into_iter()
        .find(|member| member.key == label)
        .and_then(|member| match member.value {
            Value::Item(Bare::Bytes(bytes)) => Some(bytes),
            _ => None,
        })
        .ok_or(invalid(Reason::SignatureMissing))?;
    let missing = || invalid(Reason::MissingParam);
    let created = time(&input.parameters, "created").ok_or_else(missing)?;
    let expires = time(&input.parameters, "expires").ok_or_else(missing)?;
    let keyid = text(&input.parameters, "keyid").ok_or_else(missing)?;
    for (at, item) in input.items.iter().enumerate() {
        if input.items[..at].contains(item) {
            return Err(invalid(Reason::DuplicateComponent));
        }
    }
    let components: Vec<_> = input.items.iter().filter_map(Component::of).collect();
    if !components
        .iter()
        .any(|component| matches!(component, Component::Authority | Component::TargetUri))
    {
        return Err(invalid(Reason::TargetNotCovered));
    }
    let agent = agent(headers, &label, &components)?;
    if created > now {
        return Err(invalid(Reason::CreatedInFuture));
    }
    if now > expires {
        return Err(invalid(Reason::Expired));
    }
    if text(&input.parameters, "alg").is_some_and(|alg| alg != "ed25519") {
        return Err(invalid(Reason::AlgMismatch));
    }
    let base = input
        .base(method, uri, headers)
        .map_err(|_| invalid(Reason::ComponentMissing))?;
    let key = key(&agent, keyid)
        .filter(|key| key.thumbprint() == keyid)
        .ok_or(Outcome::Unverified(Reason::KeyUnknown))?;
    if !key.verifies(&base, &signature) {
        return Err(invalid(Reason::BadSignature));
    }
    Ok(Outcome::Verified {
        agent,
        keyid: keyid.to_owned(),
    })
}

/// The label and input of the signature with the profile's tag.
fn profiled(headers: &HeaderMap) -> Result<(String, SignatureInput), Outcome> {
    let members = dictionary(headers, "signature-input")
        .ok_or(Outcome::Unverified(Reason::SignatureInputAbsent))?
        .ok_or(Outcome::Invalid(Reason::Malformed))?;
    let mut reason = Outcome::Ignored(Reason::NotThisProfile);
    for member in members {
        match text(&member.parameters, "tag") {
            Some(TAG) => {
                let label = member.key.clone();
                let input = SignatureInput::of(member);
                return match input {
                    Some(input) => Ok((label, input)),
                    None => Err(Outcome::Invalid(Reason::Malformed)),
                };
            }
            Some(_) => {}
            None => reason = Outcome::Invalid(Reason::MissingParam),
        }
    }
    Err(reason)
}

/// The link in the Signature-Agent that the signature covers: under its own label, or else any covered one, or the bare
/// string of earlier drafts.
fn agent(headers: &HeaderMap, label: &str, components: &[Component]) -> Result<String, Outcome> {
    let name = HeaderName::from_static("signature-agent");
    let Some(field) = component::field(headers, &name) else {
        return Err(Outcome::Unverified(Reason::SignatureAgentAbsent));
    };
    let mut keys = components.iter().filter_map(|component| match component {
        Component::Member(field, key) if *field == name => Some(key.as_str()),
        _ => None,
    });
    let covered = keys
        .clone()
        .find(|key| *key == label)
        .or_else(|| keys.next());
    let (value, parameters) = if let Some(key) = covered {
        let members = structured::dictionary(field.as_bytes()).unwrap_or_default();
        members
            .into_iter()
            .find(|member| member.key == key)
            .map(|member| (member.value, member.parameters))
            .ok_or(Outcome::Invalid(Reason::ComponentMissing))?
    } else if components.contains(&Component::Field(name)) {
        // A bare item reads as the value of a member.
        structured::dictionary(format!("agent={field}").as_bytes())
            .and_then(|members| <[Member; 1]>::try_from(members).ok())
            .map(|[member]| (member.value, member.parameters))
            .ok_or(Outcome::Invalid(Reason::Malformed))?
    } else {
        return Err(Outcome::Invalid(Reason::SignatureAgentNotCovered));
    };
    if !parameters.is_empty() {
        return Err(Outcome::Unverified(Reason::SignatureAgentHasParams));
    }
    let Value::Item(Bare::String(link)) = value else {
        return Err(Outcome::Invalid(Reason::Malformed));
    };
    let https = link
        .parse::<Uri>()
        .is_ok_and(|link| Origin::of(&link).is_ok_and(|origin| origin.is_https()));
    if !https {
        return Err(Outcome::Invalid(Reason::SignatureAgentNotHttps));
    }
    Ok(link)
}

/// The members of a dictionary field: `None` if it is absent, `Some(None)` if it does not parse.
fn dictionary(headers: &HeaderMap, name: &'static str) -> Option<Option<Vec<Member>>> {
    if !headers.contains_key(name) {
        return None;
    }
    let field = component::field(headers, &HeaderName::from_static(name));
    Some(field.and_then(|field| structured::dictionary(field.as_bytes())))
}

fn time(parameters: &Parameters, name: &str) -> Option<u64> {
    match structured::parameter(parameters, name)? {
        Bare::Integer(seconds) => u64::try_from(*seconds).ok(),
        _ => None,
    }
}

fn text<'p>(parameters: &'p Parameters, name: &str) -> Option<&'p str> {
    match structured::parameter(parameters, name)? {
        Bare::String(text) => Some(text),
        _ => None,
    }
}
