/**
 * Direction controls, and characters that are invisible or blank: format controls, all spaces but the ordinary
 * one, and symbols whose form is empty. A class of characters for regular expressions with the flag `v`.
 */
export const INVISIBLE_CHARACTERS = String.raw`[\p{Bidi_Control}\p{Default_Ignorable_Code_Point}\p{Cf}\p{Zl}\p{Zp}[\p{Zs}--\u0020]\u2800\uFFFC\u{1D159}\u{16FE4}]`
