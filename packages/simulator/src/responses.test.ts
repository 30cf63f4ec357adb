import OpenAI from 'openai'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Simulator, startSimulator } from './start-simulator.ts'

type Request = Omit<OpenAI.Responses.ResponseCreateParamsNonStreaming, 'model'>
type Tools = OpenAI.Responses.Tool[]

let simulator: Simulator
let client: OpenAI

beforeAll(async () => {
  simulator = await startSimulator({ firstTokenMs: 0, tokenMs: 0, maxWholeMs: 0 })
  client = new OpenAI({ apiKey: 'key', baseURL: simulator.responsesUrl, maxRetries: 0 })
})
afterAll(() => simulator.close())

const WEATHER: Tools = [
  {
    type: 'function',
    name: 'get_weather',
    description: 'Current weather at a place',
    parameters: { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] },
    strict: true,
  },
]
const PATCHES: Tools = [
  {
    type: 'custom',
    name: 'apply_patch',
    format: { type: 'grammar', syntax: 'lark', definition: 'start: "*** Begin Patch" ' },
  },
]
const REASONING = { effort: 'low', summary: 'auto' } as const

function create(request: Request): Promise<OpenAI.Responses.Response> {
  return client.responses.create({ model: 'demo-responses', ...request })
}

test('a simulated response is about the topic of its request, and its stream has the same items', async () => {
  const request = { input: 'Tell me about lighthouses', reasoning: REASONING }
  const whole = await create(request)
  expect(whole.output_text).toContain('lighthouses')
  const streamed = await client.responses.stream({ model: 'demo-responses', ...request }).finalResponse()
  const summaries = ({ output }: OpenAI.Responses.Response) =>
    output.flatMap((item) => (item.type === 'reasoning' ? item.summary : []))
  expect(summaries(streamed)).toEqual(summaries(whole))
  expect(streamed.output_text).toBe(whole.output_text)
})

test('a simulated responses stream is numbered without gaps, opens and closes each item, and ends with the response', async () => {
  const stream = await client.responses.create({
    model: 'demo-responses',
    input: 'Tell me about lighthouses',
    reasoning: REASONING,
    stream: true,
  })
  const events: OpenAI.Responses.ResponseStreamEvent[] = []
  for await (const event of stream) events.push(event)
  expect(events.map(({ sequence_number }) => sequence_number)).toEqual([...events.keys()])
  const kinds = events.map(({ type }) => type)
  expect(kinds.filter((kind, at) => kind !== kinds[at - 1])).toEqual([
    'response.created',
    'response.in_progress',
    'response.output_item.added',
    'response.reasoning_summary_part.added',
    'response.reasoning_summary_text.delta',
    'response.reasoning_summary_text.done',
    'response.reasoning_summary_part.done',
    'response.output_item.done',
    'response.output_item.added',
    'response.content_part.added',
    'response.output_text.delta',
    'response.output_text.done',
    'response.content_part.done',
    'response.output_item.done',
    'response.completed',
  ])
})

test('a simulated response has its thoughts, encrypted where requested, and counts their tokens', async () => {
  const { output, usage } = await create({
    input: 'Tell me about lighthouses',
    reasoning: { effort: 'low' },
    include: ['reasoning.encrypted_content'],
  })
  expect(output[0]).toMatchObject({
    type: 'reasoning',
    summary: [],
    encrypted_content: expect.stringMatching(/^gAAAA/),
  })
  expect(usage?.output_tokens_details.reasoning_tokens).toBeGreaterThan(10)
})

test('the simulated responses API calls a function, and uses its result', async () => {
  const user = { role: 'user', content: 'What is the weather in Lisbon?' } as const
  const { output } = await create({ input: [user], tools: WEATHER })
  const [call] = output
  expect(call).toMatchObject({ type: 'function_call', name: 'get_weather', arguments: '{"city":"Lisbon"}' })
  if (call?.type !== 'function_call') throw new Error('no call')
  expect(call.id).not.toBe(call.call_id)
  const result = {
    type: 'function_call_output',
    call_id: call.call_id,
    output: '{"temperature":19}',
  } as const
  const { output_text } = await create({ input: [user, call, result], tools: WEATHER })
  expect(output_text).toContain('temperature is 19')
})

test('the simulated responses API calls a custom tool with a plain text as its input', async () => {
  const { output } = await create({ input: 'Write "hello" to greeting.txt', tools: PATCHES })
  expect(output[0]).toMatchObject({
    type: 'custom_tool_call',
    name: 'apply_patch',
    input: '*** Begin Patch\n*** Add File: greeting.txt\n+hello\n*** End Patch\n',
  })
})

