import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { call } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { startGuardServices, type GuardServices } from '../fixtures/guard-services.ts'
import { wholeGemini } from '../fixtures/gemini-behaviour.ts'

const CODE = 'code-4711-x'
const TEXT = `The plan is ${CODE}.`
const match = { regex: 'code-[0-9]+-x' }
const KEYS = ['redact', 'block', 'replace', 'pass', 'watch', 'asked', 'results'] as const

let fixture: Fixture
let services: GuardServices
let files: Server
let address: string
/** Addresses that were fetched. */
const fetched: string[] = []
/** Ends the wait for a file that then cannot be fetched. */
const gone = Promise.withResolvers<void>()
beforeAll(async () => {
  services = await startGuardServices()
  files = createServer(({ url = '' }, reply) => {
    fetched.push(url)
    if (url === '/gone') return void gone.promise.then(() => reply.writeHead(404).end())
    reply.writeHead(200, { 'content-type': 'text/plain' }).end(TEXT)
  }).listen(0, '127.0.0.1')
  await new Promise((resolve) => files.once('listening', resolve))
  address = `http://127.0.0.1:${(files.address() as AddressInfo).port}/plan.txt`
  fixture = await startFixture((upstream) => ({
    options: { media: { allow_private_networks: true } },
    models: priced(['chat', 'gemini', 'both']),
    channels: [
      channel('chat', upstream.baseUrl('chat')),
      channel('gemini', upstream.baseUrl('gemini'), { protocol: 'gemini', models: ['gemini'] }),
      channel('first', upstream.baseUrl('gemini'), { protocol: 'gemini', models: ['both'], priority: 2 }),
      channel('second', upstream.baseUrl('chat'), { models: ['both'], priority: 1 }),
    ],
    guards: [
      ...(['redact', 'block', 'replace'] as const).map((name) => ({
        name,
        do: name,
        match,
        tokens: [`token-${name}`],
      })),
      { name: 'pass', do: 'block', match, on_failure: 'pass', tokens: ['token-pass'] },
      { name: 'watch', do: 'block', mode: 'monitor', match, tokens: ['token-watch'] },
      { name: 'results', do: 'block', match, where: ['tool_results'], tokens: ['token-results'] },
      {
        name: 'asked',
        do: 'redact',
        where: ['input'],
        match: { webhook: { url: services.url } },
        timeout: '60s',
        tokens: ['token-asked'],
      },
    ],
    users: [
      ROOT,
      user(
        2,
        'ann',
        KEYS.map((name) => token(name)),
      ),
    ],
  }))
})
afterAll(async () => {
  await fixture?.close()
  await services?.stop()
  files?.close()
})

const PATH = '/v1/chat/completions'
async function send(path: string, body: object, key: (typeof KEYS)[number], lane: 'chat' | 'gemini') {
  fixture.upstream.script(lane, lane === 'gemini' ? wholeGemini() : { kind: 'whole' })
  const answer = await call(fixture.gateway.url, JSON.stringify(body), { path, key })
  const [sent] = fixture.upstream.received(lane)
  return { answer, sent: sent?.text, verdicts: answer.headers['x-gateway-guards'] }
}

const ask = (model: string, content: unknown): object => ({ model, messages: [{ role: 'user', content }] })
const file = (file_data: string, filename = 'plan'): object => ({
  type: 'file',
  file: { filename, file_data },
})
const base64 = (text: string | Buffer): string => Buffer.from(text).toString('base64')

describe('a file of text', () => {
  test('is redacted and encoded again, whatever its media type states', async () => {
    for (const type of ['text/plain', 'application/pdf', 'image/png']) {
      const { sent, verdicts } = await send(
        PATH,
        ask('chat', [file(`data:${type};base64,${base64(TEXT)}`)]),
        'redact',
        'chat',
      )
      expect(verdicts).toBe('redact=redacted;count=1')
      expect(sent).toContain(`data:${type};base64,${base64(TEXT.replace(CODE, '[REDACTED]'))}`)
    }
  })

  test('keeps its encoding', async () => {
    const wide = (text: string): string => base64(Buffer.from(`\ufeff${text}`, 'utf16le'))
    const { sent } = await send(PATH, ask('chat', [file(wide(TEXT))]), 'redact', 'chat')
    expect(sent).toContain(wide(TEXT.replace(CODE, '[REDACTED]')))
  })

  test('without a match is sent with all its bytes unchanged', async () => {
    const data = `data:text/plain;charset=utf-8;base64,${base64('nothing').replace(/=+$/, '')}`
    const body = ask('chat', [file(data)])
    const { sent, verdicts } = await send(PATH, body, 'redact', 'chat')
    expect([sent, verdicts]).toEqual([JSON.stringify(body), 'redact=allowed;count=0'])
  })

  test('that is text by its name is checked, although it has bytes of other files', async () => {
    const bytes = Buffer.concat([Buffer.from('89504e470d0a1a0aff', 'hex'), Buffer.from(TEXT)])
    const { answer } = await send(PATH, ask('chat', [file(base64(bytes), 'plan.md')]), 'block', 'chat')
    expect(answer.status).toBe(400)
    const other = await send(PATH, ask('chat', [file(base64(bytes), 'plan.png')]), 'block', 'chat')
    expect(other.answer.status).toBe(200)
  })

  test('is restored in the answer where it was replaced', async () => {
    const { sent = '' } = await send(
      PATH,
      ask('gemini', [file(`data:text/plain;base64,${base64(TEXT)}`)]),
      'replace',
      'gemini',
    )
    const data = Buffer.from(/"data":"([^"]+)"/.exec(sent)?.[1] ?? '', 'base64').toString()
    expect(data).toMatch(/^The plan is \[\[REPLACE_[0-9a-f]{8}\]\]\.$/)
  })

  test('is what a service gets, and what the service has changed is sent', async () => {
    const { sent } = await send(
      PATH,
      ask('chat', [file(`data:text/plain;base64,${base64(TEXT)}`)]),
      'asked',
      'chat',
    )
    expect(services.asked.at(-1)?.body.texts).toContain(TEXT)
    expect(sent).not.toContain(base64(TEXT))
    expect(sent).toContain('data:text/plain;base64,')
  })

  test('in the result of a tool is a part of the result', async () => {
    const result = JSON.stringify({
      type: 'document',
      source: { media_type: 'text/plain', data: base64(`${TEXT} ${TEXT}`) },
    })
    const messages = [
      {
        role: 'assistant',
        tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'c', content: result },
    ]
    expect((await send(PATH, { model: 'chat', messages }, 'results', 'chat')).answer.status).toBe(400)
  })
})

