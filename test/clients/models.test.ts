import Anthropic from '@anthropic-ai/sdk'
import { ApiError, GoogleGenAI } from '@google/genai'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { channel, priced, ROOT, token, user } from '../fixtures/configuration.ts'
import { type RunningGateway, startGateway } from '../fixtures/gateway.ts'

const NAMES = ['org/part:free', 'talker', '模型 1']

let gateway: RunningGateway
beforeAll(async () => {
  gateway = await startGateway({
    config: {
      models: priced(NAMES),
      channels: [
        channel('chat', 'http://127.0.0.1:9/v1', { models: NAMES }),
        channel('messages', 'http://127.0.0.1:9/v1', { models: ['talker'], protocol: 'messages' }),
      ],
      users: [ROOT, user(2, 'ann', [token('ann')])],
    },
  })
})
afterAll(() => gateway?.discard())

async function all<T>(list: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const one of list) found.push(one)
  return found
}

describe('the official OpenAI client', () => {
  const client = (path = '/v1', apiKey = 'sk-ann'): OpenAI =>
    new OpenAI({ apiKey, baseURL: `${gateway.url}${path}`, maxRetries: 0 })

  test.each(['/v1', '/v1beta/openai'])('the OpenAI client lists models at %s', async (path) => {
    const models = await all(client(path).models.list())
    expect(models.map(({ id }) => id)).toEqual(NAMES)
    expect(models[1]).toEqual({
      id: 'talker',
      object: 'model',
      created: 1_626_777_600,
      owned_by: 'acme',
      supported_endpoint_types: ['vendor', 'compat'],
      endpoints: ['chat', 'messages', 'responses', 'gemini', 'completions'],
    })
  })
  test.each(NAMES)('the OpenAI client retrieves the model %s', async (name) => {
    expect(await client().models.retrieve(name)).toMatchObject({ id: name, object: 'model' })
  })
  test('the OpenAI client throws its error classes for an unknown model, an unknown key and a refused method', async () => {
    const error = await client()
      .models.retrieve('no/such')
      .catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(OpenAI.NotFoundError)
    expect(error).toMatchObject({ status: 404, code: 'model_not_found' })
    await expect(client('/v1', 'sk-nobody').models.list()).rejects.toBeInstanceOf(OpenAI.AuthenticationError)
    await expect(client().models.delete('talker')).rejects.toMatchObject({
      status: 501,
      code: 'not_implemented',
    })
  })
})

describe('the official Anthropic client', () => {
  const client = (apiKey = 'sk-ann'): Anthropic =>
    new Anthropic({ apiKey, baseURL: gateway.url, maxRetries: 0 })

  test('the Anthropic client lists models, all on the first page', async () => {
    const page = await client().models.list({ limit: 1 })
    expect(page).toMatchObject({ has_more: false, first_id: NAMES[0], last_id: NAMES[2] })
    expect((await all(client().models.list({ limit: 1 }))).map(({ id }) => id)).toEqual(NAMES)
  })
  test('the Anthropic client lists models with a bearer token, too, as it does in Python and Java', async () => {
    const bearer = new Anthropic({ authToken: 'sk-ann', baseURL: gateway.url, maxRetries: 0 })
    const page = await bearer.models.list()
    expect(page).toMatchObject({ has_more: false, first_id: NAMES[0], last_id: NAMES[2] })
    expect(page.data[1]).toMatchObject({ type: 'model', display_name: 'talker' })
  })
  test.each(NAMES)('the Anthropic client retrieves the model %s', async (name) => {
    expect(await client().models.retrieve(name)).toEqual({
      id: name,
      type: 'model',
      display_name: name,
      created_at: '2021-07-20T10:40:00Z',
      lifecycle: 'active',
      capabilities: null,
      deprecated_at: null,
      line: null,
      max_input_tokens: null,
      max_tokens: null,
      retires_at: null,
    })
  })
  test('the Anthropic client throws NotFoundError for an unknown model and AuthenticationError for an unknown key', async () => {
    await expect(client().models.retrieve('no/such')).rejects.toBeInstanceOf(Anthropic.NotFoundError)
    await expect(client('sk-nobody').models.list()).rejects.toBeInstanceOf(Anthropic.AuthenticationError)
  })
})

describe('the official Google client', () => {
  const client = (apiVersion: string, apiKey = 'sk-ann'): GoogleGenAI =>
    new GoogleGenAI({
      apiKey,
      httpOptions: { baseUrl: gateway.url, apiVersion },
    })

  test('the Google client lists models at /v1beta', async () => {
    const models = await all(await client('v1beta').models.list({ config: { pageSize: 1 } }))
    expect(
      models.map(({ name, displayName, supportedActions }) => ({ name, displayName, supportedActions })),
    ).toEqual(
      NAMES.map((name) => ({
        name: `models/${name}`,
        displayName: name,
        supportedActions: ['generateContent', 'countTokens'],
      })),
    )
  })
  test('the Google client gets a model at /v1, where that path exists', async () => {
    expect(await client('v1').models.get({ model: 'talker' })).toMatchObject({ name: 'models/talker' })
    expect(await client('v1').models.get({ model: 'models/org/part:free' })).toMatchObject({
      displayName: 'org/part:free',
    })
  })
  test('the Google client throws an ApiError with status 401 for an unknown key, and 404 for an unknown model', async () => {
    const error = await client('v1beta', 'sk-nobody')
      .models.list()
      .catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(ApiError)
    expect(error).toMatchObject({ status: 401 })
    await expect(client('v1').models.get({ model: 'no-such' })).rejects.toMatchObject({ status: 404 })
  })
})
