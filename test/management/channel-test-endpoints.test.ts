import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { manage } from '../fixtures/account.ts'
import { channel, ROOT } from '../fixtures/configuration.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'
import { ACCOUNT, REGION, startBedrock } from '../fixtures/providers/bedrock.ts'
import { type Double, type DoubleAnswer, startDouble } from '../fixtures/providers/double.ts'
import { startVertex, type VertexDouble } from '../fixtures/providers/vertex.ts'

interface Shown {
  readonly id: number
  readonly name: string
  readonly test_costs: boolean
}

interface Result {
  readonly success: boolean | null
  readonly message: string
  readonly model: string
  readonly endpoint: string
  readonly costs: boolean
  readonly needs_repair: boolean
}

const ROOT_ACCOUNT = { id: 1, accessToken: ROOT.access_token }
const SOUND: DoubleAnswer = { headers: { 'content-type': 'audio/mpeg' }, body: 'a sound' }
/** As large as a response with an image of a thousand pixels in base64. */
const PICTURE = JSON.stringify({ data: [{ b64_json: 'A'.repeat(2_000_000) }] })

let upstream: Double
let vertex: VertexDouble
let bedrock: Double
let gateway: RunningGateway
let shown: ReadonlyMap<string, Shown>
/** The response of speech endpoints. */
let sound = SOUND
/** The response of other endpoints. */
let answer = '{}'

beforeAll(async () => {
  upstream = await startDouble(({ path }) => {
    if (path.endsWith('/audio/speech')) return sound
    return { body: path.endsWith('/images/generations') ? PICTURE : answer }
  })
  vertex = await startVertex(() => ({ body: '{}' }))
  bedrock = await startBedrock(() => ({ whole: {} }))
  const plain = (name: string, model: string, fields: object = {}) =>
    channel(name, `${upstream.url}/v1`, { models: [model], ...fields })
  const onVertex = (name: string, protocol: string | readonly string[], model: string, mapped = model) => ({
    name,
    provider: 'vertex',
    protocol,
    location: 'europe-west4',
    base_url: vertex.url,
    keys: [vertex.serviceAccount],
    models: [model],
    model_mapping: { [model]: mapped },
  })
  const onBedrock = (name: string, protocol: string, model: string) => ({
    name,
    provider: 'bedrock',
    protocol,
    region: REGION,
    base_url: bedrock.url,
    keys: [`${ACCOUNT.id}:${ACCOUNT.secret}`],
    models: [name],
    model_mapping: { [name]: model },
  })
  const azure = { provider: 'azure', base_url: upstream.url, api_version: '2024-10-21' }
  gateway = await startGateway({
    config: {
      options: { media: { allow_private_networks: true } },
      rate_limits: {},
      models: { painter: { price: { image: 0.04 } }, reader: { price: { characters: 15 } } },
      channels: [
        plain('chat', 'gpt-4o-mini'),
        plain('messages', 'claude-sonnet-4-5', { protocol: 'messages' }),
        plain('responses', 'gpt-5', { protocol: 'responses' }),
        plain('gemini', 'gemini-2.5-flash', { protocol: 'gemini' }),
        plain('embeddings', 'text-embedding-3-small'),
        plain('gemini-embeddings', 'gemini-embedding-001', { protocol: 'gemini' }),
        plain('mapped-embeddings', 'vectors', { model_mapping: { vectors: 'text-embedding-3-large' } }),
        plain('rerank', 'rerank-v3.5', { protocol: 'rerank' }),
        plain('chat-and-rerank', 'bge-reranker-v2-m3', { protocol: ['chat', 'rerank'] }),
        plain('rerank-and-chat', 'gpt-4o-mini', { protocol: ['rerank', 'chat'] }),
        plain('moderations', 'omni-moderation-latest'),
        plain('images', 'gpt-image-1'),
        plain('priced-images', 'painter'),
        plain('speech', 'tts-1'),
        plain('priced-speech', 'reader'),
        plain('transcriptions', 'whisper-1'),
        plain('live', 'gpt-4o-realtime-preview'),
        plain('mixed', '', { models: ['dall-e-3', 'tts-1', 'gpt-4o-mini'] }),
        plain('azure-embeddings', 'text-embedding-3-small', {
          ...azure,
          model_mapping: { 'text-embedding-3-small': 'ours' },
        }),
        plain('azure-images', 'dall-e-2', azure),
        plain('azure-v1-images', 'gpt-image-1', { ...azure, api_version: undefined }),
        onVertex('vertex-claude', 'messages', 'claude-sonnet-4-5'),
        onVertex('vertex-embeddings', 'gemini', 'text-embedding-005'),
        onVertex('vertex-new-embeddings', 'gemini', 'gemini-embedding-2'),
        onVertex('vertex-all-claude', ['gemini', 'chat', 'messages'], 'sonnet', 'claude-sonnet-4-5'),
        onVertex('vertex-all-gemini', ['messages', 'chat', 'gemini'], 'gemini-2.5-flash'),
        onVertex('vertex-all-others', ['messages', 'gemini', 'chat'], 'meta/llama-4'),
        onBedrock('bedrock-claude', 'messages', 'anthropic.claude-sonnet-4-5-v1:0'),
        onBedrock('bedrock-nova', 'converse', 'amazon.nova-lite-v1:0'),
        onBedrock('bedrock-titan', 'converse', 'amazon.titan-embed-text-v2:0'),
        onBedrock('bedrock-cohere', 'converse', 'cohere.embed-multilingual-v3'),
      ],
      users: [ROOT],
    },
  })
  const { data } = await asRoot<{ items: Shown[] }>('GET /api/channel/?page_size=100')
  shown = new Map(data.items.map((one) => [one.name, one]))
})
afterAll(async () => {
  await gateway?.discard()
  await Promise.all([upstream, vertex, bedrock].map((server) => server?.close()))
})
beforeEach(() => {
  sound = SOUND
  for (const { received } of [upstream, vertex, bedrock]) received.length = 0
})

