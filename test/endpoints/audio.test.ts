import { gzipSync } from 'node:zlib'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Behaviour } from '../fixtures/behaviour.ts'
import { call, open, type FullResponse, send } from '../fixtures/client.ts'
import { channel, ROOT, token, user } from '../fixtures/configuration.ts'
import { databaseOf } from '../fixtures/database.ts'
import { type Fixture, startFixture } from '../fixtures/fixture.ts'
import { formBytes, formCall, type Part, recordingParts, waveFile } from '../fixtures/form.ts'
import { aacFile, opusFile } from '../fixtures/recording.ts'
import { answered, ChargedCalls, events, json } from '../fixtures/media-fixture.ts'
import { untilOver } from '../fixtures/open-calls.ts'

/**
 * Quota units: 100 a second; 10 a character; a token 2 of text and 4 of sound in, 6 of text and 8 of sound
 * out.
 */
const PRICES = {
  second: { second: 0.0002 },
  characters: { characters: 20 },
  tokens: { input: 4, audio_input: 8, output: 12, audio_output: 16 },
}

let fixture: Fixture
let calls: ChargedCalls
beforeAll(async () => {
  fixture = await startFixture((upstream) => ({
    models: {
      ...Object.fromEntries(Object.entries(PRICES).map(([name, price]) => [name, { price }])),
      both: { price: { ...PRICES.tokens, ...PRICES.second } },
      pair: { price: PRICES.characters },
      drained: { price: PRICES.tokens },
    },
    channels: [
      ...[...Object.keys(PRICES), 'both'].map((name) => channel(name, upstream.baseUrl(name))),
      channel('pair', upstream.baseUrl('pair'), { priority: 1 }),
      channel('spare', upstream.baseUrl('spare'), { models: ['pair'] }),
      channel('drained', upstream.baseUrl('drained'), { on_client_gone: 'drain' }),
    ],
    users: [
      ROOT,
      user(2, 'ann', [token('ann'), token('poor', { remain_quota: 900 })], { quota: 1_000_000_000 }),
    ],
  }))
  calls = new ChargedCalls(fixture, databaseOf(fixture.gateway.dataDir))
})
afterAll(() => fixture?.close())

const speak = (model: string, fields: object = {}, key = 'ann'): (() => Promise<FullResponse>) => {
  const body = { model, input: 'hello there', voice: 'alloy', ...fields }
  return () => call(fixture.gateway.url, body, { path: '/v1/audio/speech', key })
}
const write = (
  model: string,
  recording: Buffer,
  more: Record<string, string> = {},
  path = '/v1/audio/transcriptions',
  key = 'ann',
): (() => Promise<FullResponse>) => {
  const fields = Object.entries(more).map(([name, content]): Part => ({ name, content }))
  const body = formBytes(recordingParts(model, recording, fields))
  return () => call(fixture.gateway.url, body, formCall(path, key, body))
}
/** Raw sound of this length: 24 kHz, 16 bits. */
const raw = (seconds: number): Buffer => Buffer.alloc(seconds * 48_000)

