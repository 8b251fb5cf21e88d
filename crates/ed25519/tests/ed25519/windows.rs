//! The registers that Microsoft's calling convention keeps.

use crate::cases;
use bulla_ed25519::{SignItem, SigningKey, Verdict, kernel};
use bulla_kernel_testing::registers;

#[test]
fn every_kernel_keeps_registers() {
    let cases = cases::cases(40, 100, 31);
    let items: Vec<_> = cases.iter().map(cases::Case::item).collect();
    let key = SigningKey::from_bytes(&[7; 32]);
    let messages: Vec<_> = (0..20).map(|i| vec![i; 50]).collect();
    let to_sign: Vec<_> = messages.iter().map(|message| SignItem { key: &key, message }).collect();
    for kernel in kernel::available() {
        for count in [1, 2, 8, 40] {
            let mut verdicts = vec![Verdict::Valid; count];
            let changed = registers::changed(|| kernel.verify_many_into(&items[..count], &mut verdicts));
            assert_eq!(changed, [0; 0], "{kernel}, {count} signatures");
        }
        for count in [1, 20] {
            let mut signatures = vec![[0; 64]; count];
            let changed = registers::changed(|| kernel.sign_many_into(&to_sign[..count], &mut signatures));
            assert_eq!(changed, [0; 0], "{kernel}, {count} messages to sign");
        }
    }
}
