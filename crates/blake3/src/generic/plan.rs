//! The seven rounds of the row form, and the shuffles that make the rows of its message.
//!
//! Each half round needs four vectors of message words: for the columns words (0, 2, 4, 6) and (1, 3, 5, 7) of the round's
//! schedule, for the diagonals (14, 8, 10, 12) and (15, 9, 11, 13), turned like the rows. All 28 are made from the block's
//! four quarters by 38 two-word picks (`shufps`), of one cycle each. The plan was found by a search over intermediate vectors
//! that bring two pairs of later rows together; each pick stands where its result is about to be needed.

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
            self.a = V::add(V::pin(V::add(self.a, m)), self.b);
            self.d = V::rotr16(V::xor(self.d, self.a));
            self.c = V::add(self.c, self.d);
            self.b = V::rotr12(V::xor(self.b, self.c));
        }
    }

    #[inline(always)]
    unsafe fn second_half(&mut self, m: V) {
        // SAFETY: the caller has the instruction set of V.
        unsafe {
            self.a = V::add(V::pin(V::add(self.a, m)), self.b);
            self.d = V::rotr8(V::xor(self.d, self.a));
            self.c = V::add(self.c, self.d);
            self.b = V::rotr7(V::xor(self.b, self.c));
        }
    }

    #[inline(always)]
    unsafe fn diagonalize(&mut self) {
        // SAFETY: the caller has the instruction set of V.
        unsafe {
            self.a = V::turn3(self.a);
            self.d = V::turn2(self.d);
            self.c = V::turn1(self.c);
        }
    }

    #[inline(always)]
    unsafe fn undiagonalize(&mut self) {
        // SAFETY: the caller has the instruction set of V.
        unsafe {
            self.a = V::turn1(self.a);
            self.d = V::turn2(self.d);
            self.c = V::turn3(self.c);
        }
    }
}

/// The seven rounds on rows a, b, c, d with the quarters of the message.
#[inline(always)]
pub(crate) unsafe fn rounds<V: Rows>(rows: [V; 4], quarters: [V; 4]) -> [V; 4] {
    let mut s = State { a: rows[0], b: rows[1], c: rows[2], d: rows[3] };
    let [q0, q1, q2, q3] = quarters;
    // SAFETY: the caller has the instruction set of V.
    unsafe {
        let t4 = V::pick::<136>(q0, q1);
        let t5 = V::pick::<221>(q0, q1);
        let t6 = V::pick::<198>(q2, q3);
        let t7 = V::pick::<198>(q3, q2);
        let t8 = V::pick::<136>(t7, t6);
        let t9 = V::pick::<119>(t6, t7);
        s.first_half(t4);
        let t10 = V::pick::<62>(q0, q1);
        let t11 = V::pick::<98>(t8, q1);
        s.second_half(t5);
        s.diagonalize();
        let t12 = V::pick::<124>(q2, t11);
        s.first_half(t8);
        let t13 = V::pick::<52>(q0, t9);
        let t14 = V::pick::<130>(t11, t13);
        s.second_half(t9);
        s.undiagonalize();
        let t15 = V::pick::<103>(t13, t6);
        s.first_half(t10);
        let t16 = V::pick::<200>(t5, t13);
        let t17 = V::pick::<77>(t4, t8);
        s.second_half(t14);
        s.diagonalize();
        let t18 = V::pick::<215>(t17, q2);
        let t19 = V::pick::<225>(q3, t10);
        s.first_half(t15);
        let t20 = V::pick::<135>(t19, t17);
        let t21 = V::pick::<148>(t6, t10);
        s.second_half(t12);
        s.undiagonalize();
        let t22 = V::pick::<130>(t21, t19);
        s.first_half(t22);
        let t23 = V::pick::<104>(t6, q3);
        let t24 = V::pick::<195>(t4, t17);
        s.second_half(t20);
        s.diagonalize();
        let t25 = V::pick::<125>(t10, t13);
        s.first_half(t18);
        let t26 = V::pick::<135>(t21, t25);
        s.second_half(t16);
        s.undiagonalize();
        let t27 = V::pick::<151>(t25, t12);
        s.first_half(t23);
        let t28 = V::pick::<182>(t6, q3);
        s.second_half(t26);
        s.diagonalize();
        let t29 = V::pick::<45>(t7, q2);
        s.first_half(t27);
        let t30 = V::pick::<158>(q1, t16);
        s.second_half(t24);
        s.undiagonalize();
        let t31 = V::pick::<118>(t4, q0);
        s.first_half(t28);
        let t32 = V::pick::<109>(t11, t15);
        let t33 = V::pick::<131>(t19, q0);
        s.second_half(t29);
        s.diagonalize();
        let t34 = V::pick::<135>(t5, t11);
        s.first_half(t30);
        let t35 = V::pick::<206>(t25, t18);
        s.second_half(t31);
        s.undiagonalize();
        let t36 = V::pick::<45>(q2, t35);
        s.first_half(t36);
        let t37 = V::pick::<153>(t12, t35);
        let t38 = V::pick::<99>(t13, t18);
        s.second_half(t32);
        s.diagonalize();
        let t39 = V::pick::<215>(t14, t19);
        s.first_half(t33);
        let t40 = V::pick::<142>(t19, t32);
        s.second_half(t34);
        s.undiagonalize();
        let t41 = V::pick::<232>(t40, q0);
        s.first_half(t37);
        s.second_half(t38);
        s.diagonalize();
        s.first_half(t41);
        s.second_half(t39);
        s.undiagonalize();
    }
    [s.a, s.b, s.c, s.d]
}