describe('the charge of speech', () => {
  test('speech is charged by the characters of the input text, whatever the response contains', async () => {
    const { row, answer } = await calls.charged(
      'characters',
      answered('audio/mpeg', 'ID3sound'),
      speak('characters'),
    )
    expect(row).toMatchObject({ quota: 110, characters: 11, reason: 'complete', kind: 'speech' })
    expect([answer.text, answer.headers['content-type']]).toEqual(['ID3sound', 'audio/mpeg'])
  })

  test('speech is charged by Unicode code points, so that each combining accent counts as a character', async () => {
    const asked = speak('characters', { input: `a${'\u0301'.repeat(10)}😀` })
    expect((await calls.charged('characters', answered('audio/mpeg', 'x'), asked)).row.quota).toBe(120)
  })

  test('speech is charged by the seconds of the generated sound, raw or in a file format', async () => {
    const asRaw = speak('second', { response_format: 'pcm' })
    const { row } = await calls.charged('second', answered('audio/pcm', raw(3)), asRaw)
    expect(row).toMatchObject({ quota: 300, seconds: 3 })
    const file = await calls.charged('second', answered('audio/wav', waveFile(20)), speak('second'))
    expect(file.row).toMatchObject({ quota: 2_000, seconds: 20 })
    expect(file.answer.bytes.equals(waveFile(20))).toBe(true)
  })

  test('a part of a second of generated sound is a second, as of a recording', async () => {
    for (const [length, seconds] of [
      [0.4, 1],
      [1.4, 2],
      [9.49, 10],
    ] as const) {
      const { row } = await calls.charged('second', answered('audio/wav', waveFile(length)), speak('second'))
      const heard = await calls.charged('second', json({ text: 'hi' }), write('second', waveFile(length)))
      for (const one of [row, heard.row]) expect(one).toMatchObject({ quota: 100 * seconds, seconds })
    }
  })

  test.each(
    ['{', '[', '[{', '{"', ' \n{"', ':', '<'].flatMap((start) => [
      [start, 'audio/pcm'],
      [start, 'application/octet-stream'],
      [start, ''],
    ]),
  )('raw sound is sound with whatever bytes it begins: %j as %j', async (start, type) => {
    const sound = Buffer.concat([Buffer.from(start), raw(1)]).subarray(0, 48_000)
    const { row, answer } = await calls.charged(
      'second',
      answered(type, sound),
      speak('second', { response_format: 'pcm' }),
    )
    expect(row).toMatchObject({ quota: 100, reason: 'complete' })
    expect(answer.bytes.equals(sound)).toBe(true)
  })

  test('raw sound that begins like JSON is sent on as it comes', async () => {
    const heard = Promise.withResolvers<void>()
    const sound = Buffer.concat([Buffer.from('{"'), raw(1)])
    fixture.upstream.script('second', {
      kind: 'stream',
      chunks: [sound],
      endsAfter: heard.promise,
      ending: 'no done',
      headers: { 'content-type': 'audio/pcm' },
    })
    const body = { model: 'second', input: 'hello there', voice: 'alloy', response_format: 'pcm' }
    const live = await open(fixture.gateway.url, body, { path: '/v1/audio/speech', key: 'ann' })
    expect(live.status).toBe(200)
    heard.resolve()
    await live.end()
  })

  test('speech is charged by the tokens that its last event reports', async () => {
    const delta = { type: 'speech.audio.delta', audio: 'AAAA' }
    const done = {
      type: 'speech.audio.done',
      usage: { input_tokens: 5, output_tokens: 40, total_tokens: 45 },
    }
    const asked = speak('tokens', { stream_format: 'sse' })
    const { row, answer } = await calls.charged('tokens', events(delta, done), asked)
    expect(row).toMatchObject({ quota: 5 * 2 + 40 * 8, reason: 'complete', stream: 1 })
    expect(answer.text).toContain('speech.audio.done')
  })

  test('speech is charged by estimated tokens where raw audio bytes report none', async () => {
    const asked = speak('tokens', { response_format: 'pcm' })
    const { row } = await calls.charged('tokens', answered('audio/pcm', raw(10)), asked)
    expect(row).toMatchObject({ reason: 'estimated', output_tokens: 208 })
  })

  test('speech that breaks off after its beginning is charged its full price, and the response to the client breaks off', async () => {
    fixture.upstream.script('characters', {
      kind: 'raw',
      bytes: 'HTTP/1.1 200 OK\r\ncontent-type: audio/mpeg\r\ncontent-length: 999\r\n\r\nID3half',
      ending: 'reset',
    })
    const body = { model: 'characters', input: 'hello there', voice: 'alloy' }
    const live = await open(fixture.gateway.url, body, { path: '/v1/audio/speech', key: 'ann' })
    expect((await live.end()).broken).toBe(true)
    expect(await calls.untilSettled()).toMatchObject({ reason: 'cut', quota: 110 })
  })

  test('speech without a sound, after its client has left, is charged for the text', async () => {
    const { promise: after, resolve: hasLeft } = Promise.withResolvers<void>()
    fixture.upstream.script('drained', { ...answered('audio/mpeg', ''), after })
    const row = await calls.rowOf(async () => {
      const body = { model: 'drained', input: 'hello there', voice: 'alloy' }
      const sent = send(fixture.gateway.url, body, { path: '/v1/audio/speech', key: 'ann' })
      await fixture.upstream.receivedAtLeast('drained', 1)
      sent.destroy()
      // The gateway must notice this before the answer arrives.
      await untilOver(fixture.gateway.url, 0)
      hasLeft()
    })
    // The two words, and the line end between them and the instructions.
    expect(row).toMatchObject({ reason: 'client_gone', quota: 3 * 2, input_tokens: 3, output_tokens: 0 })
  })

  test.each([
    ['JSON', json({ error: { message: 'no' } })],
    ['JSON as sound', answered('audio/mpeg', `\n{"error":{"message":"${'€'.repeat(100)}"}}`)],
    ['JSON without a content type', answered('', '{"error":"no"}')],
    ['a page', answered('text/html', '<html>')],
    ['nothing', answered('audio/mpeg', '')],
    ['a status', { kind: 'status', status: 503, body: '{}' } as const],
  ])(
    'speech is made and charged by another channel where the first one sends %s',
    async (_what, behaviour: Behaviour) => {
      fixture.upstream.script('spare', answered('audio/mpeg', 'ID3spare'))
      const { answer, row } = await calls.charged('pair', behaviour, speak('pair'))
      expect(answer.text).toBe('ID3spare')
      expect(row.quota).toBe(110)
    },
  )
})

