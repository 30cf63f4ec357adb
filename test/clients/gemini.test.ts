import { createGoogleGenerativeAI } from '@ai-sdk/google'
import {
  ApiError,
  type Content,
  FunctionCallingConfigMode,
  type FunctionDeclaration,
  GoogleGenAI,
  Type,
} from '@google/genai'
import { generateText, isStepCount, Output, streamText, tool } from 'ai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { type DemoFixture, startDemoFixture } from '../fixtures/demo-fixture.ts'

let fixture: DemoFixture
let client: GoogleGenAI
beforeAll(async () => {
  globalThis.AI_SDK_LOG_WARNINGS = false
  fixture = await startDemoFixture()
  client = clientOf('sk-ann')
})
afterAll(() => fixture?.close())

/** A client of the API version that it uses by default, or of another version. */
const clientOf = (apiKey: string, apiVersion?: string): GoogleGenAI =>
  new GoogleGenAI({
    apiKey,
    ...(apiVersion !== undefined && { apiVersion }),
    httpOptions: { baseUrl: fixture.gateway.url },
  })

/** A model behind a channel of each protocol, all of which can think. */
const MODELS = ['demo-gemini', 'demo-reason', 'demo-claude', 'demo-responses'] as const
const QUESTION = 'What is the weather in Lisbon?'
const LIGHTHOUSES = 'Tell me about lighthouses'
const CUBE = 'How many sides has a cube? 6'

const weather: FunctionDeclaration = {
  name: 'get_weather',
  description: 'Current weather at a place',
  parameters: { type: Type.OBJECT, properties: { city: { type: Type.STRING } }, required: ['city'] },
}
const tools = [{ functionDeclarations: [weather] }]
const thinkingConfig = { includeThoughts: true, thinkingBudget: 2048 }

