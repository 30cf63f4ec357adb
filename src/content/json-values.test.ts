import { expect, test } from 'vitest'
import { dataOfEvents, hasFewJsonValues, MAX_JSON_VALUES } from './json-values.ts'

/** A list of so many values, with itself. */
const list = (value: string, values: number): string =>
  `[ ${Array(values - 1)
    .fill(value)
    .join(' ,\n')} ]`

test.each(['0', '[]', '{ }', '""', '"a,[{\\"],"', 'null'])(
  'the limit on the number of JSON values in a text counts each %s as a value',
  (value) => {
    expect(hasFewJsonValues(list(value, MAX_JSON_VALUES))).toBe(true)
    expect(hasFewJsonValues(list(value, MAX_JSON_VALUES + 1))).toBe(false)
  },
)

test('the limit on the number of JSON values counts the values of object members and nested lists, but no member names', () => {
  const members = (count: number): string => `{${Array(count).fill('"name":[1]').join()}}`
  expect(hasFewJsonValues(members((MAX_JSON_VALUES - 2) / 2))).toBe(true)
  expect(hasFewJsonValues(members(MAX_JSON_VALUES / 2))).toBe(false)
})

test('commas inside an unterminated JSON string do not count towards the limit on JSON values', () => {
  expect(hasFewJsonValues(`"${','.repeat(2 * MAX_JSON_VALUES)}`)).toBe(true)
  expect(hasFewJsonValues(`"${'\\,'.repeat(2 * MAX_JSON_VALUES)}\\`)).toBe(true)
})

test('the data: field of a server-sent event is found only at the beginning of a line', () => {
  const text = 'event: a\r\ndata: {"a":1}\r\n\r\ndata:b data: c\n: data: d\n'
  const found = [...dataOfEvents(text)]
  expect(found.map(({ data }) => data)).toEqual(['{"a":1}', 'b data: c'])
  for (const { data, start } of found) expect(text.slice(start).startsWith(data)).toBe(true)
})