const asRoot = <Data>(request: Parameters<typeof manage>[2], body?: object) =>
  manage<Data>(gateway.url, ROOT_ACCOUNT, request, body)

function idOf(name: string): number {
  const id = shown.get(name)?.id
  if (id === undefined) throw new Error(`there is no channel ${name}`)
  return id
}

async function tested(name: string, query = ''): Promise<Result> {
  return (await asRoot(`GET /api/channel/test/${idOf(name)}${query}`)).body as unknown as Result
}

async function testedAll(...names: string[]): Promise<(Result & { readonly name: string })[]> {
  const body = { ids: names.map(idOf) }
  return (await asRoot<(Result & { name: string })[]>('POST /api/channel/test/all', body)).data
}

/** The only request that was received, as method, path and parsed body. */
function onlyRequest(): readonly [string, unknown] {
  const came = [upstream, vertex, bedrock].flatMap(({ received }) => received)
  const [request, ...others] = came.filter(({ path }) => path !== '/token')
  if (!request || others.length > 0) throw new Error(`${came.length} requests`)
  const { method, path, body } = request
  return [`${method} ${path}`, body.length === 0 ? undefined : JSON.parse(body.toString())]
}

const ON_VERTEX = '/v1/projects/my-project/locations/europe-west4'

describe('a channel test calls an endpoint of the model', () => {
  test.each<[string, string, string, object]>([
    ['chat', 'chat', '/v1/chat/completions', { model: 'gpt-4o-mini', max_tokens: 1 }],
    ['messages', 'messages', '/v1/messages', { model: 'claude-sonnet-4-5', max_tokens: 1 }],
    ['responses', 'responses', '/v1/responses', { model: 'gpt-5', max_output_tokens: 16, store: false }],
    [
      'gemini',
      'gemini',
      '/v1/models/gemini-2.5-flash:generateContent',
      { contents: [{ role: 'user', parts: [{ text: 'hi' }] }] },
    ],
    ['embeddings', 'embeddings', '/v1/embeddings', { model: 'text-embedding-3-small', input: 'hi' }],
    [
      'gemini-embeddings',
      'embeddings',
      '/v1/models/gemini-embedding-001:batchEmbedContents',
      { requests: [{ model: 'models/gemini-embedding-001', content: { parts: [{ text: 'hi' }] } }] },
    ],
    ['mapped-embeddings', 'embeddings', '/v1/embeddings', { model: 'text-embedding-3-large' }],
    ['rerank', 'rerank', '/v1/rerank', { model: 'rerank-v3.5', documents: ['hi'] }],
    ['chat-and-rerank', 'rerank', '/v1/rerank', { model: 'bge-reranker-v2-m3' }],
    ['rerank-and-chat', 'chat', '/v1/chat/completions', { model: 'gpt-4o-mini' }],
    ['moderations', 'moderations', '/v1/moderations', { model: 'omni-moderation-latest', input: 'hi' }],
    [
      'azure-embeddings',
      'embeddings',
      '/openai/deployments/ours/embeddings?api-version=2024-10-21',
      { input: 'hi' },
    ],
    [
      'vertex-claude',
      'messages',
      `${ON_VERTEX}/publishers/anthropic/models/claude-sonnet-4-5:rawPredict`,
      { max_tokens: 1 },
    ],
    [
      'vertex-embeddings',
      'embeddings',
      `${ON_VERTEX}/publishers/google/models/text-embedding-005:predict`,
      { instances: [{ content: 'hi' }] },
    ],
    [
      'vertex-new-embeddings',
      'embeddings',
      `${ON_VERTEX}/publishers/google/models/gemini-embedding-2:embedContent`,
      { content: { parts: [{ text: 'hi' }] } },
    ],
    [
      'vertex-all-claude',
      'messages',
      `${ON_VERTEX}/publishers/anthropic/models/claude-sonnet-4-5:rawPredict`,
      { max_tokens: 1 },
    ],
    [
      'vertex-all-gemini',
      'gemini',
      `${ON_VERTEX}/publishers/google/models/gemini-2.5-flash:generateContent`,
      {},
    ],
    [
      'vertex-all-others',
      'chat',
      `${ON_VERTEX}/endpoints/openapi/chat/completions`,
      { model: 'meta/llama-4' },
    ],
    ['bedrock-claude', 'messages', '/model/anthropic.claude-sonnet-4-5-v1%3A0/invoke', { max_tokens: 1 }],
    [
      'bedrock-nova',
      'converse',
      '/model/amazon.nova-lite-v1%3A0/converse',
      { inferenceConfig: { maxTokens: 1 } },
    ],
    ['bedrock-titan', 'embeddings', '/model/amazon.titan-embed-text-v2%3A0/invoke', { inputText: 'hi' }],
    ['bedrock-cohere', 'embeddings', '/model/cohere.embed-multilingual-v3/invoke', { texts: ['hi'] }],
  ])('a channel test calls an endpoint of the model: %s: %s, at %s', async (name, endpoint, path, body) => {
    expect(await tested(name)).toMatchObject({ success: true, message: '', endpoint, costs: false })
    expect(onlyRequest()).toEqual([`POST ${path}`, expect.objectContaining(body)])
  })

  test.each([['transcriptions'], ['live']])(
    "a channel test requests the upstream's list of models where every call would be expensive: %s",
    async (name) => {
      expect(await tested(name)).toMatchObject({ success: true, endpoint: 'models', costs: false })
      expect(onlyRequest()).toEqual(['GET /v1/models', undefined])
    },
  )
})