describe.each(MODELS)('the official Google client, with %s', (model) => {
  test('the Google client gets thoughts and an answer, with usage that adds up', async () => {
    const {
      text,
      candidates,
      usageMetadata: used,
    } = await client.models.generateContent({
      model,
      contents: LIGHTHOUSES,
      config: { thinkingConfig },
    })
    expect(text).toContain('lighthouses')
    expect(candidates?.[0]?.content?.parts?.[0]).toMatchObject({ thought: true })
    expect(candidates?.[0]?.finishReason).toBe('STOP')
    const { promptTokenCount = 0, candidatesTokenCount = 0, thoughtsTokenCount = 0 } = used ?? {}
    expect(used?.totalTokenCount).toBe(promptTokenCount + candidatesTokenCount + thoughtsTokenCount)
  })

  test('the Google client gets a streamed answer in pieces', async () => {
    const chunks: string[] = []
    let reason: unknown
    for await (const chunk of await client.models.generateContentStream({ model, contents: LIGHTHOUSES })) {
      expect(chunk.candidates?.[0]?.content?.parts?.length).toBeGreaterThan(0)
      chunks.push(chunk.text ?? '')
      reason = chunk.candidates?.[0]?.finishReason ?? reason
    }
    expect(chunks.length).toBeGreaterThan(3)
    expect(chunks.join('')).toContain('lighthouses')
    expect(reason).toBe('STOP')
  })

  test.each(['whole', 'streamed'] as const)(
    'the Google client has its function called, and continues with its own contents and the result, %s',
    async (how) => {
      const asked: Content = { role: 'user', parts: [{ text: QUESTION }] }
      const ask = async (contents: Content[]): Promise<Content> => {
        const request = { model, contents, config: { tools, thinkingConfig } }
        if (how === 'whole') {
          const { candidates } = await client.models.generateContent(request)
          return candidates?.[0]?.content ?? {}
        }
        const parts = []
        for await (const { candidates } of await client.models.generateContentStream(request))
          parts.push(...(candidates?.[0]?.content?.parts ?? []))
        return { role: 'model', parts }
      }
      const first = await ask([asked])
      const called = first.parts?.find(({ functionCall }) => functionCall)?.functionCall
      expect(called).toMatchObject({ name: 'get_weather', args: { city: 'Lisbon' } })
      const functionResponse = {
        ...(called?.id !== undefined && { id: called.id }),
        name: 'get_weather',
        response: { output: '{"temperature":19}' },
      }
      const second = await ask([asked, first, { role: 'user', parts: [{ functionResponse }] }])
      expect(second.parts?.map(({ text }) => text).join('')).toContain('temperature is 19')
    },
  )

  test('the Google client may send function calls that another provider made, and the model reads their results', async () => {
    const functionCall = { name: 'get_weather', args: { city: 'Lisbon' } }
    const functionResponse = { name: 'get_weather', response: { output: '{"temperature":19}' } }
    const contents = [
      { role: 'user', parts: [{ text: QUESTION }] },
      { role: 'model', parts: [{ functionCall }] },
      { role: 'user', parts: [{ functionResponse }] },
    ]
    const { text } = await client.models.generateContent({ model, contents, config: { tools } })
    expect(text).toContain('temperature is 19')
  })

  test('the Google client runs a function by itself until there is an answer', async () => {
    const given: unknown[] = []
    const callable = {
      tool: () => Promise.resolve(tools[0] as (typeof tools)[number]),
      callTool: (calls: readonly { id?: string; name?: string; args?: unknown }[]) => {
        given.push(...calls.map(({ args }) => args))
        return Promise.resolve(
          calls.map(({ id, name }) => ({
            functionResponse: {
              ...(id !== undefined && { id }),
              ...(name !== undefined && { name }),
              response: { output: '{"temperature":19}' },
            },
          })),
        )
      },
    }
    const { text } = await client.models.generateContent({
      model,
      contents: QUESTION,
      config: { tools: [callable] },
    })
    expect(given).toEqual([{ city: 'Lisbon' }])
    expect(text).toContain('temperature is 19')
  })

  test('the Google client gets an answer that follows the schema in responseSchema or in responseJsonSchema', async () => {
    const responseSchema = {
      type: Type.OBJECT,
      properties: { sides: { type: Type.INTEGER }, note: { type: Type.STRING, nullable: true } },
      required: ['sides'],
    }
    const responseJsonSchema = z.toJSONSchema(z.object({ sides: z.number().int() }))
    for (const schema of [{ responseSchema }, { responseJsonSchema }]) {
      const { text } = await client.models.generateContent({
        model,
        contents: CUBE,
        config: { responseMimeType: 'application/json', ...schema },
      })
      expect(JSON.parse(text ?? '')).toMatchObject({ sides: 6 })
    }
  })

  test("the Google client's chats keep their history over whole and streamed answers", async () => {
    const chat = client.chats.create({ model, config: { systemInstruction: 'Be brief.' } })
    expect((await chat.sendMessage({ message: LIGHTHOUSES })).text).toContain('lighthouses')
    let text = ''
    for await (const chunk of await chat.sendMessageStream({ message: 'Tell me about harbours' }))
      text += chunk.text ?? ''
    expect(text).toContain('harbours')
    const history = chat.getHistory(true)
    expect(history.filter(({ role }) => role === 'user')).toHaveLength(2)
    expect(history.every(({ parts = [] }) => parts.length > 0)).toBe(true)
  })

  test('the Google client forces a function call with the mode ANY', async () => {
    const { functionCalls } = await client.models.generateContent({
      model,
      contents: LIGHTHOUSES,
      config: { tools, toolConfig: { functionCallingConfig: { mode: FunctionCallingConfigMode.ANY } } },
    })
    expect(functionCalls?.[0]?.name).toBe('get_weather')
  })

  test('the Google client counts tokens', async () => {
    const { totalTokens } = await client.models.countTokens({ model, contents: LIGHTHOUSES })
    expect(totalTokens).toBeGreaterThan(2)
  })

  test('the Google client gets MAX_TOKENS as the finish reason of an answer that its maximum cuts off', async () => {
    const { candidates } = await client.models.generateContent({
      model,
      contents: LIGHTHOUSES,
      config: { maxOutputTokens: 16 },
    })
    expect(candidates?.[0]?.finishReason).toBe('MAX_TOKENS')
  })

  test('the Google client finds the model in the model list', async () => {
    const names: unknown[] = []
    const beta = clientOf('sk-ann', 'v1beta')
    for await (const { name } of await beta.models.list()) names.push(name)
    expect(names).toContain(`models/${model}`)
    expect(await beta.models.get({ model })).toMatchObject({
      name: `models/${model}`,
      supportedActions: ['generateContent', 'countTokens'],
    })
  })

  test('the Google client raises an error for an unknown key, whole or streamed, for empty contents and for an unknown model', async () => {
    const stranger = clientOf('sk-nobody')
    const request = { model, contents: 'hi' }
    await expect(stranger.models.generateContent(request)).rejects.toMatchObject({ status: 401 })
    await expect(stranger.models.generateContentStream(request)).rejects.toBeInstanceOf(ApiError)
    await expect(client.models.generateContent({ model, contents: [] })).rejects.toThrow()
    await expect(client.models.generateContent({ ...request, model: 'nothing' })).rejects.toMatchObject({
      status: 503,
    })
  })
})

