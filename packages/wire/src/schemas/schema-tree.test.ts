import { expect, test } from 'vitest'
import { innerSchemas, isTreeObject, parseTree } from './schema-tree.ts'

const COUNT = 190_000

test.each([
  ['alternatives', { anyOf: Array.from({ length: COUNT }, () => ({})) }],
  ['properties', { properties: Object.fromEntries(Array.from({ length: COUNT }, (_, n) => [`a${n}`, {}])) }],
])('a schema may have as many %s as a request may have values', (_, schema) => {
  const tree = parseTree(JSON.stringify(schema))
  expect(isTreeObject(tree) && innerSchemas(tree)).toHaveLength(COUNT)
})
