import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Conversation } from '@sluice/wire/conversation'
import type { PairedProtocol } from '../samples/paired-protocol.ts'
import { scanObject } from '@sluice/wire/json/json-scan'
import type { MediaFetcher } from '../../src/call/media-fetcher.ts'
import { upstreamOf } from '../samples/conversation.ts'
import { conversations, thoughtfulConversations } from '../generators/conversations.ts'
import { chatRequests, messagesRequests } from '../generators/requests.ts'
import { anyMedia, check, CHECKERS, CODECS, convertRequest, OTHER, PROTOCOLS } from './convert.ts'
import { lawRuns } from '../runner/tier.ts'

let media: MediaFetcher
beforeAll(() => {
  media = anyMedia()
})
afterAll(() => media?.close())

const REQUESTS = { chat: chatRequests, messages: messagesRequests } as const

/** Encodes to the protocol and decodes the result. */
function there(protocol: PairedProtocol, conversation: Conversation, dropped: Set<string>): Conversation {
  const body = CODECS[protocol].encodeRequest(conversation, upstreamOf(conversation.model), dropped)
  check(protocol, body)
  const {
    showsThoughts: _,
    thinkingReplacesSampling: __,
    ...back
  } = CODECS[protocol].decodeRequest(scanObject(body), dropped)
  return { ...back, includeUsage: true }
}

/** Numbers count as they are written. */
const written = (conversation: Conversation): Conversation =>
  JSON.parse(JSON.stringify(conversation), (_key, value: unknown) => value) as Conversation

describe('a conversation that both dialects can express', () => {
  const both = fc.oneof(
    { weight: 4, arbitrary: conversations() },
    { weight: 1, arbitrary: thoughtfulConversations() },
  )
  for (const protocol of PROTOCOLS) {
    test(`a conversation is unchanged after it is encoded to ${protocol} and decoded`, () => {
      fc.assert(
        fc.property(both, (conversation) => {
          const dropped = new Set<string>()
          const back = there(protocol, conversation, dropped)
          expect([...dropped]).toEqual([])
          expect(written(back)).toEqual(written(conversation))
          expect(JSON.stringify(back.tools)).toBe(JSON.stringify(conversation.tools))
        }),
        { numRuns: lawRuns(400) },
      )
    })

    test(`a conversation is unchanged after a conversion from ${protocol} through ${OTHER[protocol]}, byte for byte`, () => {
      fc.assert(
        fc.property(both, (conversation) => {
          const none = new Set<string>()
          const first = CODECS[protocol].encodeRequest(conversation, upstreamOf(conversation.model), none)
          const back = there(OTHER[protocol], there(protocol, conversation, none), none)
          expect(CODECS[protocol].encodeRequest(back, upstreamOf(conversation.model), none).toString()).toBe(
            first.toString(),
          )
        }),
        { numRuns: lawRuns(300) },
      )
    })
  }
})

describe.each(PROTOCOLS)('any valid %s request', (from) => {
  test("any valid request becomes a request that the other dialect's check accepts, or is refused with a reason", async () => {
    await fc.assert(
      fc.asyncProperty(REQUESTS[from](), async (text) => {
        const bytes = Buffer.from(text)
        check(from, bytes)
        const converted = await convertRequest(from, bytes, media)
        if ('refused' in converted) expect(converted.refused).toMatch(/\S/)
        else check(OTHER[from], converted.body)
      }),
      { numRuns: lawRuns(500) },
    )
  })

  test('any valid request is converted to the same bytes each time', async () => {
    await fc.assert(
      fc.asyncProperty(REQUESTS[from](), async (text) => {
        const once = await convertRequest(from, Buffer.from(text), media)
        expect(await convertRequest(from, Buffer.from(text), media)).toEqual(once)
      }),
      { numRuns: 100 },
    )
  })

  test('the fields that the conversion of any valid request drops are listed by field names, never by values', async () => {
    await fc.assert(
      fc.asyncProperty(REQUESTS[from](), async (text) => {
        const converted = await convertRequest(from, Buffer.from(text), media)
        if ('refused' in converted) return
        for (const name of converted.dropped) {
          expect(name).toMatch(/^[a-z_.]{1,40}$/)
          expect(name).not.toContain('secret')
        }
      }),
      { numRuns: lawRuns(200) },
    )
  })

  test('any valid request cut anywhere is refused as invalid JSON', () => {
    const [text] = fc.sample(REQUESTS[from](), { numRuns: 1, seed: 7 })
    const bytes = Buffer.from(text ?? '')
    for (let end = 0; end < bytes.length; end++)
      expect(() => CHECKERS[from](scanObject(bytes.subarray(0, end)))).toThrow()
  })
})
