import { describe, expect, test } from 'vitest'
import { scanObject } from '../../json/json-scan.ts'
import { inputItems, hasItemReferences } from './items.ts'
import fc from 'fast-check'
import { encryptedInput, hasThoughtsOfOtherDialects, hasOnlyMessages, itemReferences } from '../index.ts'

const itemsOf = (body: string): string => {
  let count = 0
  return inputItems(scanObject(Buffer.from(body)), (prefix) => `${prefix}_${++count}`)
}

describe('the items of an input', () => {
  test.each([
    [
      '{"input":"a\\"b"}',
      '[{"id":"msg_1","type":"message","role":"user","content":[{"type":"input_text","text":"a\\"b"}]}]',
    ],
    [
      '{"input":[{"role":"user","content":"a"}]}',
      '[{"role":"user","content":"a","id":"msg_1","type":"message"}]',
    ],
    [
      '{"input":[{"type":"function_call","n":9007199254740993 }]}',
      '[{"type":"function_call","n":9007199254740993,"id":"fc_1"}]',
    ],
    ['{"input":[{ },{"type":"x","id":"y"}]}', '[{"id":"msg_1","type":"message"},{"type":"x","id":"y"}]'],
    ['{"input":null}', '[]'],
    ['{}', '[]'],
  ])('the stored input items of the responses request %s each have an id and a type', (body, items) => {
    expect(itemsOf(body)).toBe(items)
    expect(() => JSON.parse(items) as unknown).not.toThrow()
  })
})

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
])('a responses input is recognized as having only messages, or not: %s', (_, input, expected) => {
  expect(hasOnlyMessages(scanOf(input))).toBe(expected)
})

test('a responses input that has only messages refers to no stored items', () => {
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
      expect(hasItemReferences(scan) || hasThoughtsOfOtherDialects(scan)).toBe(false)
    }),
  )
})
