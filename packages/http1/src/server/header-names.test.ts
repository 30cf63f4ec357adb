import { expect, test } from 'vitest'
import { HeaderNames } from './header-names.ts'

const names = new HeaderNames(['x-a', 'x-b', 'x-forwarded-*', 'x-forwarded-for'])

test.each([
  ['X-A', 'x-a'],
  ['x-b', 'x-b'],
  ['x-c', undefined],
  ['x-ab', undefined],
  ['Content-Length', 'content-length'],
  ['host', 'host'],
  ['x-forwarded-for', 'x-forwarded-for'],
  ['X-Forwarded-Proto', 'x-forwarded-*'],
  ['x-forwarded-', undefined],
  ['x-forwarded', undefined],
])('the header %s is read as %s', (name, expected) => {
  const bytes = Buffer.from(`: ${name}: `)
  expect(names.at(bytes, 2, 2 + name.length)).toBe(expected)
})
