import { expect, test } from 'vitest'
import type { ApiKey } from '../../api/keys.ts'
import type { PricedModel } from '../../api/models.ts'
import { callableModels } from './callable-models.ts'

const CHAT = ['chat', 'messages', 'responses', 'gemini', 'completions']

const modelOf = (name: string, output: number, endpoints: readonly string[]): PricedModel =>
  ({ name, output, endpoints }) as PricedModel

const MODELS = [
  modelOf('vectors', 0, ['embeddings']),
  modelOf('llama', 0, CHAT),
  modelOf('by-call', 0, CHAT),
  modelOf('ranks', 0, ['rerank']),
  modelOf('sora-2', 0, CHAT),
  modelOf('paid', 2, CHAT),
]

test('the playground offers every model for conversations before the others, those whose tokens cost nothing last', () => {
  expect(callableModels(MODELS, undefined).map(({ name }) => name)).toEqual([
    'paid',
    'llama',
    'by-call',
    'vectors',
  ])
  const key: Partial<ApiKey> = { model_limits_enabled: true, model_limits: 'llama,ranks' }
  expect(callableModels(MODELS, key as ApiKey).map(({ name }) => name)).toEqual(['llama'])
})
