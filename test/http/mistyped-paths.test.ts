import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type FullResponse, call } from '../fixtures/client.ts'
import { plainConfiguration } from '../fixtures/configuration.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'

const LIVE = 'A1b2C3d4E5f6G7h8A1b2C3d4E5f6G7h8A1b2C3d4E5f6G7h8'

let gateway: RunningGateway
beforeAll(async () => {
  gateway = await startGateway({ config: plainConfiguration('http://127.0.0.1:9/v1') })
})
afterAll(() => gateway?.discard())

const at = (path: string, method = 'POST'): Promise<FullResponse> =>
  call(gateway.url, undefined, { method, path, key: 'ann' })

describe('a mistyped path', () => {
  test.each([
    ['/chat/completions', '/v1/chat/completions'],
    ['/v1/chat/completion', '/v1/chat/completions'],
    ['/v1/v1/messages', '/v1/messages'],
    ['/messages', '/v1/messages'],
    ['/models', '/v1/models'],
    ['/v1/embedings', '/v1/embeddings'],
    ['/v1/modertaions', '/v1/moderations'],
    ['/v1/image/generations', '/v1/images/generations'],
    ['/v1/audio/transcription', '/v1/audio/transcriptions'],
    ['/v1/v1/messages?beta=true', '/v1/messages'],
  ])('a mistyped path is a 404 that suggests the right one: %s, %s', async (path, meant) => {
    const answer = await at(path)
    expect(answer.status).toBe(404)
    expect(answer.json().error.message).toContain(`did you mean ${meant}?`)
  })
  test.each([
    ['/models', { authorization: 'Bearer sk-ann' }, '/v1/models'],
    ['/models', { 'x-api-key': 'sk-ann', accept: '*/*' }, '/v1/models'],
    ['/models?key=sk-ann', {}, '/v1/models'],
    ['/batches', { 'x-goog-api-key': 'sk-ann', accept: 'application/json' }, '/v1/batches'],
  ])(
    'a client with a key gets no page of the console, but the path that it meant: GET %s with %j',
    async (path, headers, meant) => {
      const answer = await call(gateway.url, undefined, { method: 'GET', path, headers })
      expect(answer.status).toBe(404)
      expect(answer.json().error.message).toContain(`did you mean ${meant}?`)
    },
  )
  test('a mistyped path is a 404 in the error format of the intended path', async () => {
    expect((await at('/v1/v1/messages')).json()).toMatchObject({
      type: 'error',
      error: { type: 'gateway_error' },
    })
    expect((await at('/chat/completions')).json()).toMatchObject({ error: { code: 'not_found' } })
    expect((await at('/api/v1/messages')).json()).toMatchObject({ success: false, code: 'not_found' })
  })
  test.each([
    '/nothing',
    '/v1/vector_stores',
    '/v1/threads',
    '/v1/conversations',
    '/v1/decisions',
    '/v1/assistants',
    '/v1/uploads',
    '/v1/evals',
    '/v1/containers',
    '/v1/videos',
    '/v1/fine_tuning/jobs',
    '/v1/realtime/sessions',
    '/v1/audio/voices',
  ])('a path that resembles no known path is a 404 without a suggestion: %s', async (path) => {
    const answer = await at(path)
    expect(answer.status).toBe(404)
    expect(answer.text).not.toContain('did you mean')
    expect(answer.json().error.message).toContain(path)
  })
})

describe('the echo of the requested path', () => {
  test.each(["/<script>alert('x')</script>", '/"}{"', '/a&b;c', '/\u0001'.replace('\u0001', '%01')])(
    'the error for an unknown path echoes the path without markup: %s',
    async (path) => {
      const { status, text } = await at(path)
      expect(status).toBe(404)
      expect(text).not.toMatch(/<|'|&|\\"/)
    },
  )
  test('the error for an unknown path echoes at most 200 characters of the path', async () => {
    expect((await at(`/${'x/'.repeat(5000)}`)).text.length).toBeLessThan(500)
  })
  test.each([`/sk-${LIVE}/v1/messages`, `/v1/messages/${LIVE}`, `/v1/chat/completions/sk-${LIVE}-3`])(
    'the error for an unknown path echoes the path without an API key in it: %s',
    async (path) => {
      for (const method of ['POST', 'GET']) {
        const { status, text } = await at(path, method)
        expect(status).toBe(404)
        expect(text).not.toContain(LIVE.slice(0, 8))
      }
      const one = await call(gateway.url, undefined, { method: 'PUT', path: `/v1/models/sk-${LIVE}` })
      expect(one.status).toBe(405)
      expect(one.text).not.toContain(LIVE.slice(0, 8))
      await expect.poll(() => gateway.logs()).toContain('"status":405')
      expect(gateway.logs()).not.toContain(LIVE.slice(0, 8))
    },
  )
})
