//! What the developer's programs share: the checkout ([`Context`]), child processes, and the
//! installation of tools and of the C libraries.
#![forbid(unsafe_code)]

pub mod c_libraries;
mod context;
pub mod install;
pub mod packages;
pub mod process;
pub mod wine;

pub use self::{
    context::{Context, build_program},
    process::{Echo, quiet, stream, stream_both},
};
