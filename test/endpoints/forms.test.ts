import { once } from 'node:events'
import { readdirSync, readlinkSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Whole } from '../fixtures/behaviour.ts'
import { call, type FullResponse, open } from '../fixtures/client.ts'
import { channel, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { freePort } from '../fixtures/port.ts'
import { rawConnection } from '../fixtures/raw-socket.ts'
import { formBytes, formCall, type Part, recordingParts, waveFile } from '../fixtures/form.ts'

const PATH = '/v1/audio/transcriptions'
const TRANSCRIPT: Whole = {
  kind: 'whole',
  body: '{"text":"hello","usage":{"type":"duration","seconds":2}}',
  headers: { 'content-type': 'application/json' },
}

let fixture: Fixture
let earlyPort: number
beforeAll(async () => {
  earlyPort = await freePort()
  fixture = await startFixture((upstream) => ({
    models: Object.fromEntries(
      ['m', 'renamed', 'pair', 'early'].map((name) => [name, { price: { second: 0.0001 } }]),
    ),
    channels: [
      channel('m', upstream.baseUrl('m')),
      channel('early', `http://127.0.0.1:${earlyPort}/v1`),
      channel('renamed', upstream.baseUrl('renamed'), { model_mapping: { renamed: 'a-much-longer-name' } }),
      channel('first', upstream.baseUrl('first'), { models: ['pair'], priority: 1 }),
      channel('second', upstream.baseUrl('second'), { models: ['pair'], model_mapping: { pair: 'p' } }),
    ],
    users: [ROOT, user(2, 'ann', [token('ann')])],
  }))
  for (const lane of ['m', 'renamed', 'second']) fixture.upstream.script(lane, TRANSCRIPT)
})
afterAll(() => fixture?.close())

function send(parts: readonly Part[]): Promise<FullResponse> {
  return sendBytes(formBytes(parts))
}

function sendBytes(body: Buffer, headers: Record<string, string> = {}): Promise<FullResponse> {
  const options = formCall(PATH, 'ann', body)
  return call(fixture.gateway.url, body, { ...options, headers: { ...options.headers, ...headers } })
}

/** Open files of a process in a folder, with their permissions. */
function openBodies(): { name: string; mode: number; links: number }[] {
  const { pid, dataDir } = fixture.gateway
  return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      const name = readlinkSync(`/proc/${pid}/fd/${fd}`)
      if (!name.startsWith(`${dataDir}/.body-`)) return []
      const { mode, nlink } = statSync(`/proc/${pid}/fd/${fd}`)
      return [{ name, mode: mode & 0o777, links: nlink }]
    } catch {
      return []
    }
  })
}

test('bytes before the first boundary of a multipart form are skipped up to 8 KiB, and are a 400 beyond that', async () => {
  fixture.upstream.forget('m')
  const form = formBytes(recordingParts('m', waveFile(2)))
  const body = Buffer.concat([Buffer.from(`${'p'.repeat(8_192)}\r\n`), form])
  const answer = await sendBytes(body)
  expect(answer.status, answer.text).toBe(200)
  expect(fixture.upstream.only('m').body.equals(body)).toBe(true)
  const refused = await sendBytes(Buffer.concat([Buffer.from('p'), body]))
  expect(refused.status).toBe(400)
  expect(refused.json().error).toMatchObject({ type: 'invalid_request_error' })
})

describe('forwarding of a form', () => {
  test('a multipart form is forwarded byte for byte where the model keeps its name', async () => {
    fixture.upstream.forget('m')
    const body = formBytes(recordingParts('m', waveFile(2), [{ name: 'x_unknown', content: 'é\r\n' }]))
    const answer = await sendBytes(body)
    expect(answer.status).toBe(200)
    expect(answer.text).toBe(TRANSCRIPT.body)
    const { body: received, headers, path } = fixture.upstream.only('m')
    expect(path).toBe(PATH)
    expect(received.equals(body)).toBe(true)
    expect(headers['content-type']).toContain('multipart/form-data; boundary=----test-boundary')
    expect(headers['content-length']).toBe(String(body.length))
    expect(headers.authorization).toBe('Bearer upstream-key-of-m')
  })

  test.each([1, 40])(
    'a multipart form is forwarded with only its model changed, whether the model precedes or follows a recording of %i s',
    async (seconds) => {
      for (const isFirst of [true, false]) {
        fixture.upstream.forget('renamed')
        const parts = (name: string): Part[] => {
          const [file, model] = recordingParts(name, waveFile(seconds)) as [Part, Part]
          return isFirst ? [model, file] : [file, model]
        }
        expect((await send(parts('renamed'))).status).toBe(200)
        const expected = formBytes(parts('a-much-longer-name'))
        expect(fixture.upstream.only('renamed').body.equals(expected)).toBe(true)
      }
    },
  )

  test('a compressed multipart form is sent upstream decompressed, and otherwise unchanged', async () => {
    const { gzipSync } = await import('node:zlib')
    fixture.upstream.forget('m')
    const body = formBytes(recordingParts('m', waveFile(40)))
    const packed = gzipSync(body)
    const answer = await sendBytes(packed, {
      'content-type': String(formCall(PATH, 'ann', body).headers?.['content-type']),
      'content-encoding': 'gzip',
    })
    expect(answer.status).toBe(200)
    expect(fixture.upstream.only('m').body.equals(body)).toBe(true)
  })
})

