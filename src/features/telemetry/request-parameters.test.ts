import { CHAT_COMPARISON_RULES, CHAT_REQUEST } from '@sluice/wire/chat'
import { scanObject } from '@sluice/wire/json/json-scan'
import { expect, test } from 'vitest'
import { requestParameters } from './request-parameters.ts'

function parametersOf(body: object, maxTokens?: number): object {
  const scan = scanObject(Buffer.from(JSON.stringify(body)))
  const dialect = { shape: CHAT_REQUEST, conversation: CHAT_COMPARISON_RULES }
  return requestParameters({ maxTokens, json: { scan, dialect } })
}

test.each([
  [
    'chat',
    { temperature: 0.5, top_p: 1, seed: 7, n: 2, reasoning_effort: 'low' },
    { temperature: 0.5, top_p: 1, seed: 7, 'choice.count': 2, 'reasoning.level': 'low' },
  ],
  [
    'messages',
    { temperature: 0, top_k: 40, output_config: { effort: 'high' } },
    { temperature: 0, top_k: 40, 'reasoning.level': 'high' },
  ],
  [
    'responses',
    { reasoning: { effort: 'minimal' }, previous_response_id: 'resp_1' },
    { 'reasoning.level': 'minimal', 'previous_response.id': 'resp_1' },
  ],
  [
    'gemini',
    { generationConfig: { topP: 0.9, topK: 3, presencePenalty: 1, candidateCount: 3 } },
    { top_p: 0.9, top_k: 3, presence_penalty: 1, 'choice.count': 3 },
  ],
])('telemetry exports the parameters of a request of the dialect %s', (_, body, parameters) => {
  const named = Object.fromEntries(
    Object.entries(parameters).map(([name, value]) => [`gen_ai.request.${name}`, value]),
  )
  expect(parametersOf(body, 50)).toEqual({ ...named, 'gen_ai.request.max_tokens': 50 })
})

test('telemetry exports no texts and no values of a wrong type as parameters of a request', () => {
  const body = {
    stop: ['a word'],
    temperature: 'a word',
    reasoning_effort: 'a sentence that was said',
    previous_response_id: 'a sentence that was said',
    n: 1,
    seed: { words: 'words' },
    reasoning: 'words',
    generationConfig: ['words'],
  }
  expect(parametersOf(body)).toEqual({})
})
