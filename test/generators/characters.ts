import fc from 'fast-check'

const MAX_CODE_POINT = 0x10ffff
const FIRST_SURROGATE = 0xd800
const SURROGATES = 0x800

/**
 * Any character except halves of surrogate pairs, as the unit of strings. The library's own unit, `binary`,
 * first builds a table of all characters, which takes most of a second in each process.
 */
export const anyCharacter: fc.Arbitrary<string> = fc
  .nat(MAX_CODE_POINT - SURROGATES)
  .map((n) => String.fromCodePoint(n < FIRST_SURROGATE ? n : n + SURROGATES))
