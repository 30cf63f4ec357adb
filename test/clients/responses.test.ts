import { createOpenAI } from '@ai-sdk/openai'
import { generateText, isStepCount, Output, streamText, tool } from 'ai'
import OpenAI from 'openai'
import { zodResponsesFunction, zodTextFormat } from 'openai/helpers/zod'
import { ResponsesToolRunner, runnerFunction } from 'openai/helpers/responses-tool-runner'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { type DemoFixture, startDemoFixture } from '../fixtures/demo-fixture.ts'

let fixture: DemoFixture
let client: OpenAI
beforeAll(async () => {
  // The SDK warns about thoughts that cannot be sent back, as chat upstreams do not encrypt them.
  globalThis.AI_SDK_LOG_WARNINGS = false
  fixture = await startDemoFixture()
  client = new OpenAI({ apiKey: 'sk-ann', baseURL: `${fixture.gateway.url}/v1`, maxRetries: 0 })
})
afterAll(() => fixture?.close())

/** A model behind a channel of each protocol, all of which can think. */
const MODELS = ['demo-responses', 'demo-reason', 'demo-claude'] as const
const QUESTION = 'What is the weather in Lisbon?'
const City = z.object({ city: z.string() })
const Cube = z.object({ sides: z.number().int(), note: z.string().nullable() })
const CUBE = 'How many sides has a cube? 6'
const ENCRYPTED: OpenAI.Responses.ResponseIncludable[] = ['reasoning.encrypted_content']
const REASONING = { reasoning: { effort: 'high', summary: 'auto' }, include: ENCRYPTED } as const

describe.each(MODELS)('the official OpenAI client, with %s', (model) => {
  const weather = zodResponsesFunction({
    name: 'get_weather',
    description: 'Current weather at a place',
    parameters: City,
  })

  test('the OpenAI client gets thoughts before the answer, and usage whose counts add up to its total', async () => {
    const { output, output_text, usage } = await client.responses.create({
      model,
      input: 'Tell me about lighthouses',
      ...REASONING,
    })
    expect(output).toMatchObject([
      { type: 'reasoning', summary: [{ text: expect.stringContaining('lighthouses') }] },
      { type: 'message', role: 'assistant', status: 'completed' },
    ])
    expect(output_text).toContain('lighthouses')
    expect(usage?.total_tokens).toBe((usage?.input_tokens ?? 0) + (usage?.output_tokens ?? 0))
  })

  test("the OpenAI client's stream helper assembles the streamed response", async () => {
    const stream = client.responses.stream({ model, input: 'Tell me about lighthouses', ...REASONING })
    let text = ''
    let thoughts = ''
    stream.on('response.output_text.delta', ({ delta }) => void (text += delta))
    stream.on('response.reasoning_summary_text.delta', ({ delta }) => void (thoughts += delta))
    const final = await stream.finalResponse()
    expect(final.output_text).toBe(text)
    expect(final.output[0]).toMatchObject({ type: 'reasoning', summary: [{ text: thoughts }] })
    expect(final.status).toBe('completed')
  })

  test('the OpenAI client parses an answer that follows a schema, whole and streamed', async () => {
    const asked = { model, input: CUBE, text: { format: zodTextFormat(Cube, 'cube') } }
    const { output_parsed } = await client.responses.parse(asked)
    expect(output_parsed?.sides).toBe(6)
    const streamed = await client.responses.stream(asked).finalResponse()
    expect(streamed.output_parsed?.sides).toBe(6)
  })

  test('the OpenAI client has its tool called, and continues with its own items and the result', async () => {
    const asked = { model, tools: [weather], store: false, ...REASONING }
    const user = { role: 'user' as const, content: QUESTION }
    const first = await client.responses.parse({ ...asked, input: [user] })
    const call = first.output.find((item) => item.type === 'function_call')
    expect(call).toMatchObject({ name: 'get_weather', parsed_arguments: { city: 'Lisbon' } })
    const result = {
      type: 'function_call_output' as const,
      call_id: call?.call_id ?? '',
      output: '{"temperature":19}',
    }
    const items = first.output.map((item) =>
      item.type === 'function_call' ? { ...item, parsed_arguments: undefined } : item,
    )
    const second = await client.responses.create({
      ...asked,
      input: [user, ...(items as OpenAI.Responses.ResponseInputItem[]), result],
    })
    expect(second.output_text).toContain('temperature is 19')
  })

  test.each([false, true])(
    'the OpenAI client runs its tools until there is an answer (stream: %j)',
    async (stream) => {
      const given: unknown[] = []
      const tool = zodResponsesFunction({
        name: 'get_weather',
        description: 'Current weather at a place',
        parameters: City,
        function: (args) => {
          given.push(args)
          return '{"temperature":19}'
        },
      })
      const runner = new ResponsesToolRunner({ functions: [runnerFunction(tool)] })
      const { output_text } = await runner.run(client, { model, input: QUESTION, ...REASONING }, { stream })
      expect(given).toEqual([{ city: 'Lisbon' }])
      expect(output_text).toContain('temperature is 19')
    },
  )

  test('the OpenAI client has a custom tool called with plain text, and continues with its output', async () => {
    const tools: OpenAI.Responses.Tool[] = [
      { type: 'custom', name: 'apply_patch', description: 'Edits files.' },
    ]
    const user = { role: 'user' as const, content: 'Write "hello" to greeting.txt' }
    const first = await client.responses.stream({ model, input: [user], tools, store: false }).finalResponse()
    const call = first.output.find((item) => item.type === 'custom_tool_call')
    expect(call?.input).toBe('*** Begin Patch\n*** Add File: greeting.txt\n+hello\n*** End Patch\n')
    if (!call) throw new Error('no call')
    const output = { type: 'custom_tool_call_output' as const, call_id: call.call_id, output: 'Written.' }
    const second = await client.responses.create({ model, input: [user, call, output], tools })
    expect(second.output_text).toContain('Written')
  })

  test('the OpenAI client gets the status incomplete for a response that max_output_tokens cuts off', async () => {
    const { status, incomplete_details } = await client.responses.create({
      model,
      input: 'Tell me about lighthouses',
      max_output_tokens: 16,
    })
    expect({ status, incomplete_details }).toEqual({
      status: 'incomplete',
      incomplete_details: { reason: 'max_output_tokens' },
    })
  })

  test('the OpenAI client throws BadRequestError for an invalid responses request, and AuthenticationError for an unknown key', async () => {
    const orphan = { type: 'function_call_output' as const, call_id: 'call_x', output: '' }
    await expect(client.responses.create({ model, input: [orphan] })).rejects.toBeInstanceOf(
      OpenAI.BadRequestError,
    )
    const stranger = client.withOptions({ apiKey: 'sk-nobody' })
    await expect(stranger.responses.create({ model, input: 'hi' })).rejects.toBeInstanceOf(
      OpenAI.AuthenticationError,
    )
  })
})

