import fc from 'fast-check'
import { expect, test } from 'vitest'
import { scanObject } from '../../json/json-scan.ts'
import { encryptedInput, hasForeignThoughts, hasOnlyMessages, itemReferences } from '../index.ts'
import { refersToItems } from './items.ts'

const MADE = `rs_${'0'.repeat(32)}001`
const scanOf = (input: unknown) => scanObject(Buffer.from(JSON.stringify({ model: 'm', input })))

test.each<[string, unknown, boolean]>([
  ['a text', 'hello', true],
  ['no input', undefined, true],
  [
    'messages',
    [
      { role: 'user', content: 'a' },
      { type: 'message', role: 'assistant', id: MADE },
    ],
    true,
  ],
  ['a message whose type is null', [{ type: null, role: 'user', content: [] }], true],
  [
    'a reference',
    [
      { role: 'user', content: 'a' },
      { type: 'item_reference', id: MADE },
    ],
    false,
  ],
  ['a reference without a type', [{ id: MADE }], false],
  ['reasoning', [{ type: 'reasoning', role: 'user', id: MADE }], false],
  ['something encrypted', [{ role: 'user', encrypted_content: 'gAAA' }], false],
  ['an unknown item', [{ type: 'later', role: 'user' }], false],
])('the input has only messages or not: %s', (_, input, expected) => {
  expect(hasOnlyMessages(scanOf(input))).toBe(expected)
})

test('an input that has only messages refers to no other items', () => {
  const some = <T>(...values: T[]) => fc.option(fc.constantFrom(...values), { nil: undefined })
  const item = fc.record({
    type: some<unknown>('message', 'reasoning', 'item_reference', 'compaction', null, 1),
    role: some<unknown>('user', null),
    id: some(MADE, 'msg_1'),
    encrypted_content: some<unknown>('gAAA', '', null),
  })
  fc.assert(
    fc.property(fc.array(item, { maxLength: 3 }), (items) => {
      const scan = scanOf(items)
      fc.pre(hasOnlyMessages(scan))
      expect([itemReferences(scan), encryptedInput(scan)]).toEqual([[], []])
      expect(refersToItems(scan) || hasForeignThoughts(scan)).toBe(false)
    }),
  )
})