test('a multipart form above 1 MiB is kept in an unnamed file until its call ends; a smaller one in memory', async () => {
  for (const [seconds, files] of [
    [1, 0],
    [40, 1],
  ] as const) {
    const held = Promise.withResolvers<void>()
    fixture.upstream.script('m', { ...TRANSCRIPT, after: held.promise })
    const body = formBytes(recordingParts('m', waveFile(seconds)))
    const live = open(fixture.gateway.url, body, formCall(PATH, 'ann', body))
    await fixture.upstream.receivedAtLeast('m', 1)
    // The file of an earlier call may be closed after its response.
    await expect.poll(openBodies).toHaveLength(files)
    const found = openBodies()
    for (const { name, mode, links } of found) {
      expect(name.endsWith(' (deleted)')).toBe(true)
      expect(mode).toBe(0o600)
      expect(links).toBe(0)
    }
    expect(readdirSync(fixture.gateway.dataDir).filter((name) => name.startsWith('.body-'))).toEqual([])
    held.resolve()
    expect((await (await live).end()).status).toBe(200)
    await expect.poll(openBodies).toEqual([])
  }
  fixture.upstream.script('m', TRANSCRIPT)
})

test.each([1, 40])(
  'after a failure, the next channel gets the whole multipart form: a recording of %i s',
  async (seconds) => {
    fixture.upstream.script('first', { kind: 'status', status: 500, body: '{}' })
    fixture.upstream.forget('second')
    expect((await send(recordingParts('pair', waveFile(seconds)))).status).toBe(200)
    const sent = fixture.upstream.received('first')
    expect(sent[0]?.body.equals(formBytes(recordingParts('pair', waveFile(seconds))))).toBe(true)
    const { body } = fixture.upstream.only('second')
    expect(body.equals(formBytes(recordingParts('p', waveFile(seconds))))).toBe(true)
  },
)

describe('forms that cannot be read', () => {
  const file: Part = { name: 'file', content: waveFile(1), filename: 'a.wav' }
  const model: Part = { name: 'model', content: 'm' }
  const refused: Record<string, { body: Buffer; type?: string; message: RegExp }> = {
    'without a boundary': {
      body: formBytes([file, model]),
      type: 'multipart/form-data',
      message: /boundary/,
    },
    'with another boundary': {
      body: formBytes([file, model]),
      type: 'multipart/form-data; boundary=other',
      message: /boundary/,
    },
    'without a model': { body: formBytes([file]), message: /'model' is required/ },
    'with an empty model': {
      body: formBytes([file, { ...model, content: '' }]),
      message: /'model' is required/,
    },
    'with two models': { body: formBytes([model, file, model]), message: /two fields 'model'/ },
    'with a file for a model': {
      body: formBytes([file, { ...model, filename: 'm' }]),
      message: /expected a field, got a file/,
    },
    'without a recording': { body: formBytes([model]), message: /'file' is required/ },
    'with two recordings': { body: formBytes([file, file, model]), message: /two fields 'file'/ },
    'that is truncated': { body: formBytes([file, model], ''), message: /ends before its last boundary/ },
    'with a length that is too small': {
      body: formBytes([file, model]).subarray(0, -30),
      message: /ends before its last boundary/,
    },
    'with 200 parts': {
      body: formBytes([
        file,
        model,
        ...Array.from({ length: 200 }, (_, i) => ({ name: `f${i}`, content: '' })),
      ]),
      message: /more than 128 parts/,
    },
  }
  test.each(Object.entries(refused))(
    'a form that cannot be read is a 400, and does not reach an upstream: %s',
    async (_what, { body, type, message }) => {
      fixture.upstream.forget('m')
      const answer = await sendBytes(body, type === undefined ? {} : { 'content-type': type })
      expect(answer.json().error.message).toMatch(message)
      expect(answer.status).toBe(400)
      expect(answer.headers['x-should-retry']).toBe('false')
      expect(fixture.upstream.received('m')).toHaveLength(0)
    },
  )

  test('JSON sent in place of a multipart form is refused with 415', async () => {
    const answer = await call(fixture.gateway.url, { model: 'm' }, { path: PATH, key: 'ann' })
    expect(answer.status).toBe(415)
  })
})

