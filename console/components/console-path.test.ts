import { expect, test } from 'vitest'
import { isConsolePath } from './console-path.ts'

test.each([
  '/',
  '/?a=1',
  '/usage?period=7d',
  '/keys/12',
  '/logs/0191-ab?model=m#x',
  '/channels/new',
  '/what-if',
  '/guards/a.b',
  '/users/3/keys/5',
])('after a sign-in, the console opens a requested path that is one of its own pages: %s', (path) => {
  expect(isConsolePath(path)).toBe(true)
})

test.each([
  'https://evil.example',
  '//evil.example',
  '/\\evil.example',
  '/keys/../../evil',
  '/login',
  '/invite#x',
  '/usagee',
  'javascript:alert(1)',
  '',
])('a sign-in may not lead to %s', (path) => {
  expect(isConsolePath(path)).toBe(false)
})
