import { describe, expect, test } from 'vitest'
import { JSON_ROUTES } from './json-routes.ts'
import { PathSuggestions } from './mistyped-path.ts'
import { RAW_ROUTES } from './raw-routes.ts'

const paths = new PathSuggestions([...RAW_ROUTES, ...JSON_ROUTES])

describe('the path that was meant', () => {
  test.each([
    ['/chat/completions', '/v1/chat/completions'],
    ['/v1/v1/chat/completions', '/v1/chat/completions'],
    ['/v1/chat/completions/', '/v1/chat/completions'],
    ['//v1//chat/completions', '/v1/chat/completions'],
    ['/V1/Chat/Completions', '/v1/chat/completions'],
    ['/v1/chat/completion', '/v1/chat/completions'],
    ['/v1/chat/completons', '/v1/chat/completions'],
    ['/v1/chat/completions/chat/completions', '/v1/chat/completions'],
    ['/v1/chat/completions/v1/chat/completions', '/v1/chat/completions'],
    ['/api/v1/chat/completions', '/v1/chat/completions'],
    ['/openai/v1/chat/completions', '/v1/chat/completions'],
    ['/v1/chat/completions/more', '/v1/chat/completions'],
    ['/v1/chat%2Fcompletions', '/v1/chat/completions'],
    ['/v2/chat/completions', '/v1/chat/completions'],
    ['/v1/v1/messages', '/v1/messages'],
    ['/messages', '/v1/messages'],
    ['/v1/message', '/v1/messages'],
    ['/v1/messages/v1/messages', '/v1/messages'],
    ['/anthropic/v1/messages', '/v1/messages'],
    ['/messages/count_tokens', '/v1/messages/count_tokens'],
    ['/models', '/v1/models'],
    ['/v1/model', '/v1/models'],
    ['/models/gpt-5', '/v1/models/{model_id}'],
    ['/v1/v1/models/org/part:free', '/v1/models/{model_id}'],
    ['/completions', '/v1/completions'],
    ['/rerank', '/v1/rerank'],
    ['/models/gemini-2.5-pro:generateContent', '/v1beta/models/{model}:generateContent'],
    ['/v1beta/v1beta/models/g:countTokens', '/v1beta/models/{model}:countTokens'],
    ['/v1alpha/models/g%3AstreamGenerateContent', '/v1beta/models/{model}:streamGenerateContent'],
    ['/v1beta/models/g:generatecontents', '/v1beta/models/{model}:generateContent'],
    ['/v2/v2/rerank', '/v2/rerank'],
    ['/v2/v1/rerank', '/v1/rerank'],
    ['/v1/rerank/v2/rerank', '/v2/rerank'],
  ])('the path meant by %s is %s', (path, meant) => {
    expect(paths.suggest(path)).toBe(meant)
  })
})

describe('paths without a suggestion', () => {
  test.each([
    '/',
    '',
    '/v1',
    '/favicon.ico',
    '/v1/vector_stores',
    '/v1/threads/a/messages',
    '/v1beta/models/gemini-2.5-pro:predict',
    '/v1beta/models/gemini-2.5-pro',
    '/.env',
    '/etc/passwd',
    '/../../etc/passwd',
    '/v1/assistants',
    '/v1/decisions',
    '/v1/messages/agents',
    '/v1/fine_tuning/jobs',
    `/v1/chat/completions${'/x'.repeat(5000)}`,
    `${'/v1'.repeat(5000)}/messages`,
  ])('no path is suggested for %s', (path) => {
    expect(paths.suggest(path)).toBeUndefined()
  })
})
