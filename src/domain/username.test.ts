import { describe, expect, test } from 'vitest'
import { isFullyVisible, foldCase } from './username.ts'

describe('a name that is seen whole', () => {
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
  ])('is %j', (name) => {
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
  ])('has no %s', (_, name) => {
    expect(isFullyVisible(name)).toBe(false)
  })
})

test.each([
  ['Ann', 'aNN'],
  ['ÖZGE', 'özge'],
  ['АНЯ', 'аня'],
  ['ΟΔΟΣ', 'οδος'],
  ['οδοσ', 'οδος'],
  ['ＡＮＮ', 'ａｎｎ'],
  ['\u212Aarl', 'karl'],
])('%j and %j differ in case alone', (one, other) => {
  expect(foldCase(one)).toBe(foldCase(other))
})

test.each([
  ['ann', 'anna'],
  ['straße', 'strasse'],
  ['ann', 'аnn'],
])('%j and %j do not', (one, other) => {
  expect(foldCase(one)).not.toBe(foldCase(other))
})
