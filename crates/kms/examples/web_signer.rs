//! A web service that signs: `cargo run -p bulla-kms --example web_signer`, then
//! `curl --data-binary @FILE http://127.0.0.1:8000/sign`. It answers with the key version and the
//! signature in base64. Its key is in memory, and ends with it.

use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;

use bulla_kms::audit_log::Actor;
use bulla_kms::batcher::{Batcher, BatcherOptions};
use bulla_kms::{Algorithm, KeyId, Keystore, NewKey};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

const MAX_MESSAGE_LEN: usize = 1 << 20;

/// A service's key, and what signs with it.
struct Signer {
    batcher: Batcher,
    key: KeyId,
}

impl Signer {
    fn new(keystore: Arc<Keystore>) -> bulla_kms::Result<Self> {
        let new = NewKey::new("local".parse()?, "web".parse()?, Algorithm::Ed25519);
        let key = keystore.create_key(new)?.key_id().clone();
        // Requests that arrive together are signed together.
        Ok(Self { batcher: Batcher::new(keystore, &BatcherOptions::default())?, key })
    }

    /// Signs for a caller, whom an audit log would name.
    async fn sign(&self, caller: &Actor, message: Bytes) -> bulla_kms::Result<String> {
        let signature = self.batcher.sign_on_behalf_of(caller, self.key.clone(), message).await?;
        Ok(serde_json::to_string(&signature).expect("a signature has text keys"))
    }
}

async fn answer(signer: Arc<Signer>, request: Request<Incoming>) -> Response<Full<Bytes>> {
    if (request.method(), request.uri().path()) != (&Method::POST, "/sign") {
        return response(StatusCode::NOT_FOUND, "POST a message to /sign".to_owned());
    }
    // A real service authenticates its callers.
    let caller = "web".parse().expect("it is the name of an actor");
    let Ok(body) = Limited::new(request.into_body(), MAX_MESSAGE_LEN).collect().await else {
        return response(StatusCode::PAYLOAD_TOO_LARGE, "the message is too long".to_owned());
    };
    match signer.sign(&caller, body.to_bytes()).await {
        Ok(signature) => response(StatusCode::OK, signature),
        Err(error) if error.retryable => response(StatusCode::SERVICE_UNAVAILABLE, error.message),
        Err(error) => response(StatusCode::INTERNAL_SERVER_ERROR, error.message),
    }
}

fn response(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    response
}

async fn serve(listener: TcpListener, signer: Arc<Signer>) -> std::io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        let signer = Arc::clone(&signer);
        let service = service_fn(move |request| {
            let signer = Arc::clone(&signer);
            async move { Ok::<_, Infallible>(answer(signer, request).await) }
        });
        let connection = hyper::server::conn::http1::Builder::new();
        tokio::spawn(connection.serve_connection(TokioIo::new(stream), service));
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let signer = Arc::new(Signer::new(Arc::new(Keystore::in_memory()?))?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:8000").await?;
        println!("listening on http://{}", listener.local_addr()?);
        Ok(serve(listener, signer).await?)
    })
}

#[test]
fn the_example_signs_what_it_is_sent() {
    use std::io::{Read as _, Write as _};

    let keystore = Arc::new(Keystore::in_memory().unwrap());
    let signer = Arc::new(Signer::new(Arc::clone(&keystore)).unwrap());
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            sender.send(listener.local_addr().unwrap()).unwrap();
            serve(listener, signer).await
        })
    });
    let mut stream = std::net::TcpStream::connect(receiver.recv().unwrap()).unwrap();
    stream
        .write_all(
            b"POST /sign HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 9\r\n\r\na message",
        )
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
    let signature: bulla_kms::Signature = serde_json::from_str(body).unwrap();
    assert!(keystore.verify(&signature.key, b"a message", &signature.bytes).unwrap().is_valid());
}
