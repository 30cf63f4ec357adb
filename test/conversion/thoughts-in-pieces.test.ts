import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { anyCharacter } from '../generators/characters.ts'
import { lawRuns } from '../runner/tier.ts'
import { requestAs, streamAs } from './convert-through.ts'

interface Block {
  readonly type: string
  readonly [field: string]: unknown
}
interface GeminiPart {
  readonly text?: string
  readonly thought?: boolean
  readonly thoughtSignature?: string
  readonly [field: string]: unknown
}

const words = fc.string({ unit: anyCharacter, minLength: 1, maxLength: 30 })
const signature = fc.base64String({ minLength: 4, maxLength: 40 })
const thought = fc.record({ type: fc.constant('thinking'), thinking: words, signature })
const redacted = fc.record({ type: fc.constant('redacted_thinking'), data: signature })
/** Thoughts before a text or a call, as Claude writes them. */
const answer = fc
  .tuple(
    fc.array(fc.oneof({ weight: 4, arbitrary: thought }, { weight: 1, arbitrary: redacted }), {
      maxLength: 3,
    }),
    words,
    fc.array(thought, { maxLength: 1 }),
  )
  .map(([before, text, between]): Block[] => [
    ...before,
    { type: 'text', text },
    ...between,
    { type: 'tool_use', id: 'toolu_1', name: 'look', input: { at: 'Bern' } },
  ])

/** A stream of a messages provider, each text in deltas of `size` characters. */
function streamOf(blocks: readonly Block[], size: number): Buffer {
  const event = (type: string, fields: object): string =>
    `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`
  const deltas = (index: number, type: string, field: string, text: string): string =>
    Array.from({ length: Math.ceil(text.length / size) }, (_, at) =>
      event('content_block_delta', {
        index,
        delta: { type, [field]: text.slice(at * size, (at + 1) * size) },
      }),
    ).join('')
  const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content: [], usage: {} }
  const written = blocks.map((block, index) => {
    const { thinking, signature: signed, text, input } = block
    const started =
      block.type === 'thinking'
        ? { ...block, thinking: '', signature: '' }
        : { ...block, ...('text' in block && { text: '' }), ...('input' in block && { input: {} }) }
    return [
      event('content_block_start', { index, content_block: started }),
      typeof thinking === 'string' ? deltas(index, 'thinking_delta', 'thinking', thinking) : '',
      signed === undefined
        ? ''
        : event('content_block_delta', { index, delta: { type: 'signature_delta', signature: signed } }),
      typeof text === 'string' ? deltas(index, 'text_delta', 'text', text) : '',
      input === undefined ? '' : deltas(index, 'input_json_delta', 'partial_json', JSON.stringify(input)),
      event('content_block_stop', { index }),
    ].join('')
  })
  return Buffer.from(
    [
      event('message_start', { message: { ...message, usage: { input_tokens: 3, output_tokens: 1 } } }),
      ...written,
      event('message_delta', { delta: { stop_reason: 'tool_use' }, usage: { output_tokens: 5 } }),
      event('message_stop', {}),
    ].join(''),
  )
}

/** The parts that a client of Gemini gets of a stream. */
function partsOf(stream: string): GeminiPart[] {
  return stream
    .split('\r\n\r\n')
    .filter((frame) => frame.startsWith('data: '))
    .flatMap((frame) => JSON.parse(frame.slice('data: '.length)).candidates?.[0]?.content?.parts ?? [])
}

/** Changes that a client may make to pieces: it joins neighbours, or divides them at another position. */
type Cutting = readonly { readonly joins: boolean; readonly at: number }[]

function cutAnew(parts: readonly GeminiPart[], cutting: Cutting): GeminiPart[] {
  const cut: GeminiPart[] = []
  for (const [index, part] of parts.entries()) {
    const { joins, at } = cutting[index % cutting.length] ?? { joins: false, at: 0 }
    const before = cut.at(-1)
    const isThought = part.thought === true && part.text !== undefined
    if (isThought && joins && before?.thought && before.thoughtSignature === undefined) {
      cut[cut.length - 1] = { ...part, text: `${before.text ?? ''}${part.text ?? ''}` }
    } else if (isThought && part.thoughtSignature === undefined && (part.text?.length ?? 0) > at && at > 0) {
      cut.push(
        { ...part, text: part.text?.slice(0, at) ?? '' },
        { ...part, text: part.text?.slice(at) ?? '' },
      )
    } else cut.push(part)
  }
  return cut
}

const cutting = fc.array(fc.record({ joins: fc.boolean(), at: fc.nat(5) }), { minLength: 1, maxLength: 7 })

describe('signed thoughts in a stream to a client of Gemini', () => {
  test('signed thoughts that a Gemini client divides are returned to their provider byte for byte, one block each', () => {
    fc.assert(
      fc.property(answer, fc.integer({ min: 1, max: 9 }), cutting, (blocks, size, cuts) => {
        const { text, complete } = streamAs('messages', 'gemini', [streamOf(blocks, size)])
        expect(complete).toBe(true)
        const request = {
          contents: [
            { role: 'user', parts: [{ text: 'How is it?' }] },
            { role: 'model', parts: cutAnew(partsOf(text), cuts) },
            {
              role: 'user',
              parts: [{ functionResponse: { id: 'toolu_1', name: 'look', response: { output: 'sunny' } } }],
            },
          ],
          tools: [{ functionDeclarations: [{ name: 'look' }] }],
        }
        const sent = JSON.parse(
          requestAs('gemini', 'messages', Buffer.from(JSON.stringify(request)), 'claude-sonnet-4-5'),
        )
        const content = sent.request?.messages?.[1]?.content as Block[]
        const thoughts = (list: readonly Block[]): Block[] =>
          list.filter(({ type }) => type.includes('thinking'))
        expect(thoughts(content), JSON.stringify(sent)).toEqual(thoughts(blocks))
      }),
      { numRuns: lawRuns(300) },
    )
  })
})
