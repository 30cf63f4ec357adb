import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { call, type CallOptions, type FullResponse } from '../fixtures/client.ts'
import { channel, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { formBytes, formCall, recordingParts, waveFile } from '../fixtures/form.ts'
import { answered } from '../fixtures/media-fixture.ts'

/** The folder with recorded responses of providers, if there is one. */
const FOLDER = process.env['RECORDINGS']

/**
 * Quota units: 2 for a token of text, 4 of sound, 6 of an image in; 8, 10, 12 out; 100 a second, 10 a
 * character.
 */
const TOKENS = { input: 4, audio_input: 8, image_input: 12, output: 16, audio_output: 20, image_output: 24 }
const MEASURES = { second: 0.0002, characters: 20, image: { default: 0.04, '256x256': 0.02 } }

const TRANSCRIPTS = [
  // Charged for the seconds that it states.
  ['audio--openai--openai-transcription.json', 'application/json', 3_700],
  // Charged for one token of sound, and five of text.
  ['audio--openai--voice-pipeline.json', 'application/json', 4 + 5 * 8],
  // Its details have 375 tokens of sound that the prompt of three does not include.
  [
    'audio--mistral--transcription-basic-functionality-mistral-voxtral-mini-latest-can-transc.json',
    'application/json',
    3 * 2 + 375 * 4 + 11 * 8,
  ],
  [
    'audio--openai--transcription-basic-functionality-openai-gpt-4o-transcribe-diarize-strea.sse',
    'text/event-stream',
    37 * 4 + 145 * 8,
  ],
] as const

if (FOLDER === undefined) replayNothing()
else replay(join(FOLDER, 'embeddings'))

function replayNothing(): void {
  test('no recorded transcript or speech is replayed if RECORDINGS names no folder', () => {
    expect(FOLDER).toBeUndefined()
  })
}

function replay(folder: string): void {
  let fixture: Fixture
  beforeAll(async () => {
    fixture = await startFixture((upstream) => ({
      models: { m: { price: { ...TOKENS, ...MEASURES } }, characters: { price: { characters: 20 } } },
      channels: [channel('m', upstream.baseUrl('m'), { models: ['m', 'characters'] })],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    }))
  })
  afterAll(() => fixture?.close())

  const recorded = (name: string): Buffer => readFileSync(join(folder, name))
  const replayed = async (
    body: string | Buffer,
    options: CallOptions,
    type: string,
    response: Buffer,
  ): Promise<FullResponse & { quota: number | undefined }> => {
    fixture.upstream.script('m', answered(type, response))
    const answer = await call(fixture.gateway.url, body, options)
    const { quota } =
      databaseOf(fixture.gateway.dataDir).usageOf(String(answer.headers['x-request-id'])) ?? {}
    return { ...answer, quota }
  }

  describe('recorded media responses', () => {
    test.each(TRANSCRIPTS)(
      'a recorded transcript reaches the client unchanged, and is charged exactly: %s',
      async (name, type, quota) => {
        const stream = type === 'text/event-stream' ? [{ name: 'stream', content: 'true' }] : []
        const form = formBytes(recordingParts('m', waveFile(10), stream))
        const options = formCall('/v1/audio/transcriptions', 'ann', form)
        const answer = await replayed(form, options, type, recorded(name))
        expect(answer.bytes.equals(recorded(name))).toBe(true)
        expect(answer.quota).toBe(quota)
      },
    )

    test.each([
      ['images--openai--additional-params-quality-reaches-the-api', 14 * 2 + 272 * 12],
      ['images--openai--image-create', 10_000],
    ])(
      'a recorded image response reaches the client unchanged, and is charged to the unit: %s',
      async (name, quota) => {
        const asked = JSON.parse(recorded(`${name}.request.json`).toString())
        const body = JSON.stringify({ ...asked, model: 'm' })
        const options = { path: '/v1/images/generations', key: 'ann' }
        const answer = await replayed(body, options, 'application/json', recorded(`${name}.json`))
        expect(answer.bytes.equals(recorded(`${name}.json`))).toBe(true)
        expect(answer.quota).toBe(quota)
      },
    )

    test('recorded speech reaches the client unchanged, and is charged exactly', async () => {
      const asked = JSON.parse(recorded('audio--venice--audio-generation-smoke.request.json').toString())
      const sound = Buffer.from(recorded('audio--venice--audio-generation-smoke.txt').toString(), 'base64')
      const body = JSON.stringify({ ...asked, model: 'characters' })
      const options = { path: '/v1/audio/speech', key: 'ann' }
      const answer = await replayed(body, options, 'audio/mpeg', sound)
      expect(answer.bytes.equals(sound)).toBe(true)
      expect(answer.quota).toBe(110)
    })
  })

  test.each([
    'chatgpt-image-latest-reaches-its-own-validation',
    'image-gen-metrics-i1',
    'unlisted-dated-snapshot-reaches-its-own-validation',
  ])('a recorded error of a media endpoint is passed on: %s', async (name) => {
    const refusal = recorded(`error-400--images--openai--${name}.json`).toString()
    fixture.upstream.script('m', { kind: 'status', status: 400, body: refusal })
    const answer = await call(
      fixture.gateway.url,
      { model: 'm', prompt: 'x' },
      { path: '/v1/images/generations', key: 'ann' },
    )
    const { error } = JSON.parse(refusal)
    expect(answer.status).toBe(400)
    expect(answer.json().error).toMatchObject({ type: error.type, code: error.code })
  })
}
