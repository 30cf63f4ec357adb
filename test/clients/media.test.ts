import { createOpenAI } from '@ai-sdk/openai'
import { generateImage, generateSpeech, transcribe } from 'ai'
import OpenAI, { toFile } from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { databaseOf } from '../fixtures/database.ts'
import { type DemoFixture, startDemoFixture } from '../fixtures/demo-fixture.ts'

let demo: DemoFixture
let client: OpenAI
beforeAll(async () => {
  demo = await startDemoFixture()
  client = new OpenAI({ apiKey: 'sk-ann', baseURL: `${demo.gateway.url}/v1`, maxRetries: 0 })
})
afterAll(() => demo?.close())

const PNG = Buffer.from([0x89, 0x50, 0x4e, 0x47])
const TEXT = 'Small steps win.'
/** The demo's quota units of a token: 2.5 for text, 20 for an image. */
const low = {
  model: 'demo-image',
  prompt: 'a lighthouse at noon',
  quality: 'low',
  size: '1024x1024',
} as const
const lastQuota = (): number | undefined => databaseOf(demo.gateway.dataDir).usage().at(-1)?.quota

describe('the official OpenAI client', () => {
  test('the OpenAI client gets images, and pays for their tokens', async () => {
    const { data, usage } = await client.images.generate({ ...low, n: 2 })
    expect(data).toHaveLength(2)
    for (const { b64_json: image = '' } of data ?? [])
      expect(Buffer.from(image, 'base64').subarray(0, 4).equals(PNG)).toBe(true)
    expect(usage).toMatchObject({ input_tokens: 5, output_tokens: 544 })
    expect(lastQuota()).toBe(Math.round(5 * 2.5 + 544 * 20))
  })

  test('the OpenAI client gets a stream of images, with partial ones', async () => {
    const stream = await client.images.generate({ ...low, stream: true, partial_images: 2 })
    const types: string[] = []
    for await (const event of stream) types.push(event.type)
    expect(types).toEqual([
      'image_generation.partial_image',
      'image_generation.partial_image',
      'image_generation.completed',
    ])
    expect(lastQuota()).toBe(Math.round(5 * 2.5 + (272 + 200) * 20))
  })

  test('the OpenAI client gets edited versions of the images that it sends, whole and streamed', async () => {
    const image = await toFile(PNG, 'a.png', { type: 'image/png' })
    const { data } = await client.images.edit({ ...low, image: [image, image], mask: image })
    expect(data).toHaveLength(1)
    const stream = await client.images.edit({ ...low, image, stream: true })
    const types: string[] = []
    for await (const event of stream) types.push(event.type)
    expect(types).toEqual(['image_edit.completed'])
  })

  test('the OpenAI client gets speech, whole and as events, and pays for its characters', async () => {
    const speech = await client.audio.speech.create({ model: 'demo-speech', voice: 'alloy', input: TEXT })
    const sound = Buffer.from(await speech.arrayBuffer())
    expect(sound.toString('latin1', 0, 4)).toBe('RIFF')
    expect(speech.headers.get('content-type')).toBe('audio/wav')
    expect(lastQuota()).toBe(Math.round(TEXT.length * 7.5))
    const events = await client.audio.speech.create({
      model: 'demo-speech',
      voice: 'alloy',
      input: TEXT,
      stream_format: 'sse',
    })
    expect(await events.text()).toContain('speech.audio.done')
  })

  test.each(['json', 'text', 'srt', 'vtt', 'verbose_json', 'diarized_json'] as const)(
    'the OpenAI client gets a transcript of generated speech as %s, and pays for its seconds',
    async (format) => {
      const speech = await client.audio.speech.create({ model: 'demo-speech', voice: 'alloy', input: TEXT })
      const file = await toFile(Buffer.from(await speech.arrayBuffer()), 'speech.wav')
      const transcript: unknown = await client.audio.transcriptions.create({
        model: 'demo-transcribe',
        file,
        response_format: format,
      })
      expect(JSON.stringify(transcript)).toContain(TEXT)
      // 16 characters are 1.07 seconds, at 50 units each.
      expect(lastQuota()).toBe(100)
      const translation = await client.audio.translations.create({ model: 'demo-transcribe', file })
      expect(translation.text).toBe(TEXT)
    },
  )

  test('the OpenAI client gets a streamed transcript as events', async () => {
    const speech = await client.audio.speech.create({ model: 'demo-speech', voice: 'alloy', input: TEXT })
    const file = await toFile(Buffer.from(await speech.arrayBuffer()), 'speech.wav')
    const stream = await client.audio.transcriptions.create({ model: 'demo-transcribe', file, stream: true })
    let text = ''
    for await (const event of stream) if (event.type === 'transcript.text.delta') text += event.delta
    expect(text).toBe(TEXT)
    expect(lastQuota()).toBe(100)
  })

  test('the OpenAI client gets unsupported_endpoint when it requests an image from a chat model', async () => {
    const asked = client.images.generate({ model: 'demo-claude', prompt: 'x' })
    await expect(asked).rejects.toMatchObject({ status: 400, code: 'unsupported_endpoint' })
  })

  test("the OpenAI client gets the provider's error for a file that is too large", async () => {
    const file = await toFile(Buffer.alloc(26 * 1024 * 1024), 'large.wav')
    const asked = client.audio.transcriptions.create({ model: 'demo-transcribe', file })
    await expect(asked).rejects.toMatchObject({ status: 413 })
  })
})

describe('the AI SDK', () => {
  const provider = (): ReturnType<typeof createOpenAI> =>
    createOpenAI({ apiKey: 'sk-ann', baseURL: `${demo.gateway.url}/v1` })

  test('the AI SDK gets generated images through the gateway', async () => {
    const { images } = await generateImage({
      model: provider().image('demo-image'),
      prompt: 'a lighthouse',
      n: 2,
      maxRetries: 0,
    })
    expect(images.map(({ uint8Array }) => Buffer.from(uint8Array.subarray(0, 4)).equals(PNG))).toEqual([
      true,
      true,
    ])
  })

  test('the AI SDK gets generated speech through the gateway, and a transcript of it', async () => {
    const { audio } = await generateSpeech({
      model: provider().speech('demo-speech'),
      text: TEXT,
      maxRetries: 0,
    })
    const { text } = await transcribe({
      model: provider().transcription('demo-transcribe'),
      audio: audio.uint8Array,
      maxRetries: 0,
    })
    expect(text).toBe(TEXT)
  })
})
