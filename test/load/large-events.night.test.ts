import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { contentFrame, DONE_FRAME, roleFrame, type Streamed, usageText } from '../fixtures/behaviour.ts'
import { chunkFrame } from '../fixtures/chat-behaviour.ts'
import { type FullResponse, events } from '../fixtures/client.ts'
import { databaseOf } from '../fixtures/database.ts'
import { eventFrame, messageFrames } from '../fixtures/messages-behaviour.ts'
import type { Fixture } from '../fixtures/fixture.ts'
import { checkChatStream, checkMessagesStream } from '../conversion/grammar.ts'
import { byTier } from '../runner/tier.ts'
import { type Client, clientsOf, MODEL, fixtureOfBoth } from '../conversion/fixture.ts'

const MIB = 1024 * 1024

let fixture: Fixture
let chat: Client
let message: Client
beforeAll(async () => {
  fixture = await fixtureOfBoth()
  ;({ chat, message } = clientsOf(fixture))
})
afterAll(() => fixture?.close())

const stream = (frames: readonly string[]): Streamed => ({ kind: 'stream', frames, ending: 'no done' })
const base64 = (bytes: number): string => 'iVBORw0K'.repeat(bytes / 8)

/**
 * A chat stream with an image of this number of bytes, whose usage and finish reason are in the same event.
 */
function chatPicture(bytes: number): string[] {
  const delta = {
    content: 'Look.',
    images: [{ image_url: { url: `data:image/png;base64,${base64(bytes)}` } }],
  }
  const last = chunkFrame(delta, 'stop').replace(/\}\n\n$/, `,"usage":${usageText(10, 1300)}}\n\n`)
  return [roleFrame(), last, DONE_FRAME]
}

/** The same stream from a messages upstream. */
function messagesPicture(bytes: number): string[] {
  const [start = '', ...rest] = messageFrames([{ text: 'Look.' }])
  const block = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: base64(bytes) } }
  const events = [
    eventFrame('content_block_start', { index: 9, content_block: block }),
    eventFrame('content_block_stop', { index: 9 }),
  ]
  return [start, ...events, ...rest]
}

const quotaOf = ({ headers }: FullResponse): number | undefined =>
  databaseOf(fixture.gateway.dataDir).usageOf(String(headers['x-request-id']))?.quota

describe('native events of any size', () => {
  // By day, only events larger than a converted event may be.
  test.each(byTier([35_000_000], [6_000_000, 40_000_000]))(
    'a stream event of %i bytes that needs no conversion is forwarded byte for byte, and charged by its reported usage',
    async (bytes) => {
      const chatFrames = chatPicture(bytes)
      fixture.upstream.script(MODEL.chat, stream(chatFrames))
      const ofChat = await chat({ model: MODEL.chat, stream: true, stream_options: { include_usage: true } })
      expect(ofChat.text === chatFrames.join('')).toBe(true)
      expect(quotaOf(ofChat)).toBe(10 + 1300 * 4)
      const messagesFrames = messagesPicture(bytes)
      fixture.upstream.script(MODEL.messages, stream(messagesFrames))
      const ofMessages = await message({ model: MODEL.messages, stream: true })
      expect(ofMessages.text === messagesFrames.join('')).toBe(true)
      expect(quotaOf(ofMessages)).toBe(10 + 5 * 4)
    },
    60_000,
  )

  test('a large unconverted event is forwarded as it arrives, and followed by an error event if it is cut off', async () => {
    const [role = '', last = ''] = chatPicture(6_000_000)
    const half = last.slice(0, 3_000_000)
    fixture.upstream.script(MODEL.chat, stream([role, half]))
    const { text, headers } = await chat({ model: MODEL.chat, stream: true })
    expect(text.startsWith(role + half)).toBe(true)
    expect(JSON.parse(events(text).at(-1) ?? '')).toMatchObject({ error: { code: 'upstream_error' } })
    // A part of an image counts as content.
    expect(databaseOf(fixture.gateway.dataDir).usageOf(String(headers['x-request-id']))).toMatchObject({
      reason: 'cut',
    })
  })
})

describe('converted events of up to 32 MiB', () => {
  test('a stream with an event of 6 MB is converted between the chat and messages dialects, and charged by its usage', async () => {
    fixture.upstream.script(MODEL.chat, stream(chatPicture(6_000_000)))
    const toMessages = await message({ stream: true })
    checkMessagesStream(toMessages.text, true)
    expect(toMessages.text).toContain('"text":"Look."')
    expect(quotaOf(toMessages)).toBe(10 + 1300 * 4)
    fixture.upstream.script(MODEL.messages, stream(messagesPicture(6_000_000)))
    const toChat = await chat({ stream: true })
    checkChatStream(toChat.text, true)
    expect(quotaOf(toChat)).toBe(10 + 5 * 4)
  })

  test("a converted event of 33 MiB ends the stream with an error in the client's dialect", async () => {
    const chatBegun = [roleFrame(), contentFrame('a')]
    fixture.upstream.script(MODEL.chat, stream([...chatBegun, ...chatPicture(33 * MIB).slice(1)]))
    checkMessagesStream((await message({ stream: true })).text, false)
    const messagesBegun = messageFrames([{ text: 'a' }]).slice(0, 5)
    fixture.upstream.script(MODEL.messages, stream([...messagesBegun, ...messagesPicture(33 * MIB).slice(1)]))
    checkChatStream((await chat({ stream: true })).text, false)
  })
})
