//! Calls for programs without a runtime.

use std::pin::Pin;

use tokio::runtime::{Builder, Runtime};

use crate::client::Client;
use crate::error::{Error, Result};

/// A client for programs that have no tokio runtime of their own: each call waits on the thread
/// that makes it.
///
/// ```no_run
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// use bulla_client::{Blocking, Client, Settings};
///
/// let client = Blocking::new(Client::new(Settings::new("unix:/run/bulla/socket".parse()?))?)?;
/// let signature = client.wait(async |client| client.sign("invoices", b"a message").await)?;
/// # Ok(())
/// # }
/// ```
///
/// Threads may share it.
#[derive(Debug)]
pub struct Blocking {
    client: Client,
    runtime: Runtime,
}

impl Blocking {
    /// A client with a runtime of its own, and no thread.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the operating system has no resources for it.
    pub fn new(client: Client) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let none = |error| Error::Invalid(format!("cannot wait for the network: {error}"));
        Ok(Self { client, runtime: runtime.map_err(none)? })
    }

    /// Makes calls, and waits for what they return.
    ///
    /// # Panics
    /// On a thread that already runs a runtime.
    pub fn wait<T>(&self, calls: impl AsyncFnOnce(&Client) -> T) -> T {
        let mut returned = None;
        self.run(Box::pin(async { returned = Some(calls(&self.client).await) }));
        returned.expect("the calls have ended")
    }

    /// Not generic: a runtime is some 1,500 lines of LLVM's code, which would be compiled again for
    /// each kind of call.
    fn run(&self, calls: Pin<Box<dyn Future<Output = ()> + '_>>) {
        self.runtime.block_on(calls);
    }

    /// The client.
    pub fn client(&self) -> &Client {
        &self.client
    }
}
