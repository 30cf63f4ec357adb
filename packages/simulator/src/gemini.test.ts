import { describe, expect, test } from 'vitest'
import { asFields, asList } from './fields.ts'
import { geminiUpstream } from './gemini.ts'
import { PromptCache } from './prompt-cache.ts'
import type { Reply } from './upstream.ts'

const user = (text: string): object => ({ role: 'user', parts: [{ text }] })
const WEATHER = {
  functionDeclarations: [
    {
      name: 'get_weather',
      description: 'Current weather at a place',
      parameters: { type: 'OBJECT', properties: { city: { type: 'STRING' } }, required: ['city'] },
    },
  ],
}

function ask(body: object): Reply {
  let next = 0
  const stamp = { created: 1, id: (prefix: string) => `${prefix}${next++}` }
  const call = {
    method: 'POST',
    path: '/models/m:generateContent',
    query: new URLSearchParams(),
    headers: {},
    account: 'key',
    body: { ...body },
  }
  return geminiUpstream(['m'], new PromptCache()).reply(call.body, 'm', stamp, call)
}

/** The parts of a whole answer. */
function partsOf(body: object): Record<string, unknown>[] {
  const reply = ask(body)
  if (reply.kind !== 'whole') throw new Error('a stream')
  const [candidate] = asList(asFields(reply.body).candidates)
  return asList(asFields(asFields(candidate).content).parts).map((part) => ({ ...asFields(part) }))
}

const QUESTION = user('What is the weather in Lisbon?')
const response = { functionResponse: { name: 'get_weather', response: { output: '{"temperature":19}' } } }
const turn = (...parts: object[]): object => ({ role: 'model', parts })
const answered = (...parts: object[]): object => ({
  contents: [QUESTION, turn(...parts), { role: 'user', parts: [response] }],
  tools: [WEATHER],
})

describe('the simulated Gemini provider', () => {
  test('the simulated Gemini provider signs its first function call, and accepts the signature with the result', () => {
    const [call = {}] = partsOf({ contents: [QUESTION], tools: [WEATHER] })
    expect(call).toMatchObject({
      functionCall: { name: 'get_weather', args: { city: 'Lisbon' } },
      thoughtSignature: expect.any(String),
    })
    expect(JSON.stringify(partsOf(answered(call)))).toContain('temperature is 19')
  })

  test('the simulated Gemini provider refuses a returned call with a missing or foreign signature, or with one of another part', () => {
    const [call = {}] = partsOf({ contents: [QUESTION], tools: [WEATHER] })
    const { thoughtSignature: _, ...unsigned } = call
    const other = partsOf({ contents: [user('Tell me about lighthouses')] }).at(-1)
    expect(() => ask(answered(unsigned))).toThrow('missing a thought_signature')
    expect(() => ask(answered({ ...call, thoughtSignature: 'Zm9yZWlnbg==' }))).toThrow('Corrupted')
    expect(() => ask(answered({ ...call, thoughtSignature: other?.['thoughtSignature'] }))).toThrow(
      'Corrupted',
    )
    expect(() =>
      ask(answered({ ...call, thoughtSignature: 'skip_thought_signature_validator' })),
    ).not.toThrow()
  })

  test('the simulated Gemini provider needs no signatures in earlier turns', () => {
    const [call = {}] = partsOf({ contents: [QUESTION], tools: [WEATHER] })
    const { thoughtSignature: _, ...unsigned } = call
    const contents = [
      QUESTION,
      turn(unsigned),
      { role: 'user', parts: [response] },
      turn({ text: 'x' }),
      QUESTION,
    ]
    expect(() => ask({ contents, tools: [WEATHER] })).not.toThrow()
  })

  test('the simulated Gemini provider ends a text with its signature, and shows thoughts where they are requested', () => {
    const thinkingConfig = { includeThoughts: true }
    const contents = [user('Tell me about lighthouses')]
    const parts = partsOf({ contents, generationConfig: { thinkingConfig } })
    expect(parts).toMatchObject([{ thought: true }, { thoughtSignature: expect.any(String) }])
    expect(partsOf({ contents })).toHaveLength(1)
  })

  test('the simulated Gemini provider reports in each chunk the usage so far', () => {
    const reply = ask({ contents: [user('Tell me about lighthouses')], stream: true })
    if (reply.kind !== 'stream') throw new Error('no stream')
    const totals = reply.frames.map(({ text }) => {
      const { usageMetadata } = JSON.parse(text.slice(6))
      const {
        promptTokenCount,
        candidatesTokenCount = 0,
        thoughtsTokenCount = 0,
        totalTokenCount,
      } = usageMetadata
      expect(totalTokenCount).toBe(promptTokenCount + candidatesTokenCount + thoughtsTokenCount)
      return totalTokenCount
    })
    expect(totals).toEqual([...totals].sort((a, b) => a - b))
    expect(reply.frames.at(-1)?.text).toContain('"finishReason":"STOP"')
    expect(reply.frames.filter(({ text }) => text.includes('finishReason'))).toHaveLength(1)
  })

  test('the simulated Gemini provider refuses responses of functions that were not called', () => {
    expect(() => ask({ contents: [QUESTION, { role: 'user', parts: [response] }] })).toThrow(
      'immediately after',
    )
  })
})
