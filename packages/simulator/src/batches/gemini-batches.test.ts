import { GoogleGenAI } from '@google/genai'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Fields, asFields, asString } from '../fields.ts'
import { type Simulator, startSimulator } from '../start-simulator.ts'

let simulator: Simulator
let client: GoogleGenAI
let origin: string
let nowMs = Date.now()
beforeAll(async () => {
  simulator = await startSimulator({ firstTokenMs: 0, tokenMs: 0, maxWholeMs: 0 }, { now: () => nowMs })
  origin = new URL(simulator.geminiUrl).origin
  client = new GoogleGenAI({ apiKey: 'key', httpOptions: { baseUrl: origin } })
})
afterAll(() => simulator.close())
beforeEach(() => fetch(`${origin}/simulate`, { method: 'POST', body: '{"reset": true}' }))

async function ask(path: string, method = 'GET', body?: string, headers = {}): Promise<Fields> {
  const all = { 'x-goog-api-key': 'key', ...headers }
  const response = await fetch(`${origin}${path}`, { method, headers: all, ...(body && { body }) })
  expect(response.status).toBe(200)
  return asFields(await response.json())
}

function lineOf(key: string, text: string): Fields {
  return { key, request: { contents: [{ role: 'user', parts: [{ text }] }] } }
}

/** Uploads lines in one request; resolves to the name of the file. */
async function uploaded(lines: readonly Fields[]): Promise<string> {
  const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('')
  const { file } = await ask('/upload/v1beta/files', 'POST', text, { 'content-type': 'application/jsonl' })
  return asString(asFields(file).name)
}

async function made(lines: readonly Fields[]): Promise<string> {
  const batch = { displayName: 'mine', inputConfig: { fileName: await uploaded(lines) } }
  const operation = await ask(
    '/v1beta/models/demo-gemini:batchGenerateContent',
    'POST',
    JSON.stringify({ batch }),
  )
  expect(operation).toMatchObject({ metadata: { state: 'BATCH_STATE_PENDING', displayName: 'mine' } })
  return asString(operation.name)
}

async function reached(name: string, state: string): Promise<Fields> {
  const get = (): Promise<Fields> => ask(`/v1beta/${name}`)
  await expect.poll(async () => asFields((await get()).metadata).state).toBe(state)
  return get()
}

async function resultsOf(operation: Fields): Promise<Fields[]> {
  const { output } = asFields(operation.metadata)
  const file = asString(asFields(output).responsesFile)
  const headers = { 'x-goog-api-key': 'key' }
  const response = await fetch(`${origin}/download/v1beta/${file}:download?alt=media`, { headers })
  const text = await response.text()
  return text
    .split('\n')
    .filter(Boolean)
    .map((line) => asFields(JSON.parse(line)))
}