test('a channel test says if the answer has faults that repair mends', async () => {
  const needing = async (content: unknown): Promise<unknown> => {
    const message = { role: 'assistant', content }
    answer = JSON.stringify({ id: 'x', choices: [{ index: 0, message, finish_reason: 'length' }] })
    const [one] = await testedAll('mixed')
    const { needs_repair } = await tested('mixed')
    expect(one?.needs_repair).toBe(needs_repair)
    answer = '{}'
    return needs_repair
  }
  expect(await needing('Hi')).toBe(false)
  expect(await needing([{ type: 'text', text: 'Hi' }])).toBe(true)
})

describe('a channel test of images or speech', () => {
  test.each<[string, string, string, object]>([
    ['images', 'images', '/v1/images/generations', { model: 'gpt-image-1', n: 1, quality: 'low' }],
    ['priced-images', 'images', '/v1/images/generations', { model: 'painter', n: 1 }],
    [
      'azure-images',
      'images',
      '/openai/deployments/dall-e-2/images/generations?api-version=2024-10-21',
      { n: 1, size: '256x256' },
    ],
    ['speech', 'speech', '/v1/audio/speech', { model: 'tts-1', input: 'hi' }],
    ['priced-speech', 'speech', '/v1/audio/speech', { model: 'reader', input: 'hi' }],
  ])('a channel test of %s says that it costs money: %s, at %s', async (name, endpoint, path, body) => {
    expect(await tested(name)).toMatchObject({ success: true, message: '', endpoint, costs: true })
    expect(onlyRequest()).toEqual([`POST ${path}`, expect.objectContaining(body)])
  })

  test('a channel test of speech fails if the upstream sends an HTML page instead of audio', async () => {
    sound = { headers: { 'content-type': 'text/html' }, body: '<html>' }
    expect(await tested('speech')).toMatchObject({ success: false, message: 'the answer is not audio' })
  })

  test("the list and the details of channels say which channels' tests cost money", async () => {
    const costly = [...shown.values()].filter(({ test_costs }) => test_costs).map(({ name }) => name)
    expect(costly.toSorted()).toEqual([
      'azure-images',
      'azure-v1-images',
      'images',
      'priced-images',
      'priced-speech',
      'speech',
    ])
    expect((await asRoot(`GET /api/channel/${idOf('images')}`)).data).toMatchObject({ test_costs: true })
  })

  test('a channel test calls a model of images or speech only if the channel has no other, or if that model is named', async () => {
    expect(await tested('mixed')).toMatchObject({ model: 'gpt-4o-mini', endpoint: 'chat', costs: false })
    expect(await tested('mixed', '?model=tts-1')).toMatchObject({ model: 'tts-1', costs: true })
  })
})