describe.each(MODELS)('the Responses model of the AI SDK, with %s', (model) => {
  const provider = () => createOpenAI({ baseURL: `${fixture.gateway.url}/v1`, apiKey: 'sk-ann' })
  const openai = { store: false, forceReasoning: true, reasoningEffort: 'high', reasoningSummary: 'auto' }
  const asked = () => ({
    model: provider().responses(model),
    providerOptions: { openai },
    maxRetries: 0,
  })
  const tools = {
    get_weather: tool({
      description: 'Current weather at a place',
      inputSchema: City,
      execute: ({ city }) => `rain in ${city}`,
    }),
  }

  test('the AI SDK generates text over the responses API, with thoughts and usage', async () => {
    const { text, reasoningText, finishReason, usage } = await generateText({
      ...asked(),
      prompt: 'Tell me about lighthouses',
    })
    expect(text).toContain('lighthouses')
    expect(reasoningText).toContain('lighthouses')
    expect(finishReason).toBe('stop')
    expect(usage.totalTokens).toBe((usage.inputTokens ?? 0) + (usage.outputTokens ?? 0))
  })

  test.each(['whole', 'streamed'] as const)(
    'the AI SDK calls a tool and answers from its result, %s',
    async (how) => {
      const request = { ...asked(), prompt: QUESTION, tools, stopWhen: isStepCount(3) }
      const result = how === 'whole' ? await generateText(request) : streamText(request)
      const steps = await result.steps
      expect(steps.map(({ finishReason }) => finishReason)).toEqual(['tool-calls', 'stop'])
      expect(steps[0]?.toolCalls).toMatchObject([{ toolName: 'get_weather', input: { city: 'Lisbon' } }])
      expect(await result.text).toContain('rain in Lisbon')
    },
  )

  test('the AI SDK calls a tool and answers from its result, with the default settings of the SDK', async () => {
    const result = await generateText({
      model: provider().responses(model),
      prompt: QUESTION,
      tools,
      stopWhen: isStepCount(3),
      maxRetries: 0,
    })
    expect(result.text).toContain('rain in Lisbon')
  })

  test('the AI SDK streams text over the responses API in pieces', async () => {
    const errors: unknown[] = []
    const { textStream } = streamText({
      ...asked(),
      prompt: 'Tell me about lighthouses',
      onError: ({ error }) => void errors.push(error),
    })
    const pieces: string[] = []
    for await (const piece of textStream) pieces.push(piece)
    expect(errors).toEqual([])
    expect(pieces.length).toBeGreaterThan(5)
    expect(pieces.join('')).toContain('lighthouses')
  })

  test('the AI SDK generates an object that follows a schema', async () => {
    const { output } = await generateText({
      ...asked(),
      prompt: CUBE,
      output: Output.object({ schema: Cube }),
    })
    expect(output.sides).toBe(6)
  })

  test('the AI SDK reports an error of the responses API with its status', async () => {
    const stranger = createOpenAI({ baseURL: `${fixture.gateway.url}/v1`, apiKey: 'sk-nobody' })
    const generating = generateText({ model: stranger.responses(model), prompt: 'hi', maxRetries: 0 })
    await expect(generating).rejects.toMatchObject({ statusCode: 401 })
  })
})
