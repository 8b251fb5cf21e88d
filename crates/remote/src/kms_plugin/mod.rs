//! `bulla kms-plugin`: a KMS v2 provider for the API server of Kubernetes, which encrypts with a
//! key of a service. `docs/kubernetes.md` is for its users, and decision 0347 has the reasons.

#[cfg(unix)]
mod protocol;
#[cfg(unix)]
mod provider;
#[cfg(unix)]
mod server;

use crate::args::KmsPluginCli;
use bulla_command::error::Result;
use bulla_command::exit::Exit;

#[cfg(unix)]
pub(crate) fn run(cli: &KmsPluginCli) -> Result<Exit> {
    server::run(cli)
}

#[cfg(not(unix))]
pub(crate) fn run(_cli: &KmsPluginCli) -> Result<Exit> {
    let message = "the API server asks a plugin on a Unix socket, which there is none of here";
    Err(bulla_command::error::Error::new("unsupported", message)
        .hint("run the plugin on a machine of the control plane"))
}
