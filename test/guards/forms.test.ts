import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { call, type FullResponse } from '../fixtures/client.ts'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { recordingParts, waveFile } from '../fixtures/form.ts'
import { type GuardServices, startGuardServices } from '../fixtures/guard-services.ts'

const WITH = '(confidential)'
/** What the service looks for, and the guard's expression as well. */
const CODE = 'code-4711-x'
const PATH = '/v1/audio/transcriptions'

let services: GuardServices
let fixture: Fixture
beforeAll(async () => {
  services = await startGuardServices()
  const guard = { do: 'redact', where: ['input'], with: WITH }
  fixture = await startFixture((upstream) => ({
    models: priced(['m']),
    channels: [channel('m', upstream.baseUrl('m'))],
    guards: [
      { name: 'texts', ...guard, match: { regex: 'code-[0-9]+-x' }, tokens: ['token-texts'] },
      {
        name: 'service',
        ...guard,
        match: { presidio: { url: services.url } },
        timeout: '60s',
        tokens: ['token-service'],
      },
    ],
    users: [ROOT, user(2, 'ann', [token('texts'), token('service')])],
  }))
})
afterAll(async () => {
  await fixture?.close()
  await services?.stop()
})
beforeEach(() => {
  fixture.upstream.script('m', { kind: 'whole', body: '{"text":"hello"}' })
  fixture.upstream.forget('m')
})

/** A form whose field `prompt` has this text, with this boundary. */
function transcribe(key: string, boundary: string, prompt: string): Promise<FullResponse> {
  const parts = [...recordingParts('m', waveFile(1)), { name: 'prompt', content: prompt }]
  const pieces = parts.flatMap(({ name, content, filename, type }) => [
    `--${boundary}\r\ncontent-disposition: form-data; name="${name}"${filename ? `; filename="${filename}"` : ''}\r\n`,
    type ? `content-type: ${type}\r\n\r\n` : '\r\n',
    content,
    '\r\n',
  ])
  const bytes = Buffer.concat([...pieces, `--${boundary}--\r\n`].map((piece) => Buffer.from(piece)))
  const headers = { 'content-type': `multipart/form-data; boundary="${boundary}"` }
  return call(fixture.gateway.url, bytes, { key, path: PATH, headers })
}

/** Once the match is redacted, the text has the boundary, and another model behind it. */
const INJECTING = `hi\r\n--a${CODE}b\r\ncontent-disposition: form-data; name="model"\r\n\r\nother`

test.each(['texts', 'service'])(
  'a form whose text a guard would change into one with the boundary of the form is refused (%s)',
  async (key) => {
    const answer = await transcribe(key, `a${WITH}b`, INJECTING)
    expect(fixture.upstream.received('m')).toEqual([])
    expect([answer.status, answer.json().error.code]).toEqual([400, 'invalid_request'])
    expect(answer.text).toContain('boundary')
  },
)

test.each(['texts', 'service'])(
  'a form is sent with the text as a guard has changed it (%s)',
  async (key) => {
    const answer = await transcribe(key, 'another', INJECTING)
    expect(answer.status, answer.text).toBe(200)
    expect(fixture.upstream.only('m').text).toContain(INJECTING.replace(CODE, WITH))
  },
)
