//! Servers that are spoken to under encryption, and those that must not be.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::http_kit::{Listening, Origin, Recording, Wire, call, get, json, post, result};
use crate::kit::{Running, Sandbox};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/tls").join(name)
}

/// All certificates are of one key.
fn server_config(certificate: &str) -> Arc<ServerConfig> {
    let certificate = CertificateDer::from_pem_file(fixture(certificate)).unwrap();
    let key = PrivateKeyDer::from_pem_file(fixture("server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    Arc::new(config.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap())
}

/// The next connection, encrypted. What comes of it shows when it is read.
fn accept(origin: &Origin, certificate: &str) -> Wire {
    let tcp = origin.accept();
    let connection = ServerConnection::new(server_config(certificate)).unwrap();
    let stream = StreamOwned::new(connection, tcp.try_clone().unwrap());
    Wire::over(tcp, Box::new(stream))
}

#[test]
fn a_server_whose_certificate_is_trusted_is_spoken_to() {
    for transport in ["streamable-http", "sse"] {
        // One that an authority vouches for, and two that nobody does but the user.
        for (certificate, trusted) in
            [("server.pem", "ca.pem"), ("server.pem", "server.pem"), ("self-signed.pem", "self-signed.pem")]
        {
            let sandbox = Sandbox::new();
            let origin = Origin::start();
            let url = format!("https://localhost:{}/there", origin.port());
            let ca_file = fixture(trusted);
            let proxy = sandbox.listen_to(transport, &url, &["--quiet", "--ca-file", ca_file.to_str().unwrap()]);
            let mut client = proxy.client();
            client.send(&if transport == "sse" { get("/sse", &[]) } else { post("/mcp", &[], call(1, "x")) });
            let mut wire = accept(&origin, certificate);
            let head = wire.head().unwrap_or_else(|| panic!("a request, with {certificate} trusted by {trusted}"));
            assert_eq!(head.get("host"), Some(format!("localhost:{}", origin.port())));
            wire.expect_body(head.request_body());
            let (body, _) = wire.whole_body();
            assert_eq!(body.is_empty(), transport == "sse");
            wire.send(&json(result(1)));
            assert_eq!(client.response().body, result(1).as_bytes());
            proxy.end();
            assert!(sandbox.stdout(["inspect", sandbox.segments()[0].to_str().unwrap()]).contains("https://localhost"));
        }
    }
}

/// A server that shows `certificate`, at a name of this machine.
struct Untrusted {
    certificate: &'static str,
    trusted: Option<&'static str>,
    host: &'static str,
    /// What everybody is told, and what only the recording and whoever runs the proxy are.
    why: &'static str,
    detail: &'static str,
}

const UNTRUSTED: [Untrusted; 9] = {
    const STRANGE: &str = "its certificate is from an issuer that is not trusted";
    const ITS_OWN: &str = "its certificate vouches for itself and is not trusted";
    const ANOTHER: &str = "its certificate is for another name";
    const EXPIRED: &str = "its certificate has expired";
    const fn of(
        certificate: &'static str,
        trusted: Option<&'static str>,
        host: &'static str,
        (why, detail): (&'static str, &'static str),
    ) -> Untrusted {
        Untrusted { certificate, trusted, host, why, detail }
    }
    [
        of("server.pem", Some("other-ca.pem"), "localhost", (STRANGE, "UnknownIssuer")),
        of("server.pem", None, "localhost", (STRANGE, "UnknownIssuer")),
        of("server.pem", Some("ca.pem"), "127.0.0.1", (ANOTHER, "not valid for name \"127.0.0.1\"")),
        // It was named by the user, and is still not for every name, nor for ever.
        of("server.pem", Some("server.pem"), "127.0.0.1", (ANOTHER, "only valid for DnsName(\"localhost\")")),
        of("self-signed.pem", Some("self-signed.pem"), "127.0.0.1", (ANOTHER, "only valid for DnsName(\"localhost\")")),
        of("nameless.pem", Some("nameless.pem"), "localhost", (ANOTHER, "not valid for any names")),
        of("expired.pem", Some("expired.pem"), "localhost", (EXPIRED, "certificate expired")),
        // One that looks like it will not do, even with the same key and the same name.
        of("self-signed.pem", Some("nameless.pem"), "localhost", (ITS_OWN, "CaUsedAsEndEntity")),
        of("self-signed.pem", None, "localhost", (ITS_OWN, "CaUsedAsEndEntity")),
    ]
};

impl Untrusted {
    fn command(&self, sandbox: &Sandbox, origin: &Origin, args: &[&str], flag: &str) -> Command {
        let mut command = sandbox.command(args);
        command.args(["--quiet", flag, &format!("https://{}:{}/mcp", self.host, origin.port())]);
        command.args(self.trusted.into_iter().flat_map(|name| ["--ca-file".into(), fixture(name)]));
        // What the system trusts, whatever system this is.
        command.env("SSL_CERT_FILE", fixture("other-ca.pem")).env_remove("SSL_CERT_DIR");
        command
    }

    #[track_caller]
    fn check(&self, sandbox: &Sandbox, told: &str, said: &str) {
        let Self { why, detail, .. } = self;
        assert!(told.contains(&format!("the server cannot be reached ({why})")), "{told}");
        assert!(!told.contains("localhost") && !told.contains("127.0.0.1"), "where the server is stays here: {told}");
        let noted = Recording::of(sandbox).events().join("\n");
        for text in [said, &noted] {
            assert!(text.contains("cannot connect to") && text.contains(why) && text.contains(detail), "{text}");
        }
    }
}

#[test]
fn a_server_whose_certificate_is_not_trusted_gets_no_request_and_everybody_hears_why() {
    for untrusted in UNTRUSTED {
        let (sandbox, origin) = (Sandbox::new(), Origin::start());
        let args = ["proxy", "--listen", "127.0.0.1:0", "--transport", "streamable-http"];
        let proxy = Listening::start(untrusted.command(&sandbox, &origin, &args, "--target-url"));
        let mut told = String::new();
        for _ in 0..3 {
            let mut client = proxy.client();
            client.send(&post("/mcp", &["Authorization: Bearer secret"], call(1, "x")));
            assert!(accept(&origin, untrusted.certificate).head().is_none(), "it reads no request");
            let response = client.response();
            assert_eq!(response.error(), (5020, 1.into()));
            told = String::from_utf8_lossy(&response.body).into_owned();
        }
        let said = proxy.end();
        untrusted.check(&sandbox, &told, &said);
        assert_eq!(said.matches("cannot connect to").count(), 1, "it is said once: {said}");
    }
}

#[test]
fn a_client_on_a_pipe_hears_why_too() {
    for transport in ["streamable-http", "sse"] {
        for untrusted in UNTRUSTED {
            let (sandbox, origin) = (Sandbox::new(), Origin::start());
            let args = ["run", "--transport", transport];
            let mut proxy = Running::start(untrusted.command(&sandbox, &origin, &args, "--url"));
            proxy.send(format!("{}\n", call(1, "x")).as_bytes());
            assert!(accept(&origin, untrusted.certificate).head().is_none(), "it reads no request");
            let told = proxy.json().to_string();
            let (status, said) = proxy.end();
            assert_eq!(status.code(), Some(3), "{said}");
            untrusted.check(&sandbox, &told, &said);
        }
    }
}

#[test]
fn a_server_without_encryption_is_not_spoken_to_as_if_it_had_it() {
    let sandbox = Sandbox::new();
    let origin = Origin::start();
    let url = format!("https://localhost:{}/mcp", origin.port());
    let ca_file = fixture("ca.pem");
    let proxy = sandbox.listen_to("streamable-http", &url, &["--quiet", "--ca-file", ca_file.to_str().unwrap()]);
    let mut client = proxy.client();
    client.send(&post("/mcp", &["Authorization: Bearer secret"], call(1, "x")));
    let mut wire = Wire::new(origin.accept());
    let _ = wire.try_send(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(client.response().error(), (5020, 1.into()));
    let got = wire.until_closed();
    assert!(!got.windows(6).any(|window| window == b"secret"), "nothing leaves in the clear");
    proxy.end();
}

#[test]
fn a_file_without_a_certificate_is_said_at_the_start() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("empty.pem"), "nothing here").unwrap();
    let output = sandbox.output([
        "proxy",
        "--transport",
        "sse",
        "--target-url",
        "https://localhost:1/sse",
        "--listen",
        "127.0.0.1:0",
        "--ca-file",
        "empty.pem",
    ]);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{errors}");
    assert!(errors.contains("there is no certificate in `empty.pem`"), "{errors}");
}