test('the Google client embeds texts, and equal texts have equal vectors', async () => {
  const contents = ['a lighthouse', 'a lighthouse', 'rain in Lisbon']
  const { embeddings = [] } = await client.models.embedContent({ model: 'demo-embed', contents })
  const [first, second, third] = embeddings.map(({ values = [] }) => values)
  expect(first?.length).toBeGreaterThan(10)
  expect(second).toEqual(first)
  expect(third).not.toEqual(first)
})

describe.each(MODELS)('the Google model of the AI SDK, with %s', (model) => {
  const asked = () => ({
    model: createGoogleGenerativeAI({ baseURL: `${fixture.gateway.url}/v1beta`, apiKey: 'sk-ann' })(model),
    providerOptions: { google: { thinkingConfig } },
    maxRetries: 0,
  })
  const sdkTools = {
    get_weather: tool({
      description: 'Current weather at a place',
      inputSchema: z.object({ city: z.string() }),
      execute: ({ city }) => `rain in ${city}`,
    }),
  }

  test('the AI SDK generates text from a Google model, with thoughts and usage', async () => {
    const { text, reasoningText, finishReason, usage } = await generateText({
      ...asked(),
      prompt: LIGHTHOUSES,
    })
    expect(text).toContain('lighthouses')
    expect(reasoningText).toContain('lighthouses')
    expect(finishReason).toBe('stop')
    expect(usage.totalTokens).toBe((usage.inputTokens ?? 0) + (usage.outputTokens ?? 0))
  })

  test.each(['whole', 'streamed'] as const)(
    'the AI SDK calls a tool of a Google model, and answers from its result, %s',
    async (how) => {
      const request = { ...asked(), prompt: QUESTION, tools: sdkTools, stopWhen: isStepCount(3) }
      const result = how === 'whole' ? await generateText(request) : streamText(request)
      const steps = await result.steps
      expect(steps.map(({ finishReason }) => finishReason)).toEqual(['tool-calls', 'stop'])
      expect(steps[0]?.toolCalls).toMatchObject([{ toolName: 'get_weather', input: { city: 'Lisbon' } }])
      expect(await result.text).toContain('rain in Lisbon')
    },
  )

  test('the AI SDK makes an object that follows a schema with a Google model', async () => {
    const { output } = await generateText({
      ...asked(),
      prompt: CUBE,
      output: Output.object({ schema: z.object({ sides: z.number().int() }) }),
    })
    expect(output).toEqual({ sides: 6 })
  })

  test('the AI SDK streams text from a Google model in pieces', async () => {
    const pieces: string[] = []
    for await (const piece of streamText({ ...asked(), prompt: LIGHTHOUSES }).textStream) pieces.push(piece)
    expect(pieces.length).toBeGreaterThan(3)
    expect(pieces.join('')).toContain('lighthouses')
  })
})
