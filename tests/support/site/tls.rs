//! A certificate authority that exists only in memory, for a site that is asked over HTTPS.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// A root certificate made for one test, and the right to sign a site's certificate with it.
#[derive(Debug)]
pub struct Authority {
    root: Vec<u8>,
    config: Arc<ServerConfig>,
}

impl Authority {
    /// An authority whose sites are valid for `names` (host names and addresses) and speak the protocols of `alpn`,
    /// such as `["h2", "http/1.1"]`, the preferred one first.
    ///
    /// # Panics
    /// When a name is not valid for a certificate.
    #[must_use]
    pub fn new(names: &[&str], alpn: &[&str]) -> Arc<Self> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let key = KeyPair::generate().expect("a key can be made");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("a root can be signed");

        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).expect("the names are valid");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate().expect("a key can be made");
        let leaf = params
            .signed_by(&key, &issuer)
            .expect("a certificate can be signed");
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));

        // The provider is named: with two of them in one build there is no default, and asking for it panics.
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("ring supports the default versions")
            .with_no_client_auth()
            .with_single_cert(vec![leaf.der().clone()], key)
            .expect("the key belongs to the certificate");
        config.alpn_protocols = alpn.iter().map(|p| p.as_bytes().to_vec()).collect();
        Arc::new(Self {
            root: issuer.der().to_vec(),
            config: Arc::new(config),
        })
    }

    /// The root certificate in DER, for the client's list of roots.
    #[must_use]
    pub fn root_der(&self) -> &[u8] {
        &self.root
    }

    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.config))
    }
}