describe('a file that the gateway fetches', () => {
  const body = (model: string): object => ask(model, [{ type: 'image_url', image_url: { url: address } }])

  test('is checked before it is sent', async () => {
    const { sent, verdicts } = await send(PATH, body('gemini'), 'redact', 'gemini')
    expect(verdicts).toBe('redact=redacted;count=1')
    expect(sent).toContain(base64(TEXT.replace(CODE, '[REDACTED]')))
  })

  test('ends the call where a guard blocks it: no other channel gets the request, and nothing is charged', async () => {
    fixture.upstream.script('chat', { kind: 'whole' })
    const { answer, sent, verdicts } = await send(PATH, body('both'), 'block', 'gemini')
    expect([answer.status, verdicts]).toEqual([400, 'block=blocked;count=1'])
    expect(answer.text).toContain('guard_blocked')
    expect([sent, fixture.upstream.received('chat')]).toEqual([undefined, []])
    const database = databaseOf(fixture.gateway.dataDir)
    await expect
      .poll(() => database.usageOf(String(answer.headers['x-request-id'])))
      .toMatchObject({ quota: 0, note: 'guard_blocked', guards: 'block=blocked;count=1' })
  })

  test('is checked only once all files of its request have arrived', async () => {
    const urls = [address, new URL('/gone', address)]
    const content = urls.map((url) => ({ type: 'image_url', image_url: { url } }))
    const before = fetched.length
    const asked = (): number => services.asked.filter(({ body }) => body.texts?.includes(TEXT)).length
    const askedBefore = asked()
    const failing = call(fixture.gateway.url, ask('gemini', content), { path: PATH, key: 'asked' })
    await expect.poll(() => fetched.length - before).toBe(urls.length)
    // A whole call passes while the second file is on its way.
    await send(PATH, body('gemini'), 'asked', 'gemini')
    gone.resolve()
    expect((await failing).status).toBe(400)
    expect(asked() - askedBefore).toBe(1)
  })

  test('is what a service gets', async () => {
    const { sent } = await send(PATH, body('gemini'), 'asked', 'gemini')
    expect(services.asked.at(-1)?.body.texts).toEqual([TEXT])
    expect(sent).not.toContain(base64(TEXT))
  })
})

describe('token ids in place of a text', () => {
  const REQUESTS = [
    ['/v1/embeddings', { model: 'chat', input: [1, 2, 3] }],
    ['/v1/embeddings', { model: 'chat', input: [[1, 2], [3]] }],
    ['/v1/completions', { model: 'chat', prompt: [1, 2, 3] }],
    ['/v1/completions', { model: 'chat', prompt: ['text', [3]] }],
  ] as const

  test.each(REQUESTS)('are a failure of the guards of requests (%s %j)', async (path, body) => {
    const blocked = await send(path, body, 'block', 'chat')
    expect([blocked.answer.status, blocked.verdicts, blocked.sent]).toEqual([
      400,
      'block=failed_blocked;count=0',
      undefined,
    ])
    const watched = await send(path, body, 'watch', 'chat')
    expect(watched.sent).toBe(JSON.stringify(body))
    const passed = await send(path, body, 'pass', 'chat')
    expect(passed.sent).toBe(JSON.stringify(body))
    const service = await send(path, body, 'asked', 'chat')
    expect([service.answer.status, service.sent]).toEqual([400, undefined])
    const elsewhere = await send(path, body, 'results', 'chat')
    expect(elsewhere.sent).toBe(JSON.stringify(body))
  })
})
