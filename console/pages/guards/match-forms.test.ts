import { expect, test } from 'vitest'
import { texts as en } from '../../locales/en.ts'
import { texts as zh } from '../../locales/zh.ts'
import {
  kindOfMatch,
  nonEmptyLines,
  matchOfFormValues,
  matchSummary,
  OTHER_KIND,
  matchFormValues,
} from './match-forms.ts'

test.each([
  [{ regex: ['code-[0-9]+', ' spaced '], most: 64 }],
  [{ words: ['project yonder', 'x'] }],
  [{ secrets: true }],
  [{ pii: ['email', 'iban'] }],
  [{ webhook: { url: 'https://checks.example', headers: { authorization: 'Bearer a:b', 'x-a': '***' } } }],
  [{ moderation: { model: 'omni', thresholds: { violence: 0.5, 'hate/x': 0.25 } } }],
  [{ presidio: { url: 'http://p', language: 'en', score: 0.5, entities: ['PERSON'] } }],
  [
    {
      bedrock: {
        region: 'us-east-1',
        guardrail: 'g',
        version: '1',
        keys: ['***'],
        base_url: 'https://b.example',
      },
    },
  ],
  [{ lakera: { key: '***', base_url: 'https://l.example' } }],
  [{ later: { url: 'https://checks.example' } }],
  // A form of lines could not give these back.
  [{ regex: ['one\ntwo'], most: 256 }],
  [{ words: ['kept'], later: true }],
])('a match is the same after its form was opened and saved: %j', (match) => {
  expect(matchOfFormValues(matchFormValues(match))).toEqual(match)
})

test.each([
  [{ regex: ['a'], most: 256 }, 'regex'],
  [{ words: ['a'] }, 'words'],
  [{ secrets: true }, 'secrets'],
  [{ pii: ['email'] }, 'pii'],
  [{ later: {} }, OTHER_KIND],
  [{ presidio: { url: 'http://p', language: 'en', score: 0.5, entities: [] } }, 'presidio'],
  [{ webhook: { url: 'http://p', headers: {} } }, 'webhook'],
  [{ webhook: { url: 'http://p', later: 1 } }, OTHER_KIND],
  [{ regex: ['one\ntwo'], most: 256 }, OTHER_KIND],
  [{}, OTHER_KIND],
] as const)('the form shows a match as its fields or as JSON: %j as %s', (match, kind) => {
  expect(matchFormValues(match).kind).toBe(kind)
})

test('the form of a guard omits an empty number, and does not take empty lines as regular expressions', () => {
  expect(matchOfFormValues({ kind: 'regex', values: { regex: 'a\n\n b\n', most: '' }, json: '' })).toEqual({
    regex: ['a', ' b'],
  })
  expect(nonEmptyLines(' \r\nx\r\n')).toEqual(['x'])
})

test('the list of guards shows the kind of each match and what it finds', () => {
  for (const [texts, words] of [
    [en, 'E-mail addresses, IP addresses'],
    [zh, '电子邮件地址，网络地址'],
  ] as const) {
    expect(kindOfMatch({ pii: ['email', 'ip'] })).toBe('pii')
    expect(matchSummary({ pii: ['email', 'ip'] }, texts)).toBe(words)
    expect(matchSummary({ words: ['email'] }, texts)).toBe('email')
    expect(kindOfMatch({ lakera: { key: 'k' } })).toBe('lakera')
    expect(matchSummary({ lakera: { key: 'k' } }, texts)).toBe('')
  }
})
