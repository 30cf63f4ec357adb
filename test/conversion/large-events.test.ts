import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  contentFrame,
  DONE_FRAME,
  finishFrame,
  roleFrame,
  type Streamed,
  usageText,
} from '../equipment/behaviour.ts'
import { chunkFrame } from '../equipment/chat-behaviour.ts'
import { type Answer, events } from '../equipment/client.ts'
import { databaseOf } from '../equipment/database.ts'
import { eventFrame, messageFrames } from '../equipment/messages-behaviour.ts'
import type { Stage } from '../equipment/stage.ts'
import { checkChatStream, checkMessagesStream } from './grammar.ts'
import { type Caller, callersOf, MODEL, stageOfBoth } from './stage.ts'

const MIB = 1024 * 1024

let stage: Stage
let chat: Caller
let message: Caller
beforeAll(async () => {
  stage = await stageOfBoth()
  ;({ chat, message } = callersOf(stage))
})
afterAll(() => stage?.close())

const stream = (frames: readonly string[]): Streamed => ({ kind: 'stream', frames, ending: 'no done' })
const base64 = (bytes: number): string => 'iVBORw0K'.repeat(bytes / 8)

/** A chat stream with a picture of so many bytes, whose usage and reason come in the same event. */
function chatPicture(bytes: number): string[] {
  const delta = {
    content: 'Look.',
    images: [{ image_url: { url: `data:image/png;base64,${base64(bytes)}` } }],
  }
  const last = chunkFrame(delta, 'stop').replace(/\}\n\n$/, `,"usage":${usageText(10, 1300)}}\n\n`)
  return [roleFrame(), last, DONE_FRAME]
}

/** The same of a messages upstream. */
function messagesPicture(bytes: number): string[] {
  const [start = '', ...rest] = messageFrames([{ text: 'Look.' }])
  const block = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: base64(bytes) } }
  const events = [
    eventFrame('content_block_start', { index: 9, content_block: block }),
    eventFrame('content_block_stop', { index: 9 }),
  ]
  return [start, ...events, ...rest]
}

const quotaOf = ({ headers }: Answer): number | undefined =>
  databaseOf(stage.gateway.dataDir).usageOf(String(headers['x-request-id']))?.quota

describe('natively an event of any size goes on byte for byte, and is charged as reported', () => {
  test.each([6_000_000, 40_000_000])(
    '%i bytes',
    async (bytes) => {
      stage.upstream.script(MODEL.chat, stream(chatPicture(bytes)))
      const ofChat = await chat({ model: MODEL.chat, stream: true, stream_options: { include_usage: true } })
      expect(ofChat.text === chatPicture(bytes).join('')).toBe(true)
      expect(quotaOf(ofChat)).toBe(10 + 1300 * 4)
      stage.upstream.script(MODEL.messages, stream(messagesPicture(bytes)))
      const ofMessages = await message({ model: MODEL.messages, stream: true })
      expect(ofMessages.text === messagesPicture(bytes).join('')).toBe(true)
      expect(quotaOf(ofMessages)).toBe(10 + 5 * 4)
    },
    60_000,
  )

  test('it goes on before it is whole, and one that is cut is followed by an error of its own', async () => {
    const [role = '', last = ''] = chatPicture(6_000_000)
    const half = last.slice(0, 3_000_000)
    stage.upstream.script(MODEL.chat, stream([role, half]))
    const { text } = await chat({ model: MODEL.chat, stream: true })
    expect(text.startsWith(role + half)).toBe(true)
    expect(JSON.parse(events(text).at(-1) ?? '')).toMatchObject({ error: { code: 'upstream_error' } })
  })
})

describe('on its way to the other protocol an event may have 32 MiB', () => {
  test('6 MB pass', async () => {
    stage.upstream.script(MODEL.chat, stream(chatPicture(6_000_000)))
    const toMessages = await message({ stream: true })
    checkMessagesStream(toMessages.text, true)
    expect(toMessages.text).toContain('"text":"Look."')
    expect(quotaOf(toMessages)).toBe(10 + 1300 * 4)
    stage.upstream.script(MODEL.messages, stream(messagesPicture(6_000_000)))
    const toChat = await chat({ stream: true })
    checkChatStream(toChat.text, true)
    expect(quotaOf(toChat)).toBe(10 + 5 * 4)
  })

  test('33 MiB end the stream with an error of the caller’s protocol, and leave nothing behind', async () => {
    // Nine times as much as one may have is more than all together may have.
    for (let i = 0; i < 9; i++) {
      stage.upstream.script(
        MODEL.chat,
        stream([roleFrame(), contentFrame('a'), ...chatPicture(33 * MIB).slice(1)]),
      )
      const toMessages = await message({ stream: true })
      checkMessagesStream(toMessages.text, false)
    }
    stage.upstream.script(
      MODEL.messages,
      stream([...messageFrames([{ text: 'a' }]).slice(0, 5), ...messagesPicture(33 * MIB).slice(1)]),
    )
    checkChatStream((await chat({ stream: true })).text, false)
    stage.upstream.script(MODEL.chat, stream([...chatPicture(24 * MIB).slice(0, 2), finishFrame()]))
    checkMessagesStream((await message({ stream: true })).text, true)
  }, 60_000)
})
