import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { describe, expect, test } from 'vitest'
import { promptTokens } from '@sluice/wire/usage'
import { converseCodec } from '@sluice/wire/converse'
import { BedrockResponses } from '../../src/upstreams/bedrock/bedrock-responses.ts'
import { chopped } from '../generators/chunks.ts'
import { ALL_PROTOCOLS, streamAs } from './convert-through.ts'
import { foldReply } from './fold-reply.ts'

/** The folder with recorded responses of providers, if there is one. */
const FOLDER = process.env['RECORDINGS']
const folder = join(FOLDER ?? '', 'embeddings')
const streams =
  FOLDER === undefined ? [] : readdirSync(folder).filter((name) => name.endsWith('.eventstream'))

/** The server-sent events that binary messages become. */
function framed(chunks: readonly Buffer[]): Buffer {
  const pieces: Buffer[] = []
  const responses = new BedrockResponses(
    {
      onHead: () => undefined,
      onData: (chunk) => pieces.push(chunk),
      onEnd: () => undefined,
      onError(error) {
        throw error
      },
    },
    'converse',
  )
  responses.onHead({
    status: 200,
    contentType: 'application/vnd.amazon.eventstream',
    retryAfter: undefined,
    headers: {},
  })
  for (const chunk of chunks) responses.onData(chunk)
  responses.onEnd()
  return Buffer.concat(pieces)
}

/** Payload of a message, as far as it is compared. */
interface Payload {
  readonly delta?: { readonly text?: string }
  readonly start?: { readonly toolUse?: { readonly type?: string } }
  readonly usage?: { readonly totalTokens: number }
}

/** The payloads of a recording, read without the code under test: each is one line of JSON. */
function payloads(bytes: Buffer): Payload[] {
  const found: Payload[] = []
  for (let at = 0; at < bytes.length; at += bytes.readUInt32BE(at)) {
    const from = at + 12 + bytes.readUInt32BE(at + 4)
    found.push(JSON.parse(bytes.toString('utf8', from, at + bytes.readUInt32BE(at) - 4)))
  }
  return found
}

if (FOLDER === undefined) replayNothing()
else replay()

function replayNothing(): void {
  test('no recorded Converse stream is replayed if RECORDINGS names no folder', () => {
    expect(streams).toEqual([])
  })
}

function replay(): void {
  describe.each(streams)('the recorded stream %s', (name) => {
    const bytes = readFileSync(join(folder, name))

    test("a recorded Converse stream is read completely, with the provider's token count, however its bytes are divided", () => {
      const recorded = payloads(bytes)
      const stream = framed([bytes])
      expect(framed(chopped(bytes, 7))).toEqual(stream)
      const decoder = converseCodec.streamDecoder()
      const reply = foldReply([...decoder.push(stream), ...decoder.end()])
      const said = recorded.map(({ delta }) => delta?.text ?? '').join('')
      const parts = reply?.parts ?? []
      expect(parts.map((part) => (part.kind === 'text' ? part.text : '')).join('')).toBe(said)
      const called = recorded.filter(({ start }) => start?.toolUse && start.toolUse.type === undefined)
      expect(parts.filter(({ kind }) => kind === 'tool-call')).toHaveLength(called.length)
      const usage = reply?.usage
      expect(usage && promptTokens(usage) + usage.output).toBe(recorded.at(-1)?.usage?.totalTokens)
    })

    test.each(ALL_PROTOCOLS)(
      'the recorded Converse stream is converted to a complete stream of the protocol %s',
      (to) => {
        expect(streamAs('converse', to, [framed([bytes])]).complete).toBe(true)
      },
    )
  })
}
