import OpenAI, { AzureOpenAI, toFile } from 'openai'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Fields, asFields } from '../fields.ts'
import { type Simulator, startSimulator } from '../start-simulator.ts'

let simulator: Simulator
let client: OpenAI
let nowMs = Date.now()
beforeAll(async () => {
  simulator = await startSimulator({ firstTokenMs: 0, tokenMs: 0, maxWholeMs: 0 }, { now: () => nowMs })
  client = new OpenAI({ baseURL: simulator.chatUrl, apiKey: 'key', maxRetries: 0 })
})
afterAll(() => simulator.close())
beforeEach(() => simulate({ reset: true }))

/** Sets what later batches and requests meet. */
async function simulate(settings: Fields, base = simulator.chatUrl): Promise<void> {
  const url = new URL('/simulate', base)
  const { status } = await fetch(url, { method: 'POST', body: JSON.stringify(settings) })
  expect(status).toBe(200)
}

function lineOf(customId: string, content = 'Hello', body: Fields = {}): Fields {
  const messages = [{ role: 'user', content }]
  const request = { model: 'demo-chat', max_tokens: 10, messages, ...body }
  return { custom_id: customId, method: 'POST', url: '/v1/chat/completions', body: request }
}

async function uploaded(lines: readonly (Fields | string)[], to = client): Promise<string> {
  const text = lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join('')
  const file = await to.files.create({
    file: await toFile(Buffer.from(text), 'lines.jsonl'),
    purpose: 'batch',
  })
  return file.id
}

async function made(
  lines: readonly (Fields | string)[],
  endpoint: OpenAI.BatchCreateParams['endpoint'] = '/v1/chat/completions',
): Promise<OpenAI.Batch> {
  const input = await uploaded(lines)
  return client.batches.create({ input_file_id: input, endpoint, completion_window: '24h' })
}

/** Waits until a batch has this status. */
async function reached(id: string, status: string): Promise<OpenAI.Batch> {
  await expect.poll(async () => (await client.batches.retrieve(id)).status).toBe(status)
  return client.batches.retrieve(id)
}

async function linesOf(fileId: string | undefined): Promise<Fields[]> {
  const text = await (await client.files.content(String(fileId))).text()
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => asFields(JSON.parse(line)))
}

async function invoiceOf(id: string): Promise<Fields> {
  return asFields(await (await fetch(new URL(`/simulate/invoice/${id}`, simulator.chatUrl))).json())
}

