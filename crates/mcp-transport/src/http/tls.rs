//! Encryption towards servers: the certificates of the system, and those the user names.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::{VerifierBuilderError, WebPkiServerVerifier};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

use super::certificate::Verifier;

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read certificates from `{path}`")]
    CaFile {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("there is no certificate in `{path}`")]
    NoCertificate { path: PathBuf },
    #[error("this system has no certificates to check a server's with")]
    NoRoots,
    #[error("encryption cannot be set up")]
    Setup(#[from] rustls::Error),
    #[error("certificates cannot be checked")]
    Verifier(#[from] VerifierBuilderError),
}

/// What connections to servers are encrypted with.
pub fn client_config(ca_file: Option<&Path>) -> Result<Arc<ClientConfig>, TlsError> {
    let (mut roots, _) = system_roots();
    let named = ca_file.map(certificates).transpose()?.unwrap_or_default();
    for certificate in &named {
        roots.add(certificate.clone())?;
    }
    if roots.is_empty() {
        return Err(TlsError::NoRoots);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let authorities = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider)).build()?;
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Verifier::new(authorities, named))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = |source: io::Error| TlsError::CaFile { path: path.to_owned(), source };
    let pem = std::fs::read(path).map_err(read)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let found = found.map_err(|error| read(io::Error::other(error.to_string())))?;
    if found.is_empty() {
        return Err(TlsError::NoCertificate { path: path.to_owned() });
    }
    Ok(found)
}

/// The certificates this system trusts, and how many of its own it cannot read.
pub fn system_roots() -> (RootCertStore, usize) {
    let mut roots = RootCertStore::empty();
    let (_, ignored) = roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    (roots, ignored)
}
