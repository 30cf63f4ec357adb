import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { NO_USAGE } from '@sluice/wire/usage'
import { chatCodec } from '@sluice/wire/chat'
import { lawRuns } from '../../../test/runner/tier.ts'
import { CompletionStreamEncoder } from '../../../packages/wire/src/chat/completions/codec.ts'
import type { Codec, StreamDecoder, StreamEncoder } from '@sluice/wire/codec'
import { geminiCodec } from '@sluice/wire/gemini'
import { messagesCodec } from '@sluice/wire/messages'
import type { ReplyEvent, StartedPart } from '@sluice/wire/reply'
import { responsesCodec } from '@sluice/wire/responses'
import { TextSignatureRemover } from '@sluice/wire/remove-text-signatures'
import { ConvertingTap } from './converting-tap.ts'

const CODECS: Record<string, Codec> = {
  chat: chatCodec,
  messages: messagesCodec,
  gemini: geminiCodec,
  responses: responsesCodec,
}
const MINTED = { created: 1_760_000_000, id: '0123456789abcdef0123456789abcdef' }
const OPTIONS = { includeUsage: true }

/** Every encoder that writes a client's stream. */
const ENCODERS: Record<string, () => StreamEncoder> = {
  ...Object.fromEntries(
    Object.entries(CODECS).map(([name, codec]) => [name, () => codec.streamEncoder(MINTED, OPTIONS)]),
  ),
  'messages without signatures of texts': () =>
    new TextSignatureRemover(messagesCodec.streamEncoder(MINTED, OPTIONS)),
  completions: () => new CompletionStreamEncoder(MINTED, OPTIONS),
}
const PAIRS = Object.entries(CODECS).flatMap(([from, upstream]) =>
  Object.entries(ENCODERS).map(([to, encoder]) => ({ from, to, upstream, encoder })),
)
const USAGE = { ...NO_USAGE, input: 5, output: 7 }

/** UTF-8 bytes as a string of one character per byte. */
const latin = (text: string): string => Buffer.from(text).toString('latin1')
const unicodeEscape = (unit: number): string => `\\u${unit.toString(16).padStart(4, '0')}`

/** One character of a JSON string in any of its spellings, as bytes; the last one is not valid UTF-8. */
const character = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom(...Array.from('abc xyz019.,')) },
  { weight: 2, arbitrary: fc.constantFrom('\\n', '\\"', '\\\\', '\\t', '\\r', '\\b', '\\f') },
  { weight: 2, arbitrary: fc.constantFrom('é', '詩', '🙂', '\u2028').map(latin) },
  { weight: 1, arbitrary: fc.constantFrom('\\/', '/', '\\u00e9', '\\ud83d\\ude42', '\x7f') },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: 0xffff }).map(unicodeEscape) },
  { weight: 1, arbitrary: fc.constantFrom('\xff', '\xe8\xa9') },
)
const literal = fc.array(character, { maxLength: 12 }).map((characters) => characters.join(''))
const WHOLE_INPUT = ['{', '\\"path\\"', ':', '\\"a\\"', ',\\"b\\":[', '1', ']', '}']
const part = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constantFrom('text', 'thinking', 'tool-call'),
      literals: fc.array(literal, { minLength: 1, maxLength: 12 }),
    }),
  },
  fc.constant({ kind: 'tool-call', literals: WHOLE_INPUT }),
)
const CITATION = { url: 'https://page.test', title: 'Page', span: { start: 0, end: 2 } }
type Part = { readonly kind: string; readonly literals: readonly string[] }

const mark = (number: number): string => `@@${number}@@`

function started(kind: string, index: number): StartedPart {
  return kind === 'tool-call' ? { kind, id: `call_${index}`, name: 'write' } : { kind: kind as 'text' }
}

/** The parts as an upstream sends them, with the placeholders replaced by the literals. */
function streamOf(codec: Codec, parts: readonly Part[]): Buffer {
  const literals = parts.flatMap((one) => one.literals)
  let next = 0
  const events: ReplyEvent[] = [{ kind: 'start', id: 'id_1', model: 'model', usage: USAGE }]
  for (const [index, { kind, literals: own }] of parts.entries()) {
    events.push({ kind: 'part-start', index, part: started(kind, index) })
    for (const _ of own) {
      const grown = kind === 'tool-call' ? 'tool-input' : (kind as 'text')
      events.push({ kind: grown, index, text: mark(next++) })
    }
    if (kind === 'text') events.push({ kind: 'citation', index, citation: CITATION })
    events.push({ kind: 'part-end', index })
  }
  events.push({ kind: 'end', stop: { reason: 'end' }, usage: USAGE })
  const encoder = codec.streamEncoder(MINTED, OPTIONS)
  const frames = events.map((event) => encoder.push([event])).join('') + encoder.finalFrames(USAGE)
  const bytes = frames.replaceAll(/@@(\d+)@@/g, (_, number: string) => literals[Number(number)] as string)
  return Buffer.from(bytes, 'latin1')
}