describe('the README of the simulator: Batches, with the client of OpenAI', () => {
  test('a batch is made of an uploaded file, answered line by line, and billed by the line', async () => {
    const batch = await made([lineOf('a'), lineOf('b', 'Tell me about lighthouses')])
    expect(batch).toMatchObject({ status: 'validating', endpoint: '/v1/chat/completions' })
    const ended = await reached(batch.id, 'completed')
    expect(ended.request_counts).toEqual({ total: 2, completed: 2, failed: 0 })
    expect(ended.error_file_id).toBeNull()
    const results = await linesOf(ended.output_file_id)
    expect(results).toMatchObject([
      { custom_id: 'a', error: null, response: { status_code: 200, body: { object: 'chat.completion' } } },
      { custom_id: 'b', response: { status_code: 200 } },
    ])
    const usages = results.map(({ response }) => asFields(asFields(asFields(response).body).usage))
    const tokens = (name: string): number => usages.reduce((sum, usage) => sum + Number(usage[name]), 0)
    const bill = { input: tokens('prompt_tokens'), output: tokens('completion_tokens') }
    expect(bill.output).toBeGreaterThan(0)
    expect(ended.usage).toMatchObject({ input_tokens: bill.input, output_tokens: bill.output })
    expect(await invoiceOf(batch.id)).toMatchObject({
      ...bill,
      tier: 'batch',
      billed_lines: 2,
      items: [
        { custom_id: 'a', model: 'demo-chat', tier: 'batch', input: usages[0]?.prompt_tokens },
        { custom_id: 'b', output: usages[1]?.completion_tokens },
      ],
    })
  })

  test.each([
    ['/v1/responses', { model: 'demo-responses', input: 'Hello' }, { object: 'response' }],
    ['/v1/embeddings', { model: 'demo-embed', input: 'Hello' }, { object: 'list' }],
    ['/v1/completions', { model: 'demo-chat', prompt: 'Hello' }, { object: 'text_completion' }],
    ['/v1/moderations', { model: 'demo-chat', input: 'Hello' }, { results: [{ flagged: false }] }],
  ] as const)('lines of %s are answered', async (url, body, answer) => {
    const batch = await made([{ custom_id: 'a', method: 'POST', url, body }], url)
    const { output_file_id: output } = await reached(batch.id, 'completed')
    expect(await linesOf(output)).toMatchObject([{ response: { status_code: 200, body: answer } }])
  })

  test('lines that fail are in the file of errors, and are not billed', async () => {
    const batch = await made([lineOf('a', 'simulate(status=429)'), lineOf('b')])
    const ended = await reached(batch.id, 'completed')
    expect(ended.request_counts).toEqual({ total: 2, completed: 1, failed: 1 })
    expect(await linesOf(ended.error_file_id)).toMatchObject([
      { custom_id: 'a', response: { status_code: 429, body: { error: { code: 429 } } } },
    ])
    expect((await linesOf(ended.output_file_id)).map(({ custom_id: id }) => id)).toEqual(['b'])
    expect(await invoiceOf(batch.id)).toMatchObject({ billed_lines: 1, lines: 2 })
  })

  test.each([
    ['not JSON', ['nonsense'], 'invalid_json_line'],
    ['an id that is used twice', [lineOf('a'), lineOf('a')], 'duplicate_custom_id'],
    ['two models', [lineOf('a'), lineOf('b', '', { model: 'demo-reason' })], 'mismatched_model'],
    ['another URL', [{ ...lineOf('a'), url: '/v1/responses' }], 'mismatched_url'],
  ])('a file with %s makes the batch fail', async (_, lines, code) => {
    const batch = await made(lines)
    const failed = await reached(batch.id, 'failed')
    expect(failed.errors?.data).toMatchObject([{ code, line: lines.length }])
    expect(failed.output_file_id).toBeNull()
  })

  test('a batch is cancelled while it runs; its lines so far are kept', async () => {
    await simulate({ behaviour: { running_ms: 1_000, done: 1 } })
    const batch = await made([lineOf('a'), lineOf('b'), lineOf('c')])
    await reached(batch.id, 'in_progress')
    nowMs += 500
    expect(await client.batches.retrieve(batch.id)).toMatchObject({ request_counts: { completed: 1 } })
    await client.batches.cancel(batch.id)
    const ended = await reached(batch.id, 'cancelled')
    expect((await linesOf(ended.output_file_id)).map(({ custom_id: id }) => id)).toEqual(['a'])
    expect(await linesOf(ended.error_file_id)).toMatchObject([
      { custom_id: 'b', response: null, error: { code: 'batch_cancelled' } },
      { custom_id: 'c' },
    ])
    await expect(client.batches.cancel(batch.id)).rejects.toMatchObject({ status: 400 })
  })

  test('a directive in a line says how the batch behaves', async () => {
    const batch = await made([lineOf('a', 'simulate(batch_end=expired, batch_done=0)')])
    const { error_file_id: errors } = await reached(batch.id, 'expired')
    expect(await linesOf(errors)).toMatchObject([{ custom_id: 'a', error: { code: 'batch_expired' } }])
  })

  test('a limit of enqueued tokens makes the next batch fail until an earlier one has ended', async () => {
    await simulate({ behaviour: { enqueued_tokens: 60, running_ms: 1_000 } })
    const first = await made([lineOf('a')])
    await reached(first.id, 'in_progress')
    const second = await made([lineOf('a')])
    const failed = await reached(second.id, 'failed')
    expect(failed.errors?.data?.[0]?.code).toBe('token_limit_exceeded')
    nowMs += 1_000
    await reached(first.id, 'completed')
    await reached((await made([lineOf('a')])).id, 'in_progress')
  })

  test('requests are refused at any step, with the seconds after which to come again', async () => {
    const input = await uploaded([lineOf('a')])
    await simulate({ faults: [{ step: 'create', status: 429, retry_after: 7, skip: 1, times: 2 }] })
    const create = () =>
      client.batches.create({
        input_file_id: input,
        endpoint: '/v1/chat/completions',
        completion_window: '24h',
      })
    await create()
    const error = await create().catch((refused: unknown) => refused)
    expect(error).toMatchObject({ status: 429 })
    expect((error as InstanceType<typeof OpenAI.APIError>).headers?.get('retry-after')).toBe('7')
    await expect(create()).rejects.toMatchObject({ status: 429 })
    await create()
  })

  test('an answer is lost although the batch is made', async () => {
    const before = (await client.batches.list()).data.length
    await simulate({ faults: [{ step: 'create', lost: true }] })
    await expect(made([lineOf('a')])).rejects.toThrow('Connection error')
    expect((await client.batches.list()).data).toHaveLength(before + 1)
  })

  test('results break off within a line, and are whole when they are read again', async () => {
    const batch = await made([lineOf('a'), lineOf('b')])
    const { output_file_id: output } = await reached(batch.id, 'completed')
    await simulate({ faults: [{ step: 'content', broken: 1 }] })
    await expect(linesOf(output)).rejects.toThrow()
    expect(await linesOf(output)).toHaveLength(2)
  })

  test('files and batches of another key are not found', async () => {
    const input = await uploaded([lineOf('a')])
    const batch = await made([lineOf('a')])
    const other = new OpenAI({ baseURL: simulator.chatUrl, apiKey: 'other', maxRetries: 0 })
    await expect(other.files.retrieve(input)).rejects.toMatchObject({ status: 404 })
    await expect(other.batches.retrieve(batch.id)).rejects.toMatchObject({ status: 404 })
    expect((await other.batches.list()).data).toEqual([])
  })

  test('a deleted file of lines or results is not found', async () => {
    const input = await uploaded([lineOf('a')])
    expect((await client.files.delete(input)).deleted).toBe(true)
    await expect(client.files.content(input)).rejects.toMatchObject({ status: 404 })
    const { output_file_id: output } = await reached((await made([lineOf('a')])).id, 'completed')
    await client.files.delete(String(output))
    await expect(client.files.content(String(output))).rejects.toMatchObject({ status: 404 })
  })

  test('Azure looks at a file before a batch can use it, and names endpoints without a version', async () => {
    await simulate({ behaviour: { pending_ms: 100 } }, simulator.azureUrl)
    const azure = new AzureOpenAI({
      endpoint: simulator.azureUrl,
      apiKey: 'key',
      apiVersion: '2024-10-21',
      maxRetries: 0,
    })
    const input = await uploaded([{ ...lineOf('a'), url: '/chat/completions' }], azure)
    expect((await azure.files.retrieve(input)).status).toBe('pending')
    const url = `${simulator.azureUrl}/openai/batches?api-version=2024-10-21`
    const create = () =>
      fetch(url, {
        method: 'POST',
        headers: { 'api-key': 'key', 'content-type': 'application/json' },
        body: JSON.stringify({
          input_file_id: input,
          endpoint: '/chat/completions',
          completion_window: '24h',
        }),
      })
    expect((await create()).status).toBe(400)
    nowMs += 100
    expect((await azure.files.retrieve(input)).status).toBe('processed')
    const { id } = asFields(await (await create()).json())
    const v1 = new OpenAI({ baseURL: `${simulator.azureUrl}/openai/v1`, apiKey: 'key', maxRetries: 0 })
    await expect.poll(async () => (await v1.batches.retrieve(String(id))).status).toBe('completed')
    const { endpoint, output_file_id: output } = await v1.batches.retrieve(String(id))
    expect(endpoint).toBe('/chat/completions')
    expect(await (await v1.files.content(String(output))).text()).toContain('"custom_id":"a"')
  })
})
