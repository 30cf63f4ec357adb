import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { DataChange } from '../domain/data-change.ts'
import { formatChange, MAX_TOKEN_IDS, parseChange } from './change-feed.ts'

const id = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER })
const change: fc.Arbitrary<DataChange> = fc.oneof(
  fc.record({ of: fc.constant('tokens'), ids: fc.array(id, { minLength: 1, maxLength: MAX_TOKEN_IDS }) }),
  fc.record({ of: fc.constant('user'), id }),
  fc.record({ of: fc.constantFrom('keys', 'settings', 'anything') }),
)

test("a change announced to other nodes is the same after formatting and parsing, and fits PostgreSQL's limit", () => {
  fc.assert(
    fc.property(change, fc.uuid(), (told, node) => {
      const text = formatChange(node, told)
      expect(text.length).toBeLessThan(8_000)
      expect(parseChange(text)).toEqual({ node, change: told })
    }),
  )
})

test.each([
  '',
  'recall t:7',
  'changed',
  'changed n',
  'changed n tokens',
  'changed n tokens x',
  'changed n tokens 1 -2',
  'changed n user',
  'changed n user 1 2',
  'changed n user 99999999999999999',
  'changed n settings 1',
  'changed n balance 5',
  `changed n tokens ${'1 '.repeat(MAX_TOKEN_IDS)}1`,
])('a node ignores an invalid announcement of a change: %j', (text) => {
  expect(parseChange(text)).toBeUndefined()
})
