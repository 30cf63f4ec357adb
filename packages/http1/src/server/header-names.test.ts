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

test('headers with a named prefix are read under their own names', () => {
  const own = new HeaderNames(['x-a'], ['x-param-'])
  const read = (name: string) => own.at(Buffer.from(name), 0, name.length)
  expect(read('X-Param-Region')).toBe('x-param-region')
  expect(read('x-param-')).toBeUndefined()
  expect(read('x-parameter')).toBeUndefined()
})
