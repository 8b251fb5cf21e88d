//! The seven rounds of the row form, and the shuffles that make the rows of its message.
//!
//! Each half round needs four vectors of message words: for the columns words (0, 2, 4, 6) and (1,
//! 3, 5, 7) of the round's schedule, for the diagonals (14, 8, 10, 12) and (15, 9, 11, 13), turned
//! like the rows. All 28 are made from the block's four quarters with 38 two-word picks (`shufps`)
//! of one cycle each. A search over intermediate vectors that bring two pairs of later rows
//! together found the plan. Each pick comes right before its result is needed.

use bulla_simd::Rows;

/// The four rows of the states.
struct State<V> {
    a: V,
    b: V,
    c: V,
    d: V,
}

impl<V: Rows> State<V> {
    #[inline(always)]
    unsafe fn first_half(&mut self, m: V) {
        // SAFETY: the caller has the instruction set of V.
        unsafe {
            self.a = V::add(V::opaque(V::add(self.a, m)), self.b);
            self.d = V::xor_rotr16(self.d, self.a);
            self.c = V::add(self.c, self.d);
            self.b = V::xor_rotr12(self.b, self.c);
        }
    }

    #[inline(always)]
    unsafe fn second_half(&mut self, m: V) {
        // SAFETY: the caller has the instruction set of V.
        unsafe {
            self.a = V::add(V::opaque(V::add(self.a, m)), self.b);
            self.d = V::xor_rotr8(self.d, self.a);
            self.c = V::add(self.c, self.d);
            self.b = V::xor_rotr7(self.b, self.c);
        }
    }

    #[inline(always)]
    unsafe fn diagonalize(&mut self) {
        // SAFETY: the caller has the instruction set of V.
        unsafe {
            self.a = V::rotate_words_left::<3>(self.a);
            self.d = V::rotate_words_left::<2>(self.d);
            self.c = V::rotate_words_left::<1>(self.c);
        }
    }

    #[inline(always)]
    unsafe fn undiagonalize(&mut self) {
        // SAFETY: the caller has the instruction set of V.
        unsafe {
            self.a = V::rotate_words_left::<1>(self.a);
            self.d = V::rotate_words_left::<2>(self.d);
            self.c = V::rotate_words_left::<3>(self.c);
        }
    }
}

/// The plan: each line is a half round, the picks that go before it (`name = immediate a b`), and
/// the turn after it.
macro_rules! plan {
    ($state:ident, $( ($($row:ident = $imm:literal $a:ident $b:ident),*) $half:ident $m:ident $($turn:ident)?; )*) => { $(
        $( let $row = V::shuffle::<$imm>($a, $b); )*
        $state.$half($m);
        $( $state.$turn(); )?
    )* };
}

/// The seven rounds on rows a, b, c, d with the quarters of the message.
#[inline(always)]
pub(crate) unsafe fn rounds<V: Rows>(rows: [V; 4], quarters: [V; 4]) -> [V; 4] {
    let mut s = State { a: rows[0], b: rows[1], c: rows[2], d: rows[3] };
    let [q0, q1, q2, q3] = quarters;
    // SAFETY: the caller has the instruction set of V.
    unsafe {
        plan! {
            s,
            // Round 0
            (t4 = 136 q0 q1, t5 = 221 q0 q1, t6 = 198 q2 q3, t7 = 198 q3 q2, t8 = 136 t7 t6, t9 = 119 t6 t7) first_half t4;
            (t10 = 62 q0 q1, t11 = 98 t8 q1) second_half t5 diagonalize;
            (t12 = 124 q2 t11) first_half t8;
            (t13 = 52 q0 t9, t14 = 130 t11 t13) second_half t9 undiagonalize;
            // Round 1
            (t15 = 103 t13 t6) first_half t10;
            (t16 = 200 t5 t13, t17 = 77 t4 t8) second_half t14 diagonalize;
            (t18 = 215 t17 q2, t19 = 225 q3 t10) first_half t15;
            (t20 = 135 t19 t17, t21 = 148 t6 t10) second_half t12 undiagonalize;
            // Round 2
            (t22 = 130 t21 t19) first_half t22;
            (t23 = 104 t6 q3, t24 = 195 t4 t17) second_half t20 diagonalize;
            (t25 = 125 t10 t13) first_half t18;
            (t26 = 135 t21 t25) second_half t16 undiagonalize;
            // Round 3
            (t27 = 151 t25 t12) first_half t23;
            (t28 = 182 t6 q3) second_half t26 diagonalize;
            (t29 = 45 t7 q2) first_half t27;
            (t30 = 158 q1 t16) second_half t24 undiagonalize;
            // Round 4
            (t31 = 118 t4 q0) first_half t28;
            (t32 = 109 t11 t15, t33 = 131 t19 q0) second_half t29 diagonalize;
            (t34 = 135 t5 t11) first_half t30;
            (t35 = 206 t25 t18) second_half t31 undiagonalize;
            // Round 5
            (t36 = 45 q2 t35) first_half t36;
            (t37 = 153 t12 t35, t38 = 99 t13 t18) second_half t32 diagonalize;
            (t39 = 215 t14 t19) first_half t33;
            (t40 = 142 t19 t32) second_half t34 undiagonalize;
            // Round 6
            (t41 = 232 t40 q0) first_half t37;
            () second_half t38 diagonalize;
            () first_half t41;
            () second_half t39 undiagonalize;
        }
    }
    [s.a, s.b, s.c, s.d]
}
