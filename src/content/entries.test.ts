import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { compress, decompress, sealContent, unsealContent } from './entries.ts'

const KEY = { id: 'k', key: randomBytes(32) }

test.each([
  ['nothing', Buffer.alloc(0)],
  ['one byte', Buffer.from('a')],
  ['a small text', Buffer.from('small '.repeat(100))],
  ['a large text', Buffer.from('large '.repeat(10_000))],
  ['bytes that cannot be compressed', randomBytes(5_000)],
])('stored content is unchanged after it was encrypted and decrypted: %s', (_, content) => {
  const sealed = sealContent(KEY, 'call', compress(content))
  expect(sealed.length).toBeLessThanOrEqual(content.length + 28)
  expect(decompress(unsealContent(KEY, 'call', sealed), content.length).equals(content)).toBe(true)
})

test('stored content cannot be decrypted with another key, for another call, or after a change', () => {
  const sealed = sealContent(KEY, 'call', Buffer.from('said'))
  expect(() => unsealContent({ ...KEY, key: randomBytes(32) }, 'call', sealed)).toThrow()
  expect(() => unsealContent({ ...KEY, id: 'other' }, 'call', sealed)).toThrow()
  expect(() => unsealContent(KEY, 'another call', sealed)).toThrow()
  for (const at of [0, 14, sealed.length - 1]) {
    const changed = Buffer.from(sealed)
    changed[at]! ^= 1
    expect(() => unsealContent(KEY, 'call', changed)).toThrow()
  }
  expect(() => unsealContent(KEY, 'call', sealed.subarray(0, 20))).toThrow('cut short')
})
