//! The calls of a signer that keeps its key in a KMIP server, such as Krill, through the kmip-protocol crate.

use std::env;
use std::fs;

use kmip_protocol::client::tls::openssl::connect;
use kmip_protocol::client::{ClientCertificate, ConnectionSettings, Result};
use kmip_protocol::types::common::{ObjectType, Operation};

fn main() -> Result<()> {
    let directory = env::var("CLIENT").expect("CLIENT");
    let read = |name: &str| fs::read(format!("{directory}/{name}")).expect("a file of the client");
    let client = connect(&ConnectionSettings {
        host: "localhost".to_string(),
        port: env::var("PORT").expect("PORT").parse().expect("a port"),
        // What a client sends of its own beside the certificate must do no harm.
        username: Some("krill".to_string()),
        password: Some("any".to_string()),
        client_cert: Some(ClientCertificate::SeparatePem {
            cert_bytes: read("client.crt"),
            key_bytes: Some(read("client.key")),
        }),
        ca_cert: Some(fs::read(env::var("CA").expect("CA")).expect("the server's certificate")),
        ..Default::default()
    })?;

    let server = client.query()?;
    for needed in [Operation::CreateKeyPair, Operation::Activate, Operation::Revoke, Operation::Destroy] {
        assert!(server.operations.as_ref().is_some_and(|all| all.contains(&needed)), "{needed:?}");
    }
    assert_eq!(client.rng_retrieve(32)?.data.len(), 32);

    let (secret, open) = client.create_rsa_key_pair(2048, "krill private".into(), "krill public".into())?;
    client.activate_key(&secret)?;
    assert_eq!(client.sign(&secret, b"to be signed")?.signature_data.len(), 256);
    client.rename_key(&open, "krill renamed".into())?;
    assert_eq!(client.get_key(&open)?.object_type, ObjectType::PublicKey);

    assert!(client.destroy_key(&secret).is_err(), "an active key was destroyed");
    client.revoke_key(&secret)?;
    client.destroy_key(&secret)?;
    client.destroy_key(&open)?;
    assert!(client.get_key(&open).is_err(), "a destroyed key was handed out");
    println!("done");
    Ok(())
}
