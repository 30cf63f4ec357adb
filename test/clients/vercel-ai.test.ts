import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAI } from '@ai-sdk/openai'
import { generateText, isStepCount, type LanguageModel, streamText, tool } from 'ai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { type Behaviour, usageText } from '../fixtures/behaviour.ts'
import { type ChatContent, streamedChat, wholeChat } from '../fixtures/chat-behaviour.ts'
import { type Block, streamedMessage, wholeMessage } from '../fixtures/messages-behaviour.ts'
import type { Fixture } from '../fixtures/fixture.ts'
import { MODEL, MODES, type Mode, fixtureOfBoth } from '../conversion/fixture.ts'
import { OTHER, PROTOCOLS } from '../conversion/convert.ts'

let fixture: Fixture
beforeAll(async () => {
  fixture = await fixtureOfBoth()
})
afterAll(() => fixture?.close())

const TEXT = 'Hello there, friend.'
const CALL = { id: 'call_1', name: 'weather', input: '{"city":"Bern"}' }

type Protocol = (typeof PROTOCOLS)[number]

/** The library's model for a dialect, whose upstream speaks that dialect or the other. */
function modelOf(protocol: Protocol, mode: Mode): LanguageModel {
  const baseURL = `${fixture.gateway.url}/v1`
  const name = MODEL[upstreamOf(protocol, mode)]
  return protocol === 'chat'
    ? createOpenAI({ baseURL, apiKey: 'sk-ann' }).chat(name)
    : createAnthropic({ baseURL, apiKey: 'sk-ann' })(name)
}

function upstreamOf(protocol: Protocol, mode: Mode): Protocol {
  return mode === 'native' ? protocol : OTHER[protocol]
}

/** The same answer in either dialect: 100 prompt tokens, 60 of them cached, and 7 generated ones. */
function answer(protocol: Protocol, stream: boolean, what: 'text' | 'call'): Behaviour {
  if (protocol === 'chat') {
    const said: ChatContent = {
      ...(what === 'text' ? { text: TEXT } : { calls: [CALL] }),
      usage: usageText(100, 7, 60),
    }
    return stream ? streamedChat(said) : wholeChat(said)
  }
  const blocks: Block[] = what === 'text' ? [{ text: TEXT }] : [CALL]
  const counts = {
    input_tokens: 40,
    cache_read_input_tokens: 60,
    cache_creation_input_tokens: 0,
    output_tokens: 7,
  }
  return stream ? streamedMessage(blocks, { counts }) : wholeMessage(blocks, { counts })
}

const cases = PROTOCOLS.flatMap((protocol) => MODES.map((mode) => ({ protocol, mode })))

describe.each(cases)('the AI SDK, $protocol, $mode', ({ protocol, mode }) => {
  const upstream = upstreamOf(protocol, mode)
  const script = (...behaviours: Behaviour[]): void => fixture.upstream.script(MODEL[upstream], ...behaviours)
  const tools = {
    weather: tool({
      description: 'The weather in a town',
      inputSchema: z.object({ city: z.string() }),
      execute: ({ city }) => `sunny in ${city}`,
    }),
  }
  const usage = { inputTokens: 100, outputTokens: 7, totalTokens: 107 }

  test('the AI SDK generates text through the gateway', async () => {
    script(answer(upstream, false, 'text'))
    const result = await generateText({
      model: modelOf(protocol, mode),
      prompt: 'hi',
      maxOutputTokens: 200,
      maxRetries: 0,
    })
    expect(result).toMatchObject({ text: TEXT, finishReason: 'stop', usage })
    expect(result.usage.inputTokenDetails.cacheReadTokens).toBe(60)
  })

  test('the AI SDK streams text through the gateway', async () => {
    script(answer(upstream, true, 'text'))
    const errors: unknown[] = []
    const result = streamText({
      model: modelOf(protocol, mode),
      prompt: 'hi',
      maxOutputTokens: 200,
      maxRetries: 0,
      onError: ({ error }) => void errors.push(error),
    })
    const pieces: string[] = []
    for await (const piece of result.textStream) pieces.push(piece)
    expect(errors).toEqual([])
    expect(pieces.join('')).toBe(TEXT)
    expect(pieces.length).toBeGreaterThan(1)
    expect(await result.finishReason).toBe('stop')
    expect(await result.usage).toMatchObject(usage)
  })

  test('the AI SDK calls a tool that the model requests, and continues with its result', async () => {
    script(answer(upstream, false, 'call'), answer(upstream, false, 'text'))
    const result = await generateText({
      model: modelOf(protocol, mode),
      prompt: 'Weather in Bern?',
      tools,
      stopWhen: isStepCount(3),
      maxOutputTokens: 200,
      maxRetries: 0,
    })
    expect(result.text).toBe(TEXT)
    expect(result.steps[0]).toMatchObject({
      finishReason: 'tool-calls',
      toolCalls: [{ toolCallId: CALL.id, toolName: 'weather', input: { city: 'Bern' } }],
      toolResults: [{ output: 'sunny in Bern' }],
    })
    expect(fixture.upstream.received(MODEL[upstream])[1]?.text).toContain('sunny in Bern')
  })

  test('the AI SDK streams a tool call and the answer after it', async () => {
    script(answer(upstream, true, 'call'), answer(upstream, true, 'text'))
    const result = streamText({
      model: modelOf(protocol, mode),
      prompt: 'Weather in Bern?',
      tools,
      stopWhen: isStepCount(3),
      maxOutputTokens: 200,
      maxRetries: 0,
    })
    const kinds: string[] = []
    for await (const part of result.fullStream) kinds.push(part.type)
    expect(kinds).not.toContain('error')
    expect(kinds).toEqual(expect.arrayContaining(['tool-call', 'tool-result', 'text-delta', 'finish']))
    expect((await result.steps)[0]?.toolCalls).toMatchObject([{ input: { city: 'Bern' } }])
    expect(await result.text).toBe(TEXT)
  })
})
