//! Judges the certificate that a server shows, and says in plain words what is wrong with it.

use std::io;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};

/// Trusts what the authorities vouch for, and the very certificates that the user named.
///
/// A certificate that somebody made for a server of their own is mostly no authority's: it vouches
/// for itself, says that it is an authority, and is refused as that of a server. Where the user named
/// exactly this one, nobody has to vouch for it. The rest is checked as ever: its dates, that it is
/// for the name we asked for, and that the server has its key.
#[derive(Debug)]
pub struct Verifier {
    authorities: Arc<WebPkiServerVerifier>,
    named: Vec<CertificateDer<'static>>,
}

impl Verifier {
    pub fn new(authorities: Arc<WebPkiServerVerifier>, named: Vec<CertificateDer<'static>>) -> Arc<Self> {
        Arc::new(Self { authorities, named })
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.authorities.verify_server_cert(shown, intermediates, name, ocsp_response, now) {
            Err(error) if lacks_only_a_voucher(&error) && self.named.contains(shown) => {
                verify_server_name(&ParsedCertificate::try_from(shown)?, name)?;
                Ok(ServerCertVerified::assertion())
            }
            judged => judged,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}

/// Whether all that is amiss is who stands behind a certificate. Its dates are looked at before that.
fn lacks_only_a_voucher(error: &Error) -> bool {
    match error {
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => true,
        Error::InvalidCertificate(error) => is_authority(error),
        _ => false,
    }
}

fn is_authority(error: &CertificateError) -> bool {
    let CertificateError::Other(other) = error else { return false };
    matches!(other.0.downcast_ref(), Some(webpki::Error::CaUsedAsEndEntity))
}

/// Why a connection that stood could not be encrypted, without a word about where the server is.
/// `None` if it is not for this reason that there is no connection.
pub fn what_is_wrong(error: &io::Error) -> Option<&'static str> {
    let error = error.get_ref()?.downcast_ref::<Error>()?;
    let Error::InvalidCertificate(error) = error else { return Some("encryption failed") };
    Some(match error {
        CertificateError::UnknownIssuer => "its certificate is from an issuer that is not trusted",
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "its certificate is for another name"
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "its certificate has expired",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet"
        }
        CertificateError::Revoked => "its certificate was revoked",
        error if is_authority(error) => "its certificate vouches for itself and is not trusted",
        _ => "its certificate cannot be accepted",
    })
}
