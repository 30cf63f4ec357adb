import fc from 'fast-check'
import { expect, test } from 'vitest'
import { anyCharacter } from '../../../../test/generators/characters.ts'
import { localRedirectPath } from './oidc-sign-ins.ts'

test.each([
  ['/', '/'],
  ['/usage?period=7d', '/usage?period=7d'],
  ['/keys/7#top', '/keys/7#top'],
  [undefined, '/'],
  ['', '/'],
  ['usage', '/'],
  ['https://evil.example', '/'],
  ['//evil.example', '/'],
  ['/\\evil.example', '/'],
  ['/\t/evil.example', '/'],
  ['/\n\\evil.example', '/'],
  ['/.//evil.example', '/'],
  ['/x/..//evil.example', '/'],
  ['/%2e//evil.example', '/'],
  ['javascript:alert(1)', '/'],
  [`/${'x'.repeat(1900)}`, `/${'x'.repeat(1900)}`],
  [`/${'x'.repeat(3000)}`, '/'],
  // These are short, but their encoded forms are too long for a cookie.
  [`/${'中'.repeat(1000)}`, '/'],
  [`/?${'\\'.repeat(1500)}`, '/'],
])('a sign-in with the requested target %j redirects to %j', (given, path) => {
  expect(localRedirectPath(given)).toBe(path)
})

test('no requested path makes a sign-in redirect to another host or breaks a header', () => {
  const piece = fc.constantFrom(
    '/',
    '\\',
    '.',
    '..',
    '%2e',
    '\t',
    '\n',
    '@',
    ':',
    'evil.example',
    'https:',
    '?',
    '#',
  )
  const text = fc
    .array(fc.oneof(piece, fc.string({ unit: anyCharacter })), { maxLength: 8 })
    .map((all) => `/${all.join('')}`)
  fc.assert(
    fc.property(text, (given) => {
      const path = localRedirectPath(given)
      expect(new URL(path, 'https://ai.example/login').origin).toBe('https://ai.example')
      expect(path).toMatch(/^\/[\x21-\x7e]*$/)
    }),
  )
})
