import { expect, test } from 'vitest'
import { shownPath } from './shown-path.ts'

const KEY = 'A1b2C3d4E5f6G7h8A1b2C3d4E5f6G7h8A1b2C3d4E5f6G7h8'

test.each([
  ['/v1/chat/completions', '/v1/chat/completions'],
  ['/v1/models/org/part:free%20x', '/v1/models/org/part:free%20x'],
  ['/sk-secret/v1/messages', '/sk-…/v1/messages'],
  ['/v1/SK-secret-and-more', '/v1/sk-…'],
  [`/v1/messages/${KEY}`, '/v1/messages/…'],
  [`/v1/messages/sk%2D${KEY}`, '/v1/messages/sk%…'],
  ['/<script>"\'&\u0000\u00e4', '/?script??????'],
])('%j is shown as %j', (path, shown) => {
  expect(shownPath(path)).toBe(shown)
})

test('a long path is shown in part, and no part of a key that would be cut', () => {
  expect(shownPath(`/${'x-'.repeat(5000)}`)).toHaveLength(200)
  expect(shownPath(`/${'x-'.repeat(90)}${KEY}`)).not.toContain('A1b2')
})