describe('POST /api/channel/test/all', () => {
  test('POST /api/channel/test/all tests the channels that it names, each at the endpoint that its models serve', async () => {
    const results = await testedAll('chat', 'embeddings', 'bedrock-titan')
    const outcomes = new Map(results.map(({ name, success, endpoint }) => [name, [success, endpoint]]))
    expect(outcomes).toEqual(
      new Map([
        ['bedrock-titan', [true, 'embeddings']],
        ['chat', [true, 'chat']],
        ['embeddings', [true, 'embeddings']],
      ]),
    )
  })

  test.each([
    ['images', '/v1/models'],
    ['priced-images', '/v1/models'],
    ['speech', '/v1/models'],
    ['azure-images', '/openai/models?api-version=2024-10-21'],
    ['azure-v1-images', '/openai/v1/models'],
  ])(
    'POST /api/channel/test/all requests the list of models of %s, which costs nothing',
    async (name, path) => {
      expect(await testedAll(name)).toMatchObject([{ name, success: true, endpoint: 'models' }])
      expect(onlyRequest()).toEqual([`GET ${path}`, undefined])
    },
  )

  test('POST /api/channel/test/all tests all channels where none are named', async () => {
    const { data } = await asRoot<Result[]>('POST /api/channel/test/all', {})
    expect(data).toHaveLength(shown.size)
    expect(data.filter(({ success }) => success !== true)).toEqual([])
    const paths = upstream.received.map(({ path }) => path)
    expect(paths.filter((path) => /images|speech/.test(path))).toEqual([])
  })

  test('POST /api/channel/test/all is a 404 if one of its channels does not exist, and then tests no channel', async () => {
    const body = { ids: [idOf('chat'), 4_711] }
    expect((await asRoot('POST /api/channel/test/all', body)).status).toBe(404)
    expect(upstream.received).toEqual([])
  })
})
