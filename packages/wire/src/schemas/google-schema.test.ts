import { expect, test } from 'vitest'
import { fromGoogleSchema } from './google-schema.ts'

test.each([
  ['{"type":"STRING"}', '{"type":"string"}', false],
  ['{ "type": "object" }', '{ "type": "object" }', false],
  ['{"type":"STRING","nullable":true}', '{"type":["string","null"]}', true],
  ['{"nullable":false,"type":"NUMBER"}', '{"type":"number"}', true],
  ['{"type":"STRING","format":"enum","enum":["STRING"]}', '{"type":"string","enum":["STRING"]}', true],
  ['{"any_of":[{"type":"NULL"}],"nullable":true}', '{"anyOf":[{"type":"null"},{"type":"null"}]}', true],
  [
    '{"type":"ARRAY","min_items":"2","maxItems":"9007199254740993"}',
    '{"type":"array","minItems":2,"maxItems":9007199254740993}',
    true,
  ],
  ['{"type":"NUMBER","minimum":1.0}', '{"type":"number","minimum":1.0}', false],
  [
    '{"type":"OBJECT","properties":{"10":{"type":"STRING"},"2":{}},"propertyOrdering":["2","10"]}',
    '{"type":"object","properties":{"2":{},"10":{"type":"string"}}}',
    true,
  ],
  [
    '{"ref":"#/defs/A","defs":{"A":{"type":"TYPE_UNSPECIFIED"}}}',
    '{"$ref":"#/$defs/A","$defs":{"A":{}}}',
    true,
  ],
  [
    '{"type":"OBJECT","properties":{"type":{"type":"STRING"}},"default":{"type":"STRING"}}',
    '{"type":"object","properties":{"type":{"type":"string"}},"default":{"type":"STRING"}}',
    false,
  ],
])("a schema in Google's form becomes JSON Schema: %s", (google, schema, isMoreThanSpelling) => {
  expect(fromGoogleSchema(google)).toEqual({ schema, isMoreThanSpelling })
})