/** An answer that is compressed although the gateway accepts that of none. */
const compressed = (contentType: string): Behaviour => ({
  kind: 'whole',
  body: gzipSync('not asked for'),
  headers: { 'content-type': contentType, 'content-encoding': 'gzip' },
})

test.each([
  ['speech', 'characters', compressed('audio/mpeg'), speak('characters')],
  [
    'a transcript',
    'second',
    compressed('text/plain'),
    write('second', waveFile(6), { response_format: 'text' }),
  ],
])(
  'a compressed answer is not delivered, costs nothing and is named in the log: %s',
  async (_, model, behaviour, ask) => {
    const { status } = await calls.uncharged(model, behaviour, ask)
    expect(status).toBe(500)
    await expect
      .poll(() => fixture.gateway.logs())
      .toMatch(new RegExp(`"channel":"${model}",.*"cause":"compressed answer"`))
  },
)

describe('the charge of a transcript', () => {
  test('a transcript is charged by the seconds that the response reports', async () => {
    const body = { text: 'hi', usage: { type: 'duration', seconds: 7 } }
    const { row, answer } = await calls.charged('second', json(body), write('second', waveFile(6)))
    expect(row).toMatchObject({ quota: 700, seconds: 7, reason: 'complete', kind: 'transcriptions' })
    expect(answer.text).toBe(JSON.stringify(body))
  })

  test('a transcript is charged by the audio, text and output tokens that it reports, each at its own price', async () => {
    const usage = {
      type: 'tokens',
      input_tokens: 30,
      input_token_details: { audio_tokens: 20, text_tokens: 10 },
      output_tokens: 5,
      total_tokens: 35,
    }
    const { row } = await calls.charged('tokens', json({ text: 'hi', usage }), write('tokens', waveFile(6)))
    expect(row).toMatchObject({ quota: 10 * 2 + 20 * 4 + 5 * 6, reason: 'complete' })
  })

  test('a verbose_json transcript without usage is charged by the seconds of its field duration', async () => {
    const body = { task: 'transcribe', duration: 36.7, text: 'hi', segments: [] }
    const asked = write('second', waveFile(6), { response_format: 'verbose_json' })
    expect((await calls.charged('second', json(body), asked)).row.quota).toBe(3_700)
  })

  test.each(['json', 'text', 'srt', 'vtt', 'verbose_json', 'diarized_json'])(
    'a transcript is charged by the length of the recording where a %s response reports none',
    async (format) => {
      const isJson = format.endsWith('json')
      const behaviour = isJson ? json({ text: 'hi' }) : answered('text/plain; charset=utf-8', 'hi\n')
      const asked = write('second', waveFile(6), { response_format: format })
      const { row, answer } = await calls.charged('second', behaviour, asked)
      expect(row).toMatchObject({ quota: 600, seconds: 6, reason: 'complete' })
      expect(answer.text).toBe(isJson ? '{"text":"hi"}' : 'hi\n')
    },
  )

  test.each([
    ['AAC in MP4', (stated?: number) => aacFile(500, stated), 32],
    ['Opus in WebM', (stated?: number) => opusFile('webm', 995, 40, stated), 20],
  ])(
    'a transcript is charged by the sound of the recording, also if its container states other times: %s',
    async (_, file, seconds) => {
      for (const recording of [await file(), await file(1 / 16_000)]) {
        const { row } = await calls.charged('second', json({ text: 'hi' }), write('second', recording))
        expect(row).toMatchObject({ quota: 100 * seconds, seconds })
      }
    },
  )

  test('a transcript of hours, with the time of each word, goes through whole and is charged by what it reports', async () => {
    const words = Array.from({ length: 30_000 }, (_, i) => ({
      word: 'meeting',
      start: i / 3,
      end: i / 3 + 0.3,
    }))
    const usage = {
      type: 'tokens',
      input_tokens: 20,
      input_token_details: { text_tokens: 0, audio_tokens: 20 },
      output_tokens: 5,
      total_tokens: 25,
    }
    const long = {
      task: 'transcribe',
      duration: 6,
      text: 'meeting '.repeat(30_000),
      words,
      segments: words,
      usage,
    }
    const body = JSON.stringify(long, null, 2)
    expect(body.length).toBeGreaterThan(2 ** 21)
    const asked = write('tokens', waveFile(6), { response_format: 'verbose_json' })
    const { row, answer } = await calls.charged('tokens', answered('application/json', body), asked)
    expect(answer.text === body).toBe(true)
    expect(row).toMatchObject({ reason: 'complete', quota: 20 * 4 + 5 * 6 })
  })

  test('a transcript is charged by the estimated tokens of the recording where only tokens have a price', async () => {
    const asked = write('tokens', waveFile(6), { response_format: 'text' })
    const { row } = await calls.charged('tokens', answered('text/plain', 'hello!!\n'), asked)
    expect(row).toMatchObject({ quota: 60 * 4 + 2 * 6, reason: 'estimated' })
  })

  test('a transcript is charged by seconds if both seconds and tokens have a price, and no tokens are reported', async () => {
    const { row } = await calls.charged('both', answered('text/plain', 'hi'), write('both', waveFile(6)))
    expect(row.quota).toBe(600)
  })

  test.each([
    ['srt', '1\n00:00:00,000 --> 00:00:52,500\nhi\n\n'],
    ['vtt', 'WEBVTT\n\n00:00.000 --> 00:52.500\nhi\n\n'],
  ])('a transcript is charged at least up to the end of its subtitles: %s', async (format, text) => {
    const asked = write('second', waveFile(6), { response_format: format })
    expect((await calls.charged('second', answered('text/plain', text), asked)).row.quota).toBe(5_300)
  })

  test.each([
    ['a usage', json({ text: 'hi', usage: { type: 'duration', seconds: 61 } })],
    ['a duration', json({ text: 'hi', duration: 61 })],
    ['subtitles', answered('text/plain', '1\n00:00:00,000 --> 00:01:01,000\nhi\n\n')],
  ])('no more than ten times the length of a recording is charged: %s', async (_, behaviour) => {
    const { row } = await calls.charged('second', behaviour, write('second', waveFile(6)))
    expect(row).toMatchObject({ quota: 600, seconds: 6, reason: 'estimated', note: 'usage_implausible' })
  })

  test('subtitles beyond ten times the estimated length of a recording are not charged as tokens', async () => {
    const text = '1\n00:00:00,000 --> 23:00:00,000\nhi\n\n'
    const asked = write('tokens', Buffer.alloc(40_000, 7), { response_format: 'srt' })
    const { row } = await calls.charged('tokens', answered('text/plain', text), asked)
    expect(row).toMatchObject({ seconds: 10, note: 'usage_implausible' })
  })

  test('an audio translation without reported usage is charged by the length of its recording', async () => {
    const asked = write('second', waveFile(6), {}, '/v1/audio/translations')
    expect((await calls.charged('second', json({ text: 'hi' }), asked)).row.quota).toBe(600)
    expect(fixture.upstream.only('second').path).toBe('/v1/audio/translations')
  })

  test('a streamed transcript is charged by the usage in its last event', async () => {
    const usage = { type: 'tokens', input_tokens: 30, output_tokens: 5, total_tokens: 35 }
    const stream = events(
      { type: 'transcript.text.delta', delta: 'hi' },
      { type: 'transcript.text.done', text: 'hi', usage },
    )
    const { row, answer } = await calls.charged(
      'tokens',
      stream,
      write('tokens', waveFile(6), { stream: 'true' }),
    )
    expect(row).toMatchObject({ quota: 30 * 2 + 5 * 6, stream: 1, reason: 'complete' })
    expect(answer.text).toContain('transcript.text.done')
  })

  test.each(['text/plain; charset=utf-8', 'text/json', 'audio/mpeg', ''])(
    'a transcript in JSON is one whatever its content type says: %j',
    async (type) => {
      const body = JSON.stringify({ text: 'hi', usage: { type: 'duration', seconds: 7 } })
      const { row, answer } = await calls.charged(
        'second',
        answered(type, body),
        write('second', waveFile(6)),
      )
      expect(row).toMatchObject({ quota: 700, reason: 'complete' })
      expect([answer.text, answer.headers['content-type']]).toEqual([body, 'application/json'])
    },
  )

  test.each(['[Music] hello', '{laughs} hello', '[{applause}] \u0007'])(
    'words in brackets are a transcript, no JSON: %j',
    async (words) => {
      const asked = write('second', waveFile(6))
      const { row, answer } = await calls.charged('second', answered('text/plain', words), asked)
      expect([row.quota, answer.text]).toEqual([600, words])
    },
  )

  test('words that look like JSON or a page are a transcript where text was requested', async () => {
    for (const words of ['{"name":"Ann"}', '[{"text":1}]', '<b>hi</b>']) {
      const asked = write('second', waveFile(6), { response_format: 'text' })
      const { row, answer } = await calls.charged('second', answered('text/plain', words), asked)
      expect([row.quota, answer.text]).toEqual([600, words])
    }
  })

  const failed = JSON.stringify({ error: { message: 'CUDA out of memory', type: 'server_error' } })
  const halves: Behaviour = {
    kind: 'stream',
    chunks: [Buffer.from(failed.slice(0, 20)), Buffer.from(failed.slice(20))],
    ending: 'no done',
    headers: { 'content-type': 'text/plain' },
  }
  test.each([
    ['an error as text', answered('text/plain; charset=utf-8', failed), {}],
    [
      'an error as text, where text was requested',
      answered('text/plain', failed),
      { response_format: 'text' },
    ],
    ['an error in two pieces, where text was requested', halves, { response_format: 'text' }],
    ['an error in place of subtitles', answered('text/vtt', failed), { response_format: 'vtt' }],
    ['an error without a content type', answered('', failed), {}],
    ['a page as text', answered('text/plain', '<html>502</html>'), {}],
  ])('a transcript is made by another channel where the first one sends %s', async (_, behaviour, fields) => {
    fixture.upstream.script('spare', json({ text: 'of the other' }))
    const { answer } = await calls.charged('pair', behaviour, write('pair', waveFile(6), fields))
    expect(answer.json()).toEqual({ text: 'of the other' })
  })

  test('a transcript is charged by its recording if the client requests a stream and the upstream sends a whole response', async () => {
    const asked = write('second', waveFile(6), { stream: 'true' })
    expect((await calls.charged('second', json({ text: 'hi' }), asked)).row.quota).toBe(600)
  })
})

