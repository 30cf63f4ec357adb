import { expect, test } from 'vitest'
import { closedJson } from './json-outline.ts'

test.each([
  ['{"a":{"b":["x', '{"a":{"b":["x"]}}'],
  ['{"a":"x"', '{"a":"x"}'],
  ['{"a":', '{"a":null}'],
  ['{"a"', '{"a":null}'],
  ['{"a":1,', '{"a":1}'],
  ['{"a":"x\\', '{"a":"x"}'],
  ['{"a":"x\\u00', '{"a":"x"}'],
  ['{"a":"x\\n', '{"a":"x\\n"}'],
  ['{"a":[{},{"b":"}"', '{"a":[{},{"b":"}"}]}'],
])('open objects, arrays and strings are closed: %s', (beginning, closed) => {
  expect(closedJson(beginning)).toBe(closed)
})

test('a text that cannot be closed gives nothing', () => {
  expect(closedJson('{"a":tru')).toBeUndefined()
})
