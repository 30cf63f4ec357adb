import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { demoYaml } from './demo-config.ts'

test('the demo configuration has a channel of each protocol, a price for each of its models, and no users', () => {
  const yaml = demoYaml({
    chatUrl: 'http://127.0.0.1:1/v1',
    messagesUrl: 'http://127.0.0.1:2/v1',
    responsesUrl: 'http://127.0.0.1:3/v1',
    geminiUrl: 'http://127.0.0.1:5/v1',
    bedrockUrl: 'http://127.0.0.1:7',
    rerankUrl: 'http://127.0.0.1:4/v1',
    embeddingsUrl: 'http://127.0.0.1:5/v1',
    mediaUrl: 'http://127.0.0.1:6/v1',
  })
  const { channels, models, users } = parse(yaml) as {
    channels: { protocol: string; base_url: string; models: string[] }[]
    models: Record<string, unknown>
    users?: unknown
  }
  expect(channels.map(({ protocol, base_url }) => `${protocol} ${base_url}`)).toEqual([
    'chat http://127.0.0.1:1/v1',
    'messages http://127.0.0.1:2/v1',
    'responses http://127.0.0.1:3/v1',
    'gemini http://127.0.0.1:5/v1',
    'messages http://127.0.0.1:7',
    'converse http://127.0.0.1:7',
    'rerank http://127.0.0.1:4/v1',
    'chat http://127.0.0.1:5/v1',
    'chat http://127.0.0.1:6/v1',
  ])
  expect(channels.flatMap((channel) => channel.models).sort()).toEqual(Object.keys(models).sort())
  expect(users).toBeUndefined()
})
