import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { scanObject } from '@sluice/wire/json/json-scan'
import type { MediaFetcher } from '../../src/call/media-fetcher.ts'
import { jsonText, Raw } from '../generators/json.ts'
import { anyMedia, CODECS, convertReply, convertRequest, convertStream } from './convert.ts'
import { lawRuns } from '../runner/tier.ts'

let media: MediaFetcher
beforeAll(() => {
  media = anyMedia()
})
afterAll(() => media?.close())

const KEYS = ['10', '2', '-1', '1e3', '__proto__', 'constructor', 'title', 'é', '\\u0061', '']
const LEAVES = ['null', 'true', '{}', '[ ]', '1.0', '-0', '9007199254740993', '1e400', '"\\u0041\\/ü"']
const SPACES = ['', ' ', '\n  ', '\t']

/** Values that a parser would reorder, merge, round or respell, including duplicate keys and white space. */
const { object } = fc.letrec<{ value: string; object: string }>((tie) => ({
  value: fc.oneof({ depthSize: 'small' }, fc.constantFrom(...LEAVES), tie('object'), listOf(tie('object'))),
  object: fc
    .tuple(
      fc.array(fc.tuple(fc.constantFrom(...KEYS), tie('value')), { maxLength: 4 }),
      fc.constantFrom(...SPACES),
    )
    .map(
      ([members, space]) =>
        `{${space}${members.map(([key, value]) => `"${key}":${space}${value}`).join(`${space},`)}}`,
    ),
}))

function listOf(texts: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc.array(texts, { maxLength: 2 }).map((all) => `[${all.join(' ,')}]`)
}

/** A schema with `type` in the middle of its members. */
const schemas = fc
  .tuple(object, object)
  .map(([one, other]) => `{"properties": ${one},"type":"object" , "enum":[${other},"x"],"7":${other}}`)

/** A schema that is in the subset for structured output. */
const closedSchemas = fc
  .tuple(object, object)
  .map(
    ([one, other]) =>
      `{"properties": {"10":{"default":${one},"type":"string"}, "2": {"type":"number","default":${other}}},` +
      `"additionalProperties":false ,"type":"object","required":["2"]}`,
  )

const MESSAGES = [{ role: 'user', content: 'hi' }]

async function converted(from: 'chat' | 'messages', request: object): Promise<string> {
  const answer = await convertRequest(from, Buffer.from(jsonText(request)), media)
  if ('refused' in answer) throw new Error(answer.refused)
  return answer.body.toString()
}

