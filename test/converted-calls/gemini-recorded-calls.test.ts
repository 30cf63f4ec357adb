import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { FullResponse } from '../fixtures/client.ts'
import { AMPLE, channel, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type Fixture, retryWhileOverloaded, startFixture } from '../fixtures/fixture.ts'

/** The folder with recorded responses of providers, if there is one. */
const FOLDER = process.env['RECORDINGS']

/** Recordings of another method than `generateContent`. */
const OTHER_METHODS =
  /cachedcontent|count-tokens|usage-limit|embedding|task-prefix|edge-agent|list-models|google-upload/

/** Every token of any kind costs one unit, so that a charge is a number of tokens. */
const ONE_UNIT = { input: 2, output: 2, cache_read: 2, web_search: 0 }
const HI = '{"contents":[{"parts":[{"text":"hi"}]}]}'

if (FOLDER === undefined) replayNothing()
else replay(join(FOLDER, 'gemini'))

function replayNothing(): void {
  test('no recorded Gemini call is replayed if RECORDINGS names no folder', () => {
    expect(FOLDER).toBeUndefined()
  })
}

function replay(folder: string): void {
  let fixture: Fixture
  beforeAll(async () => {
    fixture = await startFixture((upstream) => ({
      options: { retries: 0 },
      models: { m: { price: ONE_UNIT } },
      channels: [channel('m', upstream.baseUrl('m'), { protocol: 'gemini', allow: ['service_tier'] })],
      users: [ROOT, user(2, 'ann', [token('ann')], { quota: AMPLE })],
    }))
  })
  afterAll(() => fixture?.close())

  const answers = readdirSync(folder)
    .filter((name) => /(?<!\.request)\.(?:json|sse)$/.test(name) && !OTHER_METHODS.test(name))
    .map((name) => {
      const request = join(folder, name.replace(/\.(?:json|sse)$/, '.request.json'))
      return {
        name,
        stream: name.endsWith('.sse'),
        bytes: readFileSync(join(folder, name)),
        request: existsSync(request) ? readFileSync(request) : Buffer.from(HI),
      }
    })
  const ask = (body: Buffer, method: string): Promise<FullResponse> =>
    retryWhileOverloaded(() => fixture.chat('ann', body, { path: `/v1beta/models/m:${method}` }))
  const charged = ({ headers }: FullResponse): number | undefined =>
    databaseOf(fixture.gateway.dataDir).usageOf(String(headers['x-request-id']))?.quota
  const totalOf = (bytes: Buffer): number | undefined => {
    const totals = [...bytes.toString().matchAll(/"totalTokenCount": ?(\d+)/g)]
    return totals.length === 0 ? undefined : Number(totals.at(-1)?.[1])
  }

  describe('a recorded call', () => {
    test.each(answers.filter(({ name }) => !name.startsWith('error-')))(
      'the recorded Gemini call $name is forwarded byte for byte in both directions, and charged by its totalTokenCount',
      async ({ stream, bytes, request }) => {
        fixture.upstream.script(
          'm',
          stream
            ? { kind: 'stream', frames: [bytes.toString()], ending: 'no done' }
            : { kind: 'whole', body: bytes },
        )
        const answer = await ask(request, stream ? 'streamGenerateContent?alt=sse' : 'generateContent')
        expect(answer.status, answer.text).toBe(200)
        expect(answer.bytes.toString('latin1')).toBe(bytes.toString('latin1'))
        expect(fixture.upstream.only('m').body.toString('latin1')).toBe(request.toString('latin1'))
        const total = totalOf(bytes)
        // A text has at least one token, so that it is counted where no output is reported.
        const isPaidBeforehand = bytes.includes('PROVISIONED_THROUGHPUT')
        if (total !== undefined && bytes.includes('candidatesTokenCount'))
          expect(charged(answer)).toBe(isPaidBeforehand ? 0 : total)
      },
    )

    test.each(answers.filter(({ stream }) => stream))(
      'the recorded Gemini stream $name reaches a client that requests one array with the same chunks as elements',
      async ({ bytes, request }) => {
        fixture.upstream.script('m', { kind: 'stream', frames: [bytes.toString()], ending: 'no done' })
        const answer = await ask(request, 'streamGenerateContent')
        const chunks = bytes
          .toString()
          .split(/\r?\n/)
          .filter((line) => line.startsWith('data: '))
          .map((line) => JSON.parse(line.slice(6)) as unknown)
        expect(JSON.parse(answer.text)).toEqual(chunks)
      },
    )
  })

  test.each(answers.filter(({ name }) => name.startsWith('error-')))(
    'the recorded Gemini error $name is forwarded with its details',
    async ({ name, bytes, request }) => {
      const status = Number(/^error-(\d+)/.exec(name)?.[1])
      fixture.upstream.script('m', { kind: 'status', status, body: bytes.toString() })
      const answer = await ask(request, 'generateContent')
      // A key that the upstream does not know is the operator's error, so that nothing of it is passed on.
      const isPassedOn = !bytes.includes('API_KEY_INVALID')
      expect(answer.status).toBe(isPassedOn ? status : 500)
      expect(answer.text === bytes.toString()).toBe(isPassedOn)
      await expect.poll(() => charged(answer)).toBe(0)
    },
  )
}
