import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { FaultyProtocol } from './faults.ts'
import { type Simulator, startSimulator } from './start-simulator.ts'

let simulator: Simulator
beforeAll(async () => {
  simulator = await startSimulator({ firstTokenMs: 0, tokenMs: 0, maxWholeMs: 0 })
})
afterAll(() => simulator.close())

const PROTOCOLS = ['chat', 'messages', 'responses', 'gemini', 'converse'] as const
const SCHEMA = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
const TOOL = { name: 'get_weather', description: 'Current weather in a city', parameters: SCHEMA }

/** A request that calls a tool if `calls` says so. */
function bodyOf(protocol: FaultyProtocol, text: string, calls: boolean): object {
  const messages = [{ role: 'user', content: text }]
  switch (protocol) {
    case 'chat':
      return {
        model: 'demo-chat',
        messages,
        ...(calls && { tools: [{ type: 'function', function: TOOL }], tool_choice: 'required' }),
      }
    case 'messages': {
      const { parameters: input_schema, ...tool } = TOOL
      const called = { tools: [{ ...tool, input_schema }], tool_choice: { type: 'any' } }
      return { model: 'demo-claude', max_tokens: 500, messages, ...(calls && called) }
    }
    case 'responses': {
      const called = { tools: [{ type: 'function', ...TOOL }], tool_choice: 'required' }
      return { model: 'demo-responses', input: messages, ...(calls && called) }
    }
    case 'gemini': {
      const toolConfig = { functionCallingConfig: { mode: 'ANY' } }
      const called = { tools: [{ functionDeclarations: [TOOL] }], toolConfig }
      return { contents: [{ role: 'user', parts: [{ text }] }], ...(calls && called) }
    }
    case 'converse': {
      const { parameters: json, ...tool } = TOOL
      const called = { tools: [{ toolSpec: { ...tool, inputSchema: { json } } }], toolChoice: { any: {} } }
      return { messages: [{ role: 'user', content: [{ text }] }], ...(calls && { toolConfig: called }) }
    }
  }
}

/** The answer to a request with this directive. */
async function ask(
  protocol: FaultyProtocol,
  stream: boolean,
  directive: string,
  calls = false,
): Promise<{ status: number; text: string; type: string; errorType: string | null }> {
  const path = {
    chat: `${simulator.chatUrl}/chat/completions`,
    messages: `${simulator.messagesUrl}/messages`,
    responses: `${simulator.responsesUrl}/responses`,
    gemini: `${simulator.geminiUrl}/models/demo-gemini:${stream ? 'streamGenerateContent?alt=sse' : 'generateContent'}`,
    converse: `${simulator.bedrockUrl}/model/demo-bedrock-nova/${stream ? 'converse-stream' : 'converse'}`,
  }[protocol]
  const answer = await fetch(path, {
    method: 'POST',
    headers: { authorization: 'Bearer key', 'x-goog-api-key': 'key', 'content-type': 'application/json' },
    body: JSON.stringify({
      ...bodyOf(protocol, `The weather in Bern, simulate(${directive})`, calls),
      ...(protocol !== 'gemini' && protocol !== 'converse' && { stream }),
    }),
  })
  const text = await answer.text()
  const errorType = answer.headers.get('x-amzn-errortype')
  return { status: answer.status, text, type: answer.headers.get('content-type') ?? '', errorType }
}

const ENDS: Readonly<Record<FaultyProtocol, string>> = {
  chat: '"finish_reason":"malformed_function_call"',
  messages: '"stop_reason":"malformed_tool_use"',
  responses: '"status":"failed"',
  gemini: '"finishReason":"MALFORMED_FUNCTION_CALL"',
  converse: '"stopReason":"malformed_tool_use"',
}
const GOOD_END = /"(?:finish_reason|stop_reason|finishReason|stopReason)":"|response\.completed|\[DONE\]/
const BROKEN: Readonly<Record<FaultyProtocol, string>> = {
  chat: '"arguments":"<',
  messages: '"<',
  responses: '"arguments":"<{',
  gemini: '"args":"<{',
  converse: '"input":"<',
}
/** The type of a stream; one of Converse has binary messages. */
const STREAM = /^(?:text\/event-stream|application\/vnd\.amazon\.eventstream)/

describe.each(PROTOCOLS.flatMap((protocol) => [false, true].map((stream) => ({ protocol, stream }))))(
  'faults of a simulated $protocol provider, streamed: $stream',
  ({ protocol, stream }) => {
    test('an answer ends with the named reason, in the words of the protocol', async () => {
      expect((await ask(protocol, stream, 'end=malformed_call')).text).toContain(ENDS[protocol])
      if (protocol !== 'responses')
        expect((await ask(protocol, stream, 'end=network_error')).text).toContain(':"network_error"')
    })

    test('an answer without an end has its text, and a stream stops after it', async () => {
      const { status, text } = await ask(protocol, stream, 'end=none')
      expect([status, text.length > 200]).toEqual([200, true])
      if (stream || protocol !== 'responses') expect(text).not.toMatch(GOOD_END)
    })

    test('an error comes with status 200, alone or after the content', async () => {
      const { status, text } = await ask(protocol, stream, 'error=503')
      expect([status, text.length < 400]).toEqual([200, true])
      expect(text).toContain('fails as requested')
      if (!stream) return
      const late = await ask(protocol, stream, 'error=503, late')
      expect(late.text.length).toBeGreaterThan(text.length + 300)
      expect(late.text).toMatch(
        protocol === 'converse' ? /fails as requested\."\}.{4}$/su : /fails as requested[^\n]*\n\n$/,
      )
      expect(late.text).not.toMatch(GOOD_END)
    })

    test('an error has the named status, and its words the named form', async () => {
      const { status, text } = await ask(protocol, stream, 'status=429')
      expect([status, protocol === 'converse' || /"error":\{/.test(text)]).toEqual([429, true])
      const detail = await ask(protocol, stream, 'status=422, words=detail_list')
      expect([detail.status, JSON.parse(detail.text).detail[0].msg]).toEqual([422, expect.any(String)])
    })

    test('an answer has the form that was not requested', async () => {
      const { text, type } = await ask(protocol, stream, 'other_form')
      expect([STREAM.test(type), text.startsWith('{')]).toEqual([!stream, stream])
    })

    test('the arguments of a call are not JSON', async () => {
      const { text } = await ask(protocol, stream, 'broken_arguments', true)
      expect(text).toContain(BROKEN[protocol])
    })

    test('the events of a stream have no names', async () => {
      expect((await ask(protocol, stream, 'unnamed_events')).text).not.toMatch(/^event:/m)
    })
  },
)

test('errors of Converse are exceptions, in a stream and with a status', async () => {
  const { text } = await ask('converse', true, 'error=429, late')
  expect(text).toMatch(/:exception-type.{3}throttlingException.*:message-type.{3}exception/su)
  const { status, errorType } = await ask('converse', false, 'status=503')
  expect([status, errorType]).toEqual([503, 'ServiceUnavailableException'])
})

test('the content of a chat answer is a list, and the calls of a chat stream have one index', async () => {
  for (const stream of [false, true])
    expect((await ask('chat', stream, 'content_list')).text).toContain('"content":[{"type":"text","text":"')
  const { text } = await ask('chat', true, 'one_index', true)
  expect(new Set([...text.matchAll(/"tool_calls":\[\{"index":(\d+)/g)].map(([, index]) => index))).toEqual(
    new Set(['0']),
  )
})
