import { expect, test } from 'vitest'
import { endpointByName, endpointByPrice, isForUnsupportedEndpoint } from './endpoints.ts'
import { FREE_PRICE } from './price.ts'

test('a model with a price per image, character or second belongs to the images, speech or transcriptions endpoint', () => {
  const some = { digits: 1n, scale: 3 }
  expect(endpointByPrice({ ...FREE_PRICE, image: { default: some } })).toBe('images')
  expect(endpointByPrice({ ...FREE_PRICE, characters: some })).toBe('speech')
  expect(endpointByPrice({ ...FREE_PRICE, second: some })).toBe('transcriptions')
  expect(endpointByPrice({ ...FREE_PRICE, request: some })).toBeUndefined()
})

test.each([
  ['text-embedding-3-small', 'embeddings'],
  ['embed-english-v3.0', 'embeddings'],
  ['BAAI/bge-m3', 'embeddings'],
  ['mistral-embed', 'embeddings'],
  ['gemini-embedding-001', 'embeddings'],
  ['omni-moderation-latest', 'moderations'],
  ['dall-e-3', 'images'],
  ['gpt-image-1.5', 'images'],
  ['imagen-4.0-generate-001', 'images'],
  ['whisper-1', 'transcriptions'],
  ['gpt-4o-transcribe', 'transcriptions'],
  ['tts-1-hd', 'speech'],
  ['gpt-4o-mini-tts', 'speech'],
])('the name of the model %s implies the endpoint %s', (model, endpoint) => {
  expect(endpointByName(model)).toBe(endpoint)
  expect(isForUnsupportedEndpoint(model)).toBe(false)
})

test.each([
  'gpt-realtime-2',
  'gemini-live-2.5-flash',
  'mistral-ocr-latest',
  'sora-2',
  'mj_imagine',
  'suno_music',
])('the name of the model %s implies an endpoint that the gateway does not have', (model) => {
  expect(isForUnsupportedEndpoint(model)).toBe(true)
})

test.each([
  'gpt-4o-mini',
  'gpt-audio',
  'gpt-4o-audio-preview',
  'claude-opus-4-8',
  'gemini-2.5-flash-image',
  'bge-reranker-v2-m3',
  'rerank-english-v3.0',
  'deliverance-7b',
  'olive-2',
  'kimi-k3',
  'o3',
])(
  'the name of the model %s implies none of the endpoints for images, speech and transcriptions',
  (model) => {
    expect(isForUnsupportedEndpoint(model)).toBe(false)
    expect(endpointByName(model)).toBeUndefined()
  },
)