function chunksOf(bytes: Buffer, cuts: readonly number[]): Buffer[] {
  const ends = [...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].toSorted((a, b) => a - b)
  return ends.map((end, i) => bytes.subarray(ends[i - 1] ?? 0, end))
}

/** Wraps a decoder so that it never returns copied texts. */
function withoutCopies(decoder: StreamDecoder): StreamDecoder {
  return {
    get usage() {
      return decoder.usage
    },
    get sawEvent() {
      return decoder.sawEvent
    },
    arrived: decoder.arrived,
    push: (chunk) => decoder.push(chunk),
    end: () => decoder.end(),
    release: () => decoder.release(),
  }
}

/** The same encoder with some of its methods replaced. */
function changed(encoder: StreamEncoder, change: Partial<StreamEncoder>): StreamEncoder {
  return {
    push: (events) => encoder.push(events),
    copy: (event, out) => encoder.copy(event, out),
    keepAliveFrame: (model) => encoder.keepAliveFrame(model),
    finalFrames: (charged) => encoder.finalFrames(charged),
    failureFrame: (error) => encoder.failureFrame(error),
    ...change,
  }
}

function converted(decoder: StreamDecoder, encoder: StreamEncoder, chunks: readonly Buffer[]): object {
  const tap = new ConvertingTap(decoder, encoder, { model: 'm', promptTokens: () => 3 })
  const out: Buffer[] = []
  const forwarded: (string | undefined)[] = []
  let error: string | undefined
  try {
    for (const chunk of chunks) {
      // The next read overwrites the buffer of a connection.
      const read = Buffer.from(chunk)
      const { forward } = tap.push(read)
      read.fill(0)
      if (forward) out.push(forward)
      forwarded.push(forward?.toString('latin1'))
    }
    tap.end()
    out.push(tap.finalBytes(USAGE))
  } catch (caught) {
    error = String(caught)
  }
  const { text, emittedBytes, contentFrames, sentEvents, usage } = tap
  return {
    bytes: Buffer.concat(out).toString(),
    forwarded,
    text,
    emittedBytes,
    contentFrames,
    sentEvents,
    usage,
    error,
  }
}

describe.each(PAIRS)('$from to $to', ({ upstream, encoder }) => {
  const decoder = (): StreamDecoder => upstream.streamDecoder()

  test('a converted stream has the same bytes whether its texts are copied, or decoded and encoded again', () => {
    fc.assert(
      fc.property(
        fc.array(part, { minLength: 1, maxLength: 5 }),
        fc.array(fc.nat(20_000), { maxLength: 8 }),
        (parts, cuts) => {
          const chunks = chunksOf(streamOf(upstream, parts), cuts)
          expect(converted(decoder(), encoder(), chunks)).toEqual(
            converted(withoutCopies(decoder()), encoder(), chunks),
          )
        },
      ),
      { numRuns: lawRuns(300) },
    )
  })

  test('a stream whose conversion fails does not affect the conversion of other streams', () => {
    const failing = changed(encoder(), {
      push(events) {
        if (events[0]?.kind === 'end') throw new Error('failed')
        return 'of another'
      },
    })
    const chunks = [streamOf(upstream, [{ kind: 'text', literals: ['a', 'b'] }])]
    const alone = converted(decoder(), encoder(), chunks)
    expect(converted(decoder(), failing, chunks)).toMatchObject({ error: 'Error: failed' })
    expect(converted(decoder(), encoder(), chunks)).toEqual(alone)
  })

  test.each(['text', 'thinking'])(
    'most texts of a converted stream are copied without decoding them: %s',
    (kind) => {
      const literals = Array.from({ length: 20 }, (_, i) => ` wörd ${i}\\n`)
      const inner = encoder()
      let copied = 0
      const counting = changed(inner, {
        copy(event, out) {
          const { frames } = event
          const isCopied = inner.copy(event, out)
          if (isCopied) copied += frames
          return isCopied
        },
      })
      converted(decoder(), counting, [streamOf(upstream, [{ kind, literals: literals.map(latin) }])])
      expect(copied).toBeGreaterThanOrEqual(17)
    },
  )
})

test.each(Object.entries(ENCODERS))(
  'the arguments of two interleaved tool calls stay separate in a stream converted to %s',
  (_, encoder) => {
    const chunk = (calls: readonly object[]): string =>
      `data: ${JSON.stringify({ id: 'x', choices: [{ index: 0, delta: { tool_calls: calls } }] })}\n\n`
    const begun = [0, 1].map((index) =>
      chunk([{ index, id: `c${index}`, function: { name: 'f', arguments: '{' } }]),
    )
    const pieces = Array.from({ length: 12 }, (_, i) =>
      chunk([{ index: i % 2, function: { arguments: `"${i}":${i},` } }]),
    )
    const chunks = [Buffer.from([...begun, ...pieces, 'data: [DONE]\n\n'].join(''))]
    expect(converted(chatCodec.streamDecoder(), encoder(), chunks)).toEqual(
      converted(withoutCopies(chatCodec.streamDecoder()), encoder(), chunks),
    )
  },
)
