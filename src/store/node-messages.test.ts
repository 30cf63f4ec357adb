import { createHmac } from 'node:crypto'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { NodeMessages } from './node-messages.ts'
import { databaseMessageKey, deriveSecrets } from './secrets.ts'

const SECRETS = deriveSecrets('a secret of sixteen characters')
const OTHERS = deriveSecrets('another secret of as many more')

function opened(message: string | Uint8Array): {
  readonly text: string | undefined
  readonly dropped: number
} {
  const messages = new NodeMessages(SECRETS)
  const text = messages.open(typeof message === 'string' ? Buffer.from(message) : message)
  return { text, dropped: messages.dropped }
}

test('a message of a node with the same secret is received unchanged', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      expect(opened(new NodeMessages(SECRETS).seal(text))).toEqual({ text, dropped: 0 })
    }),
  )
})

test('a message between nodes that was changed or signed with another secret is dropped, and counted', () => {
  const message = new NodeMessages(SECRETS).seal('recall t:5 node')
  fc.assert(
    fc.property(fc.nat(message.length - 1), fc.integer({ min: 1, max: 255 }), (at, by) => {
      const bytes = Buffer.from(message)
      bytes[at] = (bytes[at] ?? 0) ^ by
      expect(opened(bytes)).toEqual({ text: undefined, dropped: 1 })
    }),
  )
  for (const one of ['', 'here somebody', message.slice(0, 32), message.slice(0, -1), `${message} `])
    expect(opened(one)).toEqual({ text: undefined, dropped: 1 })
  expect(opened(new NodeMessages(OTHERS).seal('changed n anything')).text).toBeUndefined()
})

test('a message between nodes of more than 7,999 bytes is neither sent nor read', () => {
  const messages = new NodeMessages(SECRETS)
  const longest = 'x'.repeat(7_999 - 33)
  expect(opened(messages.seal(longest)).text).toBe(longest)
  expect(() => messages.seal(`${longest}x`)).toThrow(RangeError)
  const key = SECRETS.messageKey
  const mac = createHmac('sha256', key).update(`${longest}x`).digest('hex').slice(0, 32)
  expect(opened(`${mac} ${longest}x`)).toEqual({ text: undefined, dropped: 1 })
})

test('a message between nodes that is signed with the key in the database is accepted only if it is about an account', () => {
  const signed = (text: string): string =>
    `${createHmac('sha256', databaseMessageKey(SECRETS)).update(text).digest('hex').slice(0, 32)} ${text}`
  expect(opened(signed('account u:3')).text).toBe('account u:3')
  expect(opened(signed('changed n anything')).text).toBeUndefined()
})