describe('the README of the simulator: Batches, with the API of Gemini', () => {
  test('a batch is made of a file, and its results are another one', async () => {
    const name = await made([lineOf('a', 'Hello'), lineOf('b', 'simulate(status=503)')])
    const operation = await reached(name, 'BATCH_STATE_SUCCEEDED')
    expect(operation).toMatchObject({
      done: true,
      response: { responsesFile: expect.stringMatching(/^files\//) },
      metadata: { batchStats: { requestCount: '2', successfulRequestCount: '1', failedRequestCount: '1' } },
    })
    const results = await resultsOf(operation)
    expect(results).toMatchObject([
      { key: 'a', response: { candidates: [{ finishReason: 'STOP' }] } },
      { key: 'b', error: { code: 503, status: 'UNAVAILABLE' } },
    ])
    const usage = asFields(asFields(results[0]?.response).usageMetadata)
    const invoice = await ask(`/simulate/invoice/${name}`)
    expect(invoice).toMatchObject({
      billed_lines: 1,
      input: usage.promptTokenCount,
      items: [{ custom_id: 'a' }],
    })
  })

  test('the official client uploads in several requests, makes a batch and reads its state', async () => {
    const text = JSON.stringify(lineOf('a', 'Hello'))
    const file = await client.files.upload({
      file: new Blob([text]),
      config: { mimeType: 'application/jsonl', displayName: 'lines' },
    })
    expect(file).toMatchObject({ displayName: 'lines', sizeBytes: String(text.length) })
    const job = await client.batches.create({
      model: 'demo-gemini',
      src: { fileName: String(file.name) },
      config: { displayName: 'mine' },
    })
    const get = () => client.batches.get({ name: String(job.name) })
    await expect.poll(async () => (await get()).state).toBe('JOB_STATE_SUCCEEDED')
    expect((await get()).dest?.fileName).toMatch(/^files\//)
    await client.batches.delete({ name: String(job.name) })
    await expect(get()).rejects.toMatchObject({ status: 404 })
  })

  test('an upload is continued where it broke off, with POST or PUT', async () => {
    const text = JSON.stringify(lineOf('a', 'Hello'))
    const start = await fetch(`${origin}/upload/v1beta/files`, {
      method: 'POST',
      headers: {
        'x-goog-api-key': 'key',
        'x-goog-upload-protocol': 'resumable',
        'x-goog-upload-command': 'start',
      },
      body: JSON.stringify({ file: { display_name: 'lines' } }),
    })
    const url = String(start.headers.get('x-goog-upload-url'))
    const send = (command: string, offset: number, body: string) =>
      fetch(url, {
        method: command === 'upload' ? 'POST' : 'PUT',
        headers: { 'x-goog-upload-command': command, 'x-goog-upload-offset': String(offset) },
        body,
      })
    expect((await send('upload', 0, text.slice(0, 10))).headers.get('x-goog-upload-status')).toBe('active')
    const query = await fetch(url, { method: 'POST', headers: { 'x-goog-upload-command': 'query' } })
    expect(query.headers.get('x-goog-upload-size-received')).toBe('10')
    expect((await send('upload, finalize', 9, text.slice(9))).status).toBe(400)
    const ended = asFields(await (await send('upload, finalize', 10, text.slice(10))).json())
    expect(ended).toMatchObject({ file: { displayName: 'lines', sizeBytes: String(text.length) } })
  })

  test('a cancelled batch has the results of what was done, an expired one has none', async () => {
    await fetch(`${origin}/simulate`, {
      method: 'POST',
      body: JSON.stringify({ behaviour: { running_ms: 1_000, done: 1 } }),
    })
    const lines = [lineOf('a', 'Hello'), lineOf('b', 'Hello')]
    const name = await made(lines)
    await reached(name, 'BATCH_STATE_RUNNING')
    nowMs += 500
    await ask(`/v1beta/${name}:cancel`, 'POST')
    const cancelled = await reached(name, 'BATCH_STATE_CANCELLED')
    expect(cancelled).toMatchObject({ done: true, error: { code: 1 } })
    expect(await resultsOf(cancelled)).toMatchObject([
      { key: 'a', response: {} },
      { key: 'b', error: { code: 1 } },
    ])
    const other = await made([lineOf('a', 'simulate(batch_end=expired, batch_running_ms=0)')])
    const expired = await reached(other, 'BATCH_STATE_EXPIRED')
    expect(expired).toMatchObject({ error: { code: 4 } })
    expect(asFields(expired.metadata).output).toBeUndefined()
  })

  test('a list has pages', async () => {
    const names = [await made([lineOf('a', 'Hello')]), await made([lineOf('a', 'Hello')])]
    const first = await ask('/v1beta/batches?pageSize=1')
    expect(first.operations).toMatchObject([{ name: names[1] }])
    const second = await ask(`/v1beta/batches?pageSize=1&pageToken=${asString(first.nextPageToken)}`)
    expect(second.operations).toMatchObject([{ name: names[0] }])
  })
})