test('the simulated responses API names the namespace in its call of a tool that belongs to one', async () => {
  const tools: Tools = [{ type: 'namespace', name: 'sky', description: 'Weather', tools: WEATHER as never }]
  const { output } = await create({ input: 'What is the weather in Lisbon?', tools })
  expect(output[0]).toMatchObject({ type: 'function_call', name: 'get_weather', namespace: 'sky' })
})

test('a simulated response can be continued by its id, unless it was not stored', async () => {
  const first = await create({ input: 'What is the weather in Lisbon?', tools: WEATHER })
  const [call] = first.output
  if (call?.type !== 'function_call') throw new Error('no call')
  const second = await create({
    previous_response_id: first.id,
    input: [{ type: 'function_call_output', call_id: call.call_id, output: 'rain' }],
    tools: WEATHER,
  })
  expect(second.output_text).toContain('rain')
  const { id } = await create({ input: 'Hello', store: false })
  await expect(create({ previous_response_id: id, input: 'And now?' })).rejects.toMatchObject({
    status: 400,
    code: 'previous_response_not_found',
    param: 'previous_response_id',
  })
})

test('a simulated response that was stored can be read, listed and deleted', async () => {
  const { id, output } = await create({
    input: [
      { role: 'user', content: 'Good morning' },
      { role: 'user', content: 'Tell me about lighthouses' },
    ],
  })
  expect((await client.responses.retrieve(id)).output).toEqual(output)
  const first = await client.responses.inputItems.list(id, { limit: 1 })
  expect(first.data).toMatchObject([{ content: 'Tell me about lighthouses' }])
  expect((await first.getNextPage()).data).toMatchObject([{ content: 'Good morning' }])
  await expect(client.responses.cancel(id)).rejects.toMatchObject({ status: 400 })
  await client.responses.delete(id)
  await expect(client.responses.retrieve(id)).rejects.toMatchObject({ status: 404 })
  await expect(create({ previous_response_id: id, input: 'And now?' })).rejects.toMatchObject({ status: 400 })
})

test('the simulated responses API counts as many input tokens for a request as its response reports', async () => {
  const request = { input: 'Tell me about lighthouses', tools: WEATHER }
  const { input_tokens } = await client.responses.inputTokens.count({ model: 'demo-responses', ...request })
  expect((await create(request)).usage?.input_tokens).toBe(input_tokens)
})

test('items of a simulated response can be referred to by their ids', async () => {
  const user = { role: 'user', content: 'What is the weather in Lisbon?' } as const
  const { output } = await create({ input: [user], tools: WEATHER })
  const [call] = output
  if (call?.type !== 'function_call') throw new Error('no call')
  const result = { type: 'function_call_output', call_id: call.call_id, output: 'rain' } as const
  const refer = (id: string) =>
    create({ input: [user, { type: 'item_reference', id }, result], tools: WEATHER })
  expect((await refer(String(call.id))).output_text).toContain('rain')
  await expect(refer('fc_unknown')).rejects.toMatchObject({ status: 400 })
})

test('a simulated response that reaches its maximum of tokens is incomplete, and so is its last item', async () => {
  const { status, incomplete_details, output, usage } = await create({
    input: 'Tell me about lighthouses',
    max_output_tokens: 16,
  })
  expect({ status, incomplete_details }).toEqual({
    status: 'incomplete',
    incomplete_details: { reason: 'max_output_tokens' },
  })
  expect(output.at(-1)).toMatchObject({ type: 'message', status: 'incomplete' })
  expect(usage?.output_tokens).toBe(16)
})

test('the text of a simulated response satisfies a requested JSON schema', async () => {
  const schema = { type: 'object', properties: { sides: { type: 'integer' } }, required: ['sides'] }
  const { output_text } = await create({
    input: 'How many sides has a cube? 6',
    text: { format: { type: 'json_schema', name: 'cube', schema } },
  })
  expect(JSON.parse(output_text)).toEqual({ sides: 6 })
})

test.each([
  ['too few tokens', { input: 'Hi', max_output_tokens: 0 }],
  ['no input', { input: [] }],
  ['an output without its call', { input: [{ type: 'function_call_output', call_id: 'c', output: '' }] }],
] as [string, Request][])('the simulated responses API refuses %s', async (_, request) => {
  await expect(create(request)).rejects.toMatchObject({ status: 400, type: 'invalid_request_error' })
})
