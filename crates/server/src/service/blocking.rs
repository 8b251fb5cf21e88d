//! Work that waits, on threads of its own.

use std::any::Any;

use tokio::task::spawn_blocking;

use crate::error::{ApiError, Result};

/// Runs work that waits for a disk or a device, or that is slow, on another thread, so that this
/// one goes on serving.
///
/// The work and its result are boxed: so the runtime's task is compiled once, and not for each
/// handler.
///
/// # Errors
/// The work panicked.
pub(crate) async fn run_off_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T> {
    let work: Box<dyn FnOnce() -> Box<dyn Any + Send> + Send> = Box::new(move || Box::new(work()));
    let done = spawn_blocking(work).await;
    let done = done.map_err(|_| ApiError::panicked())?;
    Ok(*done.downcast().expect("what the work returned"))
}
