//! Servers that are spoken to under encryption, and those that must not be.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::http_kit::{Listening, Origin, Recording, Wire, call, get, json, post, result};
use crate::kit::Sandbox;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/tls").join(name)
}

/// The certificate of `localhost`.
fn server_config() -> Arc<ServerConfig> {
    let certificate = CertificateDer::from_pem_file(fixture("server.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(fixture("server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    Arc::new(config.with_no_client_auth().with_single_cert(vec![certificate], key).unwrap())
}

/// The next connection, encrypted. What comes of it shows when it is read.
fn accept(origin: &Origin) -> Wire {
    let tcp = origin.accept();
    let connection = ServerConnection::new(server_config()).unwrap();
    let stream = StreamOwned::new(connection, tcp.try_clone().unwrap());
    Wire::over(tcp, Box::new(stream))
}

#[test]
fn a_server_whose_certificate_is_trusted_is_spoken_to() {
    for transport in ["streamable-http", "sse"] {
        let sandbox = Sandbox::new();
        let origin = Origin::start();
        let url = format!("https://localhost:{}/there", origin.port());
        let ca_file = fixture("ca.pem");
        let proxy = sandbox.listen_to(transport, &url, &["--quiet", "--ca-file", ca_file.to_str().unwrap()]);
        let mut client = proxy.client();
        client.send(&if transport == "sse" { get("/sse", &[]) } else { post("/mcp", &[], call(1, "x")) });
        let mut wire = accept(&origin);
        let head = wire.head().expect("a request");
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

#[test]
fn a_server_whose_certificate_is_not_trusted_gets_no_request() {
    for (ca_file, host, why) in [
        (Some("other-ca.pem"), "localhost", "UnknownIssuer"),
        (None, "localhost", "UnknownIssuer"),
        (Some("ca.pem"), "127.0.0.1", "not valid for name"),
    ] {
        let sandbox = Sandbox::new();
        let origin = Origin::start();
        let url = format!("https://{host}:{}/mcp", origin.port());
        let ca_file = ca_file.map(|name| fixture(name).to_str().unwrap().to_owned());
        let mut command = sandbox.command(["proxy", "--quiet", "--listen", "127.0.0.1:0"]);
        command.args(["--transport", "streamable-http", "--target-url", &url]);
        command.args(ca_file.iter().flat_map(|file| ["--ca-file", file.as_str()]));
        // What the system trusts, whatever system this is.
        command.env("SSL_CERT_FILE", fixture("other-ca.pem")).env_remove("SSL_CERT_DIR");
        let proxy = Listening::start(command);
        let mut client = proxy.client();
        client.send(&post("/mcp", &["Authorization: Bearer secret"], call(1, "x")));
        assert!(accept(&origin).head().is_none(), "it reads no request");
        let response = client.response();
        assert_eq!(response.error(), (5020, 1.into()));
        let told = String::from_utf8_lossy(&response.body).into_owned();
        assert!(!told.contains("localhost") && !told.contains("127.0.0.1"), "where the server is stays here: {told}");
        proxy.end();
        let noted = Recording::of(&sandbox).events().join("\n");
        assert!(noted.contains("cannot connect") && noted.contains("certificate") && noted.contains(why), "{noted}");
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
