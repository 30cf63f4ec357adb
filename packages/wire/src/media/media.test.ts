import { describe, expect, test } from 'vitest'
import { NO_USAGE } from '../usage.ts'
import { chopped } from '../../../../test/generators/chunks.ts'
import { ImageReply, jsonTranscript, MediaTap, plainTranscript } from './index.ts'
import { readMediaUsage } from './reply.ts'

describe('usage of images and audio', () => {
  test('usage of images and audio is read by modality', () => {
    const usage = {
      input_tokens: 50,
      input_tokens_details: { text_tokens: 10, image_tokens: 40 },
      output_tokens: 272,
    }
    expect(readMediaUsage(usage, 'image')).toMatchObject({
      input: 50,
      imageInput: 40,
      output: 272,
      imageOutput: 272,
    })
    expect(readMediaUsage(usage, 'text')).toMatchObject({ output: 272, imageOutput: 0 })
    expect(readMediaUsage(usage, 'audio')).toMatchObject({ output: 272, audioOutput: 272 })
  })
  test('image and audio details of a media usage count, but not more than the totals that they belong to', () => {
    const usage = {
      input_tokens: 5,
      input_token_details: { audio_tokens: 4, text_tokens: 1 },
      output_tokens: 10,
      output_tokens_details: { image_tokens: 8, text_tokens: 2 },
    }
    expect(readMediaUsage(usage, 'image')).toMatchObject({ audioInput: 4, imageOutput: 8, output: 10 })
    const larger = { input_tokens: 5, output_tokens: 3, output_tokens_details: { image_tokens: 9 } }
    expect(readMediaUsage(larger, 'image')).toMatchObject({ output: 3, imageOutput: 3 })
  })
  test('cached tokens of images and audio are counted as stated, otherwise computed from the other counts', () => {
    const usage = (details: object): object => ({
      input_tokens: 100,
      input_tokens_details: { text_tokens: 10, image_tokens: 90, cached_tokens: 60, ...details },
      output_tokens: 10,
    })
    expect(readMediaUsage(usage({}), 'image')).toMatchObject({
      input: 40,
      imageInput: 40,
      cacheRead: 60,
      imageCacheRead: 50,
    })
    const stated = { cached_tokens_details: { text_tokens: 5, image_tokens: 55 } }
    expect(readMediaUsage(usage(stated), 'image')).toMatchObject({
      imageInput: 35,
      cacheRead: 60,
      imageCacheRead: 55,
    })
  })
  test('the reported seconds of a recording are rounded up to whole seconds', () => {
    expect(readMediaUsage({ type: 'duration', seconds: 6.1 }, 'text')).toEqual({ ...NO_USAGE, seconds: 7 })
  })
  test.each([
    null,
    'x',
    {},
    { cost_in_usd_ticks: 7 },
    { input_tokens: 0, output_tokens: 0 },
    { seconds: -1 },
  ])('no usage of images or audio is read from the invalid value %j', (value) => {
    expect(readMediaUsage(value, 'text')).toBeUndefined()
  })
})

test('a response with images gives the same usage and image count however the network divides it, and takes limited memory', () => {
  const usage = '{"input_tokens":1,"output_tokens":2,"total_tokens":3}'
  const image = `{"b64_json":"${'QUJD'.repeat(2_000)}","revised_prompt":"\\"b64_json\\":\\"x"}`
  const bytes = Buffer.from(`{"created":1,"data":[${image},${image}],"size":"1x1","usage":${usage}}`)
  for (const size of [1, 7, 100, bytes.length]) {
    const reply = new ImageReply()
    for (const piece of chopped(bytes, size)) reply.push(piece)
    expect(reply.hasBegun).toBe(true)
    expect(reply.begun).toBe(2)
    expect(reply.facts).toMatchObject({
      images: 2,
      error: undefined,
      size: '1x1',
      usage: { input: 1, output: 2 },
    })
  }
})

describe('a stream of images', () => {
  const event = (data: object): string => `data: ${JSON.stringify(data)}\n\n`
  const done = event({ type: 'transcript.text.done', text: 'a b', usage: { type: 'duration', seconds: 3 } })
  const stream = event({ type: 'transcript.text.delta', delta: 'a b' }) + done + 'data: [DONE]\n\n'

  test('a media stream is forwarded at once except for its last event, which is held back until the stream has ended', () => {
    for (const size of [1, 5, 64, stream.length]) {
      const tap = new MediaTap('text', 1)
      const sent: Buffer[] = []
      for (const piece of chopped(Buffer.from(stream), size)) {
        const { forward } = tap.push(piece)
        if (forward) sent.push(forward)
      }
      expect(tap.end().complete).toBe(true)
      expect(Buffer.concat(sent).toString()).not.toContain('transcript.text.done')
      expect(Buffer.concat([...sent, tap.finalBytes(NO_USAGE)]).toString()).toBe(stream)
      expect([tap.reported?.seconds, tap.text]).toEqual([3, 'a b'])
    }
  })
  test('a stream of several images ends with its last image', () => {
    const tap = new MediaTap('image', 2)
    const usage = { input_tokens: 1, output_tokens: 2 }
    const completed = Buffer.from(event({ type: 'image_generation.completed', b64_json: 'QUJD', usage }))
    expect(tap.push(completed).terminal).toBe(false)
    expect(tap.push(completed).terminal).toBe(true)
    expect([tap.finals, tap.reported?.output]).toEqual([2, 4])
  })
  test('a media stream without its final event is not complete', () => {
    const tap = new MediaTap('text', 1)
    tap.push(Buffer.from(event({ type: 'transcript.text.delta', delta: 'a' })))
    expect(tap.end().complete).toBe(false)
    expect(tap.hasContent).toBe(true)
  })
})

test('a JSON transcript is read for its text and duration, and a subtitle file for the time at which its last subtitle ends', () => {
  expect(jsonTranscript('{"text":"a","duration":36.7}')).toMatchObject({
    isValid: true,
    seconds: 37,
    text: 'a',
  })
  expect(jsonTranscript('{"error":{"message":"no"}}')).toMatchObject({
    isValid: false,
    error: { data: expect.any(String) },
  })
  const subtitles = '1\n00:00:01,000 --> 00:01:02,500\na\n\n2\n01:00:00,000 --> 01:00:01,000\nb\n'
  expect(plainTranscript(subtitles)).toMatchObject({ seconds: 0, lastCue: 3_601 })
  expect(plainTranscript('WEBVTT\n\n00:01.000 --> 00:02.000\na').lastCue).toBe(2)
})