describe('the length of a recording is read from its sound, not from what its header claims:', () => {
  test.each([
    ['ten hours', waveFile(10, 36_000 * 32_000), 10],
    ['no end', waveFile(10, 0xffff_ffff), 10],
    ['less than a second', waveFile(10, 100), 10],
    ['nothing', waveFile(10, 0), 10],
  ])('the length of a recording is read from its sound: %s', async (_what, recording, seconds) => {
    const { row } = await calls.charged('second', answered('text/plain', 'hi'), write('second', recording))
    expect(row).toMatchObject({ seconds, quota: seconds * 100 })
  })

  test('a recording of an unknown audio format is charged by seconds estimated from its size', async () => {
    const { row } = await calls.charged(
      'second',
      answered('text/plain', 'hi'),
      write('second', Buffer.alloc(40_000, 7)),
    )
    expect(row).toMatchObject({ seconds: 10, reason: 'estimated' })
  })

  test('the length of a recording of several megabytes, which is kept on disk, is read for its charge', async () => {
    const { row } = await calls.charged(
      'second',
      answered('text/plain', 'hi'),
      write('second', waveFile(100)),
    )
    expect(row).toMatchObject({ seconds: 100, reason: 'complete' })
  })
})

test('a transcription call is refused where the key cannot pay for the length of its recording', async () => {
  fixture.upstream.script('second', json({ text: 'hi' }))
  const path = '/v1/audio/transcriptions'
  expect((await write('second', waveFile(10), {}, path, 'poor')()).status).toBe(403)
  expect((await write('second', waveFile(8), {}, path, 'poor')()).status).toBe(200)
})

test('a transcription call whose client leaves before the transcript is charged for the recording', async () => {
  fixture.upstream.script('second', { ...json({}), after: new Promise<void>(() => {}) })
  const body = formBytes(recordingParts('second', waveFile(5)))
  const leaving = new AbortController()
  const { headers = {} } = formCall('', 'ann', body)
  const asked = fetch(`${fixture.gateway.url}/v1/audio/transcriptions`, {
    method: 'POST',
    signal: leaving.signal,
    headers: { authorization: 'Bearer sk-ann', 'content-type': String(headers['content-type']) },
    body: new Uint8Array(body),
  }).catch(() => {})
  const row = await calls.rowOf(async () => {
    await fixture.upstream.receivedAtLeast('second', 1)
    leaving.abort()
    await asked
  })
  expect(row).toMatchObject({ reason: 'client_gone', quota: 500 })
})

test.each([
  [{ input: undefined }, /'input' is required/],
  [{ input: 7 }, /Invalid 'input'/],
  [{ model: null }, /'model' is required/],
])('a speech request with %j is a 400', async (fields, message) => {
  const answer = await speak('characters', fields)()
  expect(answer.status).toBe(400)
  expect(answer.json().error.message).toMatch(message)
})
