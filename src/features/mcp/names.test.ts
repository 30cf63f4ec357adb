import { expect, test } from 'vitest'
import { templateMatcher } from './gathered-lists.ts'
import { paramHeaders, splitName } from './listed-entries.ts'
import { headerText, headerValue } from './protocol.ts'

test.each([
  ['file:///{name}.md', 'file:///a.md', true],
  ['file:///{name}.md', 'file:///a/b.md', false],
  ['file:///{+path}', 'file:///a/b.md', true],
  ['db://{table}{?limit}', 'db://users?limit=1', true],
  ['db://{table}{?limit}', 'db://users', true],
  ['a{b}c', 'ac', true],
  ['a.c', 'abc', false],
])('the template %s and the URI %s: %s', (template, uri, expected) => {
  expect(templateMatcher(uri)(template)).toBe(expected)
})

test('templates of many expressions are compared in a bounded number of steps for each server', () => {
  expect(templateMatcher('a'.repeat(8_000))(`${'{+a}a'.repeat(200)}b`)).toBe(false)
  const fits = templateMatcher(`${'a'.repeat(8_000)}!`)
  // Each takes two million steps.
  expect([1, 2].map(() => fits('{+a}'.repeat(250)))).toEqual([true, false])
})

test.each([
  ['a', 'a'],
  ['', ''],
  [' a', '=?base64?IGE=?='],
  ['Hello, 世界', '=?base64?SGVsbG8sIOS4lueVjA==?='],
  ['=?base64?literal?=', '=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?='],
])('the value %o is the header %s', (value, header) => {
  expect(headerValue(value)).toBe(header)
  expect(headerText(header)).toBe(value)
})

test('a header that is not valid base64 has no value', () => {
  expect(headerText('=?base64?!?=')).toBeUndefined()
  expect(headerText('=?base64?/w==?=')).toBeUndefined()
})

test('the first underscore divides a listed name', () => {
  expect(splitName('a-b_c_d')).toEqual({ server: 'a-b', name: 'c_d' })
  expect(splitName('_c')).toBeUndefined()
  expect(splitName('a_')).toBeUndefined()
})

const marked = (property: object) => ({ type: 'object', properties: { p: property } })
test.each([
  ['of a text', marked({ type: 'string', 'x-mcp-header': 'A' }), [{ header: 'a', path: ['p'] }]],
  [
    'within an object',
    marked({ type: 'object', properties: { q: { type: 'integer', 'x-mcp-header': 'A' } } }),
    [{ header: 'a', path: ['p', 'q'] }],
  ],
  [
    'of a property with that name',
    marked({ type: 'object', properties: { 'x-mcp-header': { type: 'string' } } }),
    [],
  ],
  ['of a number', marked({ type: 'number', 'x-mcp-header': 'A' }), undefined],
  ['that is empty', marked({ type: 'string', 'x-mcp-header': '' }), undefined],
  ['with a line break', marked({ type: 'string', 'x-mcp-header': 'a\r\nb' }), undefined],
  ['within a list', marked({ type: 'array', items: { type: 'string', 'x-mcp-header': 'A' } }), undefined],
  ['within an alternative', marked({ anyOf: [{ type: 'string', 'x-mcp-header': 'A' }] }), undefined],
  [
    'twice in other case',
    {
      type: 'object',
      properties: {
        p: { type: 'string', 'x-mcp-header': 'A' },
        q: { type: 'string', 'x-mcp-header': 'a' },
      },
    },
    undefined,
  ],
])('a header %s', (_, schema, expected) => {
  expect(paramHeaders(schema)).toEqual(expected)
})