test('a form that ends before its content-length does not reach an upstream, and leaves no file, hold or charge', async () => {
  fixture.upstream.forget('m')
  const { gateway } = fixture
  const database = databaseOf(gateway.dataDir)
  const before = database.usage().length
  const body = formBytes(recordingParts('m', waveFile(40)))
  const { headers = {} } = formCall(PATH, 'ann', body)
  const head = [
    `POST ${PATH} HTTP/1.1`,
    'host: gateway',
    'authorization: Bearer sk-ann',
    `content-type: ${headers['content-type']}`,
    `content-length: ${body.length + 1_000}`,
  ]
  const port = Number(new URL(gateway.url).port)
  const connection = rawConnection(port, Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), body]))
  await expect.poll(() => openBodies().length).toBe(1)
  connection.socket.end()
  expect(await connection.closed()).not.toContain('HTTP/1.1 200')
  await expect.poll(openBodies).toEqual([])
  expect(fixture.upstream.received('m')).toHaveLength(0)
  expect([database.usage().length, database.openHolds()]).toEqual([before, []])
})

test('a file of 26 MB in a form is forwarded, as the provider has its own limit; a body above the maximum is a 413', async () => {
  const refusal = { error: { message: 'Maximum content size limit exceeded', type: 'server_error' } }
  fixture.upstream.script('m', { kind: 'status', status: 413, body: JSON.stringify(refusal) })
  const large = await send(recordingParts('m', waveFile(812)))
  expect([large.status, large.json().error.type]).toEqual([413, 'server_error'])
  fixture.upstream.forget('m')
  const tooLarge = await send(recordingParts('m', waveFile(1_060)))
  expect([tooLarge.status, tooLarge.json().error.code]).toEqual([413, 'request_too_large'])
  expect(fixture.upstream.received('m')).toHaveLength(0)
  fixture.upstream.script('m', TRANSCRIPT)
})

test('the response of an upstream that answers before it has read the whole multipart form is passed on to the client', async () => {
  const early = createServer((socket) => {
    socket.on('error', () => {})
    socket.once('data', () => {
      const body = '{"error":{"message":"too large","type":"server_error"}}'
      const head = `HTTP/1.1 413 Too Large\r\ncontent-type: application/json\r\ncontent-length: ${body.length}`
      socket.write(`${head}\r\n\r\n${body}`)
      socket.pause()
    })
  })
  early.listen(earlyPort, '127.0.0.1')
  await once(early, 'listening')
  try {
    const answer = await send(recordingParts('early', waveFile(400)))
    expect([answer.status, answer.json().error.message]).toEqual([413, expect.stringContaining('too large')])
  } finally {
    early.close()
  }
})

test('a killed gateway leaves no form behind, and charges the call once when it starts again', async () => {
  const { gateway } = fixture
  fixture.upstream.script('m', { ...TRANSCRIPT, after: new Promise<void>(() => {}) })
  const body = formBytes(recordingParts('m', waveFile(40)))
  const asked = sendBytes(body).catch(() => {})
  await fixture.upstream.receivedAtLeast('m', 1)
  await expect.poll(openBodies).toHaveLength(1)
  await expect.poll(() => databaseOf(gateway.dataDir).openHolds()).toHaveLength(1)
  const before = databaseOf(gateway.dataDir).usage().length
  await gateway.kill()
  await asked
  expect(readdirSync(gateway.dataDir).filter((name) => name.startsWith('.body-'))).toEqual([])
  await gateway.restart()
  const rows = databaseOf(gateway.dataDir).usage()
  expect(rows).toHaveLength(before + 1)
  expect(rows.find(({ reason }) => reason === 'crash')?.quota).toBe(40 * 50)
})
