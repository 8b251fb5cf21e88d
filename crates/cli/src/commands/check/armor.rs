//! Lists that OpenPGP signed in clear text (RFC 9580, section 7), as many releases have them. bulla
//! reads the checksums in them and does not verify the signature.

/// Where a list is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Armor {
    /// Nothing but comments came before, or the list is not signed.
    #[default]
    None,
    /// A checksum came before: a signature that begins now would not cover it.
    Unsigned,
    /// In the lines that name hash functions, which a blank line ends.
    Head,
    /// In the signed text.
    Signed,
    /// In the signature.
    Signature,
    /// After it.
    After,
}

/// What a line is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// It belongs to the list.
    Text,
    /// It belongs to the signature.
    Armor,
    /// It is not signed, and the rest of the list is.
    Outside,
}

impl Armor {
    /// The role of the next line, from which the escape of a signed text is removed.
    pub(super) fn take(&mut self, line: &mut Vec<u8>) -> Role {
        let trimmed = line.trim_ascii();
        let is_blank = trimmed.is_empty();
        match self {
            Self::None if trimmed == b"-----BEGIN PGP SIGNED MESSAGE-----" => *self = Self::Head,
            Self::None if is_blank || matches!(trimmed[0], b'#' | b';') => return Role::Text,
            Self::None | Self::Unsigned => {
                *self = Self::Unsigned;
                return Role::Text;
            }
            Self::Head if is_blank => *self = Self::Signed,
            Self::Signed if trimmed == b"-----BEGIN PGP SIGNATURE-----" => *self = Self::Signature,
            Self::Signed => {
                if line.starts_with(b"- ") {
                    line.drain(..2);
                }
                return Role::Text;
            }
            Self::Signature if trimmed == b"-----END PGP SIGNATURE-----" => *self = Self::After,
            Self::After if !is_blank => return Role::Outside,
            Self::Head | Self::Signature | Self::After => {}
        }
        Role::Armor
    }

    /// Whether a signature is around the checksums.
    pub(super) fn is_signed(self) -> bool {
        !matches!(self, Self::None | Self::Unsigned)
    }

    /// Whether the end of the signature is missing.
    pub(super) fn is_cut(self) -> bool {
        matches!(self, Self::Head | Self::Signed | Self::Signature)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_signed_text_of_a_signed_list_counts() {
        let text = "# made by us\n-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n- -a\nb\n-----BEGIN PGP SIGNATURE-----\n\nabc\n\
            -----END PGP SIGNATURE-----\n\nc";
        let mut armor = Armor::default();
        let mut found = Vec::new();
        for line in text.lines() {
            assert_eq!(armor.is_cut(), !matches!(armor, Armor::None | Armor::After));
            let mut line = line.as_bytes().to_vec();
            let role = armor.take(&mut line);
            found.push((role, String::from_utf8(line).unwrap()));
        }
        assert!(armor.is_signed() && !armor.is_cut());
        let texts: Vec<_> =
            found.iter().filter(|(role, _)| *role == Role::Text).map(|(_, text)| &text[..]).collect();
        assert_eq!(texts, ["# made by us", "-a", "b"]);
        assert_eq!(found.last().unwrap(), &(Role::Outside, "c".to_owned()));
    }

    #[test]
    fn a_signature_after_checksums_is_none() {
        let mut armor = Armor::default();
        for line in ["a checksum", "-----BEGIN PGP SIGNED MESSAGE-----", ""] {
            assert_eq!(armor.take(&mut line.as_bytes().to_vec()), Role::Text);
        }
        assert!(!armor.is_signed());
    }
}