describe('JSON that a conversion keeps exactly', () => {
  test('tool schemas keep their exact text when a chat request is converted to Messages', async () => {
    await fc.assert(
      fc.asyncProperty(schemas, async (schema) => {
        const tools = [{ type: 'function', function: { name: 'f', parameters: new Raw(schema) } }]
        const body = await converted('chat', { model: 'claude', messages: MESSAGES, tools })
        expect(body).toContain(`"input_schema":${schema}}`)
      }),
      { numRuns: lawRuns(300) },
    )
  })

  test('tool schemas keep their exact text when a Messages request is converted to chat', async () => {
    await fc.assert(
      fc.asyncProperty(schemas, async (schema) => {
        const tools = [{ name: 'f', input_schema: new Raw(schema) }]
        const body = await converted('messages', { model: 'gpt', max_tokens: 9, messages: MESSAGES, tools })
        expect(body).toContain(`"parameters":${schema}}`)
      }),
      { numRuns: lawRuns(300) },
    )
  })

  test('tool schemas without a type get one at the front when converted to Messages, and keep their exact text', async () => {
    await fc.assert(
      fc.asyncProperty(object, async (properties) => {
        const schema = `{"10":1,"properties":${properties},"2":0}`
        const tools = [{ type: 'function', function: { name: 'f', parameters: new Raw(schema) } }]
        const body = await converted('chat', { model: 'claude', messages: MESSAGES, tools })
        expect(body).toContain(`"input_schema":{"type":"object",${schema.slice(1)}}`)
      }),
    )
  })

  test('response schemas in the subset for structured output keep their exact text when a chat request is converted to Messages', async () => {
    await fc.assert(
      fc.asyncProperty(closedSchemas, async (schema) => {
        const format = {
          type: 'json_schema',
          json_schema: { name: 'n', schema: new Raw(schema), strict: true },
        }
        const request = { model: 'claude', messages: MESSAGES, response_format: format }
        expect(await converted('chat', request)).toContain(
          `"output_config":{"format":{"type":"json_schema","schema":${schema}}}`,
        )
      }),
      { numRuns: lawRuns(300) },
    )
  })

  test('response schemas keep their exact text as input schema of a tool, for models before Claude 4.5', async () => {
    await fc.assert(
      fc.asyncProperty(schemas, async (schema) => {
        const format = { type: 'json_schema', json_schema: { name: 'n', schema: new Raw(schema) } }
        const request = { model: 'claude-3-5-haiku', messages: MESSAGES, response_format: format }
        expect(await converted('chat', request)).toContain(`"input_schema":${schema}}`)
      }),
    )
  })

  test('response schemas keep their exact text when a Messages request is converted to chat', async () => {
    await fc.assert(
      fc.asyncProperty(schemas, async (schema) => {
        const format = { type: 'json_schema', schema: new Raw(schema) }
        const request = { model: 'gpt', max_tokens: 9, messages: MESSAGES, output_config: { format } }
        expect(await converted('messages', request)).toContain(
          `"response_format":{"type":"json_schema","json_schema":{"name":"response","schema":${schema},"strict":false}}`,
        )
      }),
      { numRuns: lawRuns(300) },
    )
  })

  test('tool inputs in the history keep their exact text in conversions between chat and Messages', async () => {
    await fc.assert(
      fc.asyncProperty(object, async (input) => {
        const call = { id: 'c', type: 'function', function: { name: 'f', arguments: input } }
        const chat = { model: 'claude', messages: [...MESSAGES, { role: 'assistant', tool_calls: [call] }] }
        expect(await converted('chat', chat)).toContain(`"input":${input}}`)
        const use = { type: 'tool_use', id: 'c', name: 'f', input: new Raw(input) }
        const turns = [...MESSAGES, { role: 'assistant', content: [use] }]
        expect(await converted('messages', { model: 'gpt', max_tokens: 9, messages: turns })).toContain(
          `"arguments":${JSON.stringify(input)}`,
        )
      }),
      { numRuns: lawRuns(300) },
    )
  })

  test('tool inputs in a converted response keep their exact text, whole and in a stream', () => {
    fc.assert(
      fc.property(object, (input) => {
        const use = { type: 'tool_use', id: 'c', name: 'f', input: new Raw(input) }
        const message = { id: 'msg_1', model: 'm', content: [use], stop_reason: 'tool_use' }
        const fromMessages = convertReply('messages', Buffer.from(jsonText(message))).toString()
        expect(fromMessages).toContain(`"arguments":${JSON.stringify(input)}`)

        const asText = { index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: input } }
        expect(convertReply('chat', chatReply({ tool_calls: [asText] })).toString()).toContain(
          `"input":${input},"caller"`,
        )
        expect(streamedInput(asText)).toBe(input)
      }),
      { numRuns: lawRuns(300) },
    )
  })

  test('arguments that a chat server sends as an object keep their exact text, whole and in a stream', () => {
    fc.assert(
      fc.property(object, object, (input, other) => {
        const bare = (text: string, index: number): object => ({
          index,
          id: `c${index}`,
          type: 'function',
          function: { name: 'f', arguments: new Raw(text) },
        })
        const calls = [bare(input, 0), bare(other, 1)]
        const whole = CODECS.chat.decodeReply(chatReply({ tool_calls: calls }))
        expect(whole.parts.map((part) => (part.kind === 'tool-call' ? part.input : ''))).toEqual([
          input,
          other,
        ])
        // A frame is one line.
        expect(streamedInput(bare(input.replaceAll('\n', ' '), 0))).toBe(input.replaceAll('\n', ' '))
      }),
      { numRuns: lawRuns(300) },
    )
  })
})

function chatReply(message: object): Buffer {
  const choices = [{ index: 0, message: { role: 'assistant', content: null, ...message } }]
  return Buffer.from(jsonText({ id: 'chatcmpl-1', model: 'm', choices }))
}

/** The input of the only call in the stream that a messages client gets for a chunk with this call. */
function streamedInput(call: object): string {
  const chunk = { id: 'x', model: 'm', choices: [{ index: 0, delta: { tool_calls: [call] } }] }
  const finish = { id: 'x', choices: [{ index: 0, delta: {}, finish_reason: 'tool_calls' }] }
  const stream = [chunk, finish].map((event) => `data: ${jsonText(event)}\n\n`).join('')
  const { writes } = convertStream('chat', [Buffer.from(`${stream}data: [DONE]\n\n`)])
  return writes
    .join('')
    .split('\n')
    .filter((line) => line.startsWith('data: '))
    .map((line) => scanObject(Buffer.from(line.slice('data: '.length))).value('delta') as Delta | undefined)
    .map((delta) => delta?.partial_json ?? '')
    .join('')
}

interface Delta {
  readonly partial_json?: string
}
