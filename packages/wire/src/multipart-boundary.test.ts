import { expect, test } from 'vitest'
import { boundaryOf, isForm } from './multipart.ts'

test('the boundary is read with and without quotes, at any position', () => {
  expect(boundaryOf('multipart/form-data; boundary=----WebKit1')).toBe('----WebKit1')
  expect(boundaryOf('Multipart/Form-Data; charset=utf-8; Boundary="a b=c"')).toBe('a b=c')
})

test('a form without a boundary, with two, or with an invalid one is refused', () => {
  for (const parameters of [
    '',
    '; boundary=',
    '; boundary=""',
    '; boundary=a; boundary=b',
    `; boundary=${'a'.repeat(71)}`,
  ])
    expect(() => boundaryOf(`multipart/form-data${parameters}`)).toThrow(/content-type of the form/)
})

test('only multipart/form-data is a form', () => {
  expect(isForm('multipart/form-data; boundary=a')).toBe(true)
  expect(isForm('multipart/mixed; boundary=a')).toBe(false)
  expect(isForm('application/json')).toBe(false)
  expect(isForm(undefined)).toBe(false)
})
