import { expect, test } from 'vitest'
import { isOwnPath } from './own-path.ts'

test.each(['/', '/?a=1', '/usage?period=7d', '/keys/12', '/logs/0191-ab?model=m#x', '/channels/new'])(
  'a sign-in may lead to a page of the console: %s',
  (path) => {
    expect(isOwnPath(path)).toBe(true)
  },
)

test.each([
  'https://evil.example',
  '//evil.example',
  '/\\evil.example',
  '/keys/../../evil',
  '/login',
  '/usagee',
  'javascript:alert(1)',
  '',
])('a sign-in may not lead to %s', (path) => {
  expect(isOwnPath(path)).toBe(false)
})
