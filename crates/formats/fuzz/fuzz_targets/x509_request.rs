//! No bytes make the readers of requests for certificates and of authorities' certificates panic.
#![no_main]

use bulla_formats::x509::{AuthorityCertificate, CertificateRequest};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(request) = CertificateRequest::parse(bytes) {
        assert_eq!(CertificateRequest::parse(bytes), Ok(request.clone()));
        let _ = (request.subject(), request.names().texts());
    }
    if let Ok(authority) = AuthorityCertificate::parse(bytes) {
        let _ = (authority.subject(), authority.not_after());
    }
});
