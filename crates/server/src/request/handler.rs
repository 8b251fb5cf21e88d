//! Handlers as values of one type.
//!
//! Everything that axum builds around a handler is generic over it, and there are about 200 of
//! them: more than a quarter of the time to compile this crate went there.

use std::pin::Pin;
use std::sync::Arc;

use axum::extract::Request;
use axum::handler::Handler;
use axum::response::Response;
use axum::routing::MethodRouter;
use utoipa::__dev::{SchemaReferences, Tags};
use utoipa::openapi::path::Paths;
use utoipa_axum::PathItemExt as _;
use utoipa_axum::router::UtoipaMethodRouter;

use super::long_body::LongBody;
use crate::service::Worker;

/// What every handler that is a function returns in axum.
pub(crate) type Answer = Pin<Box<dyn Future<Output = Response> + Send>>;

/// A handler whose type is forgotten.
#[derive(Clone)]
pub(crate) struct ErasedHandler(Arc<dyn Fn(Request, Worker) -> Answer + Send + Sync>);

impl Handler<(), Worker> for ErasedHandler {
    type Future = Answer;

    fn call(self, mut request: Request, worker: Worker) -> Answer {
        let Some(long) = LongBody::may_come(&mut request) else { return (self.0)(request, worker) };
        let handler = (self.0)(request, Arc::clone(&worker));
        Box::pin(long.answer(handler, worker))
    }
}

/// Forgets the type of a handler.
pub(crate) fn erased<H, T>(handler: H) -> ErasedHandler
where
    H: Handler<T, Worker, Future = Answer>,
{
    ErasedHandler(Arc::new(move |request, worker| handler.clone().call(request, worker)))
}

/// Adds a handler, for the path and the methods of its description.
pub(crate) fn add<D, H, T>(
    (mut schemas, mut paths, mut methods): UtoipaMethodRouter<Worker>,
    _description: D,
    handler: H,
) -> UtoipaMethodRouter<Worker>
where
    D: utoipa::Path + SchemaReferences + for<'a> Tags<'a>,
    H: Handler<T, Worker, Future = Answer>,
{
    let handler = erased(handler);
    for method in D::methods() {
        methods = methods.on(method.to_method_filter(), handler.clone());
    }
    D::schemas(&mut schemas);
    let mut operation = D::operation();
    let tags = D::tags();
    if !tags.is_empty() {
        operation.tags.get_or_insert_default().extend(tags.into_iter().map(str::to_owned));
    }
    paths.add_path_operation(D::path(), D::methods(), operation);
    (schemas, paths, methods)
}

/// Nothing, to which handlers are added.
pub(crate) fn none() -> UtoipaMethodRouter<Worker> {
    (Vec::new(), Paths::new(), MethodRouter::new())
}

/// The routes of handlers that have a description: those of one path.
macro_rules! routes {
    ($($handler:ident),+ $(,)?) => {{
        let routes = $crate::request::handler::none();
        $(let routes = utoipa_axum::paste! {
            $crate::request::handler::add(routes, [<__path_ $handler>], $handler)
        };)+
        routes
    }};
}

pub(crate) use routes;
