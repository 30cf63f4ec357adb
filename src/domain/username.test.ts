import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { alphabetMixedWithLatin, comparableName, isFullyVisible, isVisibleLabel } from './username.ts'

const CHANGES = /\p{Changes_When_NFKC_Casefolded}/u

describe('a valid name', () => {
  test.each([
    'ann',
    'Ann Öberg-O’Neil',
    '安',
    'аня',
    'آن',
    'می\u200Cخواهم',
    'श्री\u200Dमान',
    'ක්\u200Dරි',
    '❤\uFE0F',
    '🎉',
    'Ann Lee 7',
    '\u845B\u{E0100}',
  ])('the user name %j is accepted as fully visible', (name) => {
    expect(isFullyVisible(name)).toBe(true)
  })

  test.each([
    ['an override of direction', 'ann\u202Ekcab'],
    ['an embedding', '\u202Aann\u202C'],
    ['an isolate', 'a\u2066nn\u2069'],
    ['a mark of direction', 'ann\u200E'],
    ['an Arabic mark of direction', 'ann\u061C'],
    ['a zero-width space', 'an\u200Bn'],
    ['a word joiner', 'an\u2060n'],
    ['a byte order mark', 'ann\uFEFF'],
    ['a soft hyphen', 'an\u00ADn'],
    ['an invisible times', 'an\u2062n'],
    ['a filler', '\u3164ann'],
    ['a tag character', 'ann\u{E0061}'],
    ['a joiner between Latin letters', 'an\u200Dn'],
    ['a non-joiner between Latin letters', 'an\u200Cn'],
    ['a non-joiner at the end', 'می\u200C'],
    ['a joiner at the beginning', '\u200Dمی'],
    ['two joiners in a row', 'می\u200C\u200Cخ'],
    ['a joiner between two scripts of which one has none', 'می\u200Ca'],
    ['a joiner between emoji', '👩\u200D🚀'],
    ['a blank Braille pattern', 'ann\u2800'],
    ['a null notehead', 'ann\u{1D159}'],
    ['an object replacement character', '\uFFFCann'],
    ['a Khitan filler', 'ann\u{16FE4}'],
    ['an annotation', 'an\uFFF9n'],
    ['a format control', 'ann\u{13430}'],
    ['a space that does not break', 'an\u00A0n'],
    ['a wide space', 'an\u3000n'],
    ['a hair space', 'an\u200An'],
    ['a separator of lines', 'an\u2028n'],
    ['a selector after a Latin letter', 'ann\uFE0F'],
    ['a selector after a digit', 'ann7\uFE0F'],
    ['a selector of Han letters after a Latin one', 'ann\u{E0100}'],
  ])('a user name with %s is not accepted as fully visible', (_, name) => {
    expect(isFullyVisible(name)).toBe(false)
  })
})

test.each([
  ['my key', true],
  ['👨\u200D👩\u200D👧', true],
  ['❤\uFE0F\u200D🔥', true],
  ['key\u200D', false],
  ['key\u2800', false],
  ['\u202Eyek', false],
])('the name of a key %j is accepted as visible: %s', (name, isVisible) => {
  expect(isVisibleLabel(name)).toBe(isVisible)
})

describe('comparison of names', () => {
  test.each([
    ['Ann', 'aNN'],
    ['ÖZGE', 'özge'],
    ['АНЯ', 'аня'],
    ['ΟΔΟΣ', 'οδος'],
    ['οδοσ', 'οδος'],
    ['straße', 'STRASSE'],
    ['straẞe', 'strasse'],
    ['ＡＮＮ', 'ann'],
    ['𝐚𝓃𝚗', 'ann'],
    ['ⓐnn', 'ann'],
    ['ﬁona', 'Fiona'],
    ['ſam', 'Sam'],
    ['\u212Aarl', 'karl'],
    ['Å', 'A\u030A'],
    ['Ⅳ', 'iv'],
    ['ann\u00A0b', 'ann b'],
    ['می\u200Cخواهم', 'میخواهم'],
    ['❤\uFE0F', '❤'],
    ['a\u00ADnn', 'ann'],
    ['\u3164ann', 'ann'],
    ['an\u{E0061}n', 'ann'],
    ['ᾼ', 'αι'],
    ['안', '\u110B\u1161\u11AB'],
    ['ｶﾞ', 'ガ'],
  ])('the user names %j and %j are compared as equal', (one, other) => {
    expect(comparableName(one)).toBe(comparableName(other))
  })

  test.each([
    ['ann', 'anna'],
    ['ann', 'аnn'],
    ['ann', 'a nn'],
    ['özge', 'ozge'],
    ['安', '按'],
    ['か', 'が'],
  ])('the user names %j and %j are compared as different', (one, other) => {
    expect(comparableName(one)).not.toBe(comparableName(other))
  })

  test('user names that differ only in letter case or Unicode form are compared as equal', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), (name) => {
        const form = comparableName(name)
        expect(comparableName(form)).toBe(form)
        expect(comparableName(name.toUpperCase())).toBe(form)
        expect(comparableName(name.normalize('NFKD'))).toBe(form)
      }),
    )
  })

  test('ASCII user names are compared in lower case', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme-ascii' }), (name) => {
        expect(comparableName(name)).toBe(name.toLowerCase())
      }),
    )
  })

  test('user names are compared after folding each letter by Unicode’s NFKC_Casefold', () => {
    // Cherokee letters fold to upper case there, which compares equal; dotless i is not folded.
    const others = /[ı\p{Script=Cherokee}]/u
    const unchanging = /[\p{Script=Han}\p{Script=Hangul}\p{Unassigned}\p{Private_Use}]/u
    const wrong = Array.from({ length: 0x11_0000 }, (_, code) => String.fromCodePoint(code)).filter(
      (letter) =>
        letter.isWellFormed() &&
        !others.test(letter) &&
        (CHANGES.test(letter) || !unchanging.test(letter)) &&
        (comparableName(letter) !== letter) !== CHANGES.test(letter),
    )
    expect(wrong).toEqual([])
  })
})

describe('a name with letters of two alphabets that look alike', () => {
  test.each([
    ['аnn', 'Cyrillic'],
    ['annа', 'Cyrillic'],
    ['Иван Smith', 'Cyrillic'],
    ['ａｎｎ и', 'Cyrillic'],
    ['οmega', 'Greek'],
    ['µsec', 'Greek'],
    ['Ωhm', 'Greek'],
    ['օscar', 'Armenian'],
  ])(
    'the user name %j is recognized as mixing letters that look Latin from the alphabet %s',
    (name, alphabet) => {
      expect(alphabetMixedWithLatin(name)).toBe(alphabet)
    },
  )

  test.each([
    'ann',
    'Аня',
    'Ωμέγα',
    'Անի',
    'Anna 安',
    'Kenjiけんじ',
    'ケンjr',
    'Min민',
    'Ali علي',
    'user-7 ✓',
    'Аня 7',
    'α7',
  ])('the user name %j is recognized as not mixing letters that look alike', (name) => {
    expect(alphabetMixedWithLatin(name)).toBeUndefined()
  })
})
